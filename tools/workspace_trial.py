"""Runs every form of statement in a scratch schema of a Databricks workspace, and prints a sheet without names:
``python -m tools.workspace_trial CATALOG > sheet.json``, in a folder with a ``tablectl.yaml`` (docs/databricks.md).

The schema is made and dropped here; nothing else is changed. In it, whole commands run, too: an apply during guarded
appends, one that is killed and continued, and an undo. Each is a process of its own, in a folder of its own, with the
engine and the catalogs of the user's configuration and nothing else of it: no hook and no notification of the user
runs. A maintainer enters in ``delta.databricks_runtimes`` which forms work by a sheet that a user sent.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any, Protocol, runtime_checkable
from uuid import uuid4

import tablectl
from tablectl.commands.project import Project
from tablectl.delta.names import NameSyntaxError, TableName, quote_name, split_parts
from tablectl.leases.clock import today
from tablectl.model.errors import EngineError, ExitCode, UsageError
from tablectl.model.operations import OPERATIONS, StatementForm
from tablectl.policies.read_config import BASE, ENV, FILE, as_texts, read_values
from tablectl.support.json_text import read_json, write_json

SHEET = 1
"""The version of the format of a sheet."""
WORKS = "works"
"""The outcome of what did not fail."""
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
        slow = f"(SELECT max(hash(id)) FROM range({self._slow_rows})) IS NOT NULL"  # a number
        told: list[str] = []
        update = f"UPDATE {table} SET id = id + 1 WHERE {slow}"  # a quoted name
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


# Whole commands, each a process in a folder of its own

_TAKEN = ("engine", "catalogs", "stores")
_TTL = 10
"""The lease of a killed apply is taken over soon."""
_PATIENCE = 900
"""Seconds after which a command of the trial is ended."""
_KILLED = -9
_KILL = """
import os, signal, sys
from pathlib import Path
import tablectl
from tablectl.commands.run_plan import Control

def notify(event):
    if event.step.startswith("after "):
        os.kill(os.getpid(), signal.SIGKILL)

tablectl.apply(Path(sys.argv[1]), control=Control(notify=notify))
"""

Outcome = Callable[[str], str]
"""Runs a statement; ``WORKS``, or the class of the error."""
Command = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a command of Python; its exit code and what it printed."""


@dataclass(frozen=True, slots=True)
class Commands:
    """Runs commands in a folder, for one table."""

    folder: Path
    run: Command

    def declare(self, table: TableName, policy: Mapping[str, object]) -> None:
        """The one policy of the folder."""
        text = write_json({"version": 1, "tables": {table.text: dict(policy)}})
        (self.folder / "policies.yaml").write_text(text, "utf-8")

    def tablectl(self, *arguments: str) -> tuple[str, dict[str, Any]]:
        """``WORKS``, else the class of a statement's error or the exit code; and the result as JSON."""
        code, out = self.run(("-m", "tablectl", *arguments))
        try:
            found = read_json(out)
        except ValueError:
            found = {}
        result: dict[str, Any] = found if isinstance(found, dict) else {}
        if code == ExitCode.DONE:
            return WORKS, result
        sent = [each for table in result.get("tables", ()) for each in table.get("statements", ())]
        classes = [str(each["condition"]) for each in sent if each.get("condition")]
        return classes[0] if classes else f"exit code {code}", result


@contextmanager
def commands_in_a_folder(
    directory: Path, env: str, remote: str | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[Commands]:
    """Commands with the engine and the catalogs of a repository's configuration. ``remote`` replaces the engine's
    server, as ``--remote`` does. Raises ``InputError``.
    """
    with tempfile.TemporaryDirectory(prefix="tablectl-trial-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        values = as_texts(read_values(Path(environ.get(BASE) or directory / FILE), [])[0])
        of_env = {name: _taken(section) for name, section in values.get("env", {}).items() if name == env}
        config = {**_taken(values), "env": of_env, "policies": "policies.yaml", "window": {"ttl": _TTL}}
        if remote:
            for section in (config, *of_env.values()):
                section["engine"] = {**_without_server(section.get("engine", {})), "remote": remote}
        (folder / FILE).write_text(write_json(config), "utf-8")
        given = {**environ, ENV: env, "TABLECTL_STATE": str(folder / "records"), "NO_COLOR": "1"}
        if environ.get(BASE):
            given[BASE] = str(folder / FILE)

        def run(arguments: Sequence[str]) -> tuple[int, str]:
            command = [sys.executable, *arguments]
            ended = subprocess.run(  # this Python, with arguments of this module
                command, cwd=folder, env=given, capture_output=True, text=True, timeout=_PATIENCE, check=False
            )
            return ended.returncode, ended.stdout

        yield Commands(folder, run)


def _without_server(engine: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in engine.items() if key not in {"thrift", "warehouse"}}


def _taken(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in _TAKEN}


def try_runs(commands: Commands, table: TableName, location: str, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """The facts. The table has the property ``stray`` and the column ``id``."""
    policy = {"isolation": "Serializable", "properties": {"owner.team": "web"}}
    commands.declare(table, policy)
    planned, _ = commands.tablectl("plan", "--out", "1.json", "--format", "json")
    with _writer(commands, table, location, outcome) as told:
        applied = planned if planned != WORKS else commands.tablectl("apply", "1.json", "--format", "json")[0]
    yield {"run": "apply during guarded appends", "outcome": applied, "writes": told}
    commands.declare(table, {**policy, "properties": {"owner.team": "data", "stray": None}})
    planned, _ = commands.tablectl("plan", "--out", "2.json", "--format", "json")
    code, _ = commands.run(("-c", _KILL, "2.json"))
    continued, result = commands.tablectl("apply", "2.json", "--format", "json")
    if planned == WORKS and code != _KILLED:
        continued = f"not killed: exit code {code}"
    yield {"run": "an apply killed after its first statement, and continued", "outcome": continued}
    run = str(result.get("run", "none"))
    undone, _ = commands.tablectl("undo", run, "--write", "--yes", "--out", "3.json", "--format", "json")
    if undone == WORKS:
        undone, _ = commands.tablectl("apply", "3.json", "--format", "json")
    yield {"run": "undo of what it continued", "outcome": undone}


@contextmanager
def _writer(commands: Commands, table: TableName, location: str, outcome: Outcome) -> Iterator[dict[str, int]]:
    """Guarded appends, from before the body to after it: how many ended how."""
    told: dict[str, int] = {}
    begun, over = threading.Event(), threading.Event()

    def write() -> None:
        try:
            while not over.is_set():
                with tablectl.guard(None, location, "append", name="trial", state=str(commands.folder / "records")):
                    how = outcome(f"INSERT INTO {table.sql} (id) VALUES (1)")  # a quoted name
                told[how] = told.get(how, 0) + 1
                begun.set()
        finally:
            begun.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    begun.wait(_PATIENCE)
    try:
        yield told
    finally:
        over.set()
        writer.join(_PATIENCE)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Run every form of statement in a scratch schema; print a sheet.")
    parser.add_argument("place", metavar="CATALOG[.SCHEMA]", help="a catalog, or a new schema in it")
    parser.add_argument("--env", help="environment of tablectl.yaml")
    parser.add_argument("--remote", help="a server in place of engine.remote, as in tablectl")
    given = parser.parse_args()
    settings = {"remote": given.remote} if given.remote else {}
    with Project.open(env=given.env, settings=settings) as project:
        engine, config = project.engines.start(), project.config
        with commands_in_a_folder(project.directory, config.environment, config.engine.remote) as commands:
            print(write_json(try_workspace(engine, commands, given.place, today())))


if __name__ == "__main__":
    main()
