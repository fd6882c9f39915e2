"""Real Delta logs written by hand, and an engine that appends to them: plan → apply → plan without a JVM."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tablectl.delta.names import TableName
from tablectl.engine.interface import MaySend, always
from tablectl.model.errors import EngineError, LiveError, TablectlError
from tests.applying.fake_lake import Sql, changed_properties, features_of, parse_sql

SPARK = "Apache-Spark/4.2.0 Delta-Lake/4.4.0"
COLUMNS = {"id": "long", "day": "date", "kind": "string"}
Actions = list[dict[str, Any]]
VECTOR = {
    "storageType": "u",
    "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
    "offset": 1,
    "sizeInBytes": 36,
    "cardinality": 2,
}


def create(
    path: Path,
    *,
    columns: Mapping[str, str] = COLUMNS,
    partitions: Sequence[str] = (),
    properties: Mapping[str, str] | None = None,
    features: Sequence[str] = (),
    vectors: int = 0,
    client: str = SPARK,
    table_id: str = "",
) -> Path:
    """A table with two files, the first ``vectors`` of which have a deletion vector."""
    fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in columns.items()]
    metadata = {
        "id": table_id or f"id-of-{path.name}",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": fields}),
        "partitionColumns": list(partitions),
        "configuration": dict(properties or {}),
        "createdTime": 0,
    }
    protocol: dict[str, Any] = {"minReaderVersion": 1, "minWriterVersion": 2}
    if features:
        readers = [each for each in features if each == "deletionVectors"]
        protocol = _protocol(3 if readers else 1, readers, features)
    append(path, "CREATE TABLE", [{"protocol": protocol}, {"metaData": metadata}], client=client)
    append(path, "WRITE", [_add(f"part-{number}.parquet", number < vectors) for number in range(2)], client=client)
    return path


def _protocol(reader: int, readers: Sequence[str], writers: Sequence[str]) -> dict[str, Any]:
    protocol: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": 7, "writerFeatures": sorted(writers)}
    return {**protocol, "readerFeatures": sorted(readers)} if reader == 3 else protocol


def count_rows(table: Path) -> None:
    """Delta derives the ids of rows from the number of rows in each file's statistics."""
    for commit in (table / "_delta_log").glob("*.json"):
        actions = [json.loads(line) for line in commit.read_text(encoding="utf-8").splitlines()]
        for each in actions:
            if "add" in each:
                each["add"]["stats"] = '{"numRecords": 1}'
        commit.write_text("".join(f"{json.dumps(each)}\n" for each in actions), encoding="utf-8")


def _add(file: str, vector: bool = False) -> dict[str, Any]:
    fact = {"path": file, "partitionValues": {}, "size": 100, "modificationTime": 0, "dataChange": True}
    return {"add": {**fact, "deletionVector": VECTOR} if vector else fact}


def append(
    path: Path,
    operation: str,
    actions: Actions,
    stamp: str = "",
    client: str = SPARK,
    parameters: Mapping[str, str] | None = None,
) -> int:
    """One commit, written as Delta does: the number is taken only once."""
    log = path / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    version = len(list(log.glob("*.json")))
    info: dict[str, Any] = {
        "timestamp": 1_700_000_000_000 + version,
        "operation": operation,
        "operationParameters": dict(parameters or {}),
        "engineInfo": client,
    }
    if stamp:
        info["userMetadata"] = stamp
    with (log / f"{version:020d}.json").open("x") as file:
        file.writelines(json.dumps(action) + "\n" for action in [{"commitInfo": info}, *actions])
    return version


