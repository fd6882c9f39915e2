"""``tablectl plan``: load policies → expand patterns → read tables → diff → actions → lint → order.

It is made here, or on the executors of a cluster (``--on spark``); for ``apply``, ``undo`` and ``demo``, too.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal

import typer

from tablectl.attributes.constraints import NONE, Constraints
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    WHICH,
    AnyFormat,
    AnyReports,
    Cache,
    Changed,
    Choice,
    Env,
    Exclude,
    MaxBytes,
    MaxTables,
    Place,
    PlanSize,
    PolicyPaths,
    Remote,
    Select,
    Tags,
    VarValues,
    Verbose,
    function,
    one_of,
    path_list,
    read_as,
)
from tablectl.commands.project import Project
from tablectl.commands.read_tables import (
    LocatedTable,
    OnRead,
    chosen_tables,
    ignore_progress,
    locate_tables,
    read_tables,
    sorted_failures,
)
from tablectl.commands.report_facts import Started, lines_of_plan, plan_context
from tablectl.commands.report_files import ReportFiles, report_of
from tablectl.commands.selection import Selection
from tablectl.commands.user_files import check_writable, new_plan, read_plan, saved_plan, write_file
from tablectl.delta.dialects import EVERY_DIALECT, dialect_of
from tablectl.delta.names import parse_table
from tablectl.engine.interface import Executors, RemoteWork
from tablectl.leases.clock import today
from tablectl.lint_rules.client_support import client_stands_outside
from tablectl.lint_rules.codes_found_elsewhere import RIGHT_NOT_SHOWN
from tablectl.lint_rules.rule import RuleFinding, table_subject
from tablectl.lint_rules.settings import file_span, tombstones_short, vacuum_waits_for_writes
from tablectl.lint_rules.stored_texts import key_in_another_letter_case
from tablectl.log.column_values import file_ranges
from tablectl.log.reader import Reading
from tablectl.model.catalog_answers import TableRights
from tablectl.model.errors import EngineError, ExitCode, LimitError, UsageError
from tablectl.model.operations import RIGHTS
from tablectl.model.plan import BesidesSettings, Change, Finding, LintedTable, Plan, TablePlan
from tablectl.model.safe_text import listed
from tablectl.model.table import LOOK_BACK, Depth, LiveTable
from tablectl.planning.diff import depth_for
from tablectl.planning.lint import graded, lint, refused_by, with_own_rules
from tablectl.planning.plan_file import FORMAT, MAX_BYTES, MOST_SHARDS, Shard, dump_plan, load_plan, merge_plans
from tablectl.planning.plan_table import fails_writers, plan_table, refused_plan, writers_matter
from tablectl.planning.plan_upkeep import upkeep_forecasts
from tablectl.planning.violations import violations
from tablectl.policies.changed_policies import besides_settings
from tablectl.policies.config import environment_variables
from tablectl.policies.declared_tables import Specs, TableSpec, expand
from tablectl.policies.read_config import FILE, config_values, load_config
from tablectl.policies.repository import Paths, Repository, variables_for
from tablectl.policies.variables import ENVIRON_PREFIX, variables_of
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.support.json_text import MOST_VALUES, read_json, write_json
from tablectl.version import __version__

_SHOWN = 5
MOST_WITH_LOSSES = 100
"""If more tables are selected, the commits of 30 days are not read only to tell what a statement costs the writers."""
MOST_TABLES = 500
"""Two requests for each table: of a larger plan the first ones are looked at."""


def _json_file(name: str) -> Path:
    if Path(name).suffix != ".json":
        raise ValueError("needs a name that ends in .json")
    return Path(name)


def plan_command(
    ctx: typer.Context,
    paths: PolicyPaths = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out", metavar="FILE.json", parser=read_as(_json_file), help="Save the plan for review and for apply."
        ),
    ] = None,
    detailed_exitcode: Annotated[
        bool, typer.Option("--detailed-exitcode", help="Exit with code 2 if changes are pending.")
    ] = False,
    shown_as: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="DIALECT",
            parser=one_of(sorted(EVERY_DIALECT)),
            autocompletion=lambda: sorted(EVERY_DIALECT),
            help="Show the plan as if engine.dialect were this one.",
        ),
    ] = None,
    on: Annotated[
        Literal["spark"] | None,
        typer.Option(
            "--on",
            metavar="ENGINE",
            help="`spark` reads the tables on the engine's executors, with its credentials.",
        ),
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="Join the plans of all shards: PATHS are the plan files of `--shard`.")
    ] = False,
    shard: Annotated[
        Shard | None,
        typer.Option(
            "--shard",
            metavar="N/COUNT",
            parser=read_as(Shard.parse),
            help="Plan one of COUNT parts of the tables, for parallel jobs.",
            rich_help_panel=WHICH,
        ),
    ] = None,
    changed_since: Changed = "",
    select: Select = None,
    exclude: Exclude = None,
    tags: Tags = None,
    max_tables: MaxTables = None,
    max_bytes: MaxBytes = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: AnyFormat = ReportFormat.TEXT,
    report: AnyReports = None,
    verbose: Verbose = False,
) -> ExitCode:
    """Show the changes that the policies require. With --out, also save them.

    Example: tablectl plan --out plans/today.json
    """
    if on and (merge or shown_as):
        raise UsageError(f"--on {on} does not work here", "write `--on spark`, without --merge and --as")
    if merge and (shard or shown_as or select or exclude or tags):
        raise UsageError(
            "--merge takes plans as they are", "give --shard, --as, --select, --exclude and --tag to `plan`"
        )
    if shard and shown_as:
        raise UsageError("--as shows a plan for another dialect, which has no shards", "leave one of the two out")
    if shown_as and file:
        raise UsageError("--as shows a plan for another dialect, which cannot be saved", "set engine.dialect instead")
    out: Output = ctx.obj
    save = new_plan(file) if file else None
    size, reports = PlanSize(max_tables, max_bytes), ReportFiles.of(form, report, save)
    choice = Choice(paths, select, exclude, tags, changed_since)
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    if merge:
        plan, project = _merged(place, path_list(paths), reports, out)
        context = Context(pending_fails=detailed_exitcode)
        return _shown(plan, project, reports, size, out, context, verbose=verbose)
    with place.open(out.note) as opened:
        project = opened.in_dialect(shown_as) if shown_as else opened
        _check_files(reports)
        specs, selection = chosen_tables(project, choice, shard, compares=True)
        started = Started()
        if on:
            plan = plan_on_cluster(project, paths, selection)
        else:
            with out.progress() as on_read:
                plan = make_plan(project, specs, selection, on_read)
        sources = lines_of_plan(plan, specs, everything=reports.names_lines)
        context = started.timed(Context(pending_fails=detailed_exitcode, sources=sources))
        if shown_as:
            _note_default_levels(specs, project.dialect, opened.dialect, out)
    if shard:
        count = len(plan.tables) + len(plan.unchanged)
        out.note(f"shard {shard.text}: {count} tables; `--merge` joins all shards")
    return _shown(plan, project, reports, size, out, context, paths, verbose=verbose)


@function
def plan(
    paths: Paths = None,
    *,
    select: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
    tags: Sequence[str] | None = None,
    changed_since: str = "",
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> Plan:
    """Plans the changes: compares policies with live tables. Changes nothing.

    ``paths`` are policy files or directories, by default those of ``tablectl.yaml`` in ``directory``. Raises
    ``InputError`` with all errors in the policies. A table that cannot be read is in ``Plan.failures``, and the others
    are planned.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        choice = Choice(paths, select, exclude, tags, changed_since)
        return make_plan(project, *chosen_tables(project, choice, compares=True))


