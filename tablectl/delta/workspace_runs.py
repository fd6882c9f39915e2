"""What users ran in their own Databricks workspaces: the sheets of ``tablectl doctor --workspace`` that they sent.

This project has no workspace. A form that a sheet shows to work is no longer only documented.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from tablectl.support.frozen import frozen
from tablectl.support.json_text import read_json

SHEET = 1
"""The version of the format."""
WORKS = "works"
_DATE = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}")
_WORD = re.compile(r"[A-Za-z0-9_.: -]{0,100}")
_MOST_FACTS = 200


@frozen
class FormRun:
    """One form of statement that was run somewhere."""

    form: str
    outcome: str
    """``WORKS``, or the class of the error."""
    date: str
    runtime: str


def read_sheet(sheet: Any) -> tuple[FormRun, ...]:
    """The forms of a sheet, which a stranger sent. Raises ``ValueError`` for anything else than a sheet."""
    try:
        version, date, runtime = sheet["sheet"], sheet["date"], _word(sheet["runtime"])
        runs = [FormRun(_word(each["form"]), _word(each["outcome"]), date, runtime) for each in sheet["facts"]]
    except (TypeError, KeyError) as error:
        raise ValueError(f"no sheet of tablectl doctor --workspace: {error!r}") from error
    if version != SHEET or not isinstance(date, str) or not _DATE.fullmatch(date) or len(runs) > _MOST_FACTS:
        raise ValueError("no sheet of tablectl doctor --workspace that this version reads")
    return tuple(each for each in runs if each.form)


def _word(value: Any) -> str:
    if not isinstance(value, str) or not _WORD.fullmatch(value):
        raise TypeError(f"{str(value)[:50]!r} is not a short text")
    return value


@cache
def _received() -> Sequence[FormRun]:
    sheets = read_json((files("tablectl.delta") / "workspace_sheets.json").read_text("utf-8"))
    return tuple(run for sheet in sheets for run in read_sheet(sheet))


def runs_of(form: str, received: Sequence[FormRun] | None = None) -> Iterator[FormRun]:
    """Where a form worked, by the sheets that came with this version."""
    known = _received() if received is None else received
    return (each for each in known if (each.form, each.outcome) == (form, WORKS))
