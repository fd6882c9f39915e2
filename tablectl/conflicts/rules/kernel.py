"""The rules of Delta Kernel: Flink and others."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.conflicts.rules.client_rules import ClientRules, worst
from tablectl.conflicts.transactions import Conflict, ConflictOutcome, CurrentTransaction, commits, fails
from tablectl.delta.client_families import KERNEL
from tablectl.delta.keys import ROW_TRACKING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.model.commits import CommittedTransaction

_KERNEL = "delta-2.2, Kernel"


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


def _decide_all(all_committed: Sequence[CommittedTransaction], current: CurrentTransaction) -> ConflictOutcome:
    return worst([decide_kernel(committed, current) for committed in all_committed])


RULES = ClientRules(family=KERNEL, decide=_decide_all, strictest=Client(KERNEL.name))
