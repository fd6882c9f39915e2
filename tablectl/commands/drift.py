"""``tablectl drift``, and ``--adopt``, which copies the tables' values into the policies."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial

from tablectl.commands.adoption import agreed, write_adoption
from tablectl.commands.notify import send_notification
from tablectl.commands.output import Output
from tablectl.commands.plan_reports import Started, selection_of
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.report_origin import context_here
from tablectl.commands.request import CommandRequest, DriftCommandOptions
from tablectl.commands.table_reports import report_of
from tablectl.model.errors import ExitCode
from tablectl.planning.drift import adoptable_values
from tablectl.policies.adopt import Adopter
from tablectl.reports.documents import document_of_drift
from tablectl.reports.formats import ReportFormat
from tablectl.reports.notification import drift_notification
from tablectl.workflow.drift import find_drift


def drift_command(request: CommandRequest, out: Output, reports: ReportFiles, options: DriftCommandOptions) -> ExitCode:
    """Show the differences from the policies and since when they exist; with ``--adopt``, write the tables' values to
    policies.
    """
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        repository, specs = project.repository(request.paths)
        started = Started()
        found = find_drift(project, specs, selection_of(request), options.look_back, on_read)
        context = started.timed(context_here())
    mask = project.mask
    make = partial(document_of_drift, mask=mask, context=context)
    shown = report_of(found, make, context, verbose=request.verbose)
    if not options.adopt:
        try:
            reports.write(shown, out)
        finally:
            send_notification(lambda: drift_notification(mask.drift(found)), project.config, context, out, os.environ)
        return found.exit_code
    adopter = Adopter(project.dialect, project.catalog, project.variables, repository.read)
    asked = adoptable_values(found)
    adoption = adopter.adopt(repository.texts(), [each for each in asked if not mask.hides_wish(each)])
    adoption = replace(adoption, left=(*adoption.left, *mask.left(asked)))
    if reports.form is ReportFormat.TEXT:
        out.result(shown(ReportFormat.TEXT, out.style))

    def secret(text: str) -> str:
        return mask.text(text, specs.declarations)

    written = bool(found.tables) and agreed(adoption, repository, secret, out, reports.form, yes=options.yes)
    if written:
        write_adoption(repository, adoption, out)
    found = replace(found, adoption=replace(adoption, written=written))
    shown = report_of(found, make, context, verbose=request.verbose)
    (reports.keep if reports.form is ReportFormat.TEXT else reports.write)(shown, out)
    if not written or adoption.left:
        return found.exit_code
    return ExitCode.ERROR if found.exit_code is ExitCode.ERROR else ExitCode.DONE
