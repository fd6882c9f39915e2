"""Which statements of a table's plan stop the streaming queries that read it (delta-6)."""

from __future__ import annotations

from tablectl.conflicts.streaming_readers import ReaderEffect, ReaderStop, stream_reader
from tablectl.model.plan import Statement, TablePlan
from tablectl.planning.derive_statements import derive_table
from tablectl.support.frozen import frozen


@frozen
class StreamStop:
    """A statement that stops every query that reads the table."""

    statement: Statement
    stop: ReaderStop


def stops_of(table: TablePlan, dialect: str) -> tuple[StreamStop, ...]:
    """The statements that stop a query without schema tracking, in the order of the plan."""
    made = derive_table(table.changes, table.basis, table.table, dialect).commits()
    stops = ((each, stream_reader(made[each.id], dialect)) for each in table.statements if each.id in made)
    return tuple(StreamStop(each, stop) for each, stop in stops if stop.effect is not ReaderEffect.GOES_ON)


def stopped_streams(table: TablePlan, dialect: str) -> tuple[str, ...]:
    """The names of the declared streams that the statements stop."""
    names = table.basis.options.stream_names
    return names if names and stops_of(table, dialect) else ()
