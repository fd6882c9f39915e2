"""``tablectl init``: create a repository."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from tablectl.api import Engines
from tablectl.cli.commands import configuration
from tablectl.cli.output import Output, write_file
from tablectl.cli.request import CommandRequest
from tablectl.cli.scaffold import POLICIES, scaffold
from tablectl.model.errors import ExitCode, InputError, Problem, TablectlError
from tablectl.policies.files import shown_path
from tablectl.policies.repository import variables_for
from tablectl.policies.requested_tables import requested_tables
from tablectl.reports.formats import ReportFormat
from tablectl.workflow import import_policies


def init_command(
    directory: Path, tables: tuple[str, ...], request: CommandRequest, out: Output, form: ReportFormat
) -> ExitCode:
    """Create a working repository in a directory without one. Writes either all of its files or none."""
    _check_free(directory, scaffold())
    files = scaffold(_first_policies(tables, request, out) if tables else "")
    for name, text in files.items():
        write_file(directory / name, text.encode())
    following = _following(directory, imported=bool(tables))
    if form is ReportFormat.JSON:
        out.result(json.dumps({"created": list(files), "next": following}, indent=2) + "\n")
    else:
        created = "".join(f"created {shown_path(directory / name)}\n" for name in files)
        out.result(f"{created}\nNext:\n" + "".join(f"  {line}\n" for line in following))
    return ExitCode.DONE


def _check_free(directory: Path, files: Mapping[str, str]) -> None:
    """Raise ``InputError`` with every file that already exists."""
    if directory.exists() and not directory.is_dir():
        raise InputError((Problem(shown_path(directory), 0, 0, "this is not a folder"),))
    taken = [name for name in files if os.path.lexists(directory / name)]
    if taken:
        hint = "init overwrites nothing: move these files away, or edit them by hand"
        problems = [Problem(shown_path(directory / name), 0, 0, "the file exists already") for name in taken]
        problems[-1] = Problem(problems[-1].file, 0, 0, problems[-1].message, hint)
        raise InputError(tuple(problems))


def _first_policies(tables: tuple[str, ...], request: CommandRequest, out: Output) -> str:
    """The policies of live tables. Raises ``TablectlError`` if one of them cannot be read."""
    config = configuration(request)
    asked = requested_tables(tables, config.engine.catalog, variables_for(config, request.variables, os.environ))
    with Engines(config, on_start=out.note) as engines, out.progress() as on_read:
        found = import_policies(asked, {}, config, engines.start, on_read)
    wrong = [Problem(each.name, 0, 0, each.message, each.hint) for each in found.failures]
    wrong += [Problem(pattern, 0, 0, "matches no table") for pattern in found.unmatched]
    if wrong:
        raise InputError(tuple(wrong))
    if not found.text:
        raise TablectlError("there is no table to import")
    return found.text


def _following(directory: Path, *, imported: bool) -> list[str]:
    """The commands to run next."""
    here = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    first = [] if imported else [f"tablectl import TABLES… --output {POLICIES} --force", "tablectl validate"]
    return [*here, *first, "tablectl plan", "git init && git add --all && pre-commit install"]
