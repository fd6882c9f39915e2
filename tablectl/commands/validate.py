"""``tablectl validate``: check policies without reading tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import TEXT_AND_JSON, Env, Place, PolicyPaths, VarValues, output_format
from tablectl.commands.project import Project
from tablectl.commands.report_files import below_root
from tablectl.documents.style import plural
from tablectl.lint_rules.rule import LintedState
from tablectl.model.errors import ExitCode, InputError, Problem
from tablectl.model.plan import LintedTable
from tablectl.planning.lint import Linted, lint
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import Sources, policy_lines_of
from tablectl.policies.repository import Paths
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.lint_document import counted, findings_lines
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.reports.sarif import findings_sarif, problems_sarif
from tablectl.support.typed_json import json_form

_Format = Annotated[ReportFormat, output_format((*TEXT_AND_JSON, ReportFormat.SARIF))]


@dataclass(frozen=True, slots=True)
class _Checked:
    """The policies of one environment, and their lint findings."""

    specs: Specs
    linted: tuple[LintedTable, ...]


def validate_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    variables: VarValues = None,
    env: Env = None,
    form: _Format = ReportFormat.TEXT,
) -> ExitCode:
    """Check policies without reading any table.

    Example: tablectl validate policies/
    """
    out: Output = ctx.obj
    try:
        checked = _check(Place(variables=variables, env=env), paths, out)
    except InputError as error:
        if form is ReportFormat.SARIF:
            out.result(_sarif(error.problems))
        elif form is ReportFormat.JSON:
            out.json_result({"valid": False, "problems": error.problems})
        out.error(error)
        return error.exit_code
    linted = _all_findings(checked)
    _show(checked, linted, form, out)
    return linted.exit_code


def _lint(specs: Specs, project: Project) -> tuple[LintedTable, ...]:
    """The problems of policies without tables. Patterns are checked only once tables are known."""
    severities = project.config.severities
    found = tuple(
        LintedTable(spec.name.text, lint(_state(spec, project), spec.name, "validate", severities))
        for spec in specs.tables
    )
    return tuple(map(project.mask.linted, found)) if any(table.findings for table in found) else found


def _state(spec: TableSpec, project: Project) -> LintedState:
    state = LintedState.of_policy(spec.policy, project.dialect, project.runtime, options=spec.options)
    return replace(state, upkeep=spec.upkeep)


def _all_findings(checked: Mapping[str, _Checked]) -> Linted:
    """The findings of all environments, without duplicates."""
    return Linted(tuple(dict.fromkeys(table for each in checked.values() for table in each.linted)))


def _check(place: Place, paths: Paths, out: Output) -> Mapping[str, _Checked]:
    """The policies of each environment; without environments, a single entry with an empty name. Raises
    ``InputError``.
    """
    top = place.open(out.note).config
    named = [top.environment] if top.environment or not top.env else list(top.env)
    found, wrong = dict[str, _Checked](), dict[str, tuple[Problem, ...]]()
    for env in named:
        project = place.open(out.note, env=env)
        try:
            specs = project.policies(paths)
        except InputError as error:
            wrong[env] = error.problems
        else:
            found[env] = _Checked(specs, _lint(specs, project))
    if wrong:
        raise InputError(_together(wrong, len(named)))
    return found


def _together(wrong: Mapping[str, Sequence[Problem]], environments: int) -> tuple[Problem, ...]:
    """The problems without duplicates. A problem that occurs only in some environments names them."""
    where: dict[Problem, list[str]] = {}
    for env, problems in wrong.items():
        for problem in problems:
            where.setdefault(problem, []).append(env)
    return tuple(
        problem if len(some) == environments else replace(problem, message=f"in {', '.join(some)}: {problem.message}")
        for problem, some in where.items()
    )


def _show(checked: Mapping[str, _Checked], linted: Linted, form: ReportFormat, out: Output) -> None:
    """Prints the findings of policies that are valid."""
    match form:
        case ReportFormat.SARIF:
            out.result(_findings_sarif(checked, linted))
        case ReportFormat.JSON:
            environments = {env: _names(each.specs) for env, each in checked.items() if env}
            several = {"environments": environments} if environments else {}
            both = [_names(each.specs) for each in checked.values()]
            body = {key: list(dict.fromkeys(name for each in both for name in each[key])) for key in both[0]}
            said = [{"table": each.name, **json_form(one)} for each in linted.tables for one in each.findings]
            out.json_result({"valid": True, **body, **several, "findings": said})
        case _:
            told = [f"{line}\n" for line in findings_lines(linted.tables, out.style)]
            counts = (f"{f'{env}: ' if env else ''}{_counted(each)}\n" for env, each in checked.items())
            out.result("".join([*told, *counts]))


def _names(specs: Specs) -> dict[str, list[str]]:
    return {
        "tables": [spec.name.text for spec in specs.tables],
        "patterns": [each.text for each in specs.patterns],
    }


def _counted(checked: _Checked) -> str:
    specs, found = checked.specs, [each for table in checked.linted for each in table.findings]
    also = f" and {plural(len(specs.patterns), 'pattern')}" if specs.patterns else ""
    counts = f" {counted(found)}." if found else ""
    wrong = any(each.severity == "error" for each in found)
    verdict = "every policy can be read, and a plan refuses those with errors." if wrong else "every policy is valid."
    return f"{plural(len(specs.tables), 'table')}{also}: {verdict}{counts}"


def _findings_sarif(checked: Mapping[str, _Checked], linted: Linted) -> str:
    sources: dict[str, Mapping[str, SourceFile]] = {}
    for each in checked.values():
        sources |= policy_lines_of(each.specs, [spec.name.text for spec in each.specs.tables])
    return _sarif(linted, sources)


def _sarif(found: Linted | Sequence[Problem], sources: Sources = MappingProxyType({})) -> str:
    """Findings, or the problems of policies that are not valid."""
    context = Context(root=below_root(Path().absolute()), sources=sources)
    return findings_sarif(found, context, "validate") if isinstance(found, Linted) else problems_sarif(found, context)
