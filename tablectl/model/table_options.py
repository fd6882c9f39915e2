"""What a policy says of a table beside its attributes: what it consents to, and how changes shall be made."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, get_args

_SIZE = re.compile(r"(\d{1,18})\s*(B|kB|MB|GB|TB|PB)?\Z", re.IGNORECASE)
_UNITS = ("b", "kb", "mb", "gb", "tb", "pb")


Optimize = Literal["never", "incremental", "full"]

Consent = Literal["lockout", "partition_writers"]
CONSENTS: tuple[Consent, ...] = get_args(Consent)
"""What ``allow`` may name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOptions:
    """The options of one table, each with what holds where no policy says anything."""

    rewrite: Literal["allowed", "refused"] = "refused"
    """Whether all data of the table may be written anew."""
    max_bytes: int | None = None
    """A table with more bytes than this is not rewritten; ``None`` for no limit."""
    optimize: Optimize = "never"
    """How data is clustered when the clustering columns change."""
    truncate_history: bool = False
    """Whether history may be given up so that a feature leaves nothing behind."""
    allowed_features: tuple[str, ...] | None = None
    """The protocol features that may be added; ``None`` for all."""
    allow: tuple[Consent, ...] = ()
    """What may happen to writers for good, in the order of the names: ``lockout``, that the protocol locks out every
    writer of the table; ``partition_writers``, that writers which name the partition columns fail after a change of
    them.
    """
    clients: tuple[tuple[str, str], ...] = ()
    """Clients that must go on reading and writing the table, with their versions, in the order of their names."""


NO_OPTIONS = TableOptions()
"""Where no policy says anything."""


def parse_size(text: str) -> int:
    """Bytes as people write them: ``500000``, ``20 GB``. Raises ``ValueError`` for what is none."""
    match = _SIZE.match(text.strip())
    if match is None:
        raise ValueError(f"{text!r} is not a size")
    factor: int = 1000 ** _UNITS.index((match[2] or "b").lower())
    return int(match[1]) * factor
