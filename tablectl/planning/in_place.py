"""Partition columns that become clustering columns by one statement, where the Databricks Runtime has it. Elsewhere the
table is rewritten.
"""

from __future__ import annotations

from dataclasses import replace

from tablectl.attributes.base import Action, Step
from tablectl.delta.databricks_runtimes import replaces_partitions
from tablectl.model.operations import ClusterBy, Repartition, ReplacePartitions
from tablectl.model.plan import Basis

_UNDO = "the removal of the partitions: only a rewrite of the whole table brings them back"


def in_place(actions: tuple[Action, ...], basis: Basis) -> tuple[Action, ...]:
    """The actions with one statement instead of a rewrite and a CLUSTER BY, if the runtime of the plan has it."""
    if not basis.partitioned or not replaces_partitions(basis.runtime):
        return actions
    rewrite = next((each for each in actions if _operation(each) == Repartition(())), None)
    cluster = next((each for each in actions if _clusters(each)), None)
    if rewrite is None or cluster is None:
        return actions
    step = cluster.steps[0]
    assert isinstance(step.operation, ClusterBy)
    made = Step(
        ReplacePartitions(step.operation.columns, step.operation.automatic),
        needs=tuple(each for each in step.needs if each not in Repartition(()).provides),
        undo_note="; ".join(filter(None, (_UNDO, step.undo_note))),
        also=(rewrite.change.id,),
    )
    changed = {id(rewrite): replace(rewrite, steps=()), id(cluster): replace(cluster, steps=(made,))}
    return tuple(changed.get(id(each), each) for each in actions)


def _operation(action: Action) -> object:
    return action.steps[0].operation if action.steps else None


def _clusters(action: Action) -> bool:
    operation = _operation(action)
    return isinstance(operation, ClusterBy) and bool(operation.columns or operation.automatic)
