"""Which transaction fails because of which commits, for every client of the current transaction.

The rules of Delta Kernel and delta-rs are here. Those of Delta Spark and Databricks have a file each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tablectl.conflicts import databricks_rules, delta_spark_rules
from tablectl.conflicts.transactions import (
    ClientRules,
    Conflict,
    ConflictOutcome,
    ConflictResult,
    CurrentTransaction,
    Level,
    commits,
    fails,
    worst,
)
from tablectl.delta.client_families import DELTA_RS, KERNEL
from tablectl.delta.keys import ROW_TRACKING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, Kind

_KERNEL = "delta-2.2, Kernel"
_DELTA_RS = "delta-2.2, delta-rs"


def decide_kernel(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """Delta Kernel does not resolve metadata or protocol changes, and does not check added files at all."""
    if committed.protocol is not None:
        return fails(Conflict.PROTOCOL_CHANGED, "it fails on every change of the protocol", _KERNEL)
    if committed.metadata is not None:
        return fails(Conflict.METADATA_CHANGED, "it fails on every metadata change", _KERNEL)
    if set(committed.app_ids) & set(current.app_ids):
        return fails(Conflict.TRANSACTION, "two runs of one idempotent write at the same time", _KERNEL)
    if set(committed.domains) & set(current.domains) - {ROW_TRACKING_DOMAIN}:
        return fails(Conflict.WRITE, "both write the same metadata domain", _KERNEL)
    if {file.path for file in committed.removed} & set(current.removes):
        return fails(Conflict.WRITE, "both remove or rewrite the same file", _KERNEL)
    return commits("the other commit removed no file that it removes too", _KERNEL)


def decide_delta_rs(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """``deltalake`` has no domain metadata, never merges metadata, and treats a write without a predicate as a read of
    everything.

    Measured with 1.6.6 in 300 races (docs/generated/conflicts.md): an append commits after appends and OPTIMIZE, and
    fails after a commit that removes rows. An OPTIMIZE fails after such a commit, too, even if it compacts another
    partition, and after no other.
    """
    if committed.protocol is not None:
        return fails(Conflict.PROTOCOL_CHANGED, "it fails on every change of the protocol", _DELTA_RS)
    if committed.metadata is not None:
        return fails(Conflict.METADATA_CHANGED, "it fails on every metadata change", _DELTA_RS)
    if set(committed.domains) - {ROW_TRACKING_DOMAIN}:
        return ConflictOutcome(ConflictResult.UNKNOWN, "it knows no metadata domains and may fail on them", _DELTA_RS)
    return _delta_rs_files(committed, current) or _delta_rs_ids(committed, current)


def _delta_rs_files(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome | None:
    harmless = committed.blind and current.level is Level.WRITE_SERIALIZABLE and not current.metadata
    removed = {file.path for file in committed.removed} if committed.data_change else set()
    everything = current.reads.nothing or current.reads.whole or current.kind is Kind.OPTIMIZE
    lost = bool(removed and (everything or removed & set(current.reads.files)))
    # An OPTIMIZE registers no condition, so added files do not conflict with it.
    harmless = harmless or current.kind is Kind.OPTIMIZE
    if not harmless and any(current.reads.admit(file, partitioned=current.partitioned) for file in committed.added):
        # It first reads the statistics of the added files, which are not in the records.
        result = ConflictResult.FAILS if lost else ConflictResult.MAY_FAIL
        return ConflictOutcome(result, "files were added to what it reads", _DELTA_RS, Conflict.APPEND)
    if lost:
        return fails(Conflict.DELETE_READ, "rows that count as read were removed", _DELTA_RS)
    if removed & set(current.removes):
        return fails(Conflict.DELETE_DELETE, "both remove or rewrite the same file", _DELTA_RS)
    return None


def _delta_rs_ids(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    if set(committed.app_ids) & set(current.app_ids):
        return fails(Conflict.TRANSACTION, "two runs of one idempotent write at the same time", _DELTA_RS)
    return commits("the other commit touched nothing that it reads or removes", _DELTA_RS)


def _one_by_one(
    decide: Callable[[CommittedTransaction, CurrentTransaction], ConflictOutcome],
) -> Callable[[Sequence[CommittedTransaction], CurrentTransaction], ConflictOutcome]:
    return lambda all_committed, current: worst([decide(committed, current) for committed in all_committed])


KERNEL_RULES = ClientRules(family=KERNEL, decide=_one_by_one(decide_kernel), strictest=Client(KERNEL.name))
DELTA_RS_RULES = ClientRules(family=DELTA_RS, decide=_one_by_one(decide_delta_rs), strictest=Client(DELTA_RS.name))


RULES: tuple[ClientRules, ...] = (delta_spark_rules.RULES, KERNEL_RULES, DELTA_RS_RULES, databricks_rules.RULES)
"""The rules of every family. Among equal outcomes for an unknown client, the first family gives the reason."""


def rules_of(client: Client) -> ClientRules | None:
    """The rules of a client's family; ``None`` for a client of unknown kind."""
    return next((each for each in RULES if each.family is client.family), None)


def decide(committed: CommittedTransaction, current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after one committed transaction."""
    return decide_all([committed], current)


def decide_all(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    """The outcome of the current transaction after several committed ones, in the order of their versions.

    A client of unknown kind gets the worst outcome of all known families.
    """
    rules = rules_of(current.client)
    if rules is not None:
        return rules.decide(all_committed, current)
    return worst([each.decide(all_committed, replace(current, client=each.strictest)) for each in RULES])
