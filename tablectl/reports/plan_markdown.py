"""A plan as a comment on a pull request: the verdict, a table of groups with change and impact, and folded details."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tablectl.model.plan import Plan
from tablectl.reports.context import Context
from tablectl.reports.document_markdown import document_markdown
from tablectl.reports.groups import plan_groups
from tablectl.reports.markdown import LIMIT, code
from tablectl.reports.plan_document import plan_document
from tablectl.reports.since import group_list

_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""
_RESERVED = 3_000
"""Bytes for what a CI job adds to the report: the name, links, what changed since the last plan, the digest."""


def plan_markdown(plan: Plan, context: Context) -> str:
    """The whole plan within the length of a comment, for any number of tables."""
    groups = plan_groups(plan)
    document = plan_document(plan, context, groups)
    foot_text = f"{group_list(groups)}\n{_foot(plan, context)}".lstrip()
    return document_markdown(document, foot_text, where(plan, context), LIMIT - _RESERVED)


def _foot(plan: Plan, context: Context) -> str:
    made = [f"tablectl {code(plan.tool[:_SHORT])}", f"{code(plan.dialect[:_SHORT])} dialect"]
    return foot("plan", [*plan_name(context.digest), *made], context)


def foot(subject: str, facts: Sequence[str], context: Context) -> str:
    """The subject of the comment as HTML, and a comment for programs."""
    run = [f'<a href="{escape(context.address)}">CI run</a>'] if context.address else []
    said = " · ".join([*facts, *run])
    return f"{f'<p><sub>{said}</sub></p>' if said else ''}\n<!-- tablectl {subject} -->".lstrip()


def plan_name(digest: str) -> list[str]:
    """The plan's digest for people, as a list with one text, or an empty list."""
    return [f"plan {code(digest[:_SHORT])}"] if digest else []


def where(plan: Plan, context: Context) -> str:
    """Where the whole plan can be read, as HTML."""
    run = f' of <a href="{escape(context.address)}">this CI run</a>' if context.address else ""
    if context.plan_file:
        shown = code(f"tablectl show {context.plan_file}")
        return f"The whole plan{run} is in {code(context.plan_file)}: {shown}."
    command = f"tablectl plan --env {plan.env}" if plan.env else "tablectl plan"
    return f"The whole plan{run} is what {code(command)} prints."
