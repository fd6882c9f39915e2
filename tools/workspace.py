"""Runs every form of statement in a Databricks workspace, in a scratch schema of its own, and prints a fact sheet.

``make test-workspace`` needs databricks-connect (Python 3.12), the unified login of databricks-sdk (``DATABRICKS_HOST``
and a token, or a profile), ``DATABRICKS_CLUSTER_ID`` or ``--serverless``, and ``TABLECTL_TEST_CATALOG``: a catalog in
which a schema may be created. It creates one schema, ``tablectl_`` and a random name, and drops that schema at its end,
whatever happens. Nothing else is changed. This project has never run it against Databricks.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

from tablectl.delta.names import TableName, quote_name
from tablectl.engine.connect import open_databricks, open_remote
from tablectl.engine.errors import engine_error
from tablectl.model.errors import EngineError
from tablectl.model.operations import OPERATIONS, StatementForm

CATALOG = "TABLECTL_TEST_CATALOG"
_EXAMPLE = "`lake`.`sales`.`orders`"
_COLUMNS = {"(`customer_id`, `address`.`city`)": "(`id`)", "(`day`, `id`)": "(`day`)"}
"""The columns of the examples, and those of the scratch tables."""
_REPLACES = "ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY (`day`)"
_IN_FLIGHT = (
    ("CLUSTER BY", "ALTER TABLE {table} CLUSTER BY (`id`)"),
    ("a property of your own", "ALTER TABLE {table} SET TBLPROPERTIES ('owner.team' = 'web')"),
    ("the isolation level", "ALTER TABLE {table} SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')"),
    ("a new column", "ALTER TABLE {table} ADD COLUMNS (added BIGINT)"),
    ("partitions become clustering columns", _REPLACES),
)
"""Changes of metadata. By one edition of the documentation they fail writers in flight, by another they might."""


@dataclass(frozen=True, slots=True)
class Fact:
    """One thing that was tried."""

    what: str
    sql: str
    outcome: str
    """``works``, or the error class and the beginning of the message."""
    commits: tuple[str, ...] = ()
    """The operations of the commits that it made, oldest first."""


@dataclass(frozen=True, slots=True)
class Workspace:
    """A scratch schema, and what is asked there."""

    session: Any
    catalog: str
    schema: str
    slow_rows: int
    get: Callable[[str], Any]
    """Asks the workspace's REST API for a path."""

    @property
    def place(self) -> str:
        """The schema as SQL."""
        return f"{quote_name(self.catalog)}.{quote_name(self.schema)}"

    def facts(self) -> Iterator[Fact]:
        """Everything that is tried, in order."""
        for form in dict.fromkeys(form for each in OPERATIONS for form in each.forms):
            yield self._form(form)
        table = self._table("probe", partitioned=False)
        timestamps = f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableInCommitTimestamps' = 'true')"
        yield self._tried("in-commit timestamps on this runtime", timestamps, table)
        for what, sql in _IN_FLIGHT:
            yield self._beside_a_writer(what, sql)
        yield self._delta_api("probe")

    def _form(self, form: StatementForm) -> Fact:
        table = self._table(form.id.replace(" ", "_"), partitioned="REPLACE PARTITIONED" in form.template)
        sql = form.example.replace(_EXAMPLE, table)
        for theirs, ours in _COLUMNS.items():
            sql = sql.replace(theirs, ours)
        return self._tried(f"form: {form.id}", sql, table)

    def _table(self, name: str, *, partitioned: bool) -> str:
        table = TableName(self.catalog, (self.schema, name)).sql
        parts = " PARTITIONED BY (day)" if partitioned else ""
        rows = "SELECT id, current_date() AS day FROM range(10)"
        self.session.sql(f"CREATE TABLE {table} USING delta{parts} AS {rows}").collect()
        return table

    def _tried(self, what: str, sql: str, table: str) -> Fact:
        before = len(self._history(table))
        outcome = self._outcome(sql)
        return Fact(what, sql, outcome, tuple(reversed(self._history(table)[: -before or None])))

    def _outcome(self, sql: str) -> str:
        try:
            self.session.sql(sql).collect()
        except Exception as error:  # whatever the client raises is the answer
            known = engine_error(error)
            return f"{known.condition or 'an error without a class'}: {' '.join(known.message.split())[:200]}"
        return "works"

    def _delta_api(self, name: str) -> Fact:
        """Whether the catalog serves the open API for Delta tables to other clients, with an etag and commits."""
        path = f"/api/2.1/unity-catalog/delta/v1/catalogs/{self.catalog}/schemas/{self.schema}/tables/{name}"
        try:
            answer = self.get(path)
        except Exception as error:  # whatever the client raises is the answer
            return Fact("the open Delta API", f"GET {path}", " ".join(str(error).split())[:200])
        metadata = answer.get("metadata") or {}
        told = [key for key in ("etag", "last-commit-version", "properties") if key in metadata]
        return Fact("the open Delta API", f"GET {path}", f"works: {', '.join([*told, *sorted(answer)])}")

    def _history(self, table: str) -> list[str]:
        """The operations, newest first."""
        return [row["operation"] for row in self.session.sql(f"DESCRIBE HISTORY {table}").collect()]

    def _beside_a_writer(self, what: str, sql: str) -> Fact:
        """An UPDATE that runs while the metadata changes. It must take longer than the ALTER: see ``--slow-rows``."""
        table = self._table(f"beside_{uuid4().hex[:8]}", partitioned=sql == _REPLACES)
        slow = f"(SELECT max(hash(id)) FROM range({self.slow_rows})) IS NOT NULL"
        answer: list[str] = []
        update = f"UPDATE {table} SET id = id + 1 WHERE {slow}"
        writer = threading.Thread(target=lambda: answer.append(self._outcome(update)))
        writer.start()
        writer.join(3)
        over = not writer.is_alive()
        changed = self._outcome(sql.format(table=table))
        writer.join()
        outcome = "the writer ended before the change: raise --slow-rows" if over else f"the writer: {answer[0]}"
        if changed != "works":
            outcome = f"the change itself: {changed}"
        return Fact(f"in flight: {what}", sql.format(table=table), outcome, tuple(reversed(self._history(table))))


