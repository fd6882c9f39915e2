"""What a round is about: tables, the policy that is pending on each, the fault and its moment; all from one seed."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, get_args
from uuid import uuid4

from chaos.features import Feature
from chaos.strangers import SQL, Stranger

Fault = Literal["none", "kill", "pause", "cut", "server", "store", "stranger"]
FAULTS: tuple[Fault, ...] = get_args(Fault)
WEIGHTS: Mapping[Fault, int] = {"none": 1, "kill": 8, "pause": 4, "cut": 3, "server": 2, "store": 3, "stranger": 4}
"""How often each fault is chosen; ``none`` checks the harness."""
TIMES: Mapping[Fault, tuple[int, int]] = {
    "none": (0, 0),
    "kill": (2, 5),
    "pause": (1, 3),
    "cut": (1, 2),
    "server": (1, 2),
    "store": (1, 2),
    "stranger": (1, 3),
}
"""The least and the greatest number of faults in a round: its first minute, in which the writers begin, costs most."""
Moment = Literal["start", "lease", "closed", "commit"]
"""What the fault waits for before its delay: the process, its first lease record, a closed gate, its first commit."""
_DELAYS: Mapping[Moment, float] = {"start": 6.0, "lease": 3.0, "closed": 1.5, "commit": 0.6}

TTL = 10
"""Seconds, the least that ``window.ttl`` takes."""
PATIENCE = 1.25
"""How many ttls without a sign of life make a lease or a guard dead (docs/guards.md)."""
SLACK = 5.0
"""Seconds above that within which leases and guards must be free."""
FREE = TTL * PATIENCE + SLACK

SEED_WRITER = -1
SEED_ROWS = 200


@dataclass(frozen=True, slots=True)
class Template:
    """A table as it is before a round. ``{place}`` stands for its folder."""

    layout: str = ""
    """``PARTITIONED BY`` or ``CLUSTER BY``."""
    properties: Mapping[str, str] = field(default_factory=dict)

    def statements(self, place: str) -> list[str]:
        """The SQL that makes it: 200 rows in two files; with deletion vectors, one row in ten is deleted."""
        given = {"stray": "x", "delta.enableDeletionVectors": "false", **self.properties}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
        create = f"CREATE TABLE delta.`{place}` (w INT, id LONG, v LONG, m INT) USING delta {self.layout}"
        made = [f"{create} TBLPROPERTIES ({listed})"]
        half = SEED_ROWS // 2
        row = f"CAST({SEED_WRITER} AS INT), id, id, CAST(id % 4 AS INT)"
        for first in (0, half):
            made += [f"INSERT INTO delta.`{place}` SELECT {row} FROM range({first}, {first + half}, 1, 1)"]
        if given["delta.enableDeletionVectors"] == "true":
            made.append(f"DELETE FROM delta.`{place}` WHERE id % 10 = 0")
        return made


_VECTORS = {"delta.enableDeletionVectors": "true"}
_MAPPED = {"delta.columnMapping.mode": "name"}
TEMPLATES: Mapping[str, Template] = {
    "plain": Template(),
    "by_writer": Template("PARTITIONED BY (w)"),
    "vectors": Template("", _VECTORS),
    "vectors_by_writer": Template("PARTITIONED BY (w)", _VECTORS),
    "clustered": Template("CLUSTER BY (id)"),
    "mapped": Template("PARTITIONED BY (w)", _MAPPED),
}


@dataclass(frozen=True, slots=True)
class Pending:
    """A policy and the table that it changes."""

    kind: str
    template: str
    policy: Mapping[str, object]
    keys: tuple[str, ...]
    """What its commits may change, as ``replay.Settings`` names it; ``*`` at the end stands for any rest."""


_FEATURES = ("protocol.minReaderVersion", "protocol.minWriterVersion")


def _features(*names: str) -> tuple[str, ...]:
    return (*_FEATURES, *(f"feature.{kind}.{name}" for name in names for kind in ("readerFeatures", "writerFeatures")))


# A table's first features bring those that its old protocol version implied.
_LEGACY = _features(
    "appendOnly", "invariants", "checkConstraints", "changeDataFeed", "generatedColumns", "identityColumns"
)
_CLUSTERS = ("clustering", *_LEGACY, *_features("clustering", "domainMetadata"))
_VECTOR_KEYS = ("property.delta.enableDeletionVectors", *_LEGACY, *_features("deletionVectors"))
_DROP_KEYS = (
    *_VECTOR_KEYS,
    *_features("checkpointProtection"),
    "property.delta.requireCheckpointProtectionBeforeVersion",
)
_MAPPING_KEYS = ("property.delta.columnMapping.*", "column.*", *_LEGACY, *_features("columnMapping"))
_TRACKING_KEYS = (
    "property.delta.enableRowTracking",
    "property.delta.rowTracking*",
    *_LEGACY,
    *_features("rowTracking", "domainMetadata"),
)
PROPERTY_KEYS = (
    "property.delta.isolationLevel",
    "property.delta.checkpointRetentionDuration",
    "property.owner.team",
    "property.stray",
)


def _properties(chosen: random.Random) -> dict[str, object]:
    retention = f"interval {chosen.randint(40, 90)} days"
    team = f"team{chosen.randrange(1000)}"
    return {"delta.checkpointRetentionDuration": retention, "owner.team": team, "stray": None}


def _choices(chosen: random.Random) -> list[Pending]:
    """One of each kind, with values drawn from the seed."""
    flat, any_table = (
        chosen.choice(["plain", "by_writer"]),
        chosen.choice(["plain", "by_writer", "vectors", "clustered"]),
    )
    vectors, purged = (chosen.choice(["vectors", "vectors_by_writer"]) for _ in range(2))
    columns: object = chosen.choice([["id"], ["w", "id"], ["m"]])
    again: object = chosen.choice([["w"], ["m", "id"], "none"])
    partitions: object = chosen.choice(["none", ["m"]])
    properties = {"isolation": "Serializable", "properties": _properties(chosen)}
    consent = {"rewrite": "allowed"}
    return [
        Pending("properties", any_table, properties, PROPERTY_KEYS),
        Pending("clustering", "plain", {"clustering": columns}, _CLUSTERS),
        Pending("clustering again", "clustered", {"clustering": again}, _CLUSTERS),
        Pending("vectors on", flat, {"deletion_vectors": "enabled"}, _VECTOR_KEYS),
        Pending("purged", purged, {"deletion_vectors": "purged"}, _VECTOR_KEYS),
        Pending("dropped", vectors, {"deletion_vectors": "dropped"}, _DROP_KEYS),
        Pending("mapping", flat, {"column_mapping": "name"}, _MAPPING_KEYS),
        Pending("mapping removed", "mapped", {"column_mapping": "none", **consent}, _MAPPING_KEYS),
        Pending("row tracking", flat, {"row_tracking": "enabled"}, _TRACKING_KEYS),
        Pending("partition rewrite", "by_writer", {"partitioning": partitions, **consent}, ("partitioning",)),
    ]


KINDS = tuple(each.kind for each in _choices(random.Random(0)))


@dataclass(frozen=True, slots=True)
class Strike:
    """When a fault is done, and how long it lasts."""

    moment: Moment
    delay: float
    lasts: float
    """Of ``cut``, ``store`` and ``server``: seconds until it is mended. Of ``pause``: seconds more than it must."""
    how: str
    """``at once`` or ``later``: when the command is started again; of ``cut`` and ``store`` ``refuse`` or ``hold``;
    of ``pause`` also ``short``, when the process goes on before its lease is over; of ``stranger`` its name."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One round."""

    seed: int
    fault: Fault
    tables: tuple[Pending, ...]
    in_bucket: bool
    """Whether the records are in a bucket (``state:``), else next to the tables."""
    strikes: tuple[Strike, ...]
    """One for each time that the command is disturbed."""
    writers: int
    """Seed of the writers."""
    kinds: tuple[str, ...] = ("append", "rewrite")
    """Kinds of the writers: appends and rewrites always, a stream in a third of the rounds, else OPTIMIZE."""
    features: tuple[Feature, ...] = ()
    """What else meets in the runs of the command."""

    def window(self, hook: Sequence[str]) -> dict[str, Any]:
        """The settings below ``window`` that the features ask for; ``hook`` is the command that writes hooks down."""
        settings: dict[str, Any] = {}
        if Feature.OWED_HOOKS in self.features:
            settings |= {"before": [[*hook, "before"]], "after": [[*hook, "after"]]}
        if Feature.TOGETHER in self.features:
            settings["together"] = ["delta.`*`"]
        if Feature.PACE in self.features:
            settings["max_bytes_per_hour"] = "1 TB"
        return settings

    @property
    def arguments(self) -> tuple[str, ...]:
        """The options of ``apply`` that the features ask for."""
        return ("--canary", "1", "--soak", "0.1") if Feature.CANARY in self.features else ()


