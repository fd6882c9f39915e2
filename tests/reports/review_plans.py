"""Six repositories whose comments a reviewer must be able to decide on: policies, logs, and the right decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.commands.log_lake import SPARK, append, count_rows, create, set_property

_GB = 1_000_000_000
_DELTA_RS = "delta-rs:py-1.6.6"
_VECTORS = ("appendOnly", "deletionVectors", "invariants")


@dataclass(frozen=True)
class ReviewCase:
    """One plan to review."""

    policies: str
    make: Callable[[Path], Mapping[str, Path]]
    """Writes the logs below a folder; the tables of ``lake.sales`` by name."""
    decision: str
    """What a reviewer who approves only what can be taken back and fails no client for good answers."""
    reason: str
    base: str = ""
    """The policies of the base branch, if the pull request does not add them all."""


_FILE = {"partitionValues": {}, "modificationTime": 0, "dataChange": True, "stats": '{"numRecords": 1}'}


def _table(
    root: Path,
    name: str,
    *,
    partitions: Sequence[str] = (),
    features: Sequence[str] = (),
    client: str = SPARK,
    files: int = 20,
    size: int = _GB,
) -> Path:
    path = create(root / name, partitions=partitions, features=features, client=client)
    count_rows(path)
    for batch in range(2):
        names = (f"batch-{batch}-{number}.parquet" for number in range(files // 2))
        added = [{"add": {**_FILE, "path": each, "size": size}} for each in names]
        append(path, "WRITE", added, client=client, parameters={"mode": "Append"})
    return path


def _harmless(root: Path) -> Mapping[str, Path]:
    return {name: _table(root, name, features=_VECTORS) for name in ("invoices", "ledger", "payments", "refunds")}


def _rewrite(root: Path) -> Mapping[str, Path]:
    return {
        "orders": _table(root, "orders"),
        "visits": _table(root, "visits", partitions=("day",), files=400, size=3 * _GB),
    }


def _lockout(root: Path) -> Mapping[str, Path]:
    return {"customers": _table(root, "customers", client=_DELTA_RS), "orders": _table(root, "orders")}


def _irreversible(root: Path) -> Mapping[str, Path]:
    return {"events": _table(root, "events"), "ledger": _table(root, "ledger", features=_VECTORS)}


def _mixed(root: Path) -> Mapping[str, Path]:
    made = {f"t{n}": _table(root, f"t{n}", features=_VECTORS if n % 3 else ()) for n in range(1, 200)}
    return {**made, "t150": made["t150"], "visits": _table(root, "visits", partitions=("day",), files=60)}


def _refused(root: Path) -> Mapping[str, Path]:
    return {
        "customers": _table(root, "customers", client=_DELTA_RS),
        "visits": _table(root, "visits", partitions=("day",), files=400, size=3 * _GB),
    }


def _sixty(root: Path) -> Mapping[str, Path]:
    return {f"t{number}": _table(root, f"t{number}", files=2) for number in range(1, 61)}


def _busy(root: Path) -> Mapping[str, Path]:
    path = _table(root, "orders")
    for number in range(30):
        append(path, "MERGE", [{"add": {**_FILE, "path": f"merge-{number}.parquet", "size": 1}}])
    return {"orders": path}


def _drifted(root: Path) -> Mapping[str, Path]:
    path = _table(root, "orders", features=_VECTORS)
    set_property(path, "delta.appendOnly", "true")
    return {"orders": path}


def _short_lived(root: Path) -> Mapping[str, Path]:
    path = _table(root, "orders", features=_VECTORS)
    set_property(path, "delta.deletedFileRetentionDuration", "interval 1 hours")
    gone = {"deletionTimestamp": 1, "dataChange": True, "size": _GB}
    append(path, "DELETE", [{"remove": {**gone, "path": f"batch-0-{number}.parquet"}} for number in range(5)])
    for log in (path / "_delta_log").glob("*.json"):
        text = log.read_text()
        told = (
            f'{{"numRemovedFiles": "5", "numRemovedBytes": "{5 * _GB}"}}' if "remove" in text else '{"numFiles": "2"}'
        )
        log.write_text(text.replace('"operationParameters"', f'"operationMetrics": {told}, "operationParameters"'))
    return {"orders": path}


def _negative(root: Path) -> Mapping[str, Path]:
    path = create(root / "orders", columns={"id": "long", "amount": "long"})
    for name, least in (("a", -20), ("b", 5)):
        stats = f'{{"numRecords": 1000, "minValues": {{"amount": {least}}}, "maxValues": {{"amount": 900}}, '
        stats += '"nullCount": {"amount": 0}}'
        append(path, "WRITE", [{"add": {**_FILE, "path": f"{name}.parquet", "size": 1000, "stats": stats}}])
    return {"orders": path}


CASES: Mapping[str, ReviewCase] = {
    "harmless": ReviewCase(
        "\n".join(
            f"  lake.sales.{name}: {{deletion_vectors: enabled}}"
            for name in ("invoices", "ledger", "payments", "refunds")
        ),
        _harmless,
        "approve",
        "concurrent writes continue, nothing is rewritten, and a rollback restores all four tables",
    ),
    "rewrite": ReviewCase(
        "  lake.sales.orders: {properties: {owner.team: payments}}\n"
        "  lake.sales.visits:\n    partitioning: [kind]\n    rewrite: allowed\n    max_bytes: 2 TB",
        _rewrite,
        "reject",
        "lake.sales.visits is rewritten in full, 1.2 TB, and every stream that reads it stops",
    ),
    "lockout": ReviewCase(
        "  lake.sales.customers:\n    row_tracking: enabled\n    allow: [lockout]\n"
        "  lake.sales.orders: {properties: {owner.team: payments}}",
        _lockout,
        "reject",
        "delta-rs 1.6.6, which writes lake.sales.customers, can no longer write it; the policy consents to that",
    ),
    "irreversible": ReviewCase(
        "  lake.sales.events: {clustering: [id]}\n  lake.sales.ledger: {deletion_vectors: enabled}",
        _irreversible,
        "reject",
        "the clustering feature of lake.sales.events can never be dropped",
    ),
    "mixed": ReviewCase(
        "  lake.sales.t*: {properties: {owner.team: payments}}\n"
        "  lake.sales.t3: {deletion_vectors: enabled}\n  lake.sales.t6: {deletion_vectors: enabled}\n"
        "  lake.sales.t77: {clustering: [id]}\n"
        "  lake.sales.visits:\n    partitioning: [kind]\n    rewrite: allowed\n    max_bytes: 1 TB",
        _mixed,
        "reject",
        "among 200 tables, lake.sales.visits is rewritten in full, and three tables cannot be restored in full",
    ),
    "refused": ReviewCase(
        "  lake.sales.customers:\n    row_tracking: enabled\n    clients: {deltalake: 1.6.6}\n"
        "  lake.sales.visits: {partitioning: [kind]}",
        _refused,
        "reject",
        "nothing would be applied: a declared client would be locked out, and the rewrite has no consent",
    ),
    "blocking": ReviewCase(
        "  lake.sales.orders: {isolation: Serializable}",
        _busy,
        "approve at a quiet hour",
        "each write that runs then fails once; it can be undone",
    ),
    "drift": ReviewCase(
        "  lake.sales.orders: {properties: {delta.appendOnly: false}, tags: [nightly]}",
        _drifted,
        "ask",
        "the apply turns delta.appendOnly off, which another engineer turned on by hand; the branch adds a tag",
        base="  lake.sales.orders: {properties: {delta.appendOnly: false}}",
    ),
    "sixty": ReviewCase(
        "\n".join(f"  lake.sales.t{number}: {{properties: {{owner.team: payments}}}}" for number in range(1, 61)),
        _sixty,
        "approve",
        "sixty tables get one property; it can be undone, and writes that run then fail once",
    ),
    "upkeep": ReviewCase(
        "  lake.sales.orders: {deletion_vectors: disabled, upkeep: {vacuum: {every: 1 day}}}",
        _short_lived,
        "reject",
        "VACUUM is turned on for a table that keeps deleted files for an hour: readers and writers lose files",
        base="  lake.sales.orders: {deletion_vectors: disabled}",
    ),
    "constraint": ReviewCase(
        '  lake.sales.orders: {constraints: {positive: "amount > 0"}}',
        _negative,
        "reject",
        "rows violate the constraint, so nothing would be applied",
    ),
}
TEN = (
    *("harmless", "blocking", "irreversible", "lockout", "rewrite"),
    *("refused", "drift", "sixty", "upkeep", "constraint"),
)
"""Those that ``tools.review_comments`` writes."""
