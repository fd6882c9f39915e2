"""A lake in memory: tables with a history, and an engine that reads SQL by itself: no test trusts a renderer."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tablectl.delta.names import TableName, parse_table
from tablectl.delta.properties import other_spelling
from tablectl.delta.protocol import READER_FEATURES, Client, Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.delta.sql_tokens import stored_by_delta
from tablectl.engine.interface import FollowedFile, FollowedTable, MaySend, always
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.commit import Commit, WriteHistory
from tablectl.model.errors import EngineError, LiveError
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.stamp import Stamp
from tablectl.model.stream_progress import StreamState
from tablectl.model.table import WITH_HISTORY, Depth, HistoryTruncation, LiveTable
from tablectl.storage.table_log import DataFile
from tests.builders import with_look_back

# A parser of the statements


@dataclass(frozen=True)
class Sql:
    """One statement: ``verb`` is SET, UNSET, CLUSTER, REORG, UPGRADE, OPTIMIZE or DROP FEATURE."""

    verb: str
    table: tuple[str, ...]
    values: tuple[tuple[str, str], ...] = ()
    keys: tuple[str, ...] = ()
    columns: tuple[tuple[str, ...], ...] = ()
    feature: str = ""
    truncates: bool = False
    full: bool = False
    automatic: bool = False
    """Whether clustering is AUTO."""
    expression: str = ""
    """The expression of a CHECK constraint, in the text that Delta stores: its tokens with a blank between them."""


_TOKEN = re.compile(
    r"\s*(?:(?P<name>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>\w+)|(?P<mark>[(),.=<>+*/-]))", re.DOTALL
)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t", "0": "\0", "Z": "\x1a"}


class _Tokens:
    def __init__(self, sql: str) -> None:
        self._sql = sql
        self._left = list(self._split(sql))

    @staticmethod
    def _split(sql: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(sql):
            match = _TOKEN.match(sql, at)
            assert match is not None, f"no SQL from here: {sql[at:]!r}"
            assert match.lastgroup is not None
            yield match.lastgroup, match[match.lastgroup]
            at = match.end()

    def take(self, kind: str, text: str | None = None) -> str:
        found, value = self._left.pop(0)
        assert (found, value) == (kind, text or value), f"expected {text or kind}, found {value!r}"
        return value

    def words(self, text: str) -> None:
        for word in text.split():
            self.take("word", word)

    def next_is(self, *texts: str) -> bool:
        return bool(self._left) and self._left[0][1] in texts

    def rest(self) -> str:
        """What is left as it is written, without the parentheses around it."""
        left = [text for _, text in self._left]
        assert (left[0], left[-1]) == ("(", ")"), left
        self._left = []
        return self._sql[self._sql.index("CHECK (") + len("CHECK (") : -1]

    def end(self) -> None:
        assert not self._left, f"unexpected {self._left}"

    def name(self) -> tuple[str, ...]:
        parts = [self.take("name")]
        while self.next_is("."):
            self.take("mark", ".")
            parts.append(self.take("name"))
        return tuple(part[1:-1].replace("``", "`") for part in parts)

    def text(self) -> str:
        body = self.take("text")[1:-1]
        return re.sub(r"\\(.)", lambda match: _ESCAPED.get(match[1], match[1]), body, flags=re.DOTALL)

    def listed(self, item: Callable[[], Any]) -> tuple[Any, ...]:
        self.take("mark", "(")
        items = [item()]
        while self.next_is(","):
            self.take("mark", ",")
            items.append(item())
        self.take("mark", ")")
        return tuple(items)

    def pair(self) -> tuple[str, str]:
        key = self.text()
        self.take("mark", "=")
        return key, self.text()


_SETTING = "SET spark.databricks.delta."
_DATABRICKS = frozenset({"OPTIMIZATION", "MANAGED", "REPLACE PARTITIONS"})


def parse_sql(sql: str) -> Sql:
    """A statement as Spark would read it; anything but the four forms fails the test."""
    tokens = _Tokens(sql)
    if tokens.next_is("VACUUM"):
        tokens.words("VACUUM")
        parsed = Sql("VACUUM", tokens.name())
    elif tokens.next_is("OPTIMIZE"):
        tokens.words("OPTIMIZE")
        parsed = Sql("OPTIMIZE", tokens.name())
        if tokens.next_is("FULL"):
            tokens.words("FULL")
            parsed = replace(parsed, full=True)
    elif tokens.next_is("REORG"):
        tokens.words("REORG TABLE")
        parsed = Sql("REORG", tokens.name())
        tokens.words("APPLY")
        parsed = _reorganised(tokens, parsed)
    else:
        tokens.words("ALTER TABLE")
        parsed = _altered(tokens, tokens.name())
    tokens.end()
    return parsed


def _reorganised(tokens: _Tokens, parsed: Sql) -> Sql:
    tokens.take("mark", "(")
    if tokens.next_is("PURGE"):
        tokens.words("PURGE")
    else:
        tokens.words("UPGRADE UNIFORM")
        tokens.take("mark", "(")
        tokens.words("ICEBERG_COMPAT_VERSION")
        tokens.take("mark", "=")
        parsed = replace(parsed, verb="UPGRADE", values=(("version", tokens.take("word")),))
        tokens.take("mark", ")")
    tokens.take("mark", ")")
    return parsed


def _altered(tokens: _Tokens, table: tuple[str, ...]) -> Sql:  # one branch a statement
    for word in ("ENABLE", "DISABLE", "INHERIT"):
        if tokens.next_is(word):
            tokens.words(f"{word} PREDICTIVE OPTIMIZATION")
            return Sql("OPTIMIZATION", table, feature=word)
    if tokens.next_is("REPLACE"):
        tokens.words("REPLACE PARTITIONED BY WITH")
        return replace(_clustered(tokens, table), verb="REPLACE PARTITIONS")
    if tokens.next_is("SET"):
        tokens.words("SET")
        if tokens.next_is("MANAGED"):
            tokens.words("MANAGED")
            return Sql("MANAGED", table, full=True)
        tokens.words("TBLPROPERTIES")
        return Sql("SET", table, values=tokens.listed(tokens.pair))
    if tokens.next_is("UNSET"):
        tokens.words("UNSET")
        if tokens.next_is("MANAGED"):
            tokens.words("MANAGED")
            return Sql("MANAGED", table)
        tokens.words("TBLPROPERTIES IF EXISTS")
        return Sql("UNSET", table, keys=tokens.listed(tokens.text))
    if tokens.next_is("ADD"):
        tokens.words("ADD CONSTRAINT")
        (name,) = tokens.name()
        tokens.words("CHECK")
        return Sql("ADD CONSTRAINT", table, feature=name, expression=tokens.rest())
    if tokens.next_is("ALTER"):
        tokens.words("ALTER COLUMN")
        column = tokens.name()
        adds = tokens.next_is("SET")
        tokens.words("SET NOT NULL" if adds else "DROP NOT NULL")
        return Sql("SET NOT NULL" if adds else "DROP NOT NULL", table, columns=(column,))
    if tokens.next_is("DROP"):
        tokens.words("DROP")
        if tokens.next_is("CONSTRAINT"):
            tokens.words("CONSTRAINT IF EXISTS")
            return Sql("DROP CONSTRAINT", table, feature=tokens.name()[0])
        tokens.words("FEATURE")
        (feature,) = tokens.name()
        truncates = tokens.next_is("TRUNCATE")
        if truncates:
            tokens.words("TRUNCATE HISTORY")
        return Sql("DROP FEATURE", table, feature=feature, truncates=truncates)
    return _clustered(tokens, table)


def _clustered(tokens: _Tokens, table: tuple[str, ...]) -> Sql:
    tokens.words("CLUSTER BY")
    if tokens.next_is("NONE"):
        tokens.words("NONE")
        return Sql("CLUSTER", table)
    if tokens.next_is("AUTO"):
        tokens.words("AUTO")
        return Sql("CLUSTER", table, automatic=True)
    return Sql("CLUSTER", table, columns=tokens.listed(tokens.name))


_FEATURES = {
    ("delta.enableDeletionVectors", "true"): "deletionVectors",
    ("delta.enableChangeDataFeed", "true"): "changeDataFeed",
    ("delta.appendOnly", "true"): "appendOnly",
    ("delta.enableRowTracking", "true"): "rowTracking",
    ("delta.columnMapping.mode", "name"): "columnMapping",
}


_LEAVES = {
    "typeWidening": ("delta.enableTypeWidening", None),
    "v2Checkpoint": ("delta.checkpointPolicy", "classic"),
    "inCommitTimestamp": ("delta.enableInCommitTimestamps", "false"),
}
"""Feature → the property that used it, and its value after DROP FEATURE."""


def features_of(sql: Sql) -> frozenset[str]:
    """The protocol features that a statement brings."""
    if sql.verb in {"CLUSTER", "REPLACE PARTITIONS"}:
        return frozenset({"clustering", "domainMetadata"})
    features = frozenset(_FEATURES[pair] for pair in sql.values if pair in _FEATURES)
    features |= {key.removeprefix("delta.feature.") for key, _ in sql.values if key.startswith("delta.feature.")}
    return features | {"domainMetadata"} if "rowTracking" in features else features


def changed_properties(sql: Sql, properties: Mapping[str, str]) -> dict[str, str]:
    """The properties after a SET or UNSET, which read Delta's keys in any letter case."""
    values = {other_spelling(key) or key: value for key, value in sql.values if not key.startswith("delta.feature.")}
    gone = {other_spelling(key) or key for key in sql.keys}
    return {key: value for key, value in {**properties, **values}.items() if key not in gone}


