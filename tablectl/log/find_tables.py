"""Finds tables: what patterns match and where names lead, in catalogs and in directories.

In a catalog, one statement per schema expands any number of patterns and looks up any number of names. A path pattern
matches directories with a ``_delta_log``, which are listed level by level.
"""

from __future__ import annotations

import os
import stat
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Any, TypeVar

from tablectl.delta.locations import canonical_location, is_local
from tablectl.delta.names import LOG, NameSyntaxError, TableName, find_name, parse_table
from tablectl.engine.interface import SIMPLE_NAME, Catalog
from tablectl.model.errors import BrokenTableError, EngineError, LiveError, TablectlError, of_table, one_table
from tablectl.model.patterns import (
    ANY_DEPTH,
    CatalogPattern,
    PathPattern,
    PatternIndex,
    index_globs,
    index_patterns,
    literal_text,
    step_matches,
)
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import DENIED, VanishedError

_STATEMENTS = 8
"""The maximum number of statements at the same time."""
_AT_ONCE = 100
"""The maximum number of names in one statement."""
_BROKEN = (EngineError, BrokenTableError)
_Schema = tuple[str, str]
_Looked = dict[TableName, str | TablectlError]


@dataclass(frozen=True, slots=True)
class PatternMatches:
    """The live Delta tables that were found, and the failures."""

    tables: Mapping[TableName, str] = field(default_factory=dict)
    """Each table's location."""
    failures: tuple[tuple[str, TablectlError], ...] = ()
    """Failed lookups, by the name of a table or the text of a pattern."""

    others: tuple[str, ...] = ()
    """Why what matches is not a Delta table: a sentence for each view and each table of another format."""

    @staticmethod
    def all(parts: Iterable[PatternMatches]) -> PatternMatches:
        """Merges several results."""
        every = tuple(parts)
        tables = {name: where for each in every for name, where in each.tables.items()}
        failures = tuple(failure for each in every for failure in each.failures)
        return PatternMatches(tables, failures, tuple(other for each in every for other in each.others))


def find_tables(patterns: Sequence[CatalogPattern], catalog: Catalog) -> PatternMatches:
    """The Delta tables that patterns match. A schema that cannot be listed is a failure of every pattern that needs it.

    Patterns are grouped by their schema, so that neither tables nor schemas are compared with each pattern.
    """
    failures: list[tuple[str, TablectlError]] = []
    groups: dict[tuple[str, str], list[CatalogPattern]] = {}
    for pattern in patterns:
        groups.setdefault((pattern.catalog, pattern.schema.casefold()), []).append(pattern)
    schemas: dict[_Schema, list[list[CatalogPattern]]] = {}
    catalogs: dict[str, list[list[CatalogPattern]]] = {}
    for group in groups.values():
        named = literal_text(group[0].schema)
        if named is None:
            catalogs.setdefault(group[0].catalog, []).append(group)
        else:
            schemas.setdefault((group[0].catalog, named), []).append(group)
    for name, several in catalogs.items():
        listed = of_table(name, partial(catalog.schemas, name))
        if not isinstance(listed, TablectlError):
            _file(name, listed, several, schemas)
        else:
            failures += [(pattern.text, listed) for group in several for pattern in group]
    index = index_patterns(patterns)

    def matches(name: TableName) -> bool:
        return any(patterns[place].matches(name) for place in index.candidates(name))

    def find(item: tuple[_Schema, list[list[CatalogPattern]]]) -> PatternMatches | TablectlError:
        some = list(islice(chain.from_iterable(item[1]), _AT_ONCE + 1))
        return of_table(".".join(item[0]), lambda: _find_in_schema(item[0], some, matches, catalog))

    with ThreadPoolExecutor(_STATEMENTS) as pool:
        found = list(pool.map(find, schemas.items()))
    failed = set[tuple[str, str]]()
    for several, result in zip(schemas.values(), found, strict=True):
        if isinstance(result, TablectlError):
            # Each pattern once, and a pattern for each schema: not each pattern for each schema.
            new = [group for group in several if (group[0].catalog, group[0].schema.casefold()) not in failed]
            failed |= {(group[0].catalog, group[0].schema.casefold()) for group in new}
            failures += [(pattern.text, result) for pattern in (chain.from_iterable(new) if new else several[0][:1])]
    tables = [result for result in found if isinstance(result, PatternMatches)]
    return PatternMatches.all((PatternMatches(failures=tuple(failures)), *tables))


