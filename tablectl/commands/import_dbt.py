"""``tablectl import --from-dbt``: write policies from the settings of a dbt project, and say what to remove there."""

from __future__ import annotations

from pathlib import Path

from tablectl.commands.import_tables import check_output
from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest, ImportOptions
from tablectl.delta.names import NameSyntaxError
from tablectl.model.errors import ExitCode, TablectlError, UsageError
from tablectl.planning.dbt import dbt_entry
from tablectl.policies.dbt_manifest import DbtTable, read_manifest
from tablectl.policies.yaml_text import TableEntry, write_policies
from tablectl.reports.formats import ReportFormat
from tablectl.reports.style import plural
from tablectl.support.written_files import write_file


def import_dbt_command(
    request: CommandRequest, out: Output, form: ReportFormat, options: ImportOptions, manifest: Path
) -> ExitCode:
    """Write policies to standard output or a file, and the lines to remove from dbt to standard error. Reads no table.

    Raises ``UsageError`` for a file that is not a manifest.
    """
    if options.tables or options.everything:
        raise UsageError("--from-dbt goes without tables and --all", "it writes every table of the manifest")
    check_output(options)
    with request.open(out) as project:
        tables = read_manifest(manifest, project.catalog)
        entries, unnamed = _entries(tables, project.catalog, project.dialect)
    for problem in unnamed:
        out.error(TablectlError(problem))
    if not entries:
        out.note("the manifest sets nothing on a Delta table that a policy can declare")
    text = write_policies([entry for entry, _ in entries]) if entries else ""
    if form is ReportFormat.JSON:
        lines = [{"model": table.model, "file": table.file, "lines": list(table.lines)} for _, table in entries]
        out.json_result({"policies": text, "tables": [entry.key for entry, _ in entries], "remove": lines})
    elif options.output is None:
        out.result(text)
    if options.output is not None and text:
        write_file(options.output, text.encode())
        out.note(f"wrote {plural(len(entries), 'table')} to {options.output}; look at `tablectl plan` before you apply")
    for _, table in entries:
        out.note(f"remove from {table.file} ({table.model}):")
        for line in table.lines:
            out.note(f"  {line}")
    return ExitCode.ERROR if unnamed else ExitCode.DONE


def _entries(
    tables: tuple[DbtTable, ...], catalog: str, dialect: str
) -> tuple[list[tuple[TableEntry, DbtTable]], list[str]]:
    """The entries, one for each table, and why others have none."""
    entries: dict[str, tuple[TableEntry, DbtTable]] = {}
    unnamed: list[str] = []
    for table in tables:
        try:
            entry = dbt_entry(table, catalog, dialect)
        except NameSyntaxError as error:
            unnamed.append(f"{table.model}: {error}")
            continue
        if entry.key in entries:
            other = entries[entry.key][1].model
            unnamed.append(f"{table.model}: {other} makes the same table, {table.name.text}")
        elif entry.declared:
            entries[entry.key] = entry, table
    return list(entries.values()), unnamed