def main(arguments: list[str] | None = None) -> int:
    """0 if the facts were collected, or if there is no workspace, which is said; 1 if no session can be opened."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", default="", help="a profile of ~/.databrickscfg")
    parser.add_argument("--serverless", action="store_true")
    parser.add_argument("--slow-rows", type=int, default=3_000_000_000, help="rows that a slow writer reads")
    parser.add_argument("--remote", default="", help="a Spark Connect server instead (sc://…), to try the tool itself")
    given = parser.parse_args(arguments)
    catalog = os.environ.get(CATALOG, "")
    if not catalog or not (given.remote or given.profile or os.environ.get("DATABRICKS_HOST")):
        print(f"there is no workspace: nothing was tested. Set DATABRICKS_HOST, a token and {CATALOG}; see {__file__}.")
        return 0
    remote = f"databricks://{given.profile}" if given.profile else "databricks"
    try:
        session = open_remote(given.remote) if given.remote else open_databricks(remote, serverless=given.serverless)
    except EngineError as error:
        print(f"error: {error.message}\n  hint: {error.hint}", file=sys.stderr)
        return 1
    sheet = fact_sheet(session, catalog, given.slow_rows, get=rest_client(given.profile))
    print(json.dumps(sheet, indent=2, ensure_ascii=False))
    return 0


def rest_client(profile: str) -> Callable[[str], Any]:
    """Reads the workspace's REST API with the unified login."""

    def get(path: str) -> Any:
        from databricks.sdk import WorkspaceClient  # comes with databricks-connect

        return WorkspaceClient(**({"profile": profile} if profile else {})).api_client.do("GET", path)

    return get


def _today() -> date:
    return datetime.now(UTC).date()


def fact_sheet(
    session: Any, catalog: str, slow_rows: int, today: Callable[[], date] = _today, *, get: Callable[[str], Any]
) -> Any:
    """Creates the schema, tries everything, drops the schema."""
    scratch = Workspace(session, catalog, f"tablectl_{uuid4().hex[:12]}", slow_rows, get)
    session.sql(f"CREATE SCHEMA {scratch.place}").collect()
    try:
        facts = [asdict(fact) for fact in scratch.facts()]
    finally:
        session.sql(f"DROP SCHEMA {scratch.place} CASCADE").collect()
    return {"date": today().isoformat(), "version": str(session.version), "facts": facts}


if __name__ == "__main__":
    sys.exit(main())
