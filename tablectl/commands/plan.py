"""``tablectl plan``: the changes that the policies require."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from tablectl.commands.command import command, function
from tablectl.commands.files import check_writable, new_plan, read_plan, saved_plan, write_file
from tablectl.commands.make_plan import make_plan, plan_on_cluster
from tablectl.commands.options import ChangedTables, PlanSize, Shown, path_list
from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.commands.read_tables import chosen_tables
from tablectl.commands.report_context import Started, lines_of_plan, plan_context
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.delta.dialects import EVERY_DIALECT, dialect_of
from tablectl.model.errors import ExitCode, LimitError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.text import listed
from tablectl.planning.merge_plans import Shard, merge_plans
from tablectl.planning.plan_file import dump_plan
from tablectl.policies.fields import Text, Word, flag
from tablectl.policies.settings import setting
from tablectl.policies.spec import Specs
from tablectl.reports.context import Context
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat

_SHOWN = 5


def _json_file(name: str) -> Path:
    if Path(name).suffix != ".json":
        raise ValueError("needs a name that ends in .json")
    return Path(name)


@dataclass(frozen=True, kw_only=True)
class PlanCommandOptions(ChangedTables, PlanSize, Shown):
    """The options of ``plan``."""

    out: Path | None = setting(
        None,
        Text(parse=_json_file, description="Save the plan for review and for apply."),
        "--out",
        metavar="FILE.json",
    )
    detailed_exitcode: bool = setting(False, flag("Exit with code 2 if changes are pending."), "--detailed-exitcode")
    shown_as: str = setting(
        "",
        Word(words=tuple(sorted(EVERY_DIALECT)), description="Show the plan as if engine.dialect were this one."),
        "--as",
        metavar="DIALECT",
    )
    shard: Shard | None = setting(
        None,
        Text(parse=Shard.parse, description="Plan one of COUNT parts of the tables, for parallel jobs."),
        "--shard",
        metavar="N/COUNT",
    )
    on: str = setting(
        "",
        Word(
            words=("spark",),
            description="`spark` reads the tables on the engine's executors, with its credentials.",
        ),
        "--on",
        metavar="ENGINE",
    )
    merge: bool = setting(
        False, flag("Join the plans of all shards: PATHS are the plan files of `--shard`."), "--merge"
    )

    def check_combination(self) -> None:
        """Raises ``UsageError`` for options that exclude each other."""
        if self.on and (self.merge or self.shown_as):
            raise UsageError(f"--on {self.on} does not work here", "write `--on spark`, without --merge and --as")
        if self.merge and (self.shard or self.shown_as or self.select or self.exclude or self.tags):
            raise UsageError(
                "--merge takes plans as they are", "give --shard, --as, --select, --exclude and --tag to `plan`"
            )
        if self.shard and self.shown_as:
            raise UsageError("--as shows a plan for another dialect, which has no shards", "leave one of the two out")
        if self.shown_as and self.out:
            raise UsageError(
                "--as shows a plan for another dialect, which cannot be saved", "set engine.dialect instead"
            )


@command(PlanCommandOptions)
def plan_command(options: PlanCommandOptions, out: Output) -> ExitCode:
    """Show the changes that the policies require. With --out, also save them.

    Example: tablectl plan --out plans/today.json
    """
    options.check_combination()
    save = new_plan(options.out) if options.out else None
    if options.merge:
        return _merge(options, out, save)
    reports = options.reports(save)
    with options.open(out.note) as opened:
        project = opened.in_dialect(options.shown_as) if options.shown_as else opened
        _check_files(save, reports)
        specs, selection = chosen_tables(project, options, options.shard, whole=bool(options.on))
        started = Started()
        if options.on:
            plan = plan_on_cluster(project, options.paths, selection)
        else:
            with out.progress() as on_read:
                plan = make_plan(project, specs, selection, on_read)
        sources = lines_of_plan(plan, specs, everything=reports.names_lines)
        context = started.timed(Context(pending_fails=options.detailed_exitcode, sources=sources))
        if options.shown_as:
            _note_default_levels(specs, project.dialect, opened.dialect, out)
    if options.shard:
        count = len(plan.tables) + len(plan.unchanged)
        out.note(f"shard {options.shard.text}: {count} tables; `--merge` joins all shards")
    return _shown(plan, project, options, out, save, context)


@function(ChangedTables)
def plan(options: ChangedTables) -> Plan:
    """Plans the changes: compares policies with live tables. Changes nothing.

    ``paths`` are policy files or directories, by default those of ``tablectl.yaml`` in ``directory``. Raises
    ``InputError`` with all errors in the policies. A table that cannot be read is in ``Plan.failures``, and the others
    are planned.
    """
    with options.open() as project:
        return make_plan(project, *chosen_tables(project, options))


def _merge(options: PlanCommandOptions, out: Output, save: Path | None) -> ExitCode:
    """Shows the plan that the plans of all shards make together, and saves it."""
    paths = [saved_plan(each) for each in path_list(options.paths)]
    if not paths:
        raise UsageError(
            "--merge needs the plans of all shards", "for example: plan --merge shards/*.json --out p.json"
        )
    plan = merge_plans([(str(path), read_plan(path)) for path in paths])
    with options.open(out.note, env=plan.env) as project:
        _check_files(save, options.reports(save))
    context = Context(pending_fails=options.detailed_exitcode)
    return _shown(plan, project, replace(options, paths=()), out, save, context)


def _check_files(save: Path | None, reports: ReportFiles) -> None:
    """Raise ``TablectlError`` if a file cannot be written, before tables are read."""
    reports.check()
    if save:
        check_writable(save)


def _shown(
    plan: Plan, project: Project, options: PlanCommandOptions, out: Output, save: Path | None, context: Context
) -> ExitCode:
    """Writes the reports of a plan, and saves it unless it is too large. Returns the exit code."""
    reports, over = options.reports(save), _limit_exceeded(options, plan)
    if save and not over:
        context = replace(context, dumped=dump_plan(plan))
        write_file(save, context.dumped, private=project.mask.plan(plan) != plan)
    context = plan_context(plan, project, options.paths, out, reports, context)
    if over:
        # Without the tables, which the report lists anyway: a verdict contains no foreign text.
        refused, _, _ = over.message.partition(": ")
        context, reports = replace(context, refused=refused), reports.without(ReportFormat.JSON)
    make = partial(document_of_plan, mask=project.mask, context=context)
    reports.write(report_of(plan, make, context, verbose=options.verbose), out)
    if over:
        raise over
    if save:
        todo = any(table.applies for table in plan.tables)
        run = f"; to apply exactly this plan, run `tablectl apply {shlex.quote(str(save))}`"
        how = run if todo else "; an apply of it changes nothing" * bool(plan.tables)
        out.note(f"saved to {save}{how}")
    return plan_exit_code(plan, detailed=options.detailed_exitcode)


def _limit_exceeded(options: PlanSize, plan: Plan) -> LimitError | None:
    """The limit that a plan exceeds. The plan is shown anyway, so that its reader sees what made it large."""
    try:
        options.check(plan)
    except LimitError as error:
        return error
    return None


def _note_default_levels(specs: Specs, shown: str, own: str, out: Output) -> None:
    """Says for which tables ``isolation: default`` means another level in the other dialect."""
    there, here = dialect_of(shown), dialect_of(own)
    names = [spec.name.text for spec in specs.tables if spec.policy.isolation == "default"]
    if names and there.default_level != here.default_level:
        out.note(
            f"`isolation: default` means {there.default_level} on {there.title} and {here.default_level} on "
            f"{here.title}: {listed(names, _SHOWN)}"
        )


def plan_exit_code(plan: Plan, *, detailed: bool) -> ExitCode:
    """1 if tables cannot be read, 3 with refusals, 2 (if ``detailed``) with changes, else 0."""
    codes = [ExitCode.ERROR] if plan.failures else []
    if any(table.refusals for table in plan.tables):
        codes.append(ExitCode.REFUSED)
    if detailed and plan.tables:
        codes.append(ExitCode.CHANGES)
    return ExitCode.worst(*codes)
