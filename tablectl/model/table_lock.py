"""A lock of a table in a policy: until its last day, no plan and no apply changes the table."""

from __future__ import annotations

import re
from datetime import date

from tablectl.support.frozen import frozen

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@frozen
class TableLock:
    """``locked:`` of a policy."""

    until: str
    """The last day, as ``2027-01-31``, in UTC."""
    reason: str
    owner: str
    """Who can lift it."""

    def holds(self, today: date | None) -> bool:
        """Whether it forbids changes on a day; ``None`` is a day before its end."""
        return today is None or today.isoformat() <= self.until

    @property
    def text(self) -> str:
        """For people."""
        return f"locked until {self.until} by {self.owner}: {self.reason}"


def parse_day(text: str) -> str:
    """A day, as ``2027-01-31``. Raises ``ValueError`` for other text."""
    if _DAY.fullmatch(text) is None:
        raise ValueError("needs a day such as 2027-01-31")
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise ValueError(f"needs a day of the calendar, and {text} is not one") from None
