"""``tablectl init``: create a repository."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tablectl.cli.lock import lock_files, recorded_source, wheel_hashes
from tablectl.cli.output import Output, write_file
from tablectl.cli.request import CommandRequest
from tablectl.cli.scaffold import CI_FILES, KEPT, POLICIES, scaffold
from tablectl.model.errors import ExitCode, InputError, Problem, TablectlError
from tablectl.model.install import CiSystem, InstallSource
from tablectl.policies.find_files import shown_path
from tablectl.policies.requested_tables import requested_tables
from tablectl.reports.formats import ReportFormat
from tablectl.workflow import import_policies


@dataclass(frozen=True, slots=True)
class InitOptions:
    """What a new repository has besides policies."""

    ci: CiSystem = CiSystem.GITHUB
    source: InstallSource | None = None
    """Where CI installs tablectl from; ``None`` for where this tablectl was installed from."""


def init_command(
    directory: Path,
    tables: tuple[str, ...],
    request: CommandRequest,
    out: Output,
    form: ReportFormat,
    options: InitOptions,
) -> ExitCode:
    """Create a working repository in a directory without one. Writes either all of its files or none."""
    source, hashes = _source_of(options, directory)
    _check_free(directory, _files("", options.ci, source, hashes))
    files = _files(_first_policies(tables, request, out) if tables else "", options.ci, source, hashes)
    kept = [name for name in KEPT if os.path.lexists(directory / name)]
    written = [name for name in files if name not in kept]
    for name in written:
        write_file(directory / name, files[name].encode())
    following = _following(directory, imported=bool(tables))
    notes = [_addition(name, files[name]) for name in kept]
    if source is None and options.ci is not CiSystem.NONE:
        notes.append(_NO_CI)
    if form is ReportFormat.JSON:
        out.json_result({"created": written, "kept": kept, "next": following})
    else:
        created = "".join(f"created {shown_path(directory / name)}\n" for name in written)
        told = "".join(f"\n{note}" for note in notes)
        out.result(f"{created}{told}\nNext:\n" + "".join(f"  {line}\n" for line in following))
    return ExitCode.DONE


_NO_CI = """No CI workflow: this tablectl was installed from a place that other machines do not have. Say where CI
finds it:
  install: {source: git+https://HOST/PATH@COMMIT}     # in tablectl.yaml; or a folder with the two wheels
  tablectl lock --ci github                           # writes the workflow and its lock files (docs/install.md)
"""


def _source_of(options: InitOptions, directory: Path) -> tuple[InstallSource | None, Mapping[str, str]]:
    """Where CI installs tablectl from, and the hashes of its wheels."""
    source, hashes = options.source, dict[str, str]()
    recorded = recorded_source()
    if recorded is not None and source in {None, recorded[0]}:
        source, known = recorded
        hashes = {name: value for name, value in known.items() if value}
    return source, {} if source is None else wheel_hashes(source, hashes, directory)


def _files(policies: str, ci: CiSystem, source: InstallSource | None, hashes: Mapping[str, str]) -> Mapping[str, str]:
    files = scaffold(policies, source, hashes)
    if source is None or ci is CiSystem.NONE:
        return files
    return {**files, **CI_FILES[ci], **lock_files(source, hashes)}


def _addition(name: str, text: str) -> str:
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    return f"{name} exists and is kept. Add to it:\n{lines}"


def _check_free(directory: Path, files: Mapping[str, str]) -> None:
    """Raise ``InputError`` with every file that already exists, but for those that are kept."""
    if directory.exists() and not directory.is_dir():
        raise InputError((Problem(shown_path(directory), 0, 0, "this is not a folder"),))
    taken = [name for name in files if name not in KEPT and os.path.lexists(directory / name)]
    if taken:
        hint = "init overwrites nothing: move these files away, or edit them by hand"
        problems = [Problem(shown_path(directory / name), 0, 0, "the file exists already") for name in taken]
        problems[-1] = Problem(problems[-1].file, 0, 0, problems[-1].message, hint)
        raise InputError(tuple(problems))


def _first_policies(tables: tuple[str, ...], request: CommandRequest, out: Output) -> str:
    """The policies of live tables. Raises ``TablectlError`` if one of them cannot be read."""
    with request.open(out) as project, out.progress() as on_read:
        found = import_policies(project, requested_tables(tables, project.catalog, project.variables), {}, on_read)
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
    start = "" if _is_in_git(directory) else "git init && "
    return [*here, *first, "tablectl plan", f"{start}git add --all && pre-commit install"]


def _is_in_git(directory: Path) -> bool:
    root = directory.absolute()
    return any((each / ".git").exists() for each in (root, *root.parents))
