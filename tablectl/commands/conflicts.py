"""``tablectl conflicts``: which concurrent operations on a table conflict."""

from __future__ import annotations

import logging
from dataclasses import replace

from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest, ConflictOptions, client
from tablectl.insight.matrix.conflict_report import read_conflicts
from tablectl.insight.matrix.conflicts_document import document_of_conflicts
from tablectl.insight.matrix.context import Assumption
from tablectl.insight.matrix.operations import OPERATIONS
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.table_options import NO_OPTIONS
from tablectl.policies.suggestions import nearest
from tablectl.reports.formats import ReportFormat


def conflicts_command(
    table: str, request: CommandRequest, out: Output, form: ReportFormat, options: ConflictOptions
) -> ExitCode:
    """The matrix of operations on a table, or with ``--between`` two statements. Returns the exit code."""
    if options.between:
        return _between_command(table, request, out, form, options)
    about = _operation(options.operation)
    assumption = Assumption(tuple(client(each) for each in options.clients), options.auto_compact)
    with request.open(out) as project:
        found = read_conflicts(project, *project.find(table, request.paths), assumption)
    found = replace(found, changes=tuple(map(project.mask.change, found.changes)))
    out.document(document_of_conflicts(found, everything=options.everything, about=about), form)
    return ExitCode.REFUSED if found.refused else ExitCode.DONE


def _between_command(
    table: str, request: CommandRequest, out: Output, form: ReportFormat, options: ConflictOptions
) -> ExitCode:
    # These load sqlglot, which takes longer than the rest of a short command.
    from tablectl.insight.statements.compare import compare_statements  # noqa: PLC0415
    from tablectl.insight.statements.pair_document import document_of_pair  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that are refused anyway
    if options.operation or options.everything:
        raise UsageError("--between cannot be combined with --operation or --all", "leave them out")
    assumption = Assumption(tuple(client(each) for each in options.clients), options.auto_compact)
    assert options.between is not None
    with request.open(out) as project:
        name, spec = project.find(table, request.paths)
        live = project.read(name, spec)
    declared = spec.options if spec else NO_OPTIONS
    found = compare_statements(live, *options.between, project.dialect, assumption, declared)
    out.document(document_of_pair(found), form)
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
