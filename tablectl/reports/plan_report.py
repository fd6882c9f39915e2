"""A plan as one ``Document``, from which every format is rendered. Masked values are hidden here.

Parts that only some formats need (JSON, the tables of SARIF and JUnit, a part for each table) are made when they are
rendered: 10,000 parts take ten seconds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from tablectl.documents.document import Document, ForPrograms
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import digest_of, dump_plan
from tablectl.reports.comment_parts import end_of_plan
from tablectl.reports.mask import Mask
from tablectl.reports.plan_document import plan_document
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import plan_cases, plan_results
from tablectl.reports.table_groups import plan_groups
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import json_form


def document_of_plan(plan: Plan, mask: Mask, context: Context) -> Document:
    """A plan. As JSON it is the plan file itself, unless values are masked; no apply accepts a masked plan."""
    masked = mask.plan(plan)
    groups = plan_groups(masked)
    programs = ForPrograms(
        results=partial(plan_results, masked, context.refused),
        cases=partial(plan_cases, masked, context),
        failed=bool(plan.failures),
        seconds=context.seconds,
        at=context.began,
    )

    return replace(
        plan_document(masked, context, groups),
        json=lambda: _plan_json(plan, masked, mask, context),
        hint="`--verbose` shows each table, with its SQL, reasons and rollback.",
        in_full=partial(plan_document, masked, context, groups, each_table=True),
        programs=programs,
        comment=partial(end_of_plan, masked, groups, context),
    )


def _plan_json(plan: Plan, masked: Plan, mask: Mask, context: Context) -> str:
    if masked == plan:
        return (context.dumped or dump_plan(plan)).decode()
    shown = {**json_form(masked), "sha256": digest_of(plan), "masked": mask.patterns}
    return write_json(shown, indent=1, sort=True) + "\n"