# Tables

SPARK = Client("delta-spark", (4, 4, 0))
COLUMNS = Schema(
    (
        Field("id", "long"),
        Field("day", "date"),
        Field("place", "struct", fields=(Field("city", "string"),)),
        Field("tags", "map"),
    ),
    json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "long"},
                {"name": "day", "type": "date"},
                {"name": "place", "type": {"type": "struct", "fields": [{"name": "city", "type": "string"}]}},
                {"name": "tags", "type": {"type": "map", "keyType": "string", "valueType": "string"}},
            ],
        }
    ),
)


DAY = 24 * 60 * 60 * 1000


def _uses_vectors(live: LiveTable) -> bool:
    return bool(live.vectors) or live.properties.get("delta.enableDeletionVectors", "").lower() == "true"


@dataclass
class CopyFiles:
    """What a copy beside a table has written, and what of it is in place. Each commit of rows is one file besides."""

    written: dict[str, float] = field(default_factory=dict)
    """The new files that are in the folder, and when each was written, in seconds since the epoch."""
    holds: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """A new file → the files of the table whose rows it has."""
    live: tuple[str, ...] = ()
    """The new files of the newest version."""
    since: int = -1
    """The version of the cut-over."""
    removed: set[str] = field(default_factory=set)
    """Files of the table that a commit has removed."""
    gone: set[str] = field(default_factory=set)
    """Files of the table that are not in the folder any more."""

    def unnamed(self) -> dict[str, float]:
        """The new files that the newest version does not name."""
        return {path: at for path, at in self.written.items() if path not in self.live}

    def missing(self) -> list[str]:
        """The new files of the newest version that are not there."""
        return [path for path in self.live if path not in self.written]


