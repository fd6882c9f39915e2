"""``tablectl import``: write policies from live tables."""

from __future__ import annotations

from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest, ImportOptions
from tablectl.model.errors import ExitCode, TablectlError, UsageError
from tablectl.policies.find_files import shown_path
from tablectl.policies.repository import declared_already, requested_tables, whole_catalog
from tablectl.reports.formats import ReportFormat
from tablectl.reports.style import plural
from tablectl.support.written_files import check_writable, write_file
from tablectl.workflow.import_tables import Imported, import_policies


def import_command(request: CommandRequest, out: Output, form: ReportFormat, options: ImportOptions) -> ExitCode:
    """Write policies from live tables to standard output or to a file."""
    project = request.open(out)
    asked = requested_tables(_asked(options, project.catalog), project.catalog, project.variables)
    check_output(options)
    besides = shown_path(options.output) if options.output else ""
    known = declared_already(project.any_policies(), besides)
    with project, out.progress() as on_read:
        found = import_policies(project, asked, known, on_read)
    _tell(found, out)
    if form is ReportFormat.JSON:
        out.json_result(_json(found))
    if options.output is not None and found.text:
        write_file(options.output, found.text.encode())
        out.note(
            f"wrote {plural(len(found.tables), 'table')} to {options.output}; `tablectl plan` changes none of them"
        )
    elif form is ReportFormat.TEXT:
        out.result(found.text)
    return found.exit_code


def check_output(options: ImportOptions) -> None:
    """Raise ``TablectlError`` if the output file exists and may not be overwritten, or cannot be written."""
    if options.output is not None and options.output.exists() and not options.force:
        hint = "name another file, or write over it with --force"
        raise TablectlError(f"{options.output}: the file exists, and import does not overwrite it", hint)
    if options.output is not None:
        check_writable(options.output)


def _asked(options: ImportOptions, catalog: str) -> tuple[str, ...]:
    if bool(options.tables) is options.everything:
        hint = "for example tablectl import lake.sales.orders 'delta.`/lake/*`', or --all for a whole catalog"
        raise UsageError("--all goes without tables" if options.tables else "no table is named", hint)
    return options.tables or (whole_catalog(catalog),)


def _tell(found: Imported, out: Output) -> None:
    """Report what the file does not contain, and why."""
    for name, source in found.skipped:
        out.note(f"{name} is declared at {source.file}:{source.line} already: left out")
    for other in found.others:
        out.note(f"{other}: left out")
    for failure in found.failures:
        out.error(TablectlError(f"{failure.name}: {failure.message}", failure.hint))


def _json(found: Imported) -> dict[str, object]:
    return {
        "policies": found.text,
        "tables": list(found.tables),
        "left_out": {name: list(what) for name, what in found.left_out.items()},
        "skipped": [{"table": name, "file": at.file, "line": at.line} for name, at in found.skipped],
        "failures": [{"name": each.name, "message": each.message, "hint": each.hint} for each in found.failures],
        "not_delta": list(found.others),
    }
