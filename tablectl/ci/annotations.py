"""Pending changes as annotations on the lines of the policies: one per group of equal changes.

They need no code scanning, which private repositories often lack. GitHub shows ten of a level per step, so the most
important groups come first.
"""

from __future__ import annotations

import posixpath
from pathlib import Path

from tablectl.ci.job import CiJob
from tablectl.commands.report_files import below_root
from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.model.text import printable, value_text
from tablectl.policies.config_file import load_config
from tablectl.policies.policy_lines import policy_lines_of
from tablectl.project import Project
from tablectl.reports.context import Context
from tablectl.reports.groups import Group, Weight, plan_groups
from tablectl.reports.style import plural

_MOST = 10
_LONGEST = 1_000


def annotate_plan(job: CiJob, plan: Plan) -> None:
    """Print the annotations. Refusals are results of the SARIF file. Without policies that can be read, print none."""
    try:
        project = Project(load_config(Path(), job.environ, plan.env), environ=job.environ)
        specs = project.policies()
    except TablectlError:
        return
    masked = project.mask.plan(plan)
    groups = [each for each in plan_groups(masked) if each.weight is not Weight.REFUSED][:_MOST]
    context = Context(
        root=below_root(Path().absolute()), sources=policy_lines_of(specs, [each.first.name for each in groups])
    )
    for group in groups:
        source = context.source(group.first.name, group.changes[0].id)
        if source and source.line and not posixpath.isabs(source.file):
            path = posixpath.normpath(posixpath.join(context.root, source.file))
            level = "warning" if group.weight <= Weight.IRREVERSIBLE else "notice"
            job.annotate(level, group_message(group), path, source.line)


def group_message(group: Group) -> str:
    """What a group changes and what it does to others, in a few lines."""
    count = f" and {plural(len(group.tables) - 1, 'more table')}" if len(group.tables) > 1 else ""
    changes = "; ".join(f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in group.changes)
    effects = "; ".join(each.text for each in group.effects)
    text = f"{group.weight.word}: {group.first.name}{count}\n{changes}\n{effects}"
    return "\n".join(map(printable, text[:_LONGEST].split("\n")))