@dataclass
class FakeTable:
    """One table: every version of it, and who made it."""

    name: TableName
    states: list[LiveTable]
    history: list[Commit]
    at: Callable[[int], int] = lambda version: 1_700_000_000_000 + version
    """When a version is committed."""
    checksums: bool = True
    """Whether vectors are known without counting."""
    moved_to: str = ""
    """Where the catalog says that it lies, if elsewhere."""
    broken: str = ""
    """Why it cannot be read, if so."""
    unnamed: list[DataFile] = field(default_factory=list)
    """Data files that no commit names."""
    copies: CopyFiles = field(default_factory=CopyFiles)
    """The files of a copy beside it."""
    unlisted: str = ""
    """Why its files cannot be listed, if so."""
    rows: list[int] = field(default_factory=lambda: [1])
    """How many rows each version holds: a commit of data by others adds one."""

    @property
    def live(self) -> LiveTable:
        return self.states[-1]

    def commit(self, operation: str, user: str = "ben", stamp: str = "", **facts: Any) -> None:
        """One commit; without facts it changes data alone."""
        version = self.live.version + 1
        self.rows.append(self.rows[-1] + (not facts))
        self.states.append(replace(self.live, version=version, **with_look_back(facts)))
        self.history.append(Commit(version, self.at(version), operation, user, SPARK, stamp, bool(facts), not facts))

    def overwrite(self, stamp: str, kept: int, **facts: Any) -> None:
        """The whole table rewritten, with so many rows."""
        self.commit("WRITE", "apply", stamp, **facts)
        self.rows[-1] = kept
        self.history[-1] = replace(self.history[-1], overwrites=True, changes_data=True)

    def set_property(self, key: str, value: str | None, user: str = "ben") -> None:
        """Someone else's ALTER."""
        left = {name: text for name, text in self.live.properties.items() if name != key}
        self.commit("SET TBLPROPERTIES", user, properties=left if value is None else {**left, key: value})

    def commits_of(self, run: str) -> list[Commit]:
        return [commit for commit in self.history if f'"run":"{run}"' in commit.user_metadata]

    def truncation(self, live: LiveTable) -> HistoryTruncation | None:
        """When history may be given up: a day after the first checkpoint since the feature was in use, or was lost."""
        if not live.protocol.has("deletionVectors") and not live.protocol.has("checkpointProtection"):
            return None
        known = [pair for pair in zip(self.states, self.history, strict=True) if pair[0].version <= live.version]
        marks = [state.version for state, commit in known if _uses_vectors(state) or commit.operation == "DROP FEATURE"]
        checkpoints = ("Empty Commit", "DROP FEATURE")
        since = [
            commit.timestamp
            for state, commit in known
            if commit.operation in checkpoints and state.version >= max(marks, default=0)
        ]
        return HistoryTruncation(min(since) + DAY if since else 0)

    @property
    def stamped(self) -> list[Commit]:
        return [commit for commit in self.history if "tablectl" in commit.user_metadata]


