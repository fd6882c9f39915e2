"""Limits on rewriting data: only with the policy's consent, and only up to its size limit."""

from __future__ import annotations

from tablectl.attributes.base import ChangeTarget
from tablectl.model.plan import Refusal
from tablectl.model.table import LiveTable


def why_no_rewrite(change: str, what: str, live: LiveTable, target: ChangeTarget) -> Refusal | None:
    """Why a change must not rewrite all data of a table; ``None`` if it may. ``what`` is the subject of the message."""
    if target.options.rewrite != "allowed":
        return Refusal(
            change=change,
            reason=f"{what} rewrites all data of the table",
            fix="consent with `rewrite: allowed`, and limit it with `max_bytes`",
        )
    return why_too_large(change, what, live, target)


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
