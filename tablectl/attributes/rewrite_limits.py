"""Limits on rewriting data: only with the policy's consent, and only up to its size limit."""

from __future__ import annotations

from tablectl.attributes.base import Action
from tablectl.model.plan import Basis, Refusal


def rewrite_refusal(action: Action, basis: Basis) -> Refusal | None:
    """Refuses an action that rewrites all data of the table without the policy's consent, or more than its
    ``max_bytes``.
    """
    limit = basis.options.max_bytes
    for step in action.steps:
        cost = step.rewrite or step.operation.rewrite(basis)
        if cost is None:
            continue
        if cost.everything and basis.options.rewrite != "allowed":
            return Refusal(
                change=action.change.id,
                reason="it rewrites all data of the table",
                fix="consent with `rewrite: allowed`, and limit it with `max_bytes`",
            )
        size = cost.bytes_at_most
        if limit is not None and (size is None or size > limit):
            amount = "an unknown number of" if size is None else f"at most {size:,}"
            reason = f"it rewrites {amount} bytes, and `max_bytes` allows {limit:,}"
            return Refusal(change=action.change.id, reason=reason, fix="raise `max_bytes`")
    return None
