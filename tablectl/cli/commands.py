"""The commands that read or change live tables."""

from __future__ import annotations

import json
import logging
import os
import shlex
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from tablectl.api import Engines, config_of, plan_bytes, policies_of_plan, read_plan, required_signers
from tablectl.applying.run_report import RunReport
from tablectl.cli.origin import with_origin
from tablectl.cli.output import Output, write_file
from tablectl.cli.report_files import Render, ReportFiles, below_root
from tablectl.cli.request import ApplyOptions, CommandRequest, ConflictOptions, client
from tablectl.conflicts.glossary import find_term, term_names
from tablectl.conflicts.operations import OPERATIONS
from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.engine.port import Engine
from tablectl.leases.acquire import break_lease
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease_log import UNREADABLE, LeaseRecord, tail
from tablectl.leases.owner import current_owner
from tablectl.log.reader import newest_version
from tablectl.model.errors import ExitCode, LimitError, TablectlError, UsageError
from tablectl.model.plain import plain
from tablectl.model.plan import Plan
from tablectl.planning.conflict_report import ConflictReport
from tablectl.planning.explain_term import explain_term
from tablectl.planning.limits import PlanLimits
from tablectl.planning.plan_file import digest_of, dump_plan, load_plan
from tablectl.policies.config import Config, load_config
from tablectl.policies.effective_policy import parse_name, spec_for
from tablectl.policies.policy_lines import Sources, policy_lines_of
from tablectl.policies.repository import load_any, load_repository
from tablectl.policies.spec import Specs
from tablectl.policies.suggestions import nearest
from tablectl.reports.conflicts_json import conflicts_json
from tablectl.reports.conflicts_text import conflicts_text
from tablectl.reports.context import Context
from tablectl.reports.formats import ReportFormat
from tablectl.reports.mask import Mask
from tablectl.reports.render import render_plan, render_run
from tablectl.reports.style import Style
from tablectl.reports.term_text import topic_json, topic_text
from tablectl.reports.wording import outcome_text
from tablectl.selection import Selection
from tablectl.signatures import sign, signature_file
from tablectl.storage.records import RecordStore
from tablectl.version import __version__
from tablectl.workflow import (
    Control,
    approval_of,
    make_outlook,
    make_plan,
    read_live,
    record_store,
    run,
    store_options,
)


def plan_command(
    request: CommandRequest,
    out: Output,
    save: Path | None,
    reports: ReportFiles,
    *,
    detailed_exitcode: bool,
) -> ExitCode:
    """``tablectl plan``. Returns the exit code."""
    config = configuration(request)
    reports.check()
    with Engines(config, on_start=out.note) as engines:
        specs = load_repository(request.paths, config, ".", request.variables, os.environ)
        plan = _plan(specs, request, config, engines, out)
    over = _over(request, plan)
    if save and not over:
        hides = mask_of(config).plan(plan) != plan
        write_file(save, dump_plan(plan), private=hides)
    context = replace(_context(plan, request, config, out, reports, save), pending_fails=detailed_exitcode)
    if over:
        # Without the tables, which the report lists anyway: a verdict contains no foreign text.
        refused, _, _ = over.message.partition(": ")
        context, reports = replace(context, refused=refused), reports.without(ReportFormat.JSON)
    mask, verbose = mask_of(config), request.verbose
    reports.write(lambda form, style: render_plan(plan, form, style, mask, context, verbose=verbose), out)
    if over:
        raise over
    if save:
        todo = any(table.applies for table in plan.tables)
        how = f"; run `tablectl apply {shlex.quote(str(save))}` to make it so" if todo else ""
        out.note(f"saved to {save}{how}")
    return plan_exit_code(plan, detailed=detailed_exitcode)


def _over(request: CommandRequest, plan: Plan) -> LimitError | None:
    """The limit that a plan exceeds. The plan is shown anyway, so that its reader sees what made it large."""
    try:
        _check_size(request, plan)
    except LimitError as error:
        return error
    return None


def _check_size(request: CommandRequest, plan: Plan) -> None:
    PlanLimits(request.max_tables, request.max_bytes).check(plan)


