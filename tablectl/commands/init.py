"""``tablectl init``: create a repository."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from tablectl.commands.catalog_choice import CatalogChoice, CatalogKind, with_catalog
from tablectl.commands.import_tables import import_policies
from tablectl.commands.lock import lock_files, recorded_source, wheel_hashes
from tablectl.commands.output import Output
from tablectl.commands.request import CommandRequest
from tablectl.commands.scaffold import CI_FILES, KEPT, POLICIES, scaffold
from tablectl.commands.written_files import write_file
from tablectl.model.errors import ExitCode, InputError, Problem, TablectlError
from tablectl.model.install import CiSystem, InstallSource
from tablectl.policies.find_files import shown_path
from tablectl.policies.repository import requested_tables
from tablectl.reports.formats import ReportFormat
from tablectl.support.frozen import frozen


@frozen
class InitOptions:
    """What a new repository has besides policies."""

    ci: CiSystem = CiSystem.GITHUB
    source: InstallSource | None = None
    """Where CI installs tablectl from; ``None`` for where this tablectl was installed from."""
    catalog: CatalogChoice | None = None
    """The catalog to connect; ``None`` for that of the ``tablectl.yaml`` in the current folder, if there is one."""


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
    files = _files("", options, source, hashes)
    _check_free(directory, files)
    if tables:
        config = files["tablectl.yaml"] if options.catalog else None
        files = _files(_first_policies(tables, request, out, config), options, source, hashes)
    kept = [name for name in KEPT if os.path.lexists(directory / name)]
    written = [name for name in files if name not in kept]
    for name in written:
        write_file(directory / name, files[name].encode(), root=directory)
    following = _following(directory, options.catalog, imported=bool(tables))
    notes = [_addition(name, files[name]) for name in kept]
    if source is None and options.ci is not CiSystem.NONE:
        notes.append(_NO_CI.format(ci=options.ci.value))
    if form is ReportFormat.JSON:
        out.json_result({"created": written, "kept": kept, "next": following})
    else:
        created = "".join(f"created {shown_path(directory / name)}\n" for name in written)
        told = "".join(f"\n{note}" for note in notes)
        out.result(f"{created}{told}\nNext:\n" + "".join(f"  {line}\n" for line in following))
    return ExitCode.DONE


_NO_CI = """No CI workflow: this tablectl was installed from a place that other machines
do not have. Say in tablectl.yaml where CI finds it, a commit of a repository or
a folder with the two wheels, and write the workflow (docs/install.md):
  install: {{source: git+https://HOST/PATH@COMMIT}}
  tablectl lock --ci {ci}
"""
_BY_PATH = shlex.quote("delta.`/data/lake/*`")
"""What to import without a catalog, as an example: tables by path."""


def _source_of(options: InitOptions, directory: Path) -> tuple[InstallSource | None, Mapping[str, str]]:
    """Where CI installs tablectl from, and the hashes of its wheels."""
    source, hashes = options.source, dict[str, str]()
    recorded = recorded_source()
    if recorded is not None and source in {None, recorded[0]}:
        source, known = recorded
        hashes = {name: value for name, value in known.items() if value}
    return source, {} if source is None else wheel_hashes(source, hashes, directory)


def _files(
    policies: str, options: InitOptions, source: InstallSource | None, hashes: Mapping[str, str]
) -> Mapping[str, str]:
    files = dict(scaffold(policies, source, hashes))
    if options.catalog:
        files["tablectl.yaml"] = with_catalog(files["tablectl.yaml"], options.catalog, os.environ)
    if source is None or options.ci is CiSystem.NONE:
        return files
    return {**files, **CI_FILES[options.ci], **lock_files(source, hashes)}


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


def _first_policies(tables: tuple[str, ...], request: CommandRequest, out: Output, config: str | None) -> str:
    """The policies of live tables, found as ``config`` says, which is not written yet, or the configuration in the
    current folder. Raises ``TablectlError`` if one of them cannot be read.
    """
    with TemporaryDirectory(prefix="tablectl-init-") as folder:
        if config is not None:
            Path(folder, "tablectl.yaml").write_text(config, encoding="utf-8")
        where = Path() if config is None else Path(folder)
        with request.open(out, directory=where) as project, out.progress() as on_read:
            asked = requested_tables(tables, project.catalog, project.variables)
            found = import_policies(project, asked, {}, on_read)
    for other in found.others:
        out.note(f"{other}: left out")
    wrong = [Problem(each.name, 0, 0, each.message, each.hint) for each in found.failures]
    if wrong:
        raise InputError(tuple(wrong))
    if not found.text:
        raise TablectlError("there is no table to import")
    return found.text


def _following(directory: Path, catalog: CatalogChoice | None, *, imported: bool) -> list[str]:
    """The commands to run next."""
    here = [] if directory.resolve() == Path.cwd() else [f"cd {shlex.quote(str(directory))}"]
    tables = "TABLES…" if catalog is None else _BY_PATH if catalog.kind is CatalogKind.NONE else "--all"
    first = [] if imported else [f"tablectl import {tables} --output {POLICIES} --force", "tablectl validate"]
    start = "" if _is_in_git(directory) else "git init && "
    return [*here, *first, "tablectl plan", f"{start}git add --all && pre-commit install"]


def _is_in_git(directory: Path) -> bool:
    root = directory.absolute()
    return any((each / ".git").exists() for each in (root, *root.parents))
