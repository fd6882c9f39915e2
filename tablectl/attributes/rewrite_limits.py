"""Limits on rewriting data: only with the policy's consent, and only up to its size limit."""

from __future__ import annotations

from tablectl.attributes.base import Action, ChangeTarget
from tablectl.model.plan import Refusal
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions


def without_consent(action: Action, options: TableOptions) -> Refusal | None:
    """Refuses an action that rewrites all data of the table, if the policy does not consent to that."""
    if options.rewrite == "allowed" or not any(step.operation.rewrites_all for step in action.steps):
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
