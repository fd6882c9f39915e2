"""``tablectl doctor --workspace``: runs every form of statement in a scratch schema, and makes a sheet without names.

The schema is made and dropped here; nothing else is changed. ``delta.databricks_runtimes`` reads the sheet.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

from tablectl.commands.workspace_trial_runs import Commands, try_runs
from tablectl.delta.databricks_runtimes import SHEET, WORKS
from tablectl.delta.names import NameSyntaxError, TableName, quote_name, split_parts
from tablectl.model.errors import EngineError, UsageError
from tablectl.model.operations import OPERATIONS, StatementForm

SLOW_ROWS = 3_000_000_000
"""Rows that a slow writer reads: it must run for longer than the change."""
_EXAMPLE = "`lake`.`sales`.`orders`"
_COLUMNS = {"(`customer_id`, `address`.`city`)": "(`id`)", "(`day`, `id`)": "(`day`)", "`customer_id`": "`id`"}
"""The columns of the examples, and those of the scratch tables."""
_BEFORE = {
    "cluster by none": "ALTER TABLE {table} CLUSTER BY (`id`)",
    "optimize full": "ALTER TABLE {table} CLUSTER BY (`id`)",
    "purge": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "drop feature": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "drop feature truncate history": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')",
    "upgrade uniform": "ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
    "drop constraint": "ALTER TABLE {table} ADD CONSTRAINT `positive` CHECK (amount > 0)",
    "drop not null": "ALTER TABLE {table} ALTER COLUMN `id` SET NOT NULL",
}
"""By the form: what the table needs before, so that the form has something to do."""
_REPLACES = "ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY (`day`)"
_IN_FLIGHT = (
    ("CLUSTER BY", "ALTER TABLE {table} CLUSTER BY (`id`)"),
    ("a property of your own", "ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'web')"),
    ("the isolation level", "ALTER TABLE {table} SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"),
    ("a new column", "ALTER TABLE {table} ADD COLUMNS (added BIGINT)"),
    ("partitions become clustering columns", _REPLACES),
)
"""Changes of metadata. By one edition of the documentation they fail writers in flight, by another they might."""
_VERSIONS = ("SELECT current_version().dbr_version", "SELECT version()")
_OPERATION = 4
"""The column of the operation in ``DESCRIBE HISTORY``."""


@runtime_checkable
class TrialEngine(Protocol):
    """What a trial needs of an engine."""

    def execute(self, sql: str) -> None:
        """Run one statement."""
        ...

    def rows(self, sql: str) -> Sequence[Sequence[Any]]:
        """All rows of a query."""
        ...

    def location(self, table: TableName) -> str:
        """Where a table is."""
        ...


class Trial:
    """A scratch schema, and what is tried there."""

    def __init__(
        self, engine: TrialEngine, commands: Commands, catalog: str, schema: str, slow_rows: int = SLOW_ROWS
    ) -> None:
        self._engine = engine
        self._commands = commands
        self._catalog = catalog
        self._schema = schema
        self._slow_rows = slow_rows

    def sheet(self, today: date) -> dict[str, Any]:
        """Make the schema, try everything, drop the schema. Raises ``EngineError`` if the schema cannot be made: one
        that exists is never used, because it would be dropped. What the drop said is on the sheet.
        """
        place = f"{quote_name(self._catalog)}.{quote_name(self._schema)}"
        self._engine.execute(f"CREATE SCHEMA {place}")
        dropped = ""
        try:
            facts = [*self._facts()]
        finally:
            dropped = self._outcome(f"DROP SCHEMA {place} CASCADE")
        runtime = self._runtime()
        return {"sheet": SHEET, "date": today.isoformat(), "runtime": runtime, "dropped": dropped, "facts": facts}

    def _facts(self) -> Iterator[dict[str, Any]]:
        for form in dict.fromkeys(form for each in OPERATIONS for form in each.forms):
            yield self._form(form)
        for what, sql in _IN_FLIGHT:
            yield self._with_a_writer(what, sql)
        yield from self._runs()

    def _runs(self) -> Iterator[dict[str, Any]]:
        """Whole commands on one table, and what it says after each."""
        name = self._new_table(partitioned=False)
        self._engine.execute(f"ALTER TABLE {name.sql} SET TBLPROPERTIES ('stray' = 'x')")
        before, commits = self._said(name.sql), len(self._history(name.sql))
        for fact in try_runs(self._commands, name, self._engine.location(name), self._outcome):
            after, history = self._said(name.sql), self._history(name.sql)
            made = [each for each in history[commits:] if each != "WRITE"]
            yield {"form": "", **fact, "commits": made, "changed": _changed(before, after)}
            before, commits = after, len(history)

    def _form(self, form: StatementForm) -> dict[str, Any]:
        table = self._table(partitioned="REPLACE PARTITIONED" in form.template)
        sql = form.example.replace(_EXAMPLE, table)
        for theirs, ours in _COLUMNS.items():
            sql = sql.replace(theirs, ours)
        prepared = self._outcome(_BEFORE[form.id].format(table=table)) if form.id in _BEFORE else WORKS
        before, commits = self._said(table), len(self._history(table))
        outcome = self._outcome(sql) if prepared == WORKS else f"not prepared: {prepared}"
        return {
            "form": form.id,
            "outcome": outcome,
            "commits": self._history(table)[commits:],
            "changed": _changed(before, self._said(table)),
        }

    def _with_a_writer(self, what: str, sql: str) -> dict[str, Any]:
        """An UPDATE that runs while the metadata changes."""
        table = self._table(partitioned=sql == _REPLACES)
        slow = f"(SELECT max(hash(id)) FROM range({self._slow_rows})) IS NOT NULL"  # noqa: S608  # a number
        told: list[str] = []
        update = f"UPDATE {table} SET id = id + 1 WHERE {slow}"  # noqa: S608  # a quoted name
        writer = threading.Thread(target=lambda: told.append(self._outcome(update)))
        writer.start()
        writer.join(3)
        over = not writer.is_alive()
        change = self._outcome(sql.format(table=table))
        writer.join()
        return {
            "form": "",
            "with a writer": what,
            "outcome": change,
            "writer": "ended before the change" if over else told[0],
            "commits": self._history(table),
        }

    def _table(self, *, partitioned: bool) -> str:
        return self._new_table(partitioned=partitioned).sql

    def _new_table(self, *, partitioned: bool) -> TableName:
        table = TableName(self._catalog, (self._schema, f"t_{uuid4().hex[:8]}"))
        parts = " PARTITIONED BY (day)" if partitioned else ""
        rows = "SELECT id, current_date() AS day, id + 1 AS amount FROM range(10)"
        self._engine.execute(f"CREATE TABLE {table.sql} USING delta{parts} AS {rows}")
        return table

    def _outcome(self, sql: str) -> str:
        """``WORKS``, or the class of the error: its message has names."""
        try:
            self._engine.execute(sql)
        except EngineError as error:
            return error.condition or "an error without a class"
        return WORKS

    def _said(self, table: str) -> Mapping[str, str]:
        """What the table says about itself, without what is the user's."""
        rows = self._engine.rows(f"SHOW TBLPROPERTIES {table}")
        return {str(row[0]): str(row[1]) for row in rows if str(row[0]).startswith(("delta.", "cluster"))}

    def _history(self, table: str) -> list[str]:
        """The operations, oldest first."""
        return [str(row[_OPERATION]) for row in reversed(self._engine.rows(f"DESCRIBE HISTORY {table}"))]

    def _runtime(self) -> str:
        for sql in _VERSIONS:
            with suppress(EngineError):
                return str(self._engine.rows(sql)[0][0]).split()[0]
        return ""


def _changed(before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, list[str | None]]:
    values = {key: [before.get(key), after.get(key)] for key in sorted(before.keys() | after.keys())}
    return {key: each for key, each in values.items() if each[0] != each[1]}


def try_workspace(
    engine: object, commands: Commands, place: str, today: date, slow_rows: int = SLOW_ROWS
) -> dict[str, Any]:
    """The sheet of a trial in ``CATALOG`` or ``CATALOG.SCHEMA``, a schema that does not exist yet.

    Raises ``UsageError`` for other names, else as ``Trial.sheet``.
    """
    with suppress(NameSyntaxError):
        catalog, *schemas = split_parts(place)
        if len(schemas) < 2 and isinstance(engine, TrialEngine):
            schema = schemas[0] if schemas else f"tablectl_{uuid4().hex[:12]}"
            return Trial(engine, commands, catalog, schema, slow_rows).sheet(today)
    hint = "give CATALOG, or CATALOG.SCHEMA for a new schema"
    raise UsageError(f"{place!r} does not name a catalog or a schema", hint)