def plan_exit_code(plan: Plan, *, detailed: bool) -> ExitCode:
    """1 if tables cannot be read, 3 with refusals, 2 (if ``detailed``) with changes, else 0."""
    codes = [ExitCode.ERROR] if plan.failures else []
    if any(table.refusals for table in plan.tables):
        codes.append(ExitCode.REFUSED)
    if detailed and plan.tables:
        codes.append(ExitCode.CHANGES)
    return ExitCode.worst(*codes)


def show_command(path: Path, request: CommandRequest, out: Output, reports: ReportFiles) -> ExitCode:
    """``tablectl show``: also reads plans of other tool versions, if they are undamaged."""
    plan = read_plan(path, to_apply=False)
    config = _configuration_shown(plan, request, out)
    reports.check()
    if plan.tool != __version__:
        out.note(f"made by tablectl {plan.tool}: its SQL could not be derived again by this version, {__version__}")
    context = _context(plan, request, config, out, reports, path)
    mask, verbose = mask_of(config), request.verbose
    reports.write(lambda form, style: render_plan(plan, form, style, mask, context, verbose=verbose), out)
    return ExitCode.DONE


def sign_command(path: Path, key: Path, out: Output) -> ExitCode:
    """``tablectl sign``: only a plan that this version would apply, so that no other file is signed by mistake."""
    data = plan_bytes(path)
    plan = load_plan(data, str(path))
    signature = signature_file(path)
    write_file(signature, sign(data, path, key))
    out.note(f"signed the plan {digest_of(plan)[:12]}…: {signature}")
    return ExitCode.DONE


def _configuration_shown(plan: Plan, request: CommandRequest, out: Output) -> Config:
    """The configuration of the plan's own environment, whatever the options name; the top level if it no longer
    exists.
    """
    try:
        return configuration(replace(request, env=plan.env))
    except UsageError as error:
        out.note(f"shown as without an environment: {error.message}")
        return configuration(replace(request, env=""))


def apply_command(
    request: CommandRequest, out: Output, saved: Path | None, reports: ReportFiles, options: ApplyOptions
) -> ExitCode:
    """``tablectl apply``. Returns the exit code."""
    signers = required_signers(saved, ".", required=options.require_signature)
    ready = read_plan(saved, signers=signers) if saved else None
    config = configuration(request, ready)
    reports.check()
    with Engines(config, on_start=out.note) as engines:
        if ready is None:
            specs: Specs | None = load_repository(request.paths, config, ".", request.variables, os.environ)
            assert specs is not None
            plan = _plan(specs, request, config, engines, out)
        else:
            plan, specs = ready, _compared_with(request, config, out, options)
        _check_size(request, plan)
        approve = approval_of(plan, specs, config, request.max_bytes)
        if not saved and not _agreed(plan, out, reports.form, mask_of(config), options, verbose=request.verbose):
            out.note("nothing was changed")
            return ExitCode.ERROR
        context = replace(_context(plan, request, config, out, reports, saved), plan=plan)
        with out.display() as notify:
            control = Control(
                notify=notify,
                proceed=options.proceed,
                override=options.override,
                wait=options.wait,
                watch=options.watch,
            )
            with _signals(control, out) as install_handlers:

                def open_engine(stamp: str) -> Engine:
                    engine = engines.open(stamp)
                    install_handlers()  # a new Spark context has replaced our handlers
                    return engine

                report = run(plan, open_engine, config, os.environ, control, approve=approve)
    return _reported(
        report,
        out,
        reports,
        lambda form, style: render_run(report, form, style, mask_of(config), context, verbose=request.verbose),
    )


def _reported(report: RunReport, out: Output, reports: ReportFiles, render: Render) -> ExitCode:
    """The exit code, once the report is written. Committed changes count and are reported even if the report fails."""
    before = out.results
    try:
        reports.write(render, out)
    except BrokenPipeError:
        return report.exit_code
    except (TablectlError, KeyboardInterrupt) as error:
        code = ExitCode.PARTIAL if report.committed else ExitCode.ERROR
        told = out.results > before
        out.fail(error if isinstance(error, TablectlError) else TablectlError("interrupted"), code)
        if not told:
            _tell(report, out)
        return code
    return report.exit_code


