"""Limits on rewriting data: only with the policy's consent, and only up to its size limit."""

from __future__ import annotations

from tablectl.attributes.base import Action, ChangeTarget
from tablectl.model.plan import Basis, Refusal
from tablectl.model.table import LiveTable


def without_consent(action: Action, basis: Basis) -> Refusal | None:
    """Refuses an action that rewrites all data of the table, if the policy does not consent to that."""
    rewrites = (step.operation.rewrite(basis) for step in action.steps)
    if basis.options.rewrite == "allowed" or not any(each and each.everything for each in rewrites):
        return None
    return Refusal(
        change=action.change.id,
        reason="it rewrites all data of the table",
        fix="consent with `rewrite: allowed`, and limit it with `max_bytes`",
    )


def why_too_large(change: str, what: str, live: LiveTable, target: ChangeTarget) -> Refusal | None:
    """Why a change must not rewrite a table of this size; ``None`` if it may. The policy sets the limit."""
    limit = target.options.max_bytes
    if limit is None or (live.bytes is not None and live.bytes <= limit):
        return None
    size = "an unknown number of" if live.bytes is None else f"{live.bytes:,}"
    return Refusal(
        change=change,
        reason=f"{what} rewrites all data of the table, {size} bytes, and `max_bytes` allows {limit:,}",
        fix="raise `max_bytes`",
    )
