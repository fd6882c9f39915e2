"""``window.max_bytes_per_hour``: when the next rewrite of a run may start.

The bytes of a job count in full from its start until an hour after its end, so no hour contains more of them than the
limit. A job that is larger than the limit starts once nothing counts any more, and runs alone.
"""

from __future__ import annotations

from math import inf

HOUR = 3600.0


class Pace:
    """The bytes that the jobs of a run rewrite, by the hour. Belongs to one thread."""

    def __init__(self, limit: int | None) -> None:
        """``limit`` is in bytes per hour; ``None`` for no limit."""
        self.limit = limit
        self._counted: dict[str, tuple[int, float]] = {}
        """By job: its bytes, and the moment until which they count."""

    def admits_at(self, size: int, now: float) -> float:
        """The moment from which a job of ``size`` bytes may start: ``now`` at the earliest, and infinity if that
        depends on the end of a running job.
        """
        if self.limit is None or not size:
            return now
        left = sorted((each for each in self._counted.values() if each[1] > now), key=lambda each: each[1])
        total, moment = sum(bytes_ for bytes_, _ in left), now
        for bytes_, until in left:
            if total + size <= self.limit:
                break
            total, moment = total - bytes_, until
        return moment

    def start(self, key: str, size: int) -> None:
        """Count a job that starts now."""
        if self.limit is not None and size:
            self._counted[key] = (size + self._counted.get(key, (0, 0.0))[0], inf)

    def end(self, key: str, now: float, *, rewrote: bool) -> None:
        """Note the end of a step of a job. A job that rewrote nothing does not count any more."""
        if key in self._counted:
            if rewrote:
                self._counted[key] = (self._counted[key][0], now + HOUR)
            else:
                del self._counted[key]
