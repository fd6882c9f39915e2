"""``tablectl runs`` and ``tablectl undo``: earlier applies, and the way back from one."""

from __future__ import annotations

import shlex
from dataclasses import replace
from datetime import timedelta

from tablectl.commands.adoption import agreed, write_adoption
from tablectl.commands.output import Output
from tablectl.commands.plan_reports import selection_of
from tablectl.commands.request import CommandRequest, RunsOptions, UndoOptions
from tablectl.leases.clock import SystemClock
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.patterns import escape_glob
from tablectl.planning.plan_file import dump_plan
from tablectl.planning.undo import RunUndo
from tablectl.policies.adopt import Adopter, Adoption
from tablectl.policies.repository import Repository
from tablectl.policies.spec import Specs
from tablectl.project import Project
from tablectl.reports.context import Context
from tablectl.reports.document import Document
from tablectl.reports.document_text import document_text
from tablectl.reports.documents import document_of_plan
from tablectl.reports.formats import ReportFormat
from tablectl.reports.render import render
from tablectl.reports.runs_document import document_of_adoption, document_of_runs, document_of_undo
from tablectl.run_history import find_runs, find_undo
from tablectl.selection import Selection
from tablectl.support.written_files import write_file
from tablectl.workflow.plan import make_plan


def runs_command(request: CommandRequest, out: Output, form: ReportFormat, options: RunsOptions) -> ExitCode:
    """List the runs in the tables' logs. Returns 1 if a table cannot be read."""
    within = timedelta(days=options.days) if options.days else None
    with request.open(out) as project:
        specs = project.policies(request.paths)
        found = find_runs(project, specs, selection_of(request), options.look_back, within)
        out.document(document_of_runs(found, project.mask), form, verbose=options.verbose)
    return ExitCode.ERROR if found.failures else ExitCode.DONE


def undo_command(request: CommandRequest, out: Output, form: ReportFormat, options: UndoOptions) -> ExitCode:
    """Show what undoes a run and how the policies change; with ``write``, write the policies and plan them.

    Returns 3 if a table is refused, 1 if one cannot be read, otherwise 0.
    """
    with request.open(out) as project:
        repository, specs = project.repository(request.paths)
        found = _find(project, specs, request, options)
        mask = project.mask
        out.document(document_of_undo(found, mask), form)
        for failure in found.failures:
            out.note(f"warning: {failure.name} cannot be read: {failure.message}")
        adoption = _adoption(project, repository, found)
        if not adoption.texts and not adoption.left and not any(table.adoptable_values for table in found.tables):
            out.note("there is nothing to undo")
            return _code(found)

        def secret(text: str) -> str:
            return mask.text(text, specs.declarations)

        report = ReportFormat.JSON if form is ReportFormat.JSON else ReportFormat.TEXT
        if not options.write:
            _show(document_of_adoption(adoption, repository.texts(), secret), out, form)
            out.note("to write these policies and plan the undo, add --write")
        elif agreed(adoption, repository, secret, out, report, yes=options.yes) or not adoption.texts:
            write_adoption(repository, adoption, out)
            edited = repository.read({**repository.texts(), **adoption.texts})
            _plan(project, edited, found, out, options, form)
        return _code(found)


def _find(project: Project, specs: Specs, request: CommandRequest, options: UndoOptions) -> RunUndo:
    try:
        found = find_undo(project, specs, selection_of(request), options.run, options.look_back)
    except LookupError as error:
        raise UsageError(f"several runs begin with {options.run}: {error}", "give the whole id") from None
    if found is None:
        raise UsageError(
            f"the run {options.run} made no commit on the selected tables",
            "`tablectl runs` lists the runs; --look-back searches more commits",
        )
    return found


def _adoption(project: Project, repository: Repository, found: RunUndo) -> Adoption:
    """The policies that declare the values from before the run. Masked values are left to the user."""
    adoptable_values = [wish for table in found.tables for wish in table.adoptable_values]
    hidden = [wish for wish in adoptable_values if project.mask.hides_wish(wish)]
    adopter = Adopter(project.dialect, project.catalog, project.variables, repository.read)
    adoption = adopter.adopt(repository.texts(), [wish for wish in adoptable_values if wish not in hidden])
    return replace(adoption, left=(*adoption.left, *project.mask.left(hidden)))


def _show(document: Document, out: Output, form: ReportFormat) -> None:
    if form is ReportFormat.JSON:
        out.note(document_text(document, out.style))
    elif document.tail:
        out.document(document, ReportFormat.TEXT)


def _plan(
    project: Project, edited: Specs, found: RunUndo, out: Output, options: UndoOptions, form: ReportFormat
) -> None:
    """The plan of the edited policies for the tables of the run, shown, and saved with ``--out``."""
    names = tuple(escape_glob(table.spec.name.text) for table in found.tables if table.adoptable_values)
    plan = make_plan(project, edited, Selection(names))
    if options.save:
        write_file(options.save, dump_plan(plan), private=project.mask.plan(plan) != plan)
    if form is not ReportFormat.JSON:
        context = Context(now=SystemClock().utc())
        document = document_of_plan(plan, project.mask, context)
        out.result("\n" + render(document, ReportFormat.TEXT, out.style, context))
    if options.save:
        out.note(
            f"saved to {options.save}; commit the policies, then run `tablectl apply {shlex.quote(str(options.save))}`"
        )


def _code(found: RunUndo) -> ExitCode:
    codes = [ExitCode.ERROR] if found.failures else []
    return ExitCode.worst(*codes, *(ExitCode.REFUSED for table in found.tables if table.refusals or table.trouble))
