"""How every command reads the selected tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import TypeVar

from tablectl.commands.project import Project
from tablectl.commands.selection import LocatedTable, Selection, failure_of, locate
from tablectl.log.reader import Reading, ReadRequest, read_each
from tablectl.model.errors import TablectlError
from tablectl.model.plan import TableFailure
from tablectl.model.table import Depth, LiveTable
from tablectl.policies.spec import Specs, TableSpec

_Made = TypeVar("_Made")
OnRead = Callable[[int, int], None]
"""Progress callback: the number of tables that were read, and the number of all tables."""


def ignore_progress(_done: int, _all: int) -> None:
    """Does nothing."""


def locate_tables(project: Project, specs: Specs, selection: Selection) -> LocatedTable:
    """The selected tables with their locations. Policies that name no table are a failure. Raises as ``locate``."""
    located = locate(specs, selection, project.open_catalog, project.stores)
    if specs.tables or specs.patterns or selection.changed:
        return located
    hint = "declare tables or patterns under `tables:`; `tablectl import` writes policies of live tables"
    nothing = TableFailure(name="*", message="no policy names a table", hint=hint)
    return replace(located, failures=(*located.failures, nothing))


def sorted_failures(failures: Iterable[TableFailure]) -> tuple[TableFailure, ...]:
    """The failures in the order of plans: by table and message."""
    return tuple(sorted(failures, key=lambda failure: (failure.name, failure.message)))


def read_tables(
    project: Project,
    located: LocatedTable,
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    make: Callable[[TableSpec, Reading], _Made],
    on_read: OnRead,
    failures: list[TableFailure],
) -> Iterator[tuple[TableSpec, _Made]]:
    """What ``make`` makes of each live table, read to the depth that ``depth_of`` returns. Unreadable ones are added to
    ``failures``. ``make`` runs where the table was read (``read_each``).
    """
    tables = located.tables
    found = read_each(
        (ReadRequest(spec.name, location, partial(_depth, depth_of, spec)) for spec, location in tables),
        lambda reading: make(tables[reading.position][0], reading),
        cache=project.cache,
        options=project.stores,
    )
    with closing(found):
        for done, ((spec, _), made) in enumerate(zip(tables, found, strict=True), 1):
            on_read(done, len(tables))
            if isinstance(made, TablectlError):
                failures.append(failure_of(spec.name.text, made))
            else:
                yield spec, made


def _depth(depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]], spec: TableSpec, live: LiveTable) -> Depth:
    """The depth of a table, found where the table is read: an error there is the table's."""
    return depth_of(spec)(live)