def _file(
    catalog: str,
    names: Iterable[str],
    groups: Sequence[list[CatalogPattern]],
    schemas: dict[_Schema, list[list[CatalogPattern]]],
) -> None:
    """Adds the groups that a schema concerns to it."""
    index = index_globs([group[0].schema.casefold() for group in groups])
    for name in names:
        for place in index.candidates_of(name.casefold()):
            if groups[place][0].matches_schema(name):
                schemas.setdefault((catalog, name), []).append(groups[place])


def _find_in_schema(
    schema: _Schema, some: Sequence[CatalogPattern], matches: Callable[[TableName], bool], catalog: Catalog
) -> PatternMatches:
    """The tables of a schema that match. ``some`` are the first patterns that concern it."""
    like = _like([pattern.table for pattern in some]) if len(some) <= _AT_ONCE else "*"
    looked = catalog.tables(schema[0], schema[1], like)
    matched = {name: where for name, where in looked.items() if matches(name)}
    # A pattern can only mean Delta tables, so others do not fail.
    return PatternMatches(
        {name: where for name, where in matched.items() if isinstance(where, str)},
        tuple((name.text, where) for name, where in matched.items() if isinstance(where, _BROKEN)),
        tuple(
            where.message
            for where in matched.values()
            if isinstance(where, LiveError) and not isinstance(where, _BROKEN)
        ),
    )


def locate_tables(names: Iterable[TableName], catalog: Catalog) -> _Looked:
    """Each table's location, or the error of its lookup."""
    schemas: dict[tuple[str, str, str], list[TableName]] = {}
    for name in names:
        # A name with special characters for LIKE is looked up separately.
        alone = "" if SIMPLE_NAME.fullmatch(name.parts[1]) else name.parts[1]
        schemas.setdefault((name.catalog, name.parts[0], alone), []).append(name)
    groups = [
        tables[start : start + _AT_ONCE] for tables in schemas.values() for start in range(0, len(tables), _AT_ONCE)
    ]
    with ThreadPoolExecutor(_STATEMENTS) as pool:
        looked = pool.map(lambda group: _locate_in_schema(group, catalog), groups)
        return {name: where for each in looked for name, where in each.items()}


def _locate_in_schema(names: Sequence[TableName], catalog: Catalog) -> _Looked:
    if len(names) == 1:
        return {names[0]: _location(names[0], catalog)}
    like = "|".join(name.parts[1] for name in names)
    schema = names[0].catalog, names[0].parts[0]
    looked = of_table(".".join(schema), lambda: catalog.tables(*schema, like))
    if isinstance(looked, TablectlError):
        return dict.fromkeys(names, looked)
    return {name: find_name(looked, name) or _location(name, catalog) for name in names}


def _location(name: TableName, catalog: Catalog) -> str | TablectlError:
    return of_table(name.text, lambda: catalog.location(name))


def _like(globs: Sequence[str]) -> str:
    """The globs in the engine's syntax; everything if one of them cannot be expressed in it."""
    simple = all(SIMPLE_NAME.fullmatch(part) for glob in globs for part in glob.split("*") if part)
    return "|".join(globs) if simple else "*"


MOST = 100_000
"""The maximum number of directories per level of one pattern. More indicate a mistake in the pattern."""
_LISTINGS = 16
"""The maximum number of prefixes of object stores that are listed at the same time."""
_MOST_TOLD = 10_000
"""The number of failures above which a directory that cannot be listed is a failure of one pattern only."""
_DEFAULT = StoreOptions()
_SEARCH_SECONDS = 600.0
"""How long the folders of a place are searched."""
_NAMED = 3
"""The number of folders that were not entered which a message names."""
_Steps = tuple[str, ...]
_Answer = TypeVar("_Answer")