def _tell(report: RunReport, out: Output) -> None:
    """Print the outcome of each table on a line of its own, because no report did."""
    for table in report.tables:
        versions = ", ".join(str(commit.version) for commit in table.commits)
        out.note(f"{table.name}: {outcome_text(table)}{f'; committed as version {versions}' if versions else ''}")


def _agreed(plan: Plan, out: Output, form: ReportFormat, mask: Mask, options: ApplyOptions, *, verbose: bool) -> bool:
    if form is ReportFormat.TEXT:
        out.result(render_plan(plan, form, out.style, mask, Context(), verbose=verbose) + "\n")
    if options.yes or not any(table.applies for table in plan.tables):
        return True
    if not out.interactive:
        raise UsageError(
            "cannot ask for confirmation: standard input is not a terminal",
            "add --yes, or save a plan with `tablectl plan --out FILE` and apply that",
        )
    if form is not ReportFormat.TEXT:
        out.note(render_plan(plan, ReportFormat.TEXT, Style(), mask, Context()))
    return out.ask("Apply these changes?")


@contextmanager
def _signals(control: Control, out: Output) -> Iterator[Callable[[], None]]:
    """On the first SIGINT, SIGTERM or SIGHUP, end the run cleanly: no further statement starts, and leases are
    released.

    The next signal ends the process at once, as it would without our handlers. Ignored signals stay ignored
    (``nohup``). Yields a function that restores our handlers after another library has replaced them.
    """
    before: dict[int, Any] = {}

    def stop(_number: int, _frame: FrameType | None) -> None:
        control.stop.set()
        if isinstance(control.clock, SystemClock):
            control.clock.interrupt()
        for each in before:
            signal.signal(each, signal.SIG_DFL)
        with suppress(RuntimeError):  # the signal came while the same stream was being written
            out.note("stopping: waiting for running statements, starting no more; repeat the signal to exit at once")

    def install_handlers() -> None:
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)  # Windows has no SIGHUP
            now = signal.getsignal(number) if number else None
            if number and now not in {None, signal.SIG_IGN, stop} and not control.stop.is_set():
                before.setdefault(number, now)
                signal.signal(number, stop)

    install_handlers()
    try:
        yield install_handlers
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def conflicts_command(
    table: str, request: CommandRequest, out: Output, form: ReportFormat, options: ConflictOptions
) -> ExitCode:
    """``tablectl conflicts``. Returns the exit code."""
    if options.between:
        return _between_command(table, options.between, request, out, form, options)
    about = _operation(options.operation)
    asked = [client(each) for each in options.clients]
    config = configuration(request)
    name = parse_name(table, config.engine.catalog, config.engine.dialect)
    spec, dialect = spec_for(_policies(request, config), name), config.engine.dialect
    with Engines(config, on_start=out.note) as engines:
        found = make_outlook(name, spec, dialect, engines.locate, store_options(config), asked)
    found = replace(found, changes=tuple(map(mask_of(config).change, found.changes)))
    if form is ReportFormat.JSON:
        out.result(json.dumps(conflicts_json(found), indent=2) + "\n")
    elif form is ReportFormat.TEXT:
        out.result(conflicts_text(found, out.style, everything=options.everything, about=about))
    else:
        out.result(_conflicts_document(found, form))
    return ExitCode.REFUSED if found.refused else ExitCode.DONE


def _conflicts_document(found: ConflictReport, form: ReportFormat) -> str:
    from tablectl.reports.conflicts_document import conflicts_document  # noqa: PLC0415  # only for these formats

    document = conflicts_document(found)
    if form is ReportFormat.MARKDOWN:
        from tablectl.reports.document_markdown import document_markdown  # noqa: PLC0415

        where = "<code>tablectl conflicts</code> prints all of it."
        return document_markdown(document, "<!-- tablectl conflicts -->", where)
    from tablectl.reports.document_html import document_html  # noqa: PLC0415

    return document_html(document, context_here())