@dataclass
class FakeLake:
    """Tables by location; a ``LiveReader``. ``on_read`` runs before each reading of a table's newest version."""

    tables: dict[str, FakeTable] = field(default_factory=dict)
    on_read: Callable[[FakeTable], None] = lambda _table: None
    lock: threading.RLock = field(default_factory=threading.RLock)
    positions: dict[str, Callable[[str], StreamState]] = field(default_factory=dict)
    """How far each streaming query is now, by its name; each takes the checkpoint."""
    disk: int | None = None
    """Bytes free where the tables lie."""

    def add(self, text: str = "delta.`/lake/orders`", location: str = "", **facts: Any) -> FakeTable:
        name = parse_table(text)
        location = location or name.parts[0]
        given: dict[str, Any] = {
            "protocol": Protocol(1, 2),
            "schema": COLUMNS,
            "clients": (SPARK,),
            "vectors": 0,
            "files": 3,
            "bytes": 3000,
            **facts,
        }
        live = LiveTable(name=name, location=location, version=0, table_id=f"id of {location}", **with_look_back(given))
        table = FakeTable(name, [live], [Commit(0, 1_700_000_000_000, "CREATE TABLE", "ann", SPARK)])
        self.tables[location] = table
        return table

    def read(
        self, name: TableName, location: str, depth: Depth = WITH_HISTORY, *, version: int | None = None
    ) -> LiveTable:
        with self.lock:
            table = self.tables[location]
            if version is None:
                self.on_read(table)
            if table.broken:
                raise LiveError(f"{location}: {table.broken}")
            live = table.live if version is None else self._at(table, version)
            known = depth.counts or table.checksums or not live.protocol.has("deletionVectors")
            live = live if known else replace(live, vectors=None)
            live = replace(live, marks=live.marks if depth.marks else None, optimize=depth.marks or "never")
            if depth.losses and depth.losses(live):
                live = replace(live, past=WriteHistory(tuple(reversed(table.history))))
            return replace(live, truncation=table.truncation(live) if depth.truncation else None)

    @staticmethod
    def _at(table: FakeTable, version: int) -> LiveTable:
        return next(state for state in table.states if state.version == version)

    def entry(self, location: str) -> CatalogEntry | None:
        return self.tables[location].live.entry

    def unnamed(self, location: str, *, after: int, since: float) -> Sequence[DataFile]:
        table = self.tables[location]
        if table.unlisted or table.broken:
            raise LiveError(f"{location}: {table.unlisted or table.broken}")
        return [each for each in table.unnamed if each.modified >= since]

    def modified(self, location: str, paths: Collection[str]) -> dict[str, float]:
        table = self.tables[location]
        if table.unlisted or table.broken:
            raise LiveError(f"{location}: {table.unlisted or table.broken}")
        return {path: at for path, at in table.copies.written.items() if path in paths}

    def row_versions(self, location: str, *, after: int) -> Sequence[int]:
        return [each.version for each in self.commits(location, after=after) if each.changes_data]

    def newest_row_version(self, location: str) -> int:
        return max(self.row_versions(location, after=-1), default=-1)

    def streams(self, checkpoints: Sequence[tuple[str, str]], table_id: str, location: str) -> Sequence[StreamState]:
        return [self.positions[name](checkpoint) for name, checkpoint in checkpoints]

    def free(self, location: str) -> int | None:
        return self.disk

    def commits(self, location: str, *, after: int) -> tuple[Commit, ...]:
        with self.lock:
            if self.tables[location].broken:
                raise LiveError(f"{location}: {self.tables[location].broken}")
            return tuple(commit for commit in reversed(self.tables[location].history) if commit.version > after)


Hook = Callable[[FakeTable, str], None]


