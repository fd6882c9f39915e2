"""``tablectl rename``: give the policy of a table that moved its new name."""

from __future__ import annotations

from pathlib import Path

from tablectl.commands.adoption import agreed, write_adoption
from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.adopt import Adoption
from tablectl.policies.config_file import FILE
from tablectl.policies.effective_policy import parse_name
from tablectl.policies.find_files import read_bytes
from tablectl.policies.rename import Renamer
from tablectl.reports.formats import ReportFormat


def rename_command(names: tuple[str, str], request: CommandRequest, out: Output, *, yes: bool) -> ExitCode:
    """Show the change, ask, write it, and list what still names the old table."""
    project = request.open(out)
    repository, specs = project.repository(request.paths)
    old, new = (parse_name(each, project.catalog, project.dialect) for each in names)
    if old.key == new.key:
        raise UsageError(f"both names are {old.text}", "give the old name and the new one")
    renamer = Renamer(project.catalog, project.variables, repository.read)
    renamed = renamer.rename(repository.texts(), _others(), old, new)
    adoption = Adoption(renamed.texts, (), ())

    def secret(text: str) -> str:
        return project.mask.text(text, specs.declarations)

    written = agreed(adoption, repository, secret, out, ReportFormat.TEXT, yes=yes)
    if written:
        write_adoption(repository, adoption, out)
    for note in renamed.notes:
        out.note(secret(note))
    return ExitCode.DONE if written else ExitCode.ERROR


def _others() -> dict[str, str]:
    data = read_bytes(Path(FILE), [], missing=b"")
    return {FILE: data.decode(errors="replace")} if data else {}
