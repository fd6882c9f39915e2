"""Which tables are shallow clones of others, by the files that their logs name (``log.foreign_files``).

All tables of the policies are looked at, and all that lie in the folder of a table whose VACUUM is due, or where a
pattern of the policies looks for tables. So a clone counts whether or not a policy names it, and however it was made.
Clones in other places are not seen: docs/upkeep.md says so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from time import monotonic

from tablectl.commands.project import Project
from tablectl.commands.read_tables import locate
from tablectl.delta.locations import canonical_location, is_local
from tablectl.log.find_tables import find_paths
from tablectl.log.foreign_files import foreign_folders
from tablectl.log.worker_processes import in_order, threads_for
from tablectl.model.errors import MissingError, TablectlError, of_table, one_line
from tablectl.model.patterns import PathPattern
from tablectl.planning.plan_upkeep import ShallowClones, UpkeepTable
from tablectl.policies.declared_tables import Specs
from tablectl.storage.log_stores import Stores
from tablectl.storage.mounts import real_place

_LASTS = 60.0
"""Seconds for which one look at all tables serves the VACUUMs of a run."""


class CloneFinder:
    """Looks for the shallow clones of some tables. Thread-safe: one look serves all of them."""

    def __init__(
        self, project: Project, specs: Specs, tables: Iterable[UpkeepTable], now: Callable[[], float] = monotonic
    ) -> None:
        """``tables`` are those whose VACUUM is due. ``now`` is in seconds."""
        self._project = project
        self._specs = specs
        self._locations = tuple(each.location for each in tables)
        self._now = now
        self._lock = threading.Lock()
        self._found: dict[str, ShallowClones] = {}
        self._at: float | None = None

    def of(self, location: str) -> ShallowClones:
        """The clones of the table in a place, by a look that is at most ``_LASTS`` seconds old.

        Never raises: what cannot be looked at is named, and VACUUM does not run then.
        """
        with self._lock:
            if self._at is None or self._now() - self._at > _LASTS:
                found = of_table("", self._look)
                if isinstance(found, TablectlError):
                    found = dict.fromkeys(self._locations, ShallowClones(unread=(one_line(found),)))
                self._found = found
                self._at = self._now()
            return self._found[location]

    def _look(self) -> dict[str, ShallowClones]:
        tables, unread = self._tables()
        roots: dict[str, set[str]] = {}
        for location in self._locations:
            for root in _spellings(canonical_location(location)):
                roots.setdefault(root, set()).add(location)
        clones: dict[str, set[str]] = {each: set() for each in self._locations}
        looked = 0
        for name, folders in self._read(tables):
            if isinstance(folders, TablectlError):
                if not isinstance(folders, MissingError):
                    unread.append(f"{name}: {one_line(folders)}")
                continue
            looked += 1
            for source in {each for folder in folders for each in _above(folder, roots)}:
                if real_place(source) != real_place(tables[name]):
                    clones[source].add(name)
        return {each: ShallowClones(tuple(sorted(clones[each])), tuple(sorted(unread)), looked) for each in clones}

    def _tables(self) -> tuple[dict[str, str], list[str]]:
        """The tables to look at by name, with their locations, and why others cannot be."""
        project = self._project
        every = project.any_policies()
        specs = (self._specs,) if every.digest == self._specs.digest else (self._specs, every)
        tables, unread = dict[str, str](), list[str]()
        for one in specs:
            located = locate(project, one)
            tables |= {spec.name.text: where for spec, where in located.tables}
            unread += [f"{each.name}: {each.message}" for each in located.failures if each.name not in located.missing]
        neighbours = find_paths(_patterns_neighbours(self._locations, specs), project.stores)
        unread += [
            f"{name}: {one_line(error)}" for name, error in neighbours.failures if not isinstance(error, MissingError)
        ]
        known = {real_place(where) for where in tables.values()}
        tables |= {name.text: where for name, where in neighbours.tables.items() if real_place(where) not in known}
        return tables, unread

    def _read(self, tables: dict[str, str]) -> Iterator[tuple[str, frozenset[str] | TablectlError]]:
        with Stores(self._project.stores) as stores:

            def one(each: tuple[str, str]) -> tuple[str, frozenset[str] | TablectlError]:
                name, where = each
                return name, of_table(name, lambda: foreign_folders(stores, where))

            items = sorted(tables.items())
            yield from in_order(one, items, threads_for(tables.values(), self._project.stores))


def _patterns_neighbours(locations: Iterable[str], specs: Sequence[Specs]) -> tuple[PathPattern, ...]:
    """Patterns of all tables in the folders of these tables, and in those where path patterns of policies look."""
    folders = {(location.rstrip("/").rpartition("/")[0], 1) for location in locations}
    folders |= {
        (each.base, depth)
        for one in specs
        for each in one.patterns
        if isinstance(each, PathPattern)
        for depth in range(1, len(each.steps) + 1)
    }
    is_folder = [(base, depth) for base, depth in folders if base.strip("/") and not base.endswith(":/")]
    return tuple(PathPattern(base, ("*",) * depth) for base, depth in sorted(is_folder))


def _above(folder: str, roots: dict[str, set[str]]) -> Iterator[str]:
    """The tables in whose folder a folder lies, at any depth."""
    for place in _spellings(folder):
        parts = place.split("/")
        for count in range(1, len(parts) + 1):
            yield from roots.get("/".join(parts[:count]), ())


def _spellings(place: str) -> set[str]:
    """A canonical place as it is compared: on a disk also with links resolved, in a store by container and path alone.

    One container has several URIs: ``abfss`` and ``wasbs`` with different hosts, ``s3a`` with an endpoint. Two
    containers of one name in two accounts count as one: then VACUUM is refused without need.
    """
    if is_local(place):
        return {place, _real(place)}
    scheme, _, rest = place.partition("://")
    authority, _, path = rest.partition("/")
    if scheme == "dbfs":
        return {f"/dbfs/{path}", place}
    return {f"{authority.partition('@')[0]}/{path}".rstrip("/")}


@lru_cache(maxsize=10_000)
def _real(place: str) -> str:
    return os.path.realpath(place)
