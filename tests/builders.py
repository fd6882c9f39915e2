"""The builders that tests of several packages share (tests/README.md says which to use).

Each takes any fact as an argument; the others are those of a small new table that Delta Spark 4.4 writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.delta.names import TableName, parse_table
from tablectl.delta.protocol import Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.log.reader import read_table
from tablectl.model.commit import Commit
from tablectl.model.plan import Basis, ProtocolFact, TablePlan
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.model.writers_in_history import ClientFact
from tablectl.planning.plan_table import plan_table
from tablectl.storage.object_stores import StoreOptions

SPARK = Client("delta-spark", (4, 4, 0))
PLAIN = Protocol(1, 2)
VECTORS = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
CLUSTERED = Protocol(1, 7, frozenset(), frozenset({"clustering", "domainMetadata"}))
SCHEMA = Schema((Field("id", "long"), Field("Customer", "string"), Field("day", "date"), Field("amount", "double")))

_START = 1_700_000_000_000
_SHOWN = ("clients", "overwrites", "schema_writers")


def live_table(name: str | TableName = "lake.s.t", **facts: Any) -> LiveTable:
    """A live table. ``clients``, ``overwrites`` and ``schema_writers`` become its history."""
    table = parse_table(name) if isinstance(name, str) else name
    plain: dict[str, Any] = {
        "name": table,
        "location": table.parts[0] if table.is_path else f"/lake/{table.parts[-1]}",
        "version": 7,
        "table_id": "0b1c",
        "protocol": PLAIN,
        "schema": SCHEMA,
        **({} if "history" in facts else {"clients": (SPARK,)}),
        "files": 12,
        "bytes": 4_100_000,
        "vectors": 0,
    }
    return LiveTable(**with_look_back({**plain, **facts}))


def planned_table(live: LiveTable, dialect: str = "oss", **policy: Any) -> TablePlan:
    """The plan of one table, which must have changes."""
    planned = plan_table(Policy(policy), live, dialect)
    assert planned is not None
    return planned


def make_basis(*clients: str, **facts: Any) -> Basis:
    """The basis of a table whose size is not known. A client is its engine and version: ``delta-spark 4.4.0``."""
    plain: dict[str, Any] = {
        "protocol": ProtocolFact(reader=1, writer=2),
        "partitioned": False,
        "clustered": False,
        "identity": False,
        "schema_writers": False,
        "overwrites": False,
        "clients": tuple(map(client_fact, clients)),
        "vectors": None,
        "files": None,
        "bytes": None,
    }
    return Basis(**{**plain, **facts})


def client_fact(text: str) -> ClientFact:
    """A client from its engine and version; without a version, it is unknown."""
    engine, _, version = text.partition(" ")
    return ClientFact(engine=engine, version=tuple(map(int, version.split("."))) if version else ())


def read_path(path: str, *, version: int | None = None, options: StoreOptions | None = None, **depth: Any) -> LiveTable:
    """The table at a path, with its history unless ``look_back=0``. ``depth`` are fields of ``Depth``."""
    wanted = Depth(**{"look_back": LOOK_BACK, **depth})
    return read_table(TableName("", (path,)), path, wanted, version=version, options=options or StoreOptions())


def look_back(
    clients: Iterable[Client], *, overwrites: bool = False, schema_writers: bool = False, version: int = 7
) -> tuple[Commit, ...]:
    """One commit of each client, newest first, up to a version; the newest has the properties that the flags name."""
    return tuple(
        Commit(
            version - index,
            _START + version - index,
            "WRITE",
            client=client,
            changes_data=True,
            overwrites=overwrites and index == 0,
            schema_writer=schema_writers and index == 0,
        )
        for index, client in enumerate(clients)
    )


def with_look_back(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a live table, its ``history`` made from ``clients`` and the flags."""
    shown = {key: facts[key] for key in _SHOWN if key in facts}
    rest = {key: value for key, value in facts.items() if key not in shown}
    return {**rest, "history": look_back(**shown)} if shown else rest
