"""The limits on what one read of a table takes from its log: bytes, actions and values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from tablectl.model.errors import LiveError
from tablectl.support.files import size_text

LOG_BYTES = 2 << 30
"""The maximum size of all commits of one table that a plan reads. A million files take about one gigabyte."""
ACTION_BYTES = 64 << 20
"""The maximum size of all their actions that are not about files, as Python holds them. The metadata of a table with
10,000 columns takes about 3 MB.
"""
ACTION_VALUES = 5_000_000
"""The maximum number of values in these actions."""
_HINT = (
    "the commits after a checkpoint, and the newest ones, are read: write a checkpoint (by any commit with a smaller "
    "`delta.checkpointInterval`), and look at what writes such commits"
)


class OversizeError(LiveError):
    """A file of the log, or all that are needed together, exceed a limit."""


@dataclass
class ReadBudget:
    """What one read of a table took so far. A file that is read twice counts once. Threads may share it."""

    location: str
    _files: dict[str, int] = field(default_factory=dict)
    _bytes: int = 0
    _action_bytes: int = 0
    _values: int = 0
    _lock: Lock = field(default_factory=Lock)

    def check(self, sizes: Mapping[str, int]) -> None:
        """Raises ``OversizeError`` if files that will be read are too large together. Takes nothing."""
        with self._lock:
            self._refuse_more(self._bytes + sum(size for name, size in sizes.items() if name not in self._files))

    def take_file(self, name: str, size: int) -> None:
        """Counts a file before it is read. Raises ``OversizeError``."""
        with self._lock:
            self._bytes += 0 if name in self._files else size
            self._files[name] = size
            self._refuse_more(self._bytes)

    def take_action(self, line: bytes) -> None:
        """Counts a line before it is parsed. Raises ``OversizeError``.

        Python takes up to four bytes for each character of a text that is not pure ASCII.
        """
        wide = not line.isascii() or b"\\u" in line
        values = line.count(b",") + line.count(b"{") + line.count(b"[")
        with self._lock:
            self._action_bytes += len(line) * (4 if wide else 1)
            self._values += values
        if self._action_bytes > ACTION_BYTES or self._values > ACTION_VALUES:
            what = f"{size_text(ACTION_BYTES)} or {ACTION_VALUES:,} values"
            raise OversizeError(
                f"{self.location}: the actions of its commits that are not about files have more than {what}", _HINT
            )

    def _refuse_more(self, size: int) -> None:
        if size > LOG_BYTES:
            raise OversizeError(
                f"{self.location}: the commits that are needed have {size:,} bytes, more than {size_text(LOG_BYTES)}",
                _HINT,
            )
