"""Names of files and directories of a Delta table."""

from __future__ import annotations

LOG = "_delta_log"
