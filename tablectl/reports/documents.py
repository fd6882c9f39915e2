"""Each result as one ``Document``, from which every format is rendered. Masked values are hidden here.

Parts that only some formats need (JSON, the tables of SARIF and JUnit, a part for each table) are made when they are
rendered: 10,000 parts take ten seconds.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

from tablectl.advice.records import LakeAdvice
from tablectl.applying.run_report import RunReport
from tablectl.model.errors import ExitCode
from tablectl.model.json_form import json_form
from tablectl.model.plan import Plan
from tablectl.planning.drift import Drift
from tablectl.planning.lint import Linted
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.reports.advice_document import advice_document
from tablectl.reports.cases import drift_cases, plan_cases, run_cases
from tablectl.reports.context import Context
from tablectl.reports.document import CommentEnd, Document, ForPrograms
from tablectl.reports.drift_document import drift_document
from tablectl.reports.drift_json import AdoptionFact, drift_json
from tablectl.reports.groups import plan_groups
from tablectl.reports.lint_document import lint_document
from tablectl.reports.lint_json import lint_json
from tablectl.reports.markdown import code
from tablectl.reports.mask import Mask
from tablectl.reports.plan_comparison import records_of
from tablectl.reports.plan_document import plan_document
from tablectl.reports.results import drift_results, lint_results, plan_results, run_results
from tablectl.reports.run_document import run_document
from tablectl.reports.since import group_list
from tablectl.reports.status import LakeStatus
from tablectl.reports.status_document import status_document

_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""
_RESERVED = 3_000
"""Bytes for what a CI job adds to a plan: the name, links, what changed since the last plan, the digest."""


def document_of_plan(plan: Plan, mask: Mask, context: Context) -> Document:
    """A plan. As JSON it is the plan file itself, unless values are masked; no apply accepts a masked plan."""
    masked = mask.plan(plan)
    groups = plan_groups(masked)
    programs = ForPrograms(
        data=lambda: _plan_json(plan, masked, mask),
        results=lambda: plan_results(masked, context.refused),
        cases=lambda: plan_cases(masked, context),
        failed=bool(plan.failures),
        seconds=context.seconds,
        at=context.began,
    )

    def comment() -> CommentEnd:
        foot = f"{group_list(records_of(groups, masked.failures))}\n{_plan_foot(masked, context)}".lstrip()
        return CommentEnd(foot, _where_plan(masked, context), _RESERVED)

    return replace(
        plan_document(masked, context, groups),
        hint="`--verbose` shows each table, with its SQL, reasons and rollback.",
        in_full=partial(plan_document, masked, context, groups, each_table=True),
        programs=programs,
        comment=comment,
    )


def document_of_run(report: RunReport, mask: Mask, context: Context) -> Document:
    """A run. ``context.plan`` is its plan, if it is known."""
    masked = mask.run(report)
    context = replace(context, plan=mask.plan(context.plan) if context.plan else None)
    programs = ForPrograms(
        data=lambda: _json({**json_form(masked), "exit_code": int(report.exit_code)}),
        results=lambda: run_results(masked),
        cases=lambda: run_cases(masked),
        failed=report.exit_code is not ExitCode.DONE,
        seconds=report.took_ms / 1000 if report.took_ms else None,
        at=report.at,
    )
    facts = [f"run {code(report.run)}", f"plan {code(report.plan[:_SHORT])}"]
    where = "The log of the run has them all, and so has its report in another format (<code>--report FILE</code>)."
    return replace(
        run_document(masked, context),
        hint="`--verbose` shows each table, with its SQL and events.",
        in_full=partial(run_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: CommentEnd(_foot("run", facts, context), where),
    )


def document_of_drift(drift: Drift, mask: Mask, context: Context, adoption: AdoptionFact | None = None) -> Document:
    """Drift. Only JSON contains the result of ``--adopt``."""
    masked = mask.drift(drift)
    programs = ForPrograms(
        data=lambda: drift_json(masked, adoption),
        results=lambda: drift_results(masked),
        cases=lambda: drift_cases(masked),
        failed=drift.exit_code is ExitCode.ERROR,
        seconds=context.seconds,
        at=context.began,
    )
    where = "<code>tablectl drift --verbose</code> prints all of it."
    return replace(
        drift_document(masked, context),
        hint="`--verbose` shows each table, with the history of its differences.",
        in_full=partial(drift_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: CommentEnd(_foot("drift", [], context), where),
    )


def document_of_lint(linted: Linted, mask: Mask, context: Context) -> Document:
    """The findings of lint."""
    masked = mask.lint(linted)
    programs = ForPrograms(
        data=lambda: _json(lint_json(masked), sort=False),
        results=lambda: lint_results(masked),
        failed=bool(linted.failures),
    )
    where = "<code>tablectl lint</code> prints all of it."
    end = CommentEnd("<!-- tablectl lint -->", where)
    return replace(lint_document(masked, context), programs=programs, comment=lambda: end)


def document_of_status(status: LakeStatus, mask: Mask) -> Document:
    """The state of a lake."""
    masked = mask.status(status)
    programs = ForPrograms(data=lambda: _json(json_form(masked), indent=1, sort=False))
    end = CommentEnd("<!-- tablectl status -->", "<code>tablectl status --html FILE</code> writes all rows.")
    return replace(status_document(masked), programs=programs, comment=lambda: end)


def document_of_advice(advice: LakeAdvice) -> Document:
    """The advice for tables. It contains no values of properties, so there is nothing to mask."""
    programs = ForPrograms(data=lambda: _json(json_form(advice), indent=1, sort=False))
    end = CommentEnd("<!-- tablectl advice -->", "<code>tablectl advise --report FILE.html</code> writes all of it.")
    return replace(advice_document(advice), programs=programs, comment=lambda: end)


def _plan_json(plan: Plan, masked: Plan, mask: Mask) -> str:
    if masked == plan:
        return dump_plan(plan).decode()
    return _json({**json_form(masked), "sha256": digest_of(plan), "masked": mask.patterns}, indent=1)


def _json(body: dict[str, Any], indent: int = 2, *, sort: bool = True) -> str:
    return json.dumps(body, default=json_form, indent=indent, sort_keys=sort) + "\n"


def _plan_foot(plan: Plan, context: Context) -> str:
    made = [f"tablectl {code(plan.tool[:_SHORT])}", f"{code(plan.dialect[:_SHORT])} dialect"]
    named = [f"plan {code(context.digest[:_SHORT])}"] if context.digest else []
    return _foot("plan", [*named, *made], context)


def _foot(subject: str, facts: list[str], context: Context) -> str:
    """The facts as HTML, and a comment for programs."""
    run = [f'<a href="{escape(context.address)}">CI run</a>'] if context.address else []
    said = " · ".join([*facts, *run])
    return f"{f'<p><sub>{said}</sub></p>' if said else ''}\n<!-- tablectl {subject} -->".lstrip()


def _where_plan(plan: Plan, context: Context) -> str:
    """Where the whole plan can be read, as HTML."""
    run = f' of <a href="{escape(context.address)}">this CI run</a>' if context.address else ""
    if context.plan_file:
        shown = code(f"tablectl show {context.plan_file}")
        return f"The whole plan{run} is in {code(context.plan_file)}: {shown}."
    command = f"tablectl plan --env {plan.env}" if plan.env else "tablectl plan"
    return f"The whole plan{run} is what {code(command)} prints."
