"""What differs between a policy and a live table."""

from __future__ import annotations

from tablectl.attributes.policy import ATTRIBUTES, Policy
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable


def diff(policy: Policy, live: LiveTable) -> tuple[Change, ...]:
    """The changes a policy asks for, in the order of the attributes; what it does not name is never looked at."""
    changes: list[Change] = []
    for entry in ATTRIBUTES:
        declared = getattr(policy, entry.name)
        if declared is not None:
            changes.extend(entry.diff(declared, live))
    return tuple(changes)