def _merged(place: Place, shards: Sequence[Path], reports: ReportFiles, out: Output) -> tuple[Plan, Project]:
    """The plan that the plans of all shards make together, and the repository in its environment."""
    paths = [saved_plan(each) for each in shards]
    if not paths:
        raise UsageError(
            "--merge needs the plans of all shards", "for example: plan --merge shards/*.json --out p.json"
        )
    plan = merge_plans([(str(path), read_plan(path)) for path in paths])
    with place.open(out.note, env=plan.env) as project:
        _check_files(reports)
    return plan, project


def _check_files(reports: ReportFiles) -> None:
    """Raise ``TablectlError`` if a file cannot be written, before tables are read."""
    reports.check()
    if reports.plan_file:
        check_writable(reports.plan_file)


def _shown(
    plan: Plan,
    project: Project,
    reports: ReportFiles,
    size: PlanSize,
    out: Output,
    context: Context,
    paths: Paths = None,
    *,
    verbose: bool,
) -> ExitCode:
    """Writes the reports of a plan, and saves it unless it is too large: then it is shown anyway, so that its reader
    sees what made it large. Returns the exit code.
    """
    save, over = reports.plan_file, None
    try:
        size.check(plan, project.config)
    except LimitError as error:
        over = error
    if save and not over:
        context = replace(context, dumped=dump_plan(plan))
        write_file(save, context.dumped, private=project.mask.plan(plan) != plan)
    context = plan_context(plan, project, paths, out, reports, context)
    if over:
        # Without the tables, which the report lists anyway: a verdict contains no foreign text.
        refused, _, _ = over.message.partition(": ")
        context, reports = replace(context, refused=refused), reports.without(ReportFormat.JSON)
    make = partial(document_of_plan, mask=project.mask, context=context)
    reports.write(report_of(plan, make, context, verbose=verbose), out)
    if over:
        raise over
    if save:
        todo = any(table.applies for table in plan.tables)
        run = f"; to apply exactly this plan, run `tablectl apply {shlex.quote(str(save))}`"
        how = run if todo else "; an apply of it changes nothing" * bool(plan.tables)
        out.note(f"saved to {save}{how}")
    return plan_exit_code(plan, detailed=context.pending_fails)


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


