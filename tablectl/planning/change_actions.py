"""The action for each change, or a refusal with its reason and fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tablectl.attributes.base import Action, ChangeTarget
from tablectl.attributes.plan_basis import basis_of
from tablectl.attributes.policy import attribute
from tablectl.attributes.rewrite_limits import rewrite_refusal
from tablectl.model.plan import Basis, Change, Refusal
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.in_place import in_place


def actions_for(changes: Sequence[Change], basis: Basis) -> tuple[Action, ...]:
    """The action of each change. They depend only on the changes and the basis."""
    return in_place(tuple(attribute(change.attribute).act(change, basis) for change in changes), basis)


def refusals_for(
    changes: Sequence[Change],
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    actions: Sequence[Action] | None = None,
) -> tuple[Refusal, ...]:
    """The changes that this table cannot take. Each change is checked together with all the others. ``actions`` are
    theirs, if they are known already.
    """
    basis = basis_of(live, options)
    actions = actions_for(changes, basis) if actions is None else actions
    operations = tuple(step.operation for action in actions for step in action.steps)
    ids = frozenset(change.id for change in changes)
    target = ChangeTarget(dialect, _properties_after(actions), options, ids, operations)
    found = (
        attribute(each.change.attribute).check(each.change, live, target) or rewrite_refusal(each, basis)
        for each in actions
    )
    return tuple(refusal for refusal in found if refusal is not None)


def _properties_after(actions: Sequence[Action]) -> Mapping[str, str | None]:
    operations = (step.operation for action in actions for step in action.steps)
    return MappingProxyType({key.lower(): value for each in operations for key, value in each.properties.items()})
