"""Changes that a command proposes for policy files: shown, confirmed and written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.commands.user_files import write_file
from tablectl.documents.style import Style, plural
from tablectl.model.errors import TablectlError, UsageError
from tablectl.policies.declared_tables import Specs
from tablectl.policies.repository import Repository
from tablectl.policies.write_live_values import AdoptableValue, Adopter, Adoption
from tablectl.reports.document_text import document_text
from tablectl.reports.render import ReportFormat
from tablectl.reports.runs_document import document_of_adoption


def adoption_of(project: Project, repository: Repository, values: Sequence[AdoptableValue]) -> Adoption:
    """The changes with which the policies declare some values. Masked values are left to the user."""
    adopter = Adopter(project.dialect, project.catalog, project.variables, repository.read)
    known = [each for each in values if not project.mask.withholds(each.attribute, each.key, each.value)]
    adoption = adopter.adopt(repository.texts(), known)
    return replace(adoption, left=(*adoption.left, *project.mask.left(values)))


def hidden_in(project: Project, specs: Specs) -> Callable[[str], str]:
    """What makes of a text of the policies one without the values that reports hide."""
    return lambda text: project.mask.text(text, specs.declarations)


def write_adoption(
    adoption: Adoption,
    repository: Repository,
    secret: Callable[[str], str],
    out: Output,
    form: ReportFormat,
    *,
    yes: bool,
) -> bool:
    """Shows the changes, asks whether to write the files, and writes them. Returns whether they were written."""
    before = repository.texts()
    document = document_of_adoption(adoption, before, secret)
    if form is ReportFormat.TEXT:
        out.result("\n" + document_text(document, out.style))
    else:
        out.note(document_text(document, Style()))
    if not adoption.texts:
        return False
    if not yes and not out.interactive:
        raise UsageError("cannot ask for confirmation: standard input is not a terminal", "add --yes")
    if not yes and not out.ask(f"Write {plural(len(adoption.texts), 'file')}?"):
        out.note("nothing was written")
        return False
    _write(repository, adoption, out)
    return True


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
