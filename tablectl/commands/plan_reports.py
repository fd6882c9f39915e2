"""What reports of plans and runs need besides the plan: the place in the repository, the lines of the policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from time import monotonic, time

from tablectl.commands.options import ChangedTables
from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.selection import Selection
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.merge_plans import Shard
from tablectl.planning.plan_file import digest_of
from tablectl.policies.effective_policy import Sources, policy_lines_of
from tablectl.policies.repository import Paths
from tablectl.policies.spec import Specs
from tablectl.reports.context import Context
from tablectl.support.frozen import frozen

_NOTHING = Context()


@frozen
class Started:
    """When a command began to read tables."""

    at: float = field(default_factory=time)
    """Seconds since the epoch."""
    moment: float = field(default_factory=monotonic)

    def timed(self, context: Context) -> Context:
        """The context of a report whose tables are read now."""
        return replace(context, began=int(self.at * 1000), seconds=monotonic() - self.moment)


def chosen_tables(
    project: Project, options: ChangedTables, shard: Shard | None = None, *, whole: bool = False
) -> tuple[Specs, Selection]:
    """The policies that a command reads, and the tables that it selects. ``whole`` reads all policies."""
    selection = replace(options.selection, shard=shard)
    if not options.changed_since:
        return project.policies(options.paths), selection
    specs, changed = project.changed_since(options.changed_since, options.paths, whole=whole)
    return specs, replace(selection, changed=changed)


def plan_context(
    plan: Plan,
    project: Project,
    paths: Paths,
    out: Output,
    reports: ReportFiles,
    about: Context = _NOTHING,
) -> Context:
    """The context of the reports of a plan, as far as any of them needs it. ``about`` is what is known already."""
    about = replace(about, now=SystemClock().utc(), streams=streams_of(plan, project))
    if not reports.names_lines:  # a digest of a large plan takes seconds
        return about
    from tablectl.commands.report_origin import context_here  # noqa: PLC0415  # as above

    context = context_here(reports.plan_file, about)
    if not about.sources and (plan.tables or plan.failures):
        context = replace(context, sources=lines_of_plan(plan, _policies_now(plan, project, paths, out)))
    return replace(context, digest=digest_of(plan))


def lines_of_plan(plan: Plan, specs: Specs, *, everything: bool = True) -> Sources:
    """The lines of the policies for the tables that a plan reports, or for those alone that it does not change."""
    shown = (each for each in plan.tables if everything or each.refusals)
    return policy_lines_of(specs, [each.name for each in (*shown, *plan.failures)])


def streams_of(plan: Plan, project: Project) -> Mapping[str, tuple[str, ...]]:
    """How far the declared streams of the tables are now. It is not part of a plan: they move on."""
    declared = [table for table in plan.tables if table.basis.options.streams]
    if not declared:
        return {}
    from tablectl.log.stream_checkpoint import read_streams  # noqa: PLC0415  # as above
    from tablectl.reports.plan_wording import stream_lines  # noqa: PLC0415
    from tablectl.storage.log_stores import Stores  # noqa: PLC0415

    with Stores(project.stores) as stores:
        return {
            table.name: stream_lines(
                table,
                read_streams(stores, table.basis.options.streams, table.table_id, table.location),
                plan.dialect,
            )
            for table in declared
        }


def _policies_now(plan: Plan, project: Project, paths: Paths, out: Output) -> Specs:
    """The policies with the lines for a plan. None if they cannot be read: reports are written without lines."""
    from tablectl.commands.approval import policies_digest  # noqa: PLC0415  # as above

    try:
        specs = project.any_policies(paths)
    except TablectlError as error:
        out.note(f"the lines of the policies are not known: {error.message}")
        return Specs.of(())
    if policies_digest(plan, specs) != plan.policies:
        out.note("the policies have changed since the plan was made: lines are those of now")
    return specs
