"""Changes that a command proposes for policy files: shown, confirmed and written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tablectl.commands.files import write_file
from tablectl.commands.output import Output
from tablectl.documents.style import Style, plural
from tablectl.model.errors import TablectlError, UsageError
from tablectl.policies.adopt import Adoption
from tablectl.policies.repository import Repository
from tablectl.reports.document_text import document_text
from tablectl.reports.render import ReportFormat
from tablectl.reports.runs_document import document_of_adoption


def agreed(
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
    document = document_of_adoption(adoption, before, secret)
    if form is ReportFormat.TEXT:
        out.result("\n" + document_text(document, out.style))
    else:
        out.note(document_text(document, Style()))
    if yes or not adoption.texts:
        return bool(adoption.texts)
    if not out.interactive:
        raise UsageError("cannot ask for confirmation: standard input is not a terminal", "add --yes")
    agreed = out.ask(f"Write {plural(len(adoption.texts), 'file')}?")
    if not agreed:
        out.note("nothing was written")
    return agreed


def write_adoption(repository: Repository, adoption: Adoption, out: Output) -> None:
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
