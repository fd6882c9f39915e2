"""Limits on the size of a plan. A larger plan needs a human decision."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.model.errors import LimitError
from tablectl.model.plan import Plan, Statement
from tablectl.support.frozen import frozen


@frozen
class PlanLimits:
    """``None`` means no limit."""

    tables: int | None = None
    """The maximum number of tables that change."""
    bytes: int | None = None
    """The maximum number of bytes that are rewritten, over all tables. An unknown amount exceeds every limit."""

    def check(self, plan: Plan) -> None:
        """Raises ``LimitError`` for a plan that exceeds a limit. Refused tables do not count."""
        changing = [table for table in plan.tables if table.applies]
        if self.tables is not None and len(changing) > self.tables:
            names = ", ".join(table.name for table in changing[:3]) + (", …" if len(changing) > 3 else "")
            raise LimitError(
                f"the plan changes {len(changing)} tables, and at most {self.tables} may change: {names}", _WAY_OUT
            )
        if self.bytes is None:
            return
        sizes = {table.name: rewritten_bytes(table.statements) for table in changing}
        unknown = [name for name, size in sizes.items() if size is None]
        if unknown:
            raise LimitError(
                f"how much the plan rewrites of {unknown[0]} is not known, and at most {self.bytes:,} bytes may be",
                "apply that table alone, without a limit on bytes",
            )
        total = sum(size or 0 for size in sizes.values())
        if total > self.bytes:
            raise LimitError(
                f"the plan rewrites up to {total:,} bytes, and at most {self.bytes:,} may be rewritten", _WAY_OUT
            )


_WAY_OUT = "select fewer tables, or raise the limit if that is intended"


def rewritten_bytes(statements: Sequence[Statement]) -> int | None:
    """The maximum number of bytes that a table's statements rewrite; ``None`` if unknown.

    Rewrites of one kind rewrite the same files, or files added since. Therefore only the largest of each kind counts.
    """
    largest = {False: 0, True: 0}
    for rewrite in (each.rewrite for each in statements if each.rewrite):
        if rewrite.bytes_at_most is None:
            return None
        largest[rewrite.clusters] = max(largest[rewrite.clusters], rewrite.bytes_at_most)
    return sum(largest.values())
