"""Reads plan files."""

from __future__ import annotations

from pathlib import Path

from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import MAX_BYTES, load_plan
from tablectl.support.files import read_regular


def read_plan(path: Path, *, to_apply: bool = True) -> Plan:
    """The plan in a file. Raises ``TablectlError`` where it cannot be read, and ``PlanFileError`` where it was edited
    or damaged.
    """
    try:
        data = read_regular(path, MAX_BYTES)
    except OSError as error:
        raise TablectlError(
            f"{path}: {error.strerror or error}", "plans are written by `tablectl plan --out FILE`"
        ) from error
    return load_plan(data, str(path), to_apply=to_apply)
