"""``tablectl validate``."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tablectl.cli.output import Checked, Output, problems_json
from tablectl.cli.reports import below_root
from tablectl.cli.request import Request
from tablectl.model.errors import ExitCode, InputError, Problem
from tablectl.reports.style import plural
from tablectl.specs.config import load_config
from tablectl.specs.repository import load_repository
from tablectl.specs.spec import Specs


def validate_command(request: Request, out: Output, form: Checked) -> ExitCode:
    """Whether every policy can be, in every environment unless one is named."""
    try:
        checked = _check(request)
    except InputError as error:
        if form is not Checked.TEXT:
            out.result(_refused(error.problems, form))
        out.error(error)
        return error.exit_code
    out.result(_valid(checked, form))
    return ExitCode.DONE


def _check(request: Request) -> Mapping[str, Specs]:
    """The policies of each environment, those without one under an empty name. Raises ``InputError``."""
    top = load_config(Path(), os.environ, request.env)
    named = [top.environment] if top.environment or not top.env else list(top.env)
    found, wrong = dict[str, Specs](), dict[str, tuple[Problem, ...]]()
    for env in named:
        config = load_config(Path(), os.environ, env)
        try:
            found[env] = load_repository(request.paths, config, ".", request.variables, os.environ)
        except InputError as error:
            wrong[env] = error.problems
    if wrong:
        raise InputError(_together(wrong, len(named)))
    return found


def _together(wrong: Mapping[str, Sequence[Problem]], environments: int) -> tuple[Problem, ...]:
    """Each problem once; what is wrong only in some environments says in which."""
    where: dict[Problem, list[str]] = {}
    for env, problems in wrong.items():
        for problem in problems:
            where.setdefault(problem, []).append(env)
    return tuple(
        problem if len(some) == environments else replace(problem, message=f"in {', '.join(some)}: {problem.message}")
        for problem, some in where.items()
    )


def _refused(problems: Sequence[Problem], form: Checked) -> str:
    if form is Checked.SARIF:
        return _sarif(problems)
    return json.dumps({"valid": False, "problems": problems_json(problems)}, indent=2) + "\n"


def _valid(checked: Mapping[str, Specs], form: Checked) -> str:
    match form:
        case Checked.SARIF:
            return _sarif(())
        case Checked.JSON:
            environments = {env: _names(specs) for env, specs in checked.items() if env}
            several = {"environments": environments} if environments else {}
            both = [_names(specs) for specs in checked.values()]
            body = {key: list(dict.fromkeys(name for each in both for name in each[key])) for key in both[0]}
            return json.dumps({"valid": True, **body, **several}, indent=2) + "\n"
        case Checked.TEXT:
            return "".join(f"{f'{env}: ' if env else ''}{_counted(specs)}\n" for env, specs in checked.items())


def _names(specs: Specs) -> dict[str, list[str]]:
    return {
        "tables": [spec.name.text for spec in specs.tables],
        "patterns": [each.text for each in specs.patterns],
    }


def _counted(specs: Specs) -> str:
    also = f" and {plural(len(specs.patterns), 'pattern')}" if specs.patterns else ""
    return f"{plural(len(specs.tables), 'table')}{also}: every policy is valid."


def _sarif(problems: Sequence[Problem]) -> str:
    from tablectl.reports.context import Context  # noqa: PLC0415  # much that nobody else needs here
    from tablectl.reports.sarif import problems_sarif  # noqa: PLC0415

    return problems_sarif(problems, Context(root=below_root(Path().absolute())))
