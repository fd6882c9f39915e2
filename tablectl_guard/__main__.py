"""``python -m tablectl_guard`` is ``tablectl-guard``."""

from __future__ import annotations

from tablectl_guard.launcher import main

main()