@dataclass
class FakeEngine:
    """An ``Engine`` over a lake, and what it was asked to do.

    ``before`` and ``after`` run around the effect of each statement, with its table and SQL, and may raise; ``midway``
    runs between the commits of one statement.
    """

    lake: FakeLake
    stamp: Stamp
    dialect: str = "oss"
    sent: list[str] = field(default_factory=list)
    before: Hook = lambda _table, _sql: None
    after: Hook = lambda _table, _sql: None
    midway: Callable[[FakeTable], None] = lambda _table: None
    inside: Hook = lambda _table, _operation: None
    """Runs before each commit of a statement that makes several."""
    on_send: Callable[[], None] = lambda: None
    """Runs directly before a request is sent."""
    now: Callable[[], int] = lambda: 1_700_000_000_000
    """Milliseconds since the epoch, by the clock that Delta asks."""
    closed: int = 0
    shared: bool = True
    stated: bool = True
    address: str = ""
    bound: float | None = 0
    commit_bound: float | None = None
    rewrites: bool = True
    copies: bool = False
    """Whether it has access to its driver, in which a copy beside a table is made."""
    on_copy: Callable[[FakeTable, Sequence[str]], object] = lambda _table, _files: None
    """Runs while some files are written into a copy beside a table."""
    is_alive: bool = True
    running: dict[str, bool | None] = field(default_factory=dict)
    """What the engine says of operations, by their tags; of any other it says that nothing runs."""
    interrupted: list[tuple[str, str]] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    stores: dict[str, str] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()
    """Schemes that it has no file system for."""
    loses: int = 0
    """Rows that an overwrite does not write again."""
    empty_texts: int = 0
    violations: int = 0
    """Rows that violate a constraint."""
    asked: list[str] = field(default_factory=list)
    settings: dict[str, str] = field(default_factory=dict)
    """What SET gave the session, without the prefix of Delta."""
    unused: int = 0
    """The files that a VACUUM deletes."""
    batches: int = 1
    """The commits of an OPTIMIZE of small files."""

    def opens(self, scheme: str) -> bool | None:
        return scheme not in self.unknown

    def log_store(self, scheme: str) -> str:
        return self.stores.get(scheme, "")

    def location(self, table: TableName) -> str:
        found = self._find(table.parts if table.is_path else (table.catalog, *table.parts))
        return found.moved_to or found.live.location

    def alive(self) -> bool:
        return self.is_alive

    def interrupt(self, tag: str, address: str = "") -> bool | None:
        self.interrupted.append((tag, address))
        if address and self.address and address != self.address:
            return None  # another engine runs it
        return self.running.get(tag, self.running.get("*", False))

    def execute(self, sql: str, tag: str = "", may_send: MaySend = always, *, quick: bool = False) -> None:
        self.on_send()
        may_send()
        if sql.startswith(_SETTING):
            key, _, value = sql.removeprefix(_SETTING).partition(" = ")
            self.settings[key] = value
            return
        parsed = parse_sql(sql)
        self.tags.append(tag)
        table = self._find(parsed.table[1:] if parsed.table[0] == "delta" else parsed.table)
        with self.lake.lock:
            self.sent.append(sql)
            self.before(table, sql)
            if table.live.upkeep is not None and parsed.verb in {"OPTIMIZE", "VACUUM"}:
                (self._compact if parsed.verb == "OPTIMIZE" else self._vacuum)(table)
            else:
                effect = self._on_databricks if parsed.verb in _DATABRICKS or parsed.automatic else self._run
                effect(table, parsed)
            self.after(table, sql)

    def overwrite(
        self,
        table: TableName,
        columns: Sequence[tuple[str, Mapping[str, Any]]],
        partitions: Sequence[str],
        tag: str = "",
        may_send: MaySend = always,
    ) -> None:
        self.on_send()
        may_send()
        self.tags.append(tag)
        found = self._find(table.parts if table.is_path else (table.catalog, *table.parts))
        with self.lake.lock:
            sql = f"OVERWRITE {', '.join(partitions)}"
            self.sent.append(sql)
            self.before(found, sql)
            gone = [name for name, _ in columns if found.live.schema.find((name,)) is None]
            if gone:
                raise EngineError(f"there is no {gone[0]}", "", "UNRESOLVED_COLUMN.WITH_SUGGESTION")
            kept = found.rows[-1] - self.loses
            # As Delta does it: partitioned by others, clustered by nothing any more, no deletion vectors.
            clustering = () if found.live.clustering is not None else None
            found.overwrite(
                self.stamp.text(), kept, partition_columns=tuple(partitions), clustering=clustering, vectors=0
            )
            self.after(found, sql)

    def table_copy(self, location: str, partitions: Sequence[str], tag: str = "") -> LakeCopy:
        return LakeCopy(self, self.lake.tables[location], tuple(partitions), tag)

    def row(self, sql: str) -> tuple[str | None, ...]:
        """The two queries that a rewrite asks: for empty texts, and for the checksums of a version."""
        self.asked.append(sql)
        if "count_if(NOT" in sql or "IS NULL)" in sql:
            return (str(self.violations),) * sql.count("count_if")
        if "count_if" in sql:
            return (str(self.empty_texts),) * sql.count("count_if")
        table, _, version = sql.partition("\nFROM ")[2].partition(" VERSION AS OF ")
        parts = tuple(part.strip("`") for part in table.split("`.`"))
        found = self._find(parts[1:] if parts[0] == "delta" else parts)
        if found.copies.missing() and int(version) >= found.copies.since:
            raise EngineError("a file does not exist", "", "FAILED_READ_FILE.FILE_NOT_EXIST")
        return (str(found.rows[int(version)]),) * (1 + sql.count("sum("))

    def count(self, sql: str) -> int:
        """``VACUUM … DRY RUN``."""
        self.asked.append(sql)
        assert sql.endswith(" DRY RUN")
        return self.unused

    def close(self) -> None:
        self.closed += 1

    def _find(self, parts: tuple[str, ...]) -> FakeTable:
        if len(parts) == 1 and parts[0] in self.lake.tables:
            return self.lake.tables[parts[0]]
        for table in self.lake.tables.values():
            if parts == (table.name.parts if table.name.is_path else (table.name.catalog, *table.name.parts)):
                return table
        raise LiveError(f"{'.'.join(parts)} does not exist")

    def _on_databricks(self, table: FakeTable, sql: Sql) -> None:
        """What the documentation of Databricks says; no source says which commits there are."""
        entry = table.live.entry or CatalogEntry()
        if sql.verb == "OPTIMIZATION":
            words = {"ENABLE": "enabled", "DISABLE": "disabled", "INHERIT": "inherit"}
            table.states[-1] = replace(table.live, entry=replace(entry, optimization=words[sql.feature]))
        elif sql.verb == "MANAGED":
            table.states[-1] = replace(table.live, entry=replace(entry, managed=sql.full))
            table.moved_to, table.broken = "/managed/place", "the table is at another place now"
        else:
            auto = {"clusterByAuto": "true"} if sql.automatic else {}
            properties = {**table.live.properties, **auto}
            protocol = table.live.protocol.raised(frozenset({"clustering", "domainMetadata"}))
            facts = {"clustering": sql.columns, "properties": properties, "protocol": protocol, "partition_columns": ()}
            self._commit(table, "CLUSTER BY", **facts)

    def _run(self, table: FakeTable, sql: Sql) -> None:  # one branch a statement
        live = table.live
        if sql.verb == "UPGRADE":
            self._upgrade(table, sql.values[0][1])
            return
        if sql.verb == "REORG":
            if live.vectors:
                self._commit(table, "REORG", vectors=0)
            return
        if sql.verb == "OPTIMIZE":
            self._optimize(table, full=sql.full)
            return
        if sql.verb == "DROP FEATURE":
            self._drop(table, sql)
            return
        if sql.verb.endswith(("CONSTRAINT", "NOT NULL")):
            self._constrain(table, sql)
            return
        protocol = live.protocol.raised(features_of(sql))
        if sql.verb == "CLUSTER":
            missing = [column for column in sql.columns if live.schema.find(column) is None]
            if missing or live.partition_columns:
                raise EngineError(f"cannot cluster by {missing}", "", "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA")
            marks = live.marks and replace(live.marks, older=live.marks.unclustered())
            self._commit(table, "CLUSTER BY", clustering=sql.columns, protocol=protocol, marks=marks)
        else:
            if ("delta.enableRowTracking", "true") in sql.values:
                self._backfill(table, live.protocol.raised(frozenset({"rowTracking", "domainMetadata"})))
            if ("delta.columnMapping.mode", "none") in sql.values:
                assert len(sql.values) == 1, "Delta would make a second commit for the other keys"
                left = {**live.properties, "delta.columnMapping.mode": "none"}
                self._commit(table, "REMOVE COLUMN MAPPING", properties=left, vectors=0)
                return
            left = changed_properties(sql, live.properties)
            self._commit(table, f"{sql.verb} TBLPROPERTIES", properties=left, protocol=protocol)

    def _constrain(self, table: FakeTable, sql: Sql) -> None:
        """As Delta: rows in the way fail it, and it stores the tokens of the expression (delta-1.12)."""
        key = f"delta.constraints.{sql.feature.lower()}"
        if sql.verb == "DROP CONSTRAINT":
            left = {name: text for name, text in table.live.properties.items() if name != key}
            self._commit(table, sql.verb, properties=left)
        elif sql.verb == "ADD CONSTRAINT":
            if self.violations:
                raise EngineError(f"{self.violations} rows violate it", "", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION")
            assert key not in table.live.properties, "DELTA_CONSTRAINT_ALREADY_EXISTS"
            protocol = table.live.protocol.raised(frozenset({"checkConstraints"}))
            self._commit(
                table,
                sql.verb,
                properties={**table.live.properties, key: stored_by_delta(sql.expression)},
                protocol=protocol,
            )
        else:
            nullable = sql.verb == "DROP NOT NULL"
            schema = table.live.schema
            fields = [
                replace(each, nullable=nullable) if (each.name,) in sql.columns else each for each in schema.fields
            ]
            self._commit(table, "CHANGE COLUMN", schema=replace(schema, fields=tuple(fields)))

    def _upgrade(self, table: FakeTable, version: str) -> None:
        """As Delta: the compatibility where it is not on, for V2 the files, the format where it is not set."""
        key = f"delta.enableIcebergCompatV{version}"
        if table.live.properties.get(key) != "true":
            others = {f"delta.enableIcebergCompatV{each}": "false" for each in "12" if each != version}
            off = {each: text for each, text in others.items() if each in table.live.properties}
            sets = {key: "true", "delta.columnMapping.mode": "name", "delta.enableDeletionVectors": "false", **off}
            features = frozenset({"columnMapping", f"icebergCompatV{version}"})
            properties = {**table.live.properties, **sets}
            protocol = table.live.protocol.raised(features)
            self._commit(table, "REORG TABLE UPGRADE UNIFORM", properties=properties, protocol=protocol)
            self.midway(table)
        if version == "2" and not any(each.operation == "REORG" for each in table.history):
            self._commit(table, "REORG", vectors=0)
            self.midway(table)
        if "delta.universalFormat.enabledFormats" not in table.live.properties:
            formats = {"delta.universalFormat.enabledFormats": "iceberg"}
            self._commit(table, "SET TBLPROPERTIES", properties={**table.live.properties, **formats})

    def _backfill(self, table: FakeTable, protocol: Protocol) -> None:
        """As Delta: the protocol where it lacks the feature, then every file, as long as none of them has ids."""
        if table.live.properties.get("delta.rowTrackingSuspended") == "true":
            raise EngineError("row tracking is suspended", "", "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION")
        if protocol != table.live.protocol:
            self._commit(table, "UPGRADE PROTOCOL", protocol=protocol)
            self.midway(table)
        if not any(commit.operation == "ROW TRACKING BACKFILL" for commit in table.history):
            self._commit(table, "ROW TRACKING BACKFILL")
            self.midway(table)

    def _optimize(self, table: FakeTable, *, full: bool) -> None:
        """What is not clustered, and with FULL all that is so by other columns, gets the present ones (delta-5)."""
        live = table.live
        columns = tuple(".".join(path) for path in live.clustering or ())
        if not columns and full:
            raise EngineError("no clustering columns", "", "DELTA_OPTIMIZE_FULL_NOT_SUPPORTED")
        marks = live.marks or ClusteringState()
        kept = tuple(part for part in marks.parts if not full and part.columns not in {None, columns})
        taken = [part for part in marks.parts if part not in kept]
        if all(part.columns == columns for part in taken):
            return
        files, size = sum(part.files for part in taken), sum(part.bytes for part in taken)
        done = FileGroup(columns=columns, files=files, bytes=size)
        self._commit(table, "OPTIMIZE", marks=ClusteringState(parts=(*kept, done)))

    def _compact(self, table: FakeTable) -> None:
        """Small files in equal batches, each a commit; ``midway`` may end it in between."""
        facts = table.live.upkeep
        assert facts is not None
        assert facts.small_files is not None
        left, each = facts.small_files, -(-facts.small_files // self.batches)
        while left > 1:
            removed = min(each, left)
            left -= removed
            metrics = {"numRemovedFiles": str(removed), "numRemovedBytes": str(removed * 1000), "numAddedFiles": "1"}
            table.commit("OPTIMIZE", "apply", self.stamp.text())
            table.history[-1] = replace(table.history[-1], metrics=metrics, timestamp=self.now())
            done = replace(facts, small_files=left, small_bytes=left * 1000, optimized_at=self.now())
            table.states[-1] = replace(table.live, upkeep=replace(done, optimized_by_us=True))
            self.midway(table)

    def _vacuum(self, table: FakeTable) -> None:
        facts = table.live.upkeep
        assert facts is not None
        for operation, metrics in (
            ("VACUUM START", {"numFilesToDelete": str(self.unused), "sizeOfDataToDelete": str(self.unused * 1000)}),
            ("VACUUM END", {"numDeletedFiles": str(self.unused)}),
        ):
            table.commit(operation, "apply", self.stamp.text())
            table.history[-1] = replace(table.history[-1], metrics=metrics, timestamp=self.now(), changes_data=False)
            if operation == "VACUUM END":
                table.states[-1] = replace(table.live, upkeep=replace(facts, vacuumed_at=self.now(), removed=()))
            self.midway(table)

    def _drop(self, table: FakeTable, sql: Sql) -> None:
        """Commit by commit, and between any two of them the process may be killed (delta-1.3)."""
        live = table.live
        if not live.protocol.has(sql.feature):
            raise EngineError(f"no {sql.feature}", "", "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT")
        used = sql.feature == "deletionVectors" and _uses_vectors(live)
        if used:
            left = {key: value for key, value in live.properties.items() if key != "delta.enableDeletionVectors"}
            self._commit(table, "UNSET TBLPROPERTIES", properties=left)
            self._commit(table, "REORG", vectors=0)
        key, after = _LEAVES.get(sql.feature, ("", None))
        if key in table.live.properties and sql.feature != "rowTracking":
            left = {name: text for name, text in table.live.properties.items() if name != key}
            self._commit(table, "SET TBLPROPERTIES", properties={**left, **({key: after} if after else {})})
            self.midway(table)
        if sql.feature == "rowTracking":
            off = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
            self._commit(table, "SET TBLPROPERTIES", properties={**table.live.properties, **off})
            self.midway(table)
            self._commit(table, "ROW TRACKING UNBACKFILL", vectors=table.live.vectors)
            self.midway(table)
        truncation = table.truncation(table.live)
        reader = sql.feature in READER_FEATURES
        barrier = ["Empty Commit"] * (1 if sql.truncates else 3 if reader else 0)
        tombstones = ["Deletion Vector Tombstones"] if sql.feature == "deletionVectors" else []
        for step in (*tombstones, *barrier):
            self.inside(table, step)
            self._commit(table, step, vectors=table.live.vectors)
        if sql.truncates and truncation is not None and not 0 < truncation.due <= self.now():
            raise EngineError("not yet", "wait", "DELTA_FEATURE_DROP_HISTORICAL_VERSIONS_EXIST")
        self.inside(table, "DROP FEATURE")
        added = frozenset({"checkpointProtection"} if reader and not sql.truncates else ())
        protocol = table.live.protocol.raised(added).lowered(frozenset({sql.feature}))
        gone = {"delta.enableRowTracking", "delta.rowTrackingSuspended"} if sql.feature == "rowTracking" else set()
        left = {name: text for name, text in table.live.properties.items() if name not in gone}
        self._commit(table, "DROP FEATURE", protocol=protocol, properties=left)

    def _commit(self, table: FakeTable, operation: str, **facts: Any) -> None:
        table.commit(operation, "apply", self.stamp.text(), **facts)


# Behaviours


def contended(times: int, condition: str = "DELTA_METADATA_CHANGED") -> Hook:
    """So many times someone else commits at the same moment."""
    left = times

    def hook(table: FakeTable, _sql: str) -> None:
        nonlocal left
        if left > 0:
            left -= 1
            table.commit("WRITE", "stream")
            raise EngineError("someone was faster", "run the command again", condition)

    return hook


def fails(number: int, condition: str = "") -> Hook:
    """The statement of that number, from 1, gives an error: before its effect or after it, by where it is hung."""
    count = 0

    def hook(_table: FakeTable, _sql: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            raise EngineError("the connection broke", "look at the cluster", condition)

    return hook


def at(number: int, act: Callable[[FakeTable], object]) -> Hook:
    """Someone does something around the statement of that number, from 1."""
    count = 0

    def hook(table: FakeTable, _sql: str) -> None:
        nonlocal count
        count += 1
        if count == number:
            act(table)

    return hook


@dataclass
class LakeCopy:
    """A copy beside a table. Each commit of rows is one file of the table."""

    engine: FakeEngine
    table: FakeTable
    partitions: tuple[str, ...]
    tag: str
    version: int = -1
    used: dict[str, None] = field(default_factory=dict)

    def follow(self) -> FollowedTable:
        live, files = self.table.live, self.table.copies
        self.version = live.version
        layout = f"{sorted(live.properties.items())} {live.protocol} {live.schema.text} {live.clustering}"
        commits = [each for each in self.table.history if each.version > files.since]
        rows = [f"v{each.version}" for each in commits if each.changes_data or each.version == 0]
        kept = [each for each in (*files.live, *rows) if each not in files.removed]
        followed = tuple(FollowedFile(each, 1) for each in kept)
        keys = tuple(name for name in self.partitions if live.schema.find((name,)) is not None)
        return FollowedTable(
            live.version, live.table_id, layout, live.schema.text, followed, dict(live.properties), keys
        )

    def write(self, keys: Sequence[str]) -> tuple[str, ...]:
        """A new file for each file of the table."""
        self.engine.on_copy(self.table, keys)
        return tuple(self._write(self._rows([key])) for key in keys)

    def _write(self, rows: tuple[str, ...]) -> str:
        files = self.table.copies
        path = f"new-{len(files.holds)}.parquet"
        files.holds[path], files.written[path] = rows, self.engine.now() / 1000
        values = dict.fromkeys(self.partitions)
        add = {"path": path, "partitionValues": values, "size": 1, "modificationTime": self.engine.now()}
        return json.dumps({"add": {**add, "dataChange": True}})

    def compare(
        self, keys: Sequence[str], adds: Sequence[str], sums: Sequence[str]
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        copied = self._rows([json.loads(each)["add"]["path"] for each in adds])
        return (str(sorted(self._rows(keys))),) * len(sums), (str(sorted(copied)),) * len(sums)

    def _rows(self, paths: Sequence[str]) -> tuple[str, ...]:
        files = self.table.copies
        for path in paths:
            if path in files.gone or (path in files.holds and path not in files.written):
                raise EngineError(f"{path} does not exist", "", "FAILED_READ_FILE.FILE_NOT_EXIST")
        return tuple(row for path in paths for row in files.holds.get(path, (path,)))

    def measure(self, adds: Sequence[str]) -> tuple[str, ...]:
        return tuple(adds)

    def use(self, adds: Sequence[str]) -> None:
        self.used |= {json.loads(each)["add"]["path"]: None for each in adds}

    def drop(self, adds: Sequence[str]) -> None:
        for each in adds:
            self.used.pop(json.loads(each)["add"]["path"], None)

    def prepare(self) -> None: ...

    def commit(self) -> int:
        engine, sql = self.engine, f"CUT OVER {', '.join(self.partitions)}"
        engine.tags.append(self.tag)
        with engine.lake.lock:
            engine.sent.append(sql)
            engine.before(self.table, sql)
            if self.table.live.version != self.version:
                raise EngineError("another commit came first", "", "DELTA_CONCURRENT_APPEND")
            clustering = () if self.table.live.clustering is not None else None
            self.table.overwrite(
                engine.stamp.text(),
                self.table.rows[-1],
                partition_columns=self.partitions,
                clustering=clustering,
                vectors=0,
            )
            self.table.copies.live, self.table.copies.since = tuple(self.used), self.table.live.version
            engine.after(self.table, sql)
        return self.table.live.version

    def exchange(self, old: Sequence[str], new: Sequence[str]) -> int:
        files = self.table.copies
        gone, come = ([json.loads(each)["add"]["path"] for each in adds] for adds in (old, new))
        if not set(gone) <= set(files.live):
            raise EngineError("others have changed these files since the commit", "")
        files.live = (*(each for each in files.live if each not in gone), *come)
        self.table.commit("Manual Update", "apply", self.engine.stamp.text())
        self.table.rows[-1] = self.table.rows[-2]
        self.table.history[-1] = replace(self.table.history[-1], changes_data=False)
        return self.table.live.version