STRANGERS = [each.name for each in SQL if each is not Stranger.SHORT_VACUUM]
"""A round reads the rows of old versions, which a short VACUUM deletes; ``chaos.copies`` has it."""

MEETS = (
    Feature.GUARDED_PROCESS,
    Feature.OWED_HOOKS,
    Feature.SIGNAL,
    Feature.TOGETHER,
    Feature.CANARY,
    Feature.PACE,
    Feature.ENDPOINT,
)
"""The features that a round draws; ``NOT_DRAWN`` says where the others are."""
NOT_DRAWN: Mapping[Feature, str] = MappingProxyType(
    {
        Feature.ORPHAN: "the fault `kill` leaves statements running",
        Feature.FAILING_STORE: "it is the fault `store`",
        Feature.REWRITE: "it is the kind of table `partition rewrite`",
        Feature.COPY: "`python -m chaos.copies` has rounds of its own",
        Feature.CALENDAR: "its windows are minutes long, and a round is short",
        Feature.QUIET: "a round is too short for a history that tells quiet hours",
        Feature.STREAMS: "its checkpoint is another process's; tests/scenarios/test_streams.py has it on real Spark",
        Feature.UNDO: "a round checks that no setting takes a value again that it had before",
        Feature.MANAGED: "it needs a catalog server: `make test-unity`",
        Feature.RUNTIME: "Databricks does not run here",
        Feature.CONSTRAINT: "tests/scenarios/test_features.py adds constraints on real Spark",
        Feature.DROPPED: "it is the kind of table `dropped`",
        Feature.UPKEEP: "its own benchmark shows it on real tables: benchmarks/upkeep.py",
        Feature.EMPTY_PATTERN: "the command ends with 1, which a round takes for unfinished",
    }
)


