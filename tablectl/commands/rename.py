"""``tablectl rename``: give the policy of a table that moved its new name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tablectl.commands.adoption import hidden_in, write_adoption
from tablectl.commands.command import command
from tablectl.commands.options import Place, policy_paths
from tablectl.commands.output import Output
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.adopt import Adoption
from tablectl.policies.config_file import FILE
from tablectl.policies.effective_policy import parse_name
from tablectl.policies.fields import Text, flag
from tablectl.policies.rename import Renamer
from tablectl.policies.repository import Paths, read_bytes
from tablectl.policies.settings import REQUIRED, setting
from tablectl.reports.render import ReportFormat


@dataclass(frozen=True, kw_only=True)
class RenameOptions(Place):
    """The options of ``rename``."""

    old: str = setting(REQUIRED, Text(description="The table's old name."), metavar="OLD")
    new: str = setting(REQUIRED, Text(description="Its new name."), metavar="NEW")
    paths: Paths = policy_paths()
    yes: bool = setting(False, flag("Write without asking for confirmation."), "--yes", "-y")


@command(RenameOptions, without=("cache", "remote"))
def rename_command(options: RenameOptions, out: Output) -> ExitCode:
    """Give the policy of a table that moved its new name. Keeps comments and layout, and changes no table.

    Example: tablectl rename lake.sales.orders lake.shop.orders
    """
    project = options.open(out.note)
    repository, specs = project.repository(options.paths)
    old, new = project.named(options.old, options.paths), parse_name(options.new, project.catalog, project.dialect)
    if old.key == new.key:
        raise UsageError(f"both names are {old.text}", "give the old name and the new one")
    renamer = Renamer(project.catalog, project.variables, repository.read)
    renamed = renamer.rename(repository.texts(), _others(), old, new)
    adoption, secret = Adoption(renamed.texts, (), ()), hidden_in(project, specs)
    written = write_adoption(adoption, repository, secret, out, ReportFormat.TEXT, yes=options.yes)
    for note in renamed.notes:
        out.note(secret(note))
    return ExitCode.DONE if written else ExitCode.ERROR


def _others() -> dict[str, str]:
    data = read_bytes(Path(FILE), [], missing=b"")
    return {FILE: data.decode(errors="replace")} if data else {}
