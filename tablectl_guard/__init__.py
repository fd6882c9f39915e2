"""Guards for jobs that write to tables which tablectl manages (docs/guards.md).

``guard``, ``guard_batch`` and ``retry_on_conflict`` are those of ``tablectl``.
"""

from __future__ import annotations

from tablectl.version import __version__
from tablectl.writers.batch import guard_batch
from tablectl.writers.gate_entry import GuardTimeout
from tablectl.writers.guard import guard
from tablectl.writers.retry import retry_on_conflict

__all__ = ["GuardTimeout", "__version__", "guard", "guard_batch", "retry_on_conflict"]
