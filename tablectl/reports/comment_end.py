"""The ends of comments on pull requests: what was made, where all of it can be read, marks for programs. All of it is
HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from tablectl.applying.run_report import RunReport
from tablectl.model.plan import Plan
from tablectl.reports.context import Context
from tablectl.reports.document import CommentEnd
from tablectl.reports.groups import Group
from tablectl.reports.markdown import code
from tablectl.reports.plan_comparison import records_of
from tablectl.reports.since import group_list

_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""
_RESERVED = 3_000
"""Bytes for what a CI job adds to a plan: the name, links, what changed since the last plan, the digest."""


def end_of_plan(plan: Plan, groups: Sequence[Group], context: Context) -> CommentEnd:
    """Of a plan, whose masked values are hidden already."""
    foot = f"{group_list(records_of(groups, plan.failures))}\n{_plan_foot(plan, context)}".lstrip()
    return CommentEnd(foot, _where_plan(plan, context), _RESERVED)


def end_of_run(report: RunReport, context: Context) -> CommentEnd:
    """Of a run."""
    facts = [f"run {code(report.run)}", f"plan {code(report.plan[:_SHORT])}"]
    where = "The log of the run has them all, and so has its report in another format (<code>--report FILE</code>)."
    return CommentEnd(_foot("run", facts, context), where)


def end_of_drift(context: Context) -> CommentEnd:
    """Of drift."""
    return CommentEnd(_foot("drift", [], context), "<code>tablectl drift --verbose</code> prints all of it.")


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
