"""``tablectl validate``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tablectl.cli.output import Checked, Output
from tablectl.cli.reports import below_root
from tablectl.model.errors import ExitCode, InputError, Problem
from tablectl.reports.style import plural
from tablectl.specs.config import load_config
from tablectl.specs.repository import load_repository
from tablectl.specs.spec import Specs


def validate_command(
    paths: Sequence[Path] | None, variables: Mapping[str, str], out: Output, form: Checked
) -> ExitCode:
    """Whether every policy can be. Raises ``InputError`` where people read it."""
    try:
        config = load_config(Path(), os.environ)
        specs = load_repository(paths, config, ".", variables, os.environ)
    except InputError as error:
        if form is Checked.TEXT:
            raise
        out.result(_refused(error.problems, form))
        return error.exit_code
    out.result(_valid(specs, form))
    return ExitCode.DONE


def _refused(problems: Sequence[Problem], form: Checked) -> str:
    if form is Checked.SARIF:
        return _sarif(problems)
    return json.dumps({"valid": False, "problems": [_problem(each) for each in problems]}, indent=2) + "\n"


def _valid(specs: Specs, form: Checked) -> str:
    match form:
        case Checked.SARIF:
            return _sarif(())
        case Checked.JSON:
            tables, patterns = [spec.name.text for spec in specs.tables], [each.text for each in specs.patterns]
            return json.dumps({"valid": True, "tables": tables, "patterns": patterns}, indent=2) + "\n"
        case Checked.TEXT:
            also = f" and {plural(len(specs.patterns), 'pattern')}" if specs.patterns else ""
            return f"{plural(len(specs.tables), 'table')}{also}: every policy is valid.\n"


def _sarif(problems: Sequence[Problem]) -> str:
    from tablectl.reports.context import Context  # noqa: PLC0415  # much that nobody else needs here
    from tablectl.reports.sarif import problems_sarif  # noqa: PLC0415

    return problems_sarif(problems, Context(root=below_root(Path().absolute())))


def _problem(problem: Problem) -> dict[str, object]:
    names = ("file", "line", "column", "message", "hint")
    return {name: getattr(problem, name) for name in names}
