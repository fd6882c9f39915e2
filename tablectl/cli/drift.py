"""``tablectl drift``, and ``--adopt``, which copies the tables' values into the policies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from tablectl.cli.output import Output, write_file
from tablectl.cli.plan_reports import context_here, selection_of, warn_unmatched
from tablectl.cli.report_files import ReportFiles
from tablectl.cli.request import CommandRequest, DriftOptions
from tablectl.model.errors import ExitCode, TablectlError, UsageError
from tablectl.planning.drift import wishes
from tablectl.policies.adopt import Adopter, Adoption
from tablectl.policies.repository import Repository
from tablectl.reports.drift_json import AdoptionFact, adoption_fact
from tablectl.reports.drift_text import adoption_text
from tablectl.reports.formats import ReportFormat
from tablectl.reports.render import render_drift
from tablectl.reports.style import Style, plural
from tablectl.workflow import find_drift


def drift_command(request: CommandRequest, out: Output, reports: ReportFiles, options: DriftOptions) -> ExitCode:
    """Show the differences from the policies and since when they exist; with ``--adopt``, write the tables' values to
    policies.
    """
    with request.open(out) as project, out.progress() as on_read:
        reports.check()
        repository, specs = project.repository(request.paths)
        found = find_drift(project, specs, selection_of(request), options.look_back, on_read)
    warn_unmatched(specs, found.unmatched, out)
    mask = project.mask
    shown = mask.drift(found)

    def render(form: ReportFormat, style: Style, adopted: AdoptionFact | None = None) -> str:
        return render_drift(shown, form, style, context_here(), adopted, verbose=request.verbose)

    if not options.adopt:
        reports.write(render, out)
        return found.exit_code
    adopter = Adopter(project.dialect, project.catalog, project.variables, repository.read)
    asked = wishes(found)
    adoption = adopter.adopt(repository.texts(), [each for each in asked if not mask.hides_wish(each)])
    hidden = tuple(
        (mask.wish(each), "reports.mask hides its value: write it yourself") for each in asked if mask.hides_wish(each)
    )
    adoption = replace(adoption, left=(*adoption.left, *hidden))
    if reports.form is ReportFormat.TEXT:
        out.result(render(ReportFormat.TEXT, out.style))

    def secret(text: str) -> str:
        return mask.text(text, specs.declarations)

    written = bool(found.tables) and _agreed(adoption, repository, secret, out, reports.form, yes=options.yes)
    if written:
        _write(repository, adoption, out)
    render = partial(render, adopted=adoption_fact(adoption, written=written))
    (reports.keep if reports.form is ReportFormat.TEXT else reports.write)(render, out)
    if not written or adoption.left:
        return found.exit_code
    return ExitCode.ERROR if found.exit_code is ExitCode.ERROR else ExitCode.DONE


def _agreed(
    adoption: Adoption,
    repository: Repository,
    secret: Callable[[str], str],
    out: Output,
    form: ReportFormat,
    *,
    yes: bool,
) -> bool:
    """Whether to write the files, asked after showing the changes."""
    before = repository.texts()
    if form is ReportFormat.TEXT:
        out.result("\n" + secret(adoption_text(adoption, before, out.style)))
    else:
        out.note(secret(adoption_text(adoption, before, Style())))
    if yes or not adoption.texts:
        return bool(adoption.texts)
    if not out.interactive:
        raise UsageError("cannot ask for confirmation: standard input is not a terminal", "add --yes")
    agreed = out.ask(f"Write {plural(len(adoption.texts), 'file')}?")
    if not agreed:
        out.note("nothing was written")
    return agreed


def _write(repository: Repository, adoption: Adoption, out: Output) -> None:
    """Write every file, unless one of them was changed meanwhile."""
    data = repository.bytes_of(adoption.texts)
    for path in data:
        if _now(path) != repository.files[path]:
            hint = "nothing was written: review the change and run the same command again"
            raise TablectlError(f"{path}: the file has changed since it was read", hint)
    for path, content in data.items():
        write_file(path.resolve(), content)
        out.note(f"wrote {path}")


def _now(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None
