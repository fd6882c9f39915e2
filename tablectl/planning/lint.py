"""Findings: what a reviewer should know of a table's plan beyond its statements. Codes are stable."""

from __future__ import annotations

from tablectl.model.live import Protocol
from tablectl.model.plan import Finding


def lint(before: Protocol, after: Protocol) -> tuple[Finding, ...]:
    """All findings of one table's plan."""
    return tuple(_protocol_raise(before, after))


def _protocol_raise(before: Protocol, after: Protocol) -> list[Finding]:
    """P001, P002: clients that do not know the new protocol can no longer read, or write, the table (delta.md 1.0)."""
    found = []
    read = sorted(feature for feature in after.reader_features if not before.has(feature))
    if after.reader > before.reader or read:
        needs = f" with {', '.join(read)}" if read else ""
        found.append(Finding(code="P001", severity="warning", message=f"readers need protocol {after.reader}{needs}"))
    written = sorted(feature for feature in after.writer_features if not before.has(feature))
    if after.writer > before.writer or written:
        needs = f" with {', '.join(written)}" if written else ""
        found.append(Finding(code="P002", severity="note", message=f"writers need protocol {after.writer}{needs}"))
    return found