def find_paths(
    patterns: Iterable[PathPattern],
    options: StoreOptions = _DEFAULT,
    *,
    folders: int = MOST,
    seconds: float = _SEARCH_SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> PatternMatches:
    """The tables that patterns match. A directory that cannot be listed is a failure of its patterns, and the others
    are still listed. Directories inside a table are not searched.

    Patterns of one base are searched together: each directory is listed once, and its names are found in an index.
    A pattern of any depth enters at most so many ``folders``, for so many ``seconds`` of ``clock``. It fails if there
    are more, and what it found until then counts.
    """
    groups: dict[tuple[str, bool], list[PathPattern]] = {}
    for pattern in patterns:
        groups.setdefault((pattern.base, pattern.is_deep), []).append(pattern)
    disk = _Disk()
    with Stores(options) as stores, ThreadPoolExecutor(_LISTINGS) as pool:
        buckets = _Buckets(stores)

        def walk(base: str, group: Sequence[PathPattern]) -> PatternMatches:
            bound = _Bound(folders, clock() + seconds, clock)
            if is_local(base):
                return _Walk(tuple(group), disk, map, bound).run()
            return _Walk(tuple(group), buckets, pool.map, bound).run()

        return PatternMatches.all(walk(base, group) for (base, _), group in groups.items())


@dataclass(slots=True)
class _Bound:
    """How far a search at any depth may go."""

    folders: int
    """How many more it may enter."""
    until: float
    clock: Callable[[], float]
    late: list[str] = field(default_factory=list)
    """The folders that it did not enter."""

    def enters(self, location: str) -> bool:
        """Counts a folder. Threads may call it together: a few more or less do not matter."""
        if self.folders > 0 and self.clock() < self.until:
            self.folders -= 1
            return True
        self.late.append(location)
        return False


@dataclass(frozen=True, slots=True)
class _Linked:
    """A link, its target, and the path of that below the base of the pattern; "" if it is not below the base."""

    link: str
    place: str
    below: str


class _Disk:
    """Directories on this machine. Listing is sequential, because threads would cost more than they gain."""

    def linked(self, base: str, location: str) -> _Linked | None:
        """The location of a table's log, if a link below the base leads to it; otherwise ``None``. One check
        per level.
        """
        top, path = canonical_location(base).rstrip("/"), canonical_location(location)
        names = path.removeprefix(f"{top}/").split("/")
        steps = ("/".join((top, *names[: count + 1])) for count in range(len(names)))
        first = next(filter(os.path.islink, (*steps, f"{path}/{LOG}")), None)
        if first is None:
            return None
        link = first if first == f"{path}/{LOG}" else path
        log = os.path.realpath(f"{path}/{LOG}")
        real, inside = log.removesuffix(f"/{LOG}"), f"{os.path.realpath(top)}/"
        return _Linked(link, real, real.removeprefix(inside) if real != log and real.startswith(inside) else "")

    def is_link(self, location: str) -> bool:
        """Whether a directory is a link to one."""
        return os.path.islink(canonical_location(location))  # noqa: PTH114  # of a text, for each folder

    def begun(self, location: str) -> bool:
        """Whether a directory is a table, or would be one by a link. Raises ``LiveError`` if that may not be known."""
        try:
            mode = os.lstat(f"{canonical_location(location)}/{LOG}").st_mode
        except PermissionError as error:
            raise LiveError(f"{location}: cannot be read: permission denied", DENIED) from error
        except (OSError, ValueError):
            return False
        return stat.S_ISDIR(mode) or stat.S_ISLNK(mode)

    def folders(self, location: str) -> list[str]:
        """The names of the directories in a directory."""
        try:
            with os.scandir(canonical_location(location)) as found:
                return [each.name for each in found if _may_be_folder(each)]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise VanishedError(f"{location}: no such directory") from error
        except OSError as error:
            raise LiveError(f"{location}: cannot be listed: {error.strerror}") from error


def _may_be_folder(entry: os.DirEntry[str]) -> bool:
    """Whether a name is a directory, or a link to one. A link that leads to itself is none; of one that leads where
    this process may not go, whoever follows it says so.
    """
    try:
        return entry.is_dir()
    except PermissionError:
        return True
    except OSError:
        return False


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Prefixes in object stores."""

    stores: Stores

    def linked(self, _base: str, _location: str) -> _Linked | None:
        """Always ``None``: object stores have no links."""
        return None

    def is_link(self, _location: str) -> bool:
        """Always false, as above."""
        return False

    def begun(self, location: str) -> bool:
        """Whether a prefix is a table."""
        return self.stores.open_object(location).begun()

    def folders(self, location: str) -> list[str]:
        """The next path segments below a prefix."""
        return self.stores.open_object(location).folders()


@dataclass(frozen=True, slots=True)
class _Globs:
    """The globs of one level, each with the patterns that have it there."""

    literal: dict[str, list[int]]
    """By the only name that a glob matches."""
    globs: tuple[str, ...]
    patterns: tuple[list[int], ...]
    index: PatternIndex

    @staticmethod
    def of(steps: Iterable[tuple[int, str]]) -> _Globs:
        """The globs of pairs of a pattern and its glob."""
        literal: dict[str, list[int]] = {}
        others: dict[str, list[int]] = {}
        for place, glob in steps:
            named = literal_text(glob)
            if named is None:
                others.setdefault(glob, []).append(place)
            else:
                literal.setdefault(named, []).append(place)
        return _Globs(literal, tuple(others), tuple(others.values()), index_globs(tuple(others)))

    def matching(self, name: str) -> list[int]:
        """The patterns whose glob is not literal and matches a name."""
        places = (place for place in self.index.candidates_of(name) if step_matches(name, self.globs[place]))
        return [each for place in places for each in self.patterns[place]]


_Level = dict[_Steps, list[int]]
"""Directories that match the same number of path segments, each with the patterns that lead to it."""


@dataclass(frozen=True, slots=True)
class _Walk:
    """The search for all patterns of one base, level by level."""

    patterns: tuple[PathPattern, ...]
    place: _Disk | _Buckets
    each: Callable[..., Iterable[Any]]
    """``map``, or a function that runs requests in parallel."""
    bound: _Bound
    known: dict[_Steps, bool] = field(default_factory=dict)
    """Whether a directory is a table, if that was asked: each directory of an object store is asked once."""

    def run(self) -> PatternMatches:
        failures: list[tuple[str, TablectlError]] = []
        level: _Level = {(): list(range(len(self.patterns)))}
        begun = dict[_Steps, list[int]]()
        depth = 0
        while level:
            ended = {steps: [each for each in places if self._ends(each, depth)] for steps, places in level.items()}
            for steps, is_table in self._ask(self._begun, {key: each for key, each in ended.items() if each}, failures):
                begun |= {steps: ended[steps]} if is_table else {}
            level = self._narrow(self._next(level, depth, failures), failures)
            depth += 1
        self._tell_late(failures)
        names = dict.fromkeys(self._tables(begun, failures))
        usable = {name for name, _ in names if of_table(name.parts[0], partial(_usable, name)) is True}
        for name, place in [(name, place) for name, place in names if name not in usable]:
            error = LiveError(f"{name.parts[0]!r} is a table whose name cannot be written", "rename the directory")
            failures.append((self.patterns[place].text, error))
        return PatternMatches(
            {name: name.parts[0] for name in dict.fromkeys(name for name, _ in names) if name in usable},
            tuple(failures),
        )

    def _ends(self, place: int, depth: int) -> bool:
        """Whether a pattern can match a table so many levels below the base."""
        return depth > 0 if self.patterns[place].is_deep else len(self.patterns[place].steps) == depth

    def _goes_on(self, place: int, depth: int) -> bool:
        return self.patterns[place].is_deep or len(self.patterns[place].steps) > depth

    def _glob(self, place: int, depth: int) -> str:
        steps = self.patterns[place].steps
        return "*" if steps == (ANY_DEPTH,) else steps[depth]

    def _tell_late(self, failures: list[tuple[str, TablectlError]]) -> None:
        late = sorted(self.bound.late)
        if not late:
            return
        more = f" and {len(late) - _NAMED:,} more" if len(late) > _NAMED else ""
        error = LiveError(
            f"the search stopped before its end: not entered: {', '.join(late[:_NAMED])}{more}",
            "name these folders, or write a pattern that leads to the tables, such as /lake/*/*",
        )
        failures += [(pattern.text, error) for pattern in self.patterns]

    def _next(self, level: _Level, depth: int, failures: list[tuple[str, TablectlError]]) -> _Level:
        """The directories one level below."""
        going = {steps: [each for each in places if self._goes_on(each, depth)] for steps, places in level.items()}
        going = {steps: places for steps, places in going.items() if places}
        known: dict[tuple[int, ...], _Globs] = {}

        def globs_of(places: list[int]) -> _Globs:
            key = tuple(places)
            if key not in known:
                known[key] = _Globs.of((place, self._glob(place, depth)) for place in places)
            return known[key]

        globs = {steps: globs_of(places) for steps, places in going.items()}
        below: _Level = {}
        for steps, names in self._ask(lambda steps: self._below(globs[steps], steps), going, failures):
            for name, places in names.items():
                below[*steps, name] = places
        return below

    def _narrow(self, level: _Level, failures: list[tuple[str, TablectlError]]) -> _Level:
        """The level without the patterns that lead to too many directories."""
        counts = Counter(place for places in level.values() for place in places if not self.patterns[place].is_deep)
        wide = {place for place, count in counts.items() if count > MOST}
        if not wide:
            return level
        error = LiveError(f"leads to more than {MOST:,} directories", "write a narrower pattern")
        failures += [(self.patterns[place].text, error) for place in sorted(wide)]
        left = {steps: [each for each in places if each not in wide] for steps, places in level.items()}
        return {steps: places for steps, places in left.items() if places}

    def _ask(
        self, question: Callable[[_Steps], _Answer], level: _Level, failures: list[tuple[str, TablectlError]]
    ) -> list[tuple[_Steps, _Answer]]:
        """The answers for directories. A failure is one of each pattern that leads to the directory."""

        def ask(steps: _Steps) -> _Answer | TablectlError:
            location = self._location(steps)
            with_name = one_table(location)(question)
            return of_table(location, lambda: with_name(steps))

        answers: list[tuple[_Steps, _Answer | TablectlError]] = list(zip(level, self.each(ask, level), strict=True))
        for steps, answer in answers:
            if isinstance(answer, TablectlError):
                self._fail(level[steps], answer, failures)
        return [(steps, answer) for steps, answer in answers if not isinstance(answer, TablectlError)]

    def _fail(self, places: Sequence[int], error: TablectlError, failures: list[tuple[str, TablectlError]]) -> None:
        """Adds a failure of the first pattern, and of others up to a limit: a thousand directories that cannot be
        listed are not a million failures.
        """
        told = places if len(failures) < _MOST_TOLD else places[:1]
        failures += [(self.patterns[place].text, error) for place in told]

    def _below(self, globs: _Globs, steps: _Steps) -> dict[str, list[int]]:
        """The names below a directory, with the patterns that they match."""
        deep = self.patterns[0].is_deep  # as all patterns of the walk are
        if self._begun(steps) or (deep and not self._enters(steps)):
            return {}
        found = {name: list(places) for name, places in globs.literal.items()}
        if not globs.globs:
            return found
        try:
            names = self.place.folders(self._location(steps))
        except VanishedError:
            if steps:  # only here does a literal segment prove to be missing; a missing base is an error in the policy
                return found
            raise
        for name in sorted(names):
            if places := globs.matching(name):
                found[name] = sorted([*found.get(name, ()), *places])
        return found

    def _enters(self, steps: _Steps) -> bool:
        """Whether a search at any depth goes into a directory. Raises ``LiveError`` for a link that leads out of the
        base. One that stays below it leads where the search comes anyway, or back to where it is.
        """
        location = self._location(steps)
        if steps and self.place.is_link(location):
            leads_to = self.place.linked(self.patterns[0].base, location)
            below = leads_to.below if leads_to else ""
            if leads_to and not (below and self.patterns[0].takes(below.split("/"))):
                raise LiveError(
                    f"{location}: left out: it is a link to {leads_to.place}", "name the folder that it leads to"
                )
            return False
        return self.bound.enters(location)

    def _begun(self, steps: _Steps) -> bool:
        if steps not in self.known:
            self.known[steps] = self.place.begun(self._location(steps))
        return self.known[steps]

    def _tables(self, begun: _Level, failures: list[tuple[str, TablectlError]]) -> Iterator[tuple[TableName, int]]:
        """The tables in directories, with links resolved, each with one pattern that matches it.

        The result of a link counts only if the pattern matches it, too: a user who can only write next to the tables
        must not bring another table under the policy with a link.
        """
        base = self.patterns[0].base
        for steps, leads_to in self._ask(lambda steps: self.place.linked(base, self._location(steps)), begun, failures):
            real = tuple(leads_to.below.split("/")) if leads_to is not None and leads_to.below else ()
            if leads_to is None:
                yield self.patterns[0].table(steps), begun[steps][0]
                continue
            for place in begun[steps]:
                if real and self.patterns[place].takes(real):
                    yield self.patterns[0].table(real), place
                    continue
                error = LiveError(
                    f"{leads_to.link}: left out: it is a link to {leads_to.place}, which the pattern does not match",
                    "declare the table under the path that the link leads to",
                )
                failures.append((self.patterns[place].text, error))

    def _location(self, steps: _Steps) -> str:
        return self.patterns[0].table(steps).parts[0]


def _usable(name: TableName) -> bool:
    """Whether plan files can contain the name. Names on a disk can be invalid text or contain line breaks."""
    try:
        return parse_table(name.text) == name and bool(name.text.encode())
    except (NameSyntaxError, UnicodeEncodeError):
        return False