# How a plan is made


def make_plan(project: Project, specs: Specs, selection: Selection, on_read: OnRead = ignore_progress) -> Plan:
    """The plan for the selected tables. A table that cannot be read is a failure in the plan, and the others are
    planned.

    Raises ``InputError`` if patterns contradict each other about a live table.
    """
    located = locate_tables(project, specs, selection)
    losses = len(located.tables) <= MOST_WITH_LOSSES
    changes = changes_besides(located, specs, selection)
    tells = _tells_upkeep(located, changes)
    plan = plan_located(project, located, selection.shard, losses=losses, tells_upkeep=tells, on_read=on_read)
    return with_changes_besides(plan, changes)


ChangesBesides = Mapping[str, tuple[Change, ...]]
"""By table, what differs from the policies that a plan is compared with, besides the settings that it changes."""


def changes_besides(located: LocatedTable, specs: Specs, selection: Selection) -> ChangesBesides | None:
    """Of the located tables, and of those that no entry declares any more; ``None`` if nothing is compared."""
    earlier = selection.earlier
    if earlier is None:
        return None
    profiles = specs.declarations.profiles
    found = {spec.name.text: besides_settings(earlier.before(spec), spec, profiles) for spec, _ in located.tables}
    left_out = {spec.name.text for spec, _ in located.tables} | {each.name for each in located.failures}
    gone = (Change(attribute="policy", before="declared", after=None),)
    shard = selection.shard
    for spec in earlier.without(specs):
        if spec.name.text not in left_out and (shard is None or shard.has(spec.name.key)):
            found[spec.name.text] = gone
    return {name: changes for name, changes in found.items() if changes}


def _tells_upkeep(located: LocatedTable, changes: ChangesBesides | None) -> frozenset[str]:
    """The tables whose upkeep the plan tells, with what its first run does. If nothing is compared, it is all declared
    upkeep, of at most ``MOST_WITH_LOSSES`` tables: its facts are read from their logs.
    """
    declared = [spec.name.text for spec, _ in located.tables if spec.upkeep is not None]
    if changes is None:
        return frozenset(declared[:MOST_WITH_LOSSES])
    return frozenset(
        name for name in declared if any(each.attribute in {"upkeep", "retention"} for each in changes.get(name, ()))
    )


