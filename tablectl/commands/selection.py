"""Selects the tables of a command and locates them: expands patterns, applies the selection, looks up names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from tablectl.attributes.policy import changed_values, needs_of
from tablectl.delta.names import TableName, matches
from tablectl.documents.style import plural
from tablectl.engine.port import Catalog
from tablectl.log.find_tables import PatternMatches, find_paths, find_tables, locate_tables
from tablectl.model.errors import EngineError, LiveError, MissingError, TablectlError, UsageError, of_table
from tablectl.model.patterns import (
    CatalogPattern,
    GlobBeginnings,
    NameGlobs,
    PathPattern,
    TablePattern,
    index_globs,
    index_patterns,
)
from tablectl.model.plan import TableFailure
from tablectl.model.table import Depth, LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.merge_plans import Shard
from tablectl.policies.effective_policy import is_word
from tablectl.policies.layers import Layer
from tablectl.policies.repository import ASKED
from tablectl.policies.spec import Specs, TableSpec, digest_of_tables, expand
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.storage.mounts import real_place
from tablectl.storage.object_stores import StoreOptions
from tablectl.support.frozen import frozen

_DEFAULT_STORES = StoreOptions()
_RIGHTS = "check the pattern and the rights of the login: a catalog lists only the tables that the login may see"
NO_TABLE = "matches no table"
"""Why a pattern of the command line failed."""
_TOO_FEW = f"{_RIGHTS}. If there are none yet, declare `may_be_empty: true` under the pattern"


@frozen
class ChangedSince:
    """The choice of tables whose policies differ from those at a commit."""

    commit: str
    differ: Callable[[TableSpec], bool]
    """Whether a table's policy does."""
    whole: bool = True
    """Whether the specs are those of all policy files; otherwise a glob can match tables that are not among them."""