def explain_word_command(
    word: str, table: str | None, request: CommandRequest, out: Output, form: ReportFormat
) -> ExitCode:
    """``tablectl explain`` for a conflict term, with or without a live table."""
    topic = find_term(word)
    if topic is None:
        near = nearest(word, term_names())
        hint = f"did you mean {near}?" if near else f"such as {', '.join(term_names()[:3])}, WriteSerializable"
        what = "exception, error class or isolation level that is known here"
        table_too = ", and no table, whose names have two or three parts" if "." not in word else ""
        raise UsageError(f"{word!r} is no {what}{table_too}", hint)
    config = configuration(request)
    live = None
    if table is not None:
        name = parse_name(table, config.engine.catalog, config.engine.dialect)
        spec = spec_for(_policies(request, config), name)
        with Engines(config, on_start=out.note) as engines:
            live = read_live(name, spec, engines.locate, store_options(config))
    view = explain_term(topic, live, config.engine.dialect)
    if form is ReportFormat.JSON:
        out.result(json.dumps(topic_json(view), indent=2) + "\n")
    else:
        out.result(topic_text(view, out.style))
    return ExitCode.DONE


def _between_command(
    table: str,
    statements: tuple[str, str],
    request: CommandRequest,
    out: Output,
    form: ReportFormat,
    options: ConflictOptions,
) -> ExitCode:
    """``tablectl conflicts --between``. Returns the exit code."""
    # These load sqlglot, which takes longer than the rest of a short command.
    from tablectl.reports.pair_json import between_json  # noqa: PLC0415
    from tablectl.reports.pair_text import between_text  # noqa: PLC0415
    from tablectl.statements.compare import compare_statements  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that are refused anyway
    if options.operation or options.everything:
        raise UsageError("--between cannot be combined with --operation or --all", "leave them out")
    asked = [client(each) for each in options.clients]
    config = configuration(request)
    dialect = config.engine.dialect
    name = parse_name(table, config.engine.catalog, dialect)
    spec = spec_for(_policies(request, config), name)
    with Engines(config, on_start=out.note) as engines:
        live = read_live(name, spec, engines.locate, store_options(config))
    found = compare_statements(live, *statements, dialect, asked)
    if form is ReportFormat.JSON:
        out.result(json.dumps(between_json(found), indent=2) + "\n")
    else:
        out.result(between_text(found, out.style))
    return ExitCode.DONE


def _operation(text: str) -> str:
    """The key of an operation given by key or by name; empty without one."""
    if not text:
        return ""
    for each in OPERATIONS:
        if text.casefold() in {each.key, each.name.casefold()}:
            return each.key
    keys = [each.key for each in OPERATIONS]
    near = nearest(text.casefold(), keys)
    hint = f"did you mean {near}?" if near else f"one of {', '.join(keys)}"
    raise UsageError(f"--operation {text!r} is not known", hint)


def _policies(request: CommandRequest, config: Config) -> Specs:
    return load_any(request.paths, config, ".", request.variables, os.environ)


