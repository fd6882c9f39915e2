"""Each result as one ``Document``, from which every format is rendered. Masked values are hidden here.

Parts that only some formats need (JSON, the tables of SARIF and JUnit, a part for each table) are made when they are
rendered: 10,000 parts take ten seconds. The modules of a result and of such a part are loaded when they are used.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from tablectl.documents.document import Case, CommentEnd, Document, ForPrograms, Result
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.reports.context import Context
from tablectl.reports.mask import Mask
from tablectl.support.json_text import json_form, write_json

if TYPE_CHECKING:  # see above
    from tablectl.model.run_report import RunReport
    from tablectl.planning.drift import Drift
    from tablectl.planning.lint import Linted
    from tablectl.reports.status import LakeStatus
    from tablectl.reports.upkeep import LakeUpkeep


from tablectl.model.run_report import RunReport


def document_of_plan(plan: Plan, mask: Mask, context: Context) -> Document:
    """A plan. As JSON it is the plan file itself, unless values are masked; no apply accepts a masked plan."""
    from tablectl.reports.groups import plan_groups  # noqa: PLC0415  # see the module docstring
    from tablectl.reports.plan_document import plan_document  # noqa: PLC0415

    masked = mask.plan(plan)
    groups = plan_groups(masked)
    programs = ForPrograms(
        results=partial(_plan_results, masked, context),
        cases=partial(_plan_cases, masked, context),
        failed=bool(plan.failures),
        seconds=context.seconds,
        at=context.began,
    )

    def comment() -> CommentEnd:
        from tablectl.reports.comments import end_of_plan  # noqa: PLC0415

        return end_of_plan(masked, groups, context)

    return replace(
        plan_document(masked, context, groups),
        json=lambda: _plan_json(plan, masked, mask, context),
        hint="`--verbose` shows each table, with its SQL, reasons and rollback.",
        in_full=partial(plan_document, masked, context, groups, each_table=True),
        programs=programs,
        comment=comment,
    )


def _plan_results(plan: Plan, context: Context) -> Iterator[Result]:
    from tablectl.reports.results import plan_results  # noqa: PLC0415

    return plan_results(plan, context.refused)


def _plan_cases(plan: Plan, context: Context) -> Iterator[Case]:
    from tablectl.reports.results import plan_cases  # noqa: PLC0415

    return plan_cases(plan, context)


def document_of_run(report: RunReport, mask: Mask, context: Context) -> Document:
    """A run. ``context.plan`` is its plan, if it is known."""
    from tablectl.reports.comments import end_of_run  # noqa: PLC0415  # see the module docstring
    from tablectl.reports.results import run_cases, run_results  # noqa: PLC0415
    from tablectl.reports.run_document import run_document  # noqa: PLC0415

    masked = mask.run(report)
    context = replace(context, plan=mask.plan(context.plan) if context.plan else None)
    programs = ForPrograms(
        results=lambda: run_results(masked),
        cases=lambda: run_cases(masked),
        failed=report.exit_code is not ExitCode.DONE,
        seconds=report.took_ms / 1000 if report.took_ms else None,
        at=report.at,
    )
    return replace(
        run_document(masked, context),
        record=masked,
        hint="`--verbose` shows each table, with its SQL and events.",
        in_full=partial(run_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: end_of_run(masked, context),
    )


def document_of_drift(drift: Drift, mask: Mask, context: Context) -> Document:
    """Drift. Only JSON contains the result of ``--adopt``."""
    from tablectl.reports.comments import end_of_drift  # noqa: PLC0415  # see the module docstring
    from tablectl.reports.drift_document import drift_document  # noqa: PLC0415
    from tablectl.reports.results import drift_cases, drift_results  # noqa: PLC0415

    masked = mask.drift(drift)
    programs = ForPrograms(
        results=lambda: drift_results(masked),
        cases=lambda: drift_cases(masked),
        failed=drift.exit_code is ExitCode.ERROR,
        seconds=context.seconds,
        at=context.began,
    )
    return replace(
        drift_document(masked, context),
        record=masked,
        hint="`--verbose` shows each table, with the history of its differences.",
        in_full=partial(drift_document, masked, context, each_table=True),
        programs=programs,
        comment=lambda: end_of_drift(context),
    )


def document_of_lint(linted: Linted, mask: Mask, context: Context) -> Document:
    """The findings of lint."""
    from tablectl.reports.lint_document import lint_document  # noqa: PLC0415  # see the module docstring
    from tablectl.reports.results import lint_results  # noqa: PLC0415

    masked = mask.lint(linted)
    programs = ForPrograms(
        results=lambda: lint_results(masked),
        failed=bool(linted.failures),
    )
    where = "<code>tablectl lint</code> prints all of it."
    end = CommentEnd("<!-- tablectl lint -->", where)
    return replace(lint_document(masked, context), record=masked, programs=programs, comment=lambda: end)


def document_of_status(status: LakeStatus, mask: Mask) -> Document:
    """The state of a lake."""
    from tablectl.reports.status import status_document  # noqa: PLC0415  # see the module docstring

    masked = mask.status(status)
    end = CommentEnd("<!-- tablectl status -->", "<code>tablectl status --report FILE.html</code> writes all rows.")
    return replace(status_document(masked), record=masked, comment=lambda: end)


def document_of_upkeep(upkeep: LakeUpkeep, mask: Mask) -> Document:
    """What upkeep is due."""
    from tablectl.reports.upkeep import upkeep_document  # noqa: PLC0415  # see the module docstring

    end = CommentEnd("<!-- tablectl upkeep -->", "<code>tablectl upkeep</code> prints all of it.")
    masked = mask.upkeep(upkeep)
    return replace(upkeep_document(masked), record=masked, comment=lambda: end)


def _plan_json(plan: Plan, masked: Plan, mask: Mask, context: Context) -> str:
    if masked == plan:
        return (context.dumped or dump_plan(plan)).decode()
    shown = {**json_form(masked), "sha256": digest_of(plan), "masked": mask.patterns}
    return write_json(shown, indent=1, sort=True) + "\n"