def with_changes_besides(plan: Plan, changes: ChangesBesides | None) -> Plan:
    """The plan of some tables with what their policies change besides settings."""
    if changes is None:
        return plan
    planned = {table.name: {each.id for each in table.changes} for table in plan.tables}
    told = {each.name: each for each in plan.besides}
    found = []
    for name in sorted({*changes, *told}):
        ours = tuple(each for each in changes.get(name, ()) if each.id not in planned.get(name, ()))
        if ours or name in told:
            found.append(replace(told.get(name) or BesidesSettings(name=name), changes=ours))
    return replace(plan, besides=tuple(found), compared=bool(found))


def plan_located(
    project: Project,
    located: LocatedTable,
    shard: Shard | None = None,
    *,
    losses: bool,
    tells_upkeep: frozenset[str] = frozenset(),
    on_read: OnRead = ignore_progress,
) -> Plan:
    """The plan of tables whose locations are known. ``losses`` tells what each statement costs the writers, for which
    the commits of 30 days are read; ``tells_upkeep`` names the tables whose upkeep it tells.
    """
    failures = list(located.failures)
    tables: list[TablePlan] = []
    unchanged: list[str] = []
    standing: list[LintedTable] = []
    besides: list[BesidesSettings] = []
    depths = partial(_depth, project, tells_losses=losses, tells_upkeep=tells_upkeep)
    make = partial(_planned, project, tells_upkeep)
    for spec, (table, upkeep) in read_tables(project, located, depths, make, on_read, failures):
        besides += [upkeep] if upkeep else []
        if isinstance(table, TablePlan):
            tables.append(table)
        else:
            unchanged.append(spec.name.text)
            standing += [LintedTable(spec.name.text, table)] if table else []
    return Plan(
        format=FORMAT,
        tool=__version__,
        dialect=project.dialect,
        policies=located.policies,
        changed_since=located.changed_since,
        env=project.config.environment,
        tables=tuple(sorted(with_rights(project, tables), key=lambda table: table.name)),
        failures=sorted_failures(failures),
        unchanged=tuple(sorted(unchanged)),
        unmatched=located.unmatched,
        standing=tuple(sorted(standing, key=lambda each: each.name)),
        shard=shard.text if shard else "",
        besides=tuple(sorted(besides, key=lambda each: each.name)),
    )


_STANDING = frozenset({client_stands_outside.code, key_in_another_letter_case.code})
"""Findings that a plan names on an unchanged table, whatever their severity: what a policy asks for does not hold."""


_OF_VACUUM = frozenset({tombstones_short.code, vacuum_waits_for_writes.code})


def _planned(
    project: Project, tells_upkeep: frozenset[str], spec: TableSpec, reading: Reading
) -> tuple[TablePlan | tuple[Finding, ...], BesidesSettings | None]:
    """The plan of a table; if it needs no change, the findings to name all the same (``Plan.standing``). And what the
    plan tells of its upkeep.
    """
    severities, live = project.config.severities, reading.table
    if project.own_rules:
        severities = with_own_rules(severities, project.own_rules, spec)
    options = spec.options.on(today())
    table = plan_table(spec.policy, live, project.dialect, options, severities, project.runtime)
    changes = table.changes if table else ()
    state = table_subject(spec.policy, live, changes, project.dialect, options=options, runtime=project.runtime)
    besides = None
    if spec.upkeep is not None and spec.name.text in tells_upkeep:
        upkeep = lint(replace(state, upkeep=spec.upkeep), spec.name, "plan", project.config.severities)
        wanted = _OF_VACUUM if spec.upkeep.vacuum else frozenset()
        found = tuple(each for each in upkeep if each.about.startswith("upkeep") or each.code in wanted)
        forecasts = upkeep_forecasts(spec.upkeep, live, file_span(state))
        besides = BesidesSettings(name=spec.name.text, upkeep=forecasts, findings=found)
    if table is None:
        standing = (
            each
            for each in lint(state, spec.name, "plan", project.config.severities)
            if each.severity == "error" or (each.code in _STANDING and each.severity != "ignored")
        )
        return tuple(standing), besides
    said: dict[str, Any] = {"tags": tuple(sorted(spec.tags)), "owner": spec.owner, "window": spec.window}
    return replace(_without_violations(table, reading), **said), besides