def window_show_command(table: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """``tablectl window show``. Returns the exit code."""
    store, must_exist = _records(table, request, out)
    record = tail(store)
    if record is None:
        must_exist()  # distinguishes a misspelt name from a table that was never leased
    if form is ReportFormat.JSON:
        out.result(_record_json(record))
    elif record is None:
        out.result(f"{table}: no apply has ever held it\n")
    elif record.held:
        out.result(f"{table}: held by {record}\n")
        if record.kind == UNREADABLE:
            out.note(
                "its last record cannot be read: applies and writers wait for it, and then take the holder for dead"
            )
        out.note(f"to free it: tablectl window break {shlex.quote(table)} --epoch {record.epoch} --reason …")
    else:
        how = "broken" if record.kind == "break" else "released"
        when = f"{record.at:%Y-%m-%d %H:%M:%S} UTC"
        out.result(f"{table}: free; last held (epoch {record.epoch}) by {record.owner}, {how} {when}\n")
    return ExitCode.DONE


def window_break_command(
    table: str, epoch: int | None, reason: str, request: CommandRequest, out: Output, form: ReportFormat
) -> ExitCode:
    """``tablectl window break``. Returns the exit code."""
    store, must_exist = _records(table, request, out)
    held = tail(store)
    if held is None:
        must_exist()
    if epoch is None:
        if held is None or not held.held:
            raise UsageError(f"the lease on {table} is free", "there is nothing to break: apply may run")
        raise UsageError(f"{table} is held by {held}", f"to break this lease, add --epoch {held.epoch}")
    if not reason.strip():
        raise UsageError("--reason is empty", "give a reason; it is recorded for the current and the next holder")
    record = break_lease(store, epoch, reason, current_owner(os.environ, __version__), SystemClock())
    if form is ReportFormat.JSON:
        out.result(_record_json(record))
    else:
        out.result(f"{table}: epoch {record.epoch} is broken; apply may run\n")
    return ExitCode.DONE


def _record_json(record: LeaseRecord | None) -> str:
    return json.dumps(record, default=plain, indent=2, sort_keys=True) + "\n"


def _records(text: str, request: CommandRequest, out: Output) -> tuple[RecordStore, Callable[[], object]]:
    """The record store of a table's lease, and a function that raises ``LiveError`` if the table does not exist."""
    config = configuration(request)
    try:
        table = parse_table(text, config.engine.catalog)
    except NameSyntaxError as error:
        raise UsageError(str(error)) from None
    with Engines(config, on_start=out.note) as engines:
        location = table.parts[0] if table.is_path else engines.locate(table)
    return record_store(location, config), lambda: newest_version(location, options=store_options(config))


def configuration(request: CommandRequest, plan: Plan | None = None) -> Config:
    """``tablectl.yaml`` with the options of the command line applied; for a saved plan, in the plan's environment."""
    config = config_of(plan, request.env, ".") if plan else load_config(Path(), os.environ, request.env)
    if not request.remote:
        return config
    return replace(config, engine=replace(config.engine, remote=request.remote))


def _compared_with(request: CommandRequest, config: Config, out: Output, options: ApplyOptions) -> Specs | None:
    """The policies that a saved plan must agree with; ``None`` if the user applies it without policies."""
    if options.without_policies:
        out.note(
            "warning: without policies, the plan file alone decides which tables change, to which values, with which "
            "consent and calendar rules: make sure that only trusted users can write it"
        )
        return None
    return policies_of_plan(request.paths, config, ".", request.variables)


def _plan(specs: Specs, request: CommandRequest, config: Config, engines: Engines, out: Output) -> Plan:
    selection = Selection(request.select, request.tags, request.excluded)
    with out.progress() as on_read:
        stores, env = store_options(config), config.environment
        dialect, severities = config.engine.dialect, config.severities
        plan = make_plan(specs, selection, dialect, engines.start, stores, on_read, env, severities)
    warn_unmatched(specs, plan.unmatched, out)
    return plan


def warn_unmatched(specs: Specs, unmatched: Sequence[str], out: Output) -> None:
    """Warn about each pattern that matches no table, with its place."""
    texts = frozenset(unmatched)
    for each in specs.declarations.patterns:
        if each.target.text in texts:
            out.note(f"warning: {each.source.file}:{each.source.line}: {each.target.text} matches no table")


def mask_of(config: Config) -> Mask:
    """The mask for the values that reports must not show."""
    return Mask(config.reports.mask)


def _context(
    plan: Plan, request: CommandRequest, config: Config, out: Output, reports: ReportFiles, saved: Path | None
) -> Context:
    """The context of the reports, as far as any of them needs it."""
    if not reports.names_lines:
        return Context()
    return replace(context_here(saved), sources=_sources(plan, request, config, out))


def context_here(saved: Path | None = None) -> Context:
    """The directory and CI run of this command, for reports."""
    context = Context(
        root=below_root(Path().absolute()),
        plan_file=str(saved or ""),
        ci=current_owner(os.environ, __version__).ci,
    )
    return with_origin(context, os.environ, Path().absolute())


def _sources(plan: Plan, request: CommandRequest, config: Config, out: Output) -> Sources:
    """The current lines of the policies. If they cannot be determined, reports are written without them."""
    names = [*(each.name for each in plan.tables), *(each.name for each in plan.failures)]
    try:
        specs = _policies(request, config)
    except TablectlError as error:
        out.note(f"the lines of the policies are not known: {error.message}")
        return {}
    if specs.digest != plan.policies:
        out.note("the policies have changed since the plan was made: lines are those of now")
    return policy_lines_of(specs, names)
