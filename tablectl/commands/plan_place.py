"""Where plan files are that are named without a folder: `plans:` of tablectl.yaml."""

from __future__ import annotations

import os
from pathlib import Path


def new_plan(name: Path) -> Path:
    """The path of a plan file to write. Raises ``InputError`` for a wrong configuration."""
    folder = _folder() if _has_no_folder(name) else None
    return folder / name if folder else name


def saved_plan(name: Path) -> Path:
    """The path of an existing plan file: in the folder of plans if it is there, else as named. Raises as
    ``new_plan``.
    """
    place = new_plan(name)
    return place if place.exists() else name


def _has_no_folder(name: Path) -> bool:
    return name.parent == Path()


def _folder() -> Path | None:
    from tablectl.policies.config_file import load_config  # noqa: PLC0415  # loads a YAML parser

    plans = load_config(Path(), os.environ, "").plans
    return Path(plans) if plans else None