def _without_violations(table: TablePlan, reading: Reading) -> TablePlan:
    """The plan, refused if rows of the table violate a constraint that it adds, by the statistics of its files."""
    if table.refusals or not any(each.attribute == Constraints.name and each.after != NONE for each in table.changes):
        return table
    live = reading.table
    refusals = violations(table.changes, live, partial(file_ranges, reading.stores, live.location, live.version))
    return refused_plan(table, refusals) if refusals else table


def _depth(
    project: Project, spec: TableSpec, *, tells_losses: bool, tells_upkeep: frozenset[str]
) -> Callable[[LiveTable], Depth]:
    """How deep to read a table to plan it: its write history, too, if the plan depends on who writes it, or if it tells
    what its statements cost the writers; and what its upkeep depends on, if the plan tells it.
    """
    depth, dialect = depth_for(spec, LOOK_BACK), project.dialect
    upkeep = spec.upkeep if spec.name.text in tells_upkeep else None

    def writers(live: LiveTable) -> bool:
        return writers_matter(spec.policy, live, dialect, spec.options)

    def losses(live: LiveTable) -> bool:
        return fails_writers(spec.policy, live, dialect, spec.options)

    def with_writers(live: LiveTable) -> Depth:
        found = replace(depth(live), upkeep=upkeep)
        return replace(found, writers=writers, losses=losses if tells_losses else None) if found.look_back else found

    return with_writers


def with_rights(project: Project, tables: Sequence[TablePlan]) -> list[TablePlan]:
    """The plans with what the login lacks, where the tables' catalog tells of rights."""
    if dialect_of(project.dialect).runtime is None or project.catalogs is None:
        return [*tables]
    asked = [each.table for each in tables if each.statements][:MOST_TABLES]
    found = project.catalogs.rights(asked)
    return [_checked(project, each, found[each.table]) if each.table in found else each for each in tables]


def _checked(project: Project, table: TablePlan, rights: TableRights) -> TablePlan:
    lacking = [*rights.lacking((each.verb, RIGHTS[each.verb]) for each in table.statements)]
    if not lacking:
        return table
    message = f"the catalog does not show that {rights.principal} has {'; '.join(lacking)}"
    findings = graded([RuleFinding(RIGHT_NOT_SHOWN.code, message)], table.table, project.config.severities)
    told = replace(table, findings=(*table.findings, *findings))
    refusals = refused_by(findings, table.changes)
    return refused_plan(told, refusals) if refusals else told


# On the executors of a cluster

_A_PART = 50
"""The number of tables that one task plans, if there are few enough."""
_NEEDED = frozenset({"lint", "reports", "stores", "variables"})
_OF_ENGINE = frozenset({"catalog", "dialect", "runtime"})
"""The sections of the configuration, and the keys of ``engine``, that a plan depends on. The others hold addresses,
commands and settings that can be secrets.
"""


def plan_on_cluster(project: Project, paths: Paths, selection: Selection) -> Plan:
    """The plan of the selected tables, made on the executors of the engine, whose credentials reach the lake.

    The tables are located here, by the policies and the catalogs. Each executor gets the policies and a part of the
    locations, plans that part as a shard, and returns its plan file. The parts are merged as shards are, so the result
    equals a plan that was made at once.

    Raises as ``make_plan``; ``UsageError`` for an engine without executors, and ``EngineError`` if they lack tablectl
    or have another version of it.
    """
    repository, specs = project.repository(paths)
    located = locate_tables(project, specs, selection)
    engine = project.engines.start()
    if not isinstance(engine, Executors):
        raise UsageError("this engine has no executors", "leave `--on spark` out")
    changes = changes_besides(located, specs, selection)
    if not located.tables:
        return with_changes_besides(plan_located(project, located, selection.shard, losses=False), changes)
    parts = _parts(located)
    tells = _tells_upkeep(located, changes)
    common = _bundle(project, repository, losses=len(located.tables) <= MOST_WITH_LOSSES, tells_upkeep=tells)
    texts = engine.on_executors(RemoteWork(__name__, plan_part.__name__, common), parts)
    names = [f"part {number}" for number in range(1, len(parts) + 1)]
    merged = merge_plans([(name, load_plan(text.encode(), name)) for name, text in zip(names, texts, strict=True)])
    if merged.policies != specs.digest:
        raise EngineError("the executors read other policies", "install the same version of tablectl on them")
    failures = {*merged.failures, *located.failures}
    planned = replace(
        merged,
        policies=located.policies,
        changed_since=located.changed_since,
        failures=sorted_failures(failures),
        unmatched=located.unmatched,
        shard=selection.shard.text if selection.shard else "",
    )
    return with_changes_besides(planned, changes)