@dataclass
class Logged:
    """What a log says, replayed by the plainest means."""

    path: Path
    commits: list[Actions] = field(init=False)

    def __post_init__(self) -> None:
        files = sorted((self.path / "_delta_log").glob("*.json"))
        self.commits = [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    def last(self, kind: str) -> Any:
        return [action[kind] for commit in self.commits for action in commit if kind in action][-1]

    @property
    def properties(self) -> dict[str, str]:
        return dict(self.last("metaData")["configuration"])

    @property
    def infos(self) -> list[dict[str, Any]]:
        return [action["commitInfo"] for commit in self.commits for action in commit if "commitInfo" in action]

    @property
    def stamps(self) -> list[dict[str, str]]:
        """The stamps of the commits that tablectl made, oldest first."""
        texts = [info["userMetadata"] for info in self.infos if "userMetadata" in info]
        return [json.loads(text)["tablectl"] for text in texts]

    @property
    def vectors(self) -> list[str]:
        """The files that have one."""
        files: dict[str, bool] = {}
        for commit in self.commits:
            for action in commit:
                if "remove" in action:
                    files.pop(action["remove"]["path"], None)
                if "add" in action:
                    files[action["add"]["path"]] = "deletionVector" in action["add"]
        return [name for name, has in files.items() if has]


def set_property(path: Path, key: str, value: str) -> None:
    """Someone else's ALTER."""
    metadata = Logged(path).last("metaData")
    metadata["configuration"][key] = value
    told = {"properties": json.dumps({key: value})}
    append(path, "SET TBLPROPERTIES", [{"metaData": metadata}], parameters=told)


@dataclass
class LogEngine:
    """An ``Engine`` and a ``Catalog`` on real logs.

    ``catalog`` says where catalog tables lie; ``after`` gets each statement.
    """

    stamp: str = ""
    dialect: str = "oss"
    catalog: Mapping[tuple[str, ...], Path] = field(default_factory=dict)
    after: Callable[[str], None] = lambda _sql: None
    sent: list[str] = field(default_factory=list)
    closed: bool = False
    shared: bool = True
    stated: bool = True
    address: str = ""
    bound: float | None = 0
    commit_bound: float | None = None
    rewrites: bool = True

    def opens(self, _scheme: str) -> bool | None:
        return None

    def log_store(self, _scheme: str) -> str:
        return ""

    def location(self, table: TableName) -> str:
        return str(self._path((table.catalog, *table.parts)))

    def schemas(self, catalog: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(parts[1] for parts in self.catalog if parts[0] == catalog))

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        if schema not in self.schemas(catalog):
            raise LiveError(f"the schema {catalog}.{schema} does not exist")
        names = {parts: path for parts, path in self.catalog.items() if parts[:2] == (catalog, schema)}
        return {
            TableName(catalog, parts[1:]): str(path)
            for parts, path in names.items()
            if any(fnmatchcase(parts[2].lower(), glob.lower()) for glob in like.split("|"))
        }

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        """Sends the write, which fails: these tables hold no data."""
        may_send()
        self.sent.append(f"OVERWRITE {table.text}")
        raise EngineError("these tables hold no data")

    def row(self, sql: str) -> tuple[str | None, ...]:
        raise AssertionError("these tables hold no data")

    def alive(self) -> bool:
        return True

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        return False

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        may_send()
        if sql.startswith("SET spark."):
            return
        parsed = parse_sql(sql)
        path = Path(parsed.table[1]) if parsed.table[0] == "delta" else self._path(parsed.table)
        self.sent.append(sql)
        if parsed.verb == "VACUUM":
            for name in ("VACUUM START", "VACUUM END"):
                append(path, name, [], self.stamp)
            return
        actions = _actions(parsed, Logged(path))
        if actions:
            names = {"CLUSTER": "CLUSTER BY", "REORG": "REORG", "OPTIMIZE": "OPTIMIZE"}
            append(path, names.get(parsed.verb, f"{parsed.verb} TBLPROPERTIES"), actions, self.stamp)
        self.after(sql)

    def count(self, sql: str) -> int:
        assert sql.endswith(" DRY RUN")
        return 0

    def close(self) -> None:
        self.closed = True

    def _path(self, parts: tuple[str, ...]) -> Path:
        if parts not in self.catalog:
            raise LiveError(f"{'.'.join(parts)} does not exist")
        return self.catalog[parts]


def _actions(sql: Sql, table: Logged) -> Actions:
    if sql.verb == "OPTIMIZE":
        small = [each["add"]["path"] for commit in table.commits for each in commit if "add" in each]
        return [*({"remove": {"path": file, "dataChange": False}} for file in small), _add("merged.parquet")]
    if sql.verb == "REORG":
        files = table.vectors
        return [{"remove": {"path": file, "dataChange": False, "deletionVector": VECTOR}} for file in files] + [
            _add(f"purged-{file}") for file in files
        ]
    actions: Actions = []
    protocol = table.last("protocol")
    known = set(protocol.get("writerFeatures", ()))
    if features_of(sql) - known:
        writers = known | features_of(sql) | {"appendOnly", "invariants"}
        readers = writers & {"deletionVectors"}
        actions.append({"protocol": _protocol(3 if readers else 1, sorted(readers), sorted(writers))})
    metadata = table.last("metaData")
    if sql.verb in {"CLUSTER", "REPLACE PARTITIONS"}:
        names = {field["name"] for field in json.loads(metadata["schemaString"])["fields"]}
        if not {column[0] for column in sql.columns} <= names:
            raise EngineError("no such column", "", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
        columns = json.dumps({"clusteringColumns": [list(column) for column in sql.columns]})
        domain = {"domain": "delta.clustering", "configuration": columns, "removed": False}
        parted = [{"metaData": {**metadata, "partitionColumns": []}}] if sql.verb == "REPLACE PARTITIONS" else []
        return [*actions, {"domainMetadata": domain}, *parted]
    metadata["configuration"] = changed_properties(sql, metadata["configuration"])
    return [*actions, {"metaData": metadata}]
