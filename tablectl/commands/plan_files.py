"""Plan files: where those are that are named without a folder (`plans:` of tablectl.yaml), and how one is read."""

from __future__ import annotations

import os
from pathlib import Path

from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import MAX_BYTES, load_plan
from tablectl.policies.config_file import load_config
from tablectl.support.files import read_regular


def new_plan(name: Path) -> Path:
    """The path of a plan file to write. Raises ``InputError`` for a wrong configuration."""
    plans = load_config(Path(), os.environ, "").plans if name.parent == Path() else None
    return Path(plans) / name if plans else name


def saved_plan(name: Path) -> Path:
    """The path of an existing plan file: in the folder of plans if it is there, else as named. Raises as
    ``new_plan``.
    """
    place = new_plan(name)
    return place if place.exists() else name


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