def choose(seed: int, only: Fault | None = None) -> Scenario:
    """The round of a seed. ``only`` replaces its fault; tables and policies stay the same."""
    chosen = random.Random(seed)
    tables = tuple(_with_more(each, chosen) for each in chosen.sample(_choices(chosen), chosen.choice([2, 3, 3])))
    drawn = chosen.choices(FAULTS, [WEIGHTS[each] for each in FAULTS])[0]
    fault = only or drawn
    in_bucket = chosen.random() < 0.25 or fault == "store"
    writers = chosen.randrange(1 << 30)
    strikes = tuple(_strike(fault, chosen) for _ in range(chosen.randint(*TIMES[fault])))
    kinds = ("append", "rewrite", chosen.choice(["stream", "optimize", "optimize"]))
    features = _possible(chosen.sample(MEETS, chosen.choice([0, 1, 2, 2])), tables)
    return Scenario(seed, fault, tables, in_bucket, strikes, writers, kinds, features)


def _possible(drawn: Sequence[Feature], tables: Sequence[Pending]) -> tuple[Feature, ...]:
    """Without the endpoint where a table is rewritten by Spark."""
    never = any(each.kind == "partition rewrite" for each in tables)
    return tuple(each for each in drawn if each is not Feature.ENDPOINT or not never)


def _with_more(pending: Pending, chosen: random.Random) -> Pending:
    """Two in five tables have properties pending as well."""
    more = _properties(chosen)
    if chosen.random() > 0.4 or "properties" in pending.policy:
        return pending
    policy = {**pending.policy, "properties": more}
    return Pending(pending.kind, pending.template, policy, (*pending.keys, *PROPERTY_KEYS))


def _strike(fault: Fault, chosen: random.Random) -> Strike:
    moment = chosen.choices(list(_DELAYS), [1, 2, 5, 3])[0]
    delay = chosen.uniform(0.0, _DELAYS[moment])
    ways = {
        "pause": ["at once", "at once", "at once", "later", "later", "short"],
        "kill": ["at once", "later"],
        "stranger": STRANGERS,
    }
    how = chosen.choice(ways.get(fault, ["refuse", "hold"]))
    longest = {"pause": [4.0], "server": [8.0], "store": [8.0, 25.0], "cut": [8.0, 8.0, 45.0]}.get(fault, [0.0])
    lasts = chosen.choice(longest) * chosen.uniform(0.0, 1.0)
    return Strike(moment, delay, lasts, how)


def policy_text(tables: Mapping[Path, Mapping[str, object]]) -> str:
    """A policy file; JSON is YAML, so values need no quoting rules."""
    named = {f"delta.`{place}`": dict(policy) for place, policy in tables.items()}
    return json.dumps({"version": 1, "tables": named}, indent=2) + "\n"


def copy_table(template: Path, place: Path) -> None:
    """A table of its own: the files of a template under another table id."""
    shutil.copytree(template, place)
    logs = [*(place / "_delta_log").glob("[0-9]*.json"), *(place / "_delta_log").glob("[0-9]*.crc")]
    first = (place / "_delta_log" / f"{0:020d}.json").read_text(encoding="utf-8")
    old = next(json.loads(line)["metaData"]["id"] for line in first.splitlines() if "metaData" in line)
    new = str(uuid4())
    for path in logs:
        path.write_text(path.read_text(encoding="utf-8").replace(old, new), encoding="utf-8")
    for stale in (place / "_delta_log").glob(".*.crc"):
        stale.unlink()  # Hadoop's checksums of the files before they were changed


def allowed(keys: Sequence[str], key: str) -> bool:
    """Whether a setting is among those that a policy's commits may change."""
    return any(key == each or (each.endswith("*") and key.startswith(each[:-1])) for each in keys)
