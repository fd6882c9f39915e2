"""``tablectl advise``: what to declare, from the logs of tables."""

from __future__ import annotations

from pathlib import Path

from tablectl.commands.output import Output
from tablectl.commands.plan_reports import selection_of
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.report_origin import context_here
from tablectl.commands.request import CommandRequest
from tablectl.commands.table_reports import report_of
from tablectl.frozen import frozen
from tablectl.insight.advice.advice_document import document_of_advice
from tablectl.insight.advice.lake_advice import AdviceDepth, collect_advice, policies_text
from tablectl.model.errors import ExitCode, UsageError
from tablectl.support.written_files import check_writable, write_file


@frozen
class AdviseCommandOptions:
    """The options of ``advise``."""

    tables: tuple[str, ...]
    """Further tables and patterns, which need no policy."""
    everything: bool
    days: int
    list_files: bool
    write: Path | None
    """The policy file to write."""


def advise_command(request: CommandRequest, out: Output, reports: ReportFiles, asked: AdviseCommandOptions) -> ExitCode:
    """Returns the exit code: 1 if a table cannot be read, otherwise 0."""
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        if asked.write:
            if asked.write.exists():
                raise UsageError(f"{asked.write} exists", "name a new file, and move what you want into your policies")
            check_writable(asked.write)
        others = project.requested(asked.tables, everything=asked.everything)
        policies = project.any_policies(request.paths)
        if others is None and not policies.tables and not policies.patterns:
            raise UsageError(
                "no tables are named, and no policy names any",
                "name tables or patterns, such as `tablectl advise 'lake.sales.*'`; `--all` takes the whole catalog",
            )
        depth = AdviceDepth(days=asked.days, list_files=asked.list_files)
        found = collect_advice(project, policies, others, selection_of(request), depth, on_read)
        text = policies_text(project, found)
    reports.write(report_of(found, document_of_advice, context_here()), out)
    if asked.write and any(each.yaml for each in found.tables):
        write_file(asked.write, text.encode())
        out.note(f"wrote {asked.write}: review it, then run `tablectl plan`")
    elif asked.write:
        out.note("there is nothing to declare: no file was written")
    return found.exit_code
