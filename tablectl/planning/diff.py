"""The differences between a policy and a live table."""

from __future__ import annotations

from tablectl.attributes.policy import ATTRIBUTES, Policy
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable


def diff(policy: Policy, live: LiveTable) -> tuple[Change, ...]:
    """The changes that a policy requires, in the order of the attributes. Attributes that it does not name are not
    read.
    """
    changes: list[Change] = []
    for entry in ATTRIBUTES:
        declared = getattr(policy, entry.name)
        if declared is not None:
            changes.extend(entry.diff(declared, live))
    return tuple(changes)
