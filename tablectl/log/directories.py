"""Finds the tables that path patterns match: directories with a ``_delta_log``, listed level by level."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tablectl.delta.layout import LOG
from tablectl.delta.names import NameSyntaxError, TableName, canonical_location, is_local, parse_table
from tablectl.log.pattern_matches import PatternMatches
from tablectl.model.errors import LiveError, TablectlError
from tablectl.model.patterns import PathPattern, literal_text, step_matches
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import VanishedError

MOST = 100_000
"""The maximum number of directories per level of one pattern. More indicate a mistake in the pattern."""
_CONCURRENCY = 16
_DEFAULT = StoreOptions()
_Steps = tuple[str, ...]
_Answer = TypeVar("_Answer")


def find_paths(patterns: Iterable[PathPattern], options: StoreOptions = _DEFAULT) -> PatternMatches:
    """The tables that patterns match. A directory that cannot be listed is a failure of its pattern, and the others are
    still listed. Directories inside a table are not searched.
    """
    disk = _Disk()
    with Stores(options) as stores, ThreadPoolExecutor(_CONCURRENCY) as pool:
        buckets = _Buckets(stores)
        return PatternMatches.all(
            _Walk(pattern, disk, map).run() if is_local(pattern.base) else _Walk(pattern, buckets, pool.map).run()
            for pattern in patterns
        )


@dataclass(frozen=True, slots=True)
class _Linked:
    """The target of a link, and its path below the base of the pattern; "" if it is not below the base."""

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
        if not any(map(os.path.islink, (*steps, f"{path}/{LOG}"))):
            return None
        log = os.path.realpath(f"{path}/{LOG}")
        real, inside = log.removesuffix(f"/{LOG}"), f"{os.path.realpath(top)}/"
        return _Linked(real, real.removeprefix(inside) if real != log and real.startswith(inside) else "")

    def begun(self, location: str) -> bool:
        """Whether a directory is a table."""
        return Path(canonical_location(location), LOG).is_dir()

    def folders(self, location: str) -> list[str]:
        """The names of the directories in a directory."""
        try:
            with os.scandir(canonical_location(location)) as found:
                return [each.name for each in found if each.is_dir()]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise VanishedError(f"{location}: no such directory") from error
        except OSError as error:
            raise LiveError(f"{location}: cannot be listed: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Prefixes in object stores."""

    stores: Stores

    def linked(self, _base: str, _location: str) -> _Linked | None:
        """Always ``None``: object stores have no links."""
        return None

    def begun(self, location: str) -> bool:
        """Whether a prefix is a table."""
        return self.stores.open_object(location).begun()

    def folders(self, location: str) -> list[str]:
        """The next path segments below a prefix."""
        return self.stores.open_object(location).folders()


@dataclass(frozen=True, slots=True)
class _Walk:
    """The search for one pattern. A level is the set of directories that match the same number of path segments."""

    pattern: PathPattern
    place: _Disk | _Buckets
    each: Callable[..., Iterable[Any]]
    """``map``, or a function that runs requests in parallel."""

    def run(self) -> PatternMatches:
        failures: list[tuple[str, TablectlError]] = []
        level: list[_Steps] = [()]
        for glob in self.pattern.steps:
            listed = self._ask(partial(self._below, glob), level, failures)
            level = [(*steps, name) for steps, names in listed for name in names]
            if len(level) > MOST:
                error = LiveError(f"leads to more than {MOST:,} directories", "write a narrower pattern")
                return PatternMatches(failures=((self.pattern.text, error),))
        begun = [steps for steps, begun in self._ask(self._begun, level, failures) if begun]
        real = self._ask(self._resolved, begun, failures)
        names = list(dict.fromkeys(self.pattern.table(steps) for _, steps in real))
        for name in names:
            if not _usable(name):
                error = LiveError(f"{name.parts[0]!r} is a table whose name cannot be written", "rename the directory")
                failures.append((self.pattern.text, error))
        return PatternMatches({name: name.parts[0] for name in names if _usable(name)}, tuple(failures))

    def _ask(
        self,
        question: Callable[[_Steps], _Answer],
        level: Sequence[_Steps],
        failures: list[tuple[str, TablectlError]],
    ) -> list[tuple[_Steps, _Answer]]:
        def ask(steps: _Steps) -> _Answer | LiveError:
            try:
                return question(steps)
            except LiveError as error:
                return error

        answers: list[tuple[_Steps, _Answer | LiveError]] = list(zip(level, self.each(ask, level), strict=True))
        failures += [(self.pattern.text, answer) for _, answer in answers if isinstance(answer, LiveError)]
        return [(steps, answer) for steps, answer in answers if not isinstance(answer, LiveError)]

    def _below(self, glob: str, steps: _Steps) -> list[str]:
        if self._begun(steps):
            return []
        named = literal_text(glob)
        if named is not None:
            return [named]
        try:
            return [name for name in self.place.folders(self._location(steps)) if step_matches(name, glob)]
        except VanishedError:
            if steps:  # only here does a literal segment prove to be missing; a missing base is an error in the policy
                return []
            raise

    def _begun(self, steps: _Steps) -> bool:
        return self.place.begun(self._location(steps))

    def _resolved(self, steps: _Steps) -> _Steps:
        """The path segments of the directory itself, with links resolved. Raises ``LiveError`` if the pattern does not
        match the result: a user who can only write next to the tables must not bring another
        table under the policy with a link.
        """
        location = self._location(steps)
        leads_to = self.place.linked(self.pattern.base, location)
        if leads_to is None:
            return steps
        real = tuple(leads_to.below.split("/")) if leads_to.below else ()
        if len(real) == len(self.pattern.steps) and all(map(step_matches, real, self.pattern.steps)):
            return real
        raise LiveError(
            f"{location}: left out: it is a link to {leads_to.place}, which the pattern does not match",
            "declare the table under the path that the link leads to",
        )

    def _location(self, steps: _Steps) -> str:
        return self.pattern.table(steps).parts[0]


def _usable(name: TableName) -> bool:
    """Whether plan files can contain the name. Names on a disk can be invalid text or contain line breaks."""
    try:
        return parse_table(name.text) == name and bool(name.text.encode())
    except (NameSyntaxError, UnicodeEncodeError):
        return False
