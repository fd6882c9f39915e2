"""The operations that make the changes of a table, and the changes that it cannot take."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tablectl.attributes.base import ChangeTarget, PlannedOperation
from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import attribute
from tablectl.delta.databricks_runtimes import replaces_partitions
from tablectl.model.operations import ClusterBy, Repartition, ReplacePartitions
from tablectl.model.plan import Basis, Change, Refusal
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions


def operations_for(changes: Sequence[Change], basis: Basis) -> tuple[PlannedOperation, ...]:
    """The operations of the changes, in their order. They depend only on the changes and the basis."""
    made = tuple(each for change in changes for each in attribute(change.attribute).act(change, basis))
    return _in_place(made) if basis.partitioned and replaces_partitions(basis.runtime) else made


def _in_place(operations: tuple[PlannedOperation, ...]) -> tuple[PlannedOperation, ...]:
    """One statement instead of a rewrite and a CLUSTER BY: the runtime turns partition columns into clustering columns
    without a rewrite.
    """
    rewrite = next((each for each in operations if each.operation == Repartition(())), None)
    cluster = next((each for each in operations if _clusters(each)), None)
    if rewrite is None or cluster is None:
        return operations
    assert isinstance(cluster.operation, ClusterBy)
    undo = "the removal of the partitions: only a rewrite of the whole table brings them back"
    made = PlannedOperation(
        cluster.change,
        ReplacePartitions(cluster.operation.columns, cluster.operation.automatic),
        needs=tuple(each for each in cluster.needs if each not in rewrite.operation.provides),
        undo_note="; ".join(filter(None, (undo, cluster.undo_note))),
        also=(rewrite.change,),
    )
    return tuple(made if each is cluster else each for each in operations if each is not rewrite)


def _clusters(planned: PlannedOperation) -> bool:
    operation = planned.operation
    return isinstance(operation, ClusterBy) and bool(operation.columns or operation.automatic)


def refusals_for(
    changes: Sequence[Change],
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    operations: Sequence[PlannedOperation] | None = None,
) -> tuple[Refusal, ...]:
    """The changes that this table cannot take. Each change is checked together with all the others. ``operations`` are
    theirs, if they are known already.
    """
    if live.unknown:
        return _not_known(changes, live)
    basis = basis_of(live, options)
    planned = operations_for(changes, basis) if operations is None else operations
    ids = frozenset(change.id for change in changes)
    target = ChangeTarget(dialect, _properties_after(planned), options, ids, tuple(each.operation for each in planned))
    found: list[Refusal] = []
    for change in changes:
        found += attribute(change.attribute).refusals(change, live, target)
        consent = _rewrite_refusal([each for each in planned if each.change == change.id], basis)
        found += [consent] if consent else []
    return tuple(dict.fromkeys(found))


def _not_known(changes: Sequence[Change], live: LiveTable) -> tuple[Refusal, ...]:
    """No statement is planned for a table of which only the settings are known."""
    names = ", ".join(live.unknown)
    reason = f"the table asks for the reader feature{'s' * (len(live.unknown) > 1)} {names}, unknown to tablectl"
    fix = "a newer tablectl may know it; until then, change the table yourself or drop the feature"
    return tuple(Refusal(change=change.id, reason=reason, fix=fix) for change in changes)


def _properties_after(planned: Sequence[PlannedOperation]) -> Mapping[str, str | None]:
    return MappingProxyType(
        {key.lower(): value for each in planned for key, value in each.operation.properties.items()}
    )


def _rewrite_refusal(planned: Sequence[PlannedOperation], basis: Basis) -> Refusal | None:
    """Refuses a change that rewrites all data of the table without the policy's consent, or more than its
    ``max_bytes``.
    """
    limit = basis.options.max_bytes
    for each in planned:
        cost = each.rewrite or each.operation.rewrite(basis)
        if cost is None:
            continue
        if cost.everything and not basis.options.may_rewrite:
            return Refusal(
                change=each.change,
                reason="it rewrites all data of the table",
                fix="consent with `rewrite: allowed`, and limit it with `max_bytes`",
            )
        size = cost.bytes_at_most
        if limit is not None and (size is None or size > limit):
            amount = "an unknown number of" if size is None else f"at most {size:,}"
            reason = f"it rewrites {amount} bytes, and `max_bytes` allows {limit:,}"
            return Refusal(change=each.change, reason=reason, fix="raise `max_bytes`")
    return None