def _parts(located: LocatedTable) -> list[str]:
    """The tables and their locations, divided among tasks: as JSON, each with the number of its part."""
    tables = [(spec.name.text, where) for spec, where in located.tables]
    count = min(MOST_SHARDS, -(-len(tables) // _A_PART))
    return [
        write_json({"shard": Shard(number + 1, count).text, "tables": tables[number::count]}) for number in range(count)
    ]


def _bundle(project: Project, repository: Repository, *, losses: bool, tells_upkeep: frozenset[str]) -> str:
    """What all executors need: what a plan depends on of the configuration, the policies, the variables in them."""
    texts, environ = repository.texts(), project.environ
    used = {name for text in texts.values() for name in variables_of(text)}
    names = {f"{ENVIRON_PREFIX}{name}" for name in used}
    names |= {name for name, keys in environment_variables() if keys[0] in _NEEDED or _of_engine(keys)}
    return write_json(
        {
            "version": __version__,
            "config": write_json(_settings_of_plans(config_values(project.directory, environ))),
            "environment": project.config.environment,
            "environ": {name: environ[name] for name in names if name in environ},
            "variables": {name: value for name, value in project.given.items() if name in used},
            "policies": texts,
            "losses": losses,
            "upkeep": sorted(tells_upkeep),
        }
    )


def _of_engine(keys: Sequence[str]) -> bool:
    return keys[0] == "engine" and keys[1] in _OF_ENGINE


def _settings_of_plans(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the configuration that a plan depends on, at the top and in environments."""
    found = {key: value for key, value in values.items() if key in _NEEDED}
    found["engine"] = {key: value for key, value in (values.get("engine") or {}).items() if key in _OF_ENGINE}
    sections = (values.get("env") or {}).items()
    return {**found, **({"env": {name: _settings_of_plans(each or {}) for name, each in sections}} if sections else {})}


def plan_part(common: str, part: str) -> str:
    """The plan file of one part, made on an executor. Both texts are JSON, of ``_bundle`` and ``_parts``."""
    bundle, given = read_json(common, MAX_BYTES, MOST_VALUES), read_json(part, MAX_BYTES, MOST_VALUES)
    if bundle["version"] != __version__:
        raise RuntimeError(f"this executor has tablectl {__version__}, and the plan is made by {bundle['version']}")
    with TemporaryDirectory(prefix="tablectl-plan-") as directory:
        (Path(directory) / FILE).write_text(bundle["config"], "utf-8")
        config = load_config(Path(directory), bundle["environ"], bundle["environment"])
    # The locations are known, and the cluster's credentials reach them: no catalog is asked here. Each core of an
    # executor has a task of its own.
    config = replace(config, catalogs={}, stores=replace(config.stores, processes=1))
    variables = variables_for(config, bundle["variables"], bundle["environ"])
    project = Project(config, given=bundle["variables"], environ=bundle["environ"])
    specs = Repository({}, variables, config).read(bundle["policies"])
    locations = {parse_table(name): where for name, where in given["tables"]}
    known = {spec.name.key: spec for spec in expand(specs, locations).tables}
    tables = tuple((known[name.key], where) for name, where in locations.items())
    located = LocatedTable(tables, (), (), policies=specs.digest)
    told = frozenset(bundle["upkeep"])
    plan = plan_located(project, located, Shard.parse(given["shard"]), losses=bundle["losses"], tells_upkeep=told)
    return dump_plan(plan).decode()
