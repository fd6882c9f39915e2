"""The tables that path patterns match: directories with a ``_delta_log``, listed one step at a time."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tablectl.delta.layout import LOG
from tablectl.delta.names import NameSyntaxError, TableName, canonical_location, parse_table
from tablectl.log.pattern_matches import PatternMatches
from tablectl.log.store import Stores, is_local
from tablectl.log.table_log import VanishedError
from tablectl.model.errors import LiveError, TablectlError
from tablectl.model.patterns import PathPattern, literal_text, step_matches
from tablectl.storage.object_stores import StoreOptions

MOST = 100_000
"""Directories that one pattern may lead to at one step: more are a mistake in the pattern."""
_CONCURRENCY = 16
_DEFAULT = StoreOptions()
_Steps = tuple[str, ...]
_Answer = TypeVar("_Answer")


def find_paths(patterns: Iterable[PathPattern], options: StoreOptions = _DEFAULT) -> PatternMatches:
    """The tables that patterns match. A directory that cannot be listed is a failure of its pattern, and the others
    are listed all the same. A table's own directories are not entered.
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
    """What a link leads to: the place, and its path below the base of the pattern; "" where it is not below it."""

    place: str
    below: str


class _Disk:
    """Directories of this machine. Threads cost more here than answers do."""

    def linked(self, base: str, location: str) -> _Linked | None:
        """Where the log of the table at a location lies, if a link below the base leads to it. One look a step."""
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
        """The names of the directories in one."""
        try:
            with os.scandir(canonical_location(location)) as found:
                return [each.name for each in found if each.is_dir()]
        except (FileNotFoundError, NotADirectoryError) as error:
            raise VanishedError(f"{location}: no such directory") from error
        except OSError as error:
            raise LiveError(f"{location}: cannot be listed: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _Buckets:
    """Prefixes of object stores."""

    stores: Stores

    def linked(self, _base: str, _location: str) -> _Linked | None:
        """Never: there are no links."""
        return None

    def begun(self, location: str) -> bool:
        """Whether a prefix is a table."""
        return self.stores.open_object(location).begun()

    def folders(self, location: str) -> list[str]:
        """The next names below a prefix."""
        return self.stores.open_object(location).folders()


@dataclass(frozen=True, slots=True)
class _Walk:
    """One pattern. A level is the directories that as many steps as were taken lead to."""

    pattern: PathPattern
    place: _Disk | _Buckets
    each: Callable[..., Iterable[Any]]
    """``map``, or one that asks side by side."""

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
            if steps:  # that a literal step leads nowhere shows only here; the base is the policy's own word
                return []
            raise

    def _begun(self, steps: _Steps) -> bool:
        return self.place.begun(self._location(steps))

    def _resolved(self, steps: _Steps) -> _Steps:
        """The steps to the directory itself, where links were taken. Raises ``LiveError`` where the pattern does not
        match it: a link must not bring a table under the policy of those who may only write beside it.
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
    """Whether plan files can hold the name: a disk may have names that are no text, or break lines."""
    try:
        return parse_table(name.text) == name and bool(name.text.encode())
    except (NameSyntaxError, UnicodeEncodeError):
        return False
