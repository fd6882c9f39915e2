"""``window.max_bytes_per_hour``: when the next rewrite of a run may start.

The bytes of a job count in full from its start until an hour after its end, so no hour contains more of them than the
limit. A job that is tried again counts once for each attempt. A job that is larger than the limit starts once nothing
counts any more, and runs alone.
"""

from __future__ import annotations

from math import inf

from tablectl.applying.waits import GO, Awaited, Go, Later

HOUR = 3600.0
LIMIT = "`window.max_bytes_per_hour`"
PACED = Awaited("paced", f"for {LIMIT}")


class Pace:
    """The bytes that the jobs of a run rewrite, by the hour. Belongs to one thread."""

    def __init__(self, limit: int | None) -> None:
        """``limit`` is in bytes per hour; ``None`` for no limit."""
        self.limit = limit
        self._running: dict[str, int] = {}
        """The bytes of the running steps, by job."""
        self._rewritten: list[tuple[int, float]] = []
        """The bytes of each step that ended, and the moment until which they count."""

    def check(self, size: int, now: float) -> Go | Later:
        """Whether a job of ``size`` bytes may start now."""
        at = self.admits_at(size, now)
        return Later(at, PACED, f"waiting for {LIMIT}") if at > now else GO

    def admits_at(self, size: int, now: float) -> float:
        """The moment from which a job of ``size`` bytes may start: ``now`` at the earliest, and infinity if that
        depends on the end of a running job.
        """
        if self.limit is None or not size:
            return now
        self._rewritten = [each for each in self._rewritten if each[1] > now]  # in order of time
        left = [*self._rewritten, *((bytes_, inf) for bytes_ in self._running.values())]
        total, moment = sum(bytes_ for bytes_, _ in left), now
        for bytes_, until in left:
            if total + size <= self.limit:
                break
            total, moment = total - bytes_, until
        return moment

    def start(self, key: str, size: int) -> None:
        """Count a step of a job that starts now."""
        if self.limit is not None and size:
            self._running[key] = size

    def end(self, key: str, now: float, *, rewrote: bool) -> None:
        """Note the end of a step of a job. A step that rewrote nothing, such as a poll, does not count any more."""
        size = self._running.pop(key, 0)
        if size and rewrote:
            self._rewritten.append((size, now + HOUR))