@frozen
class Selection:
    """The tables that a command selects: those that match any glob and any tag. An empty selection selects
    all tables.
    """

    globs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Globs of tables to exclude. They take precedence."""
    shard: Shard | None = None
    """The part of the selected tables to read; ``None`` for all of them."""
    changed: ChangedSince | None = None
    """``None`` to take tables whose policies did not change, too."""

    def of(self, specs: Specs, *, complete: bool = True) -> tuple[TableSpec, ...]:
        """The selected tables. Raises ``UsageError`` for a glob or tag that matches none: a typo must not look like
        success.

        If the specs are not ``complete``, because a pattern could not be looked up, this check is skipped.
        """
        wanted, unwanted = _matching(self.globs, specs), _matching(self.excluded, specs)
        selected = tuple(
            spec
            for spec, these, others in zip(specs.tables, wanted, unwanted, strict=True)
            if (not self.globs or these) and not others and (not self.tags or set(self.tags) & set(spec.tags))
        )
        if complete and (self.changed is None or self.changed.whole):
            _check_matched("--select", self.globs, wanted)
            _check_matched("--exclude", self.excluded, unwanted)
            self._check(specs, selected)
        return selected if self.changed is None else tuple(filter(self.changed.differ, selected))

    def _check(self, specs: Specs, selected: Sequence[TableSpec]) -> None:
        tagged = {tag for spec in specs.tables for tag in spec.tags}
        for tag in self.tags:
            if tag not in tagged:
                known = ", ".join(sorted(tagged)) or "there are none"
                raise UsageError(f"--tag {tag!r} is on no table", f"tags in these policies: {known}")
        if specs.tables and not selected and self.excluded:
            raise UsageError("--exclude leaves no table", "exclude less, or select other tables")
        if specs.tables and not selected:
            raise UsageError("no table is both in --select and in --tag", "leave one of the two out")

    def concerned(self, patterns: Iterable[TablePattern]) -> list[TablePattern]:
        """The patterns that can yield a selected table. Compares how names begin, so that a plan of one table does not
        list catalogs that cannot contain it.
        """
        if not self.globs:
            return list(patterns)
        globs = ["*" if _is_short(each) else each for each in self.globs]
        paths, names = GlobBeginnings.of(globs), GlobBeginnings.of(glob.casefold() for glob in globs)
        return [
            each
            for each in patterns
            if any(map((names if isinstance(each, CatalogPattern) else paths).may_match, each.prefixes))
        ]


def _matching(globs: Sequence[str], specs: Specs) -> list[frozenset[int]]:
    """The positions of the globs that match each table."""
    index = NameGlobs.of([_glob(each) for each in globs])
    short = [place for place, glob in enumerate(globs) if _is_short(glob)]
    lasts = index_globs([globs[place].casefold() for place in short])
    return [
        index.matching(spec.name).union(
            short[each]
            for each in lasts.candidates_of(spec.name.last.casefold())
            if _calls(globs[short[each]], spec.name)
        )
        for spec in specs.tables
    ]


def selects(glob: str, name: TableName) -> bool:
    """Whether a glob of ``--select`` selects a table."""
    return matches(name, _glob(glob)) or (_is_short(glob) and _calls(glob, name))


def _glob(text: str) -> str:
    """A word alone selects the tables that people call so: by the last part of their names."""
    return f"*[./]{text}" if is_word(text) else text


def _is_short(glob: str) -> bool:
    """Whether a glob can be that of the last part of names: ``or*``."""
    return not any(map(glob.count, "./`"))


def _calls(glob: str, name: TableName) -> bool:
    return fnmatchcase(name.last.casefold(), glob.casefold())


def _check_matched(option: str, globs: Sequence[str], found: Sequence[frozenset[int]]) -> None:
    matched = frozenset[int]().union(*found)
    for place, glob in enumerate(globs):
        if place not in matched:
            hint = "try a glob such as 'lake.sales.*' or '*orders*'"
            raise UsageError(f"{option} {glob!r} matches no table", hint)


OpenCatalog = Callable[[], Catalog]
"""Opens the catalog of an engine, and starts the engine if necessary. Called only if the policies do not locate a
table.
"""


@frozen
class LocatedTable:
    """The selected tables with their locations."""

    tables: tuple[tuple[TableSpec, str], ...]
    failures: tuple[TableFailure, ...]
    """Tables that could not be located, and patterns that could not be looked up or match too few tables."""
    unmatched: tuple[str, ...]
    """Patterns that match no live table, and may."""
    others: tuple[str, ...] = ()
    """Why something that a pattern matches is not a Delta table."""
    policies: str = ""
    """``Plan.policies``."""
    changed_since: str = ""
    """``Plan.changed_since``."""


def locate(
    specs: Specs, selection: Selection, catalog: OpenCatalog, stores: StoreOptions = _DEFAULT_STORES
) -> LocatedTable:
    """Expands patterns, selects tables, and locates them. Raises as ``expand`` and ``Selection.of``."""
    patterns = selection.concerned(specs.patterns)
    found = _one_case_each(_find(patterns, catalog, stores))
    selected = selection.of(expand(specs, found.tables), complete=not found.failures)
    declared = {each.pattern: each for each in specs.declarations.patterns}
    places = {each.text: declared[each].source for each in patterns if declared[each].source.file == ASKED}
    failures = _one_each(places, found.failures)
    failed = {name for name, _ in found.failures}
    lost = {places[name] for name in failed & places.keys()}
    index = index_patterns(patterns)
    counts = Counter(at for name in found.tables for at in index.candidates(name) if patterns[at].matches(name))
    counted = _counted((declared[each], counts[at]) for at, each in enumerate(patterns) if each.text not in failed)
    if not (selection.globs or selection.tags):  # a glob or tag that selects nothing is an error of its own
        looked = ((each, count) for each, count in counted if each.source not in lost)
        failures += [_too_few(each, count) for each, count in looked if not _fits(each, count)]
    unmatched = (each.text for each, count in counted if not count and _fits(each, count))
    locations = _locate(selected, catalog)
    failures += [failure_of(name.text, where) for name, where in locations.items() if not isinstance(where, str)]
    known = ((spec, locations[spec.name]) for spec in selected)
    placed, shared = _one_name_each([(spec, where) for spec, where in known if isinstance(where, str)])
    # Only now, so that every shard notices a table with two names.
    mine = tuple(each for each in placed if selection.shard is None or selection.shard.has(each[0].name.key))
    return LocatedTable(
        tables=mine,
        failures=(*failures, *shared),
        unmatched=tuple(sorted(unmatched)),
        others=tuple(sorted(found.others)),
        policies=digest_of_tables(selected) if selection.changed else specs.digest,
        changed_since=selection.changed.commit if selection.changed else "",
    )


def _one_each(places: Mapping[str, SourceFile], failures: Sequence[tuple[str, TablectlError]]) -> list[TableFailure]:
    """The failures of patterns. The patterns of one place on the command line fail together."""
    found: dict[tuple[SourceFile | str, str], TableFailure] = {}
    for name, error in failures:
        found.setdefault((places.get(name, name), error.message), failure_of(name, error))
    return list(found.values())


def _counted(counts: Iterable[tuple[Layer, int]]) -> list[tuple[Layer, int]]:
    """How many tables each pattern matches. Those of one place on the command line are counted together."""
    found: dict[SourceFile, tuple[Layer, int]] = {}
    for layer, count in counts:
        first, before = found.get(layer.source, (layer, 0))
        found[layer.source] = first, before + count
    return list(found.values())


def _fits(pattern: Layer, count: int) -> bool:
    return count >= pattern.min_tables or (count == 0 and pattern.may_be_empty)


def _too_few(pattern: Layer, count: int) -> TableFailure:
    """A catalog lists only what the login may see. So fewer tables than declared can mean a lost right."""
    if pattern.source.file == ASKED:
        return TableFailure(name=pattern.text, message=NO_TABLE, hint=_RIGHTS)
    least, place = pattern.min_tables, f"{pattern.source.file}:{pattern.source.line}"
    message = f"matches {plural(count, 'table')}, and `min_tables` is {least}" if count else "matches no table"
    return TableFailure(name=pattern.text, message=f"{message} ({place})", hint=_TOO_FEW)


def _find(patterns: Sequence[TablePattern], catalog: OpenCatalog, stores: StoreOptions) -> PatternMatches:
    found = find_paths([each for each in patterns if isinstance(each, PathPattern)], stores)
    named = [each for each in patterns if isinstance(each, CatalogPattern)]
    if not named:
        return found
    try:
        return PatternMatches.all((found, find_tables(named, catalog())))
    except EngineError as error:  # the engine does not start
        return PatternMatches.all((found, PatternMatches(failures=tuple((each.text, error) for each in named))))


def _one_case_each(found: PatternMatches) -> PatternMatches:
    """The tables whose names differ in more than letter case. Policies, like Spark, take such names for one table, and
    a catalog that keeps the case can hold both.
    """
    names: dict[str, list[TableName]] = {}
    for name in found.tables:
        if not name.is_path:  # a directory has several spellings
            names.setdefault(name.key, []).append(name)
    several = [each for each in names.values() if len({found.tables[name] for name in each}) > 1]
    told = [(one, other) for each in several for one, other in zip(each, [*each[1:], each[0]], strict=True)]
    hint = "give one of them another name"
    errors = [
        (one.text, LiveError(f"its name differs from {other.text} in letter case alone", hint)) for one, other in told
    ]
    twice = {one for one, _ in told}
    tables = {name: where for name, where in found.tables.items() if name not in twice}
    return PatternMatches(tables, (*found.failures, *errors), found.others)


def _locate(specs: Sequence[TableSpec], catalog: OpenCatalog) -> Mapping[TableName, str | TablectlError]:
    known = {spec.name: spec.name.parts[0] if spec.name.is_path else spec.location for spec in specs}
    asked = [name for name, where in known.items() if not where]
    try:
        looked = locate_tables(asked, catalog()) if asked else {}
    except EngineError as error:  # as above
        looked = dict.fromkeys(asked, error)
    return {name: where or looked[name] for name, where in known.items()}


def _one_name_each(placed: Sequence[tuple[TableSpec, str]]) -> tuple[list[tuple[TableSpec, str]], list[TableFailure]]:
    """The tables to which only one name refers. Two policies for one table would undo each other in every run."""
    places = [of_table(spec.name.text, partial(real_place, location)) for spec, location in placed]
    names: dict[str, list[TableName]] = {}
    for (spec, _), where in zip(placed, places, strict=True):
        if isinstance(where, str):
            names.setdefault(where, []).append(spec.name)
    alone, shared = list[tuple[TableSpec, str]](), list[TableFailure]()
    for (spec, location), where in zip(placed, places, strict=True):
        if not isinstance(where, str):
            shared.append(failure_of(spec.name.text, where))
            continue
        others = [name.text for name in names[where] if name != spec.name]
        if others:
            message = f"the policies name this table twice: {' and '.join(others)} lies in {location} too"
            hint = "declare it under one name, and match it by no pattern under another"
            shared.append(TableFailure(name=spec.name.text, message=message, hint=hint))
        else:
            alone.append((spec, location))
    return alone, shared


def failure_of(name: str, error: TablectlError) -> TableFailure:
    """The plan's record of a failed table."""
    create = "if no job has made it yet, `tablectl create` makes it with its policy"
    hints = (error.hint, create if isinstance(error, MissingError) else "")
    return TableFailure(name=name, message=error.message, hint="; ".join(filter(None, hints)))


def depth_for(spec: TableSpec, look_back: int) -> Callable[[LiveTable], Depth]:
    """How deep to read a table, depending on its policy: the history of tables that change, and vectors and files if
    their number matters.
    """
    policy, options = spec.policy, spec.options

    def depth(live: LiveTable) -> Depth:
        declared = needs_of(policy.values(), options, live)
        if declared.entry and live.entry is None:
            return Depth(entry=True, partly=True)
        changes = diff(policy, live)
        changed = needs_of(changed_values(changes), options)
        counts = declared.vectors and live.vectors is None
        sized = changed.size and None in {live.files, live.bytes}
        truncation = declared.truncation & live.protocol.features
        marks = options.optimize if declared.clustering else None
        deeper = counts or bool(truncation) or marks is not None or bool(changes)
        looked = look_back if look_back and deeper else 0
        return Depth(looked, counts or sized, truncation=truncation, marks=marks, partly=True)

    return depth
