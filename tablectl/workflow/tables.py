"""How every command reads the selected tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tablectl.log.reader import ReadRequest, read_many
from tablectl.model.errors import LiveError
from tablectl.model.plan import TableFailure
from tablectl.model.table import Depth, LiveTable
from tablectl.policies.spec import Specs, TableSpec
from tablectl.project import Project
from tablectl.selection import LocatedTable, Selection, failure_of, locate

OnRead = Callable[[int, int], None]
"""Progress callback: the number of tables that were read, and the number of all tables."""


def ignore_progress(_done: int, _all: int) -> None:
    """Does nothing."""


def locate_tables(project: Project, specs: Specs, selection: Selection) -> LocatedTable:
    """The selected tables with their locations. Raises as ``locate``."""
    return locate(specs, selection, project.open_catalog, project.stores)


def sorted_failures(failures: Iterable[TableFailure]) -> tuple[TableFailure, ...]:
    """The failures in the order of plans: by table and message."""
    return tuple(sorted(failures, key=lambda failure: (failure.name, failure.message)))


def read_tables(
    project: Project,
    located: LocatedTable,
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    on_read: OnRead,
    failures: list[TableFailure],
) -> Iterator[tuple[TableSpec, LiveTable]]:
    """The live tables, each read to the depth that ``depth_of`` returns. Unreadable ones are added to ``failures``."""
    requests = (ReadRequest(spec.name, location, depth_of(spec)) for spec, location in located.tables)
    for done, found in enumerate(read_many(requests, cache=project.cache, options=project.stores)):
        on_read(done + 1, len(located.tables))
        spec, _ = located.tables[done]
        if isinstance(found, LiveError):
            failures.append(failure_of(spec.name.text, found))
        else:
            yield spec, found
