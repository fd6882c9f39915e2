"""Guards for jobs that write to tables which tablectl manages (docs/guards.md).

``guard``, ``guard_batch``, ``guard_session`` and ``retry_on_conflict`` are those of ``tablectl``.
"""

from __future__ import annotations

from tablectl.version import __version__
from tablectl.writers.gate_entry import GuardTimeout
from tablectl.writers.guard import guard, guard_batch
from tablectl.writers.retry import retry_on_conflict
from tablectl.writers.session import guard_session

__all__ = ["GuardTimeout", "__version__", "guard", "guard_batch", "guard_session", "retry_on_conflict"]
