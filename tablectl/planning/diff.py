"""The differences between a policy and a live table."""

from __future__ import annotations

from tablectl.attributes.policy import ATTRIBUTES, Policy, attribute
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable


def diff(policy: Policy, live: LiveTable, dialect: str = DEFAULT_DIALECT) -> tuple[Change, ...]:
    """The changes that a policy requires in a dialect, in the order of the attributes. Attributes that it does not name
    are not read. What the product does by itself, and what has to wait for another apply, is left out.
    """
    changes: list[Change] = []
    for name, declared in policy.declared().items():  # in the order of the attributes
        entry = attribute(name)
        changes.extend(entry.diff(entry.normalized(declared, live, dialect), live))
    return tuple(change for change in changes if not _left_out(change, policy, live))


def _left_out(change: Change, policy: Policy, live: LiveTable) -> bool:
    return any(entry.leaves_out(change, getattr(policy, entry.name), live) for entry in ATTRIBUTES)
