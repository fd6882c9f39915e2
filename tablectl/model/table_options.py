"""The options of a table in a policy, as opposed to its attributes: consents, and how changes are made."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, get_args

from tablectl.support.typed_json import Omitted

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True)
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


_SIZE = re.compile(r"(\d{1,18})\s*(B|kB|MB|GB|TB|PB)?\Z", re.IGNORECASE)
_UNITS = ("b", "kb", "mb", "gb", "tb", "pb")


Optimize = Literal["never", "incremental", "full"]

Consent = Literal["functions", "lockout", "masked_rewrite", "partition_writers"]
FUNCTIONS: Consent = "functions"
CONSENTS: tuple[Consent, ...] = get_args(Consent)
"""The permitted values of ``allow``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options of one table. The defaults apply if no policy sets an option."""

    rewrite: Literal["allowed", "copy", "refused"] = "refused"
    """Whether all data of the table may be rewritten: behind the gate, or, for other partition columns, by a ``copy``
    beside the live table.
    """
    max_bytes: int | None = None
    """A table with more bytes than this is not rewritten; ``None`` for no limit."""
    optimize: Optimize = "never"
    """How data is clustered when the clustering columns change."""
    truncate_history: bool = False
    """Whether history may be deleted so that a dropped feature leaves nothing behind."""
    allowed_features: tuple[str, ...] | None = None
    """The protocol features that a plan may add; ``None`` for all."""
    allow: tuple[Consent, ...] = ()
    """Permitted permanent effects, sorted by name: ``functions``, constraints call functions that are not built into
    Spark or depend on more than their arguments; ``lockout``, the protocol locks out every writer of the table;
    ``masked_rewrite``, a rewrite on Databricks stores what the user of the apply sees, whatever policies for tags hide;
    ``partition_writers``, writers that name the partition columns fail after these change.
    """
    clients: tuple[tuple[str, str], ...] = ()
    """Clients that must remain able to read and write the table, with their versions, sorted by name."""
    streams: tuple[tuple[str, str], ...] = ()
    """Streaming queries that read or write the table, with their checkpoints, sorted by name."""

    engine_properties: Omitted[tuple[tuple[str, str], ...]] = ()
    """The declared properties that no dialect knows, each with the engine that reads it, sorted by key."""

    locked: Omitted[TableLock | None] = None
    """Until when nothing may change the table; ``None`` without a lock."""

    def on(self, today: date) -> TableOptions:
        """The options that hold on a day: without a lock that has ended."""
        return self if self.locked is None or self.locked.holds(today) else replace(self, locked=None)

    @property
    def may_rewrite(self) -> bool:
        """Whether all data of the table may be rewritten."""
        return self.rewrite != "refused"

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names of the declared streaming queries."""
        return tuple(name for name, _ in self.streams)


NO_OPTIONS = TableOptions()
"""The options if no policy sets any."""


def parse_size(text: str) -> int:
    """Parses an amount of data into bytes: ``500000``, ``20 GB``. Raises ``ValueError`` for other text."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ValueError("needs a number and a unit, such as '500 MB': B, kB, MB, GB, TB or PB")
    factor: int = 1000 ** _UNITS.index((match[2] or "b").lower())
    return int(match[1]) * factor
