"""Who ran a form of statement on Databricks: users in their own workspaces, by the sheets of ``tablectl doctor
--workspace`` that they sent, and the functional tests of dbt-databricks, which check the table afterwards.

This project has no workspace. A form that is not known to have been run is documented only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from tablectl.support.frozen import frozen
from tablectl.support.json_text import read_json

RUN_HERE = "run by tablectl on open source"
DOCUMENTED = "documented only"
_DBT = "run by dbt-databricks' functional tests in a workspace (tests/functional/adapter/{file}, 1.12.4)"
_DBT_TESTS: Mapping[str, str] = MappingProxyType(
    {
        "cluster by": "incremental/test_incremental_clustering.py",
        "cluster by none": "incremental/test_incremental_clustering.py",
        "set properties": "incremental/test_incremental_tblproperties.py",
        "add constraint": "incremental/test_incremental_constraints.py",
        "drop constraint": "incremental/test_incremental_constraints.py",
        "drop not null": "incremental/test_incremental_constraints.py",
        "optimize": "liquid_clustering/test_liquid_clustering_effects.py",
    }
)
"""By the form: the file in github.com/databricks/dbt-databricks, read on 2026-11-23."""
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


def databricks_evidence(form: str) -> str:
    """Who ran a form on Databricks, in words."""
    run = next(runs_of(form), None)
    if run is not None:
        return f"run by tablectl in a user's workspace (Runtime {run.runtime}, {run.date})"
    return _DBT.format(file=_DBT_TESTS[form]) if form in _DBT_TESTS else DOCUMENTED
