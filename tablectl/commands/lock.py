"""``tablectl lock``: the files from which CI installs tablectl, and the setting that they follow (docs/install.md)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import sha256
from importlib import metadata, resources
from pathlib import Path
from typing import Annotated
from urllib.parse import unquote

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import TextOrJson
from tablectl.commands.user_files import write_file
from tablectl.model.errors import ExitCode, InputError, Problem, TablectlError
from tablectl.model.install_source import (
    DISTRIBUTIONS,
    CiSystem,
    InstallSource,
    parse_hash,
    parse_source,
    requirements_text,
    wheel_name,
)
from tablectl.policies.read_config import FILE, load_config
from tablectl.policies.repository import shown_path
from tablectl.reports.render import ReportFormat
from tablectl.support.files import read_regular
from tablectl.support.git import GitError, find_checkout
from tablectl.support.json_text import read_json
from tablectl.version import __version__

FOLDER = "requirements"
_LOCKS = {"plan": "base", "apply": "spark"}
"""The locks by the job that needs them."""
_LARGEST_WHEEL = 1 << 26

HOW = "set it as `install: {source: …}` in tablectl.yaml, or by `tablectl init --source …` (docs/install.md)"


CI = Annotated[CiSystem, typer.Option("--ci", help="The CI system whose workflow to write.")]


def lock_command(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder. Default: the current one.", show_default=False)
    ] = Path(),
    *,
    ci: CI = CiSystem.NONE,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Write the files from which CI installs this version of tablectl, as `install:` in tablectl.yaml says.

    The lock files are written over, those of a CI system are not.

    Example: tablectl lock --ci github
    """
    out: Output = ctx.obj
    install = load_config(directory, os.environ).install
    if install.source is None:
        raise TablectlError("nothing says where CI installs tablectl from", HOW)
    files = dict(lock_files(install.source, wheel_hashes(install.source, install.hashes, directory)))
    for name, text in ci_files(ci).items():
        if os.path.lexists(directory / name):
            hint = "lock writes over no workflow: move it away, or edit it by hand"
            raise InputError((Problem(shown_path(directory / name), 0, 0, "the file exists already", hint),))
        files[name] = text
    for name, text in files.items():
        write_file(directory / name, text.encode(), root=directory)
    if form is ReportFormat.JSON:
        out.json_result({"written": list(files)})
    else:
        out.result("".join(f"wrote {shown_path(directory / name)}\n" for name in files))
    return ExitCode.DONE


def template(name: str) -> str:
    """The text of a file for a new repository."""
    return (resources.files("tablectl.commands") / "templates" / name).read_text(encoding="utf-8")


def ci_files(system: CiSystem) -> Mapping[str, str]:
    """The files of a CI system, by path in the repository."""
    match system:
        case CiSystem.GITHUB:
            return {".github/workflows/tablectl.yml": template("github_workflow.yml")}
        case CiSystem.GITLAB:
            return {".gitlab-ci.yml": template("gitlab_ci.yml")}
        case CiSystem.NONE:
            return {}


def lock_files(source: InstallSource, hashes: Mapping[str, str]) -> Mapping[str, str]:
    """Requirements files by path: the dependencies of each job with hashes, and the two distributions."""
    locks = {f"{FOLDER}/tablectl-{job}.lock": _lock(name) for job, name in _LOCKS.items()}
    return {**locks, f"{FOLDER}/tablectl.txt": requirements_text(source, __version__, hashes)}


def _lock(name: str) -> str:
    """A lock of this version: next to the package in an installation, at the root of a checkout."""
    package = Path(str(resources.files("tablectl")))
    installed = package / "_locks"
    folder = installed if installed.is_dir() else package.parent / "locks"
    return (folder / f"{name}.lock").read_text(encoding="utf-8")


def wheel_hashes(source: InstallSource, known: Mapping[str, str], directory: Path) -> Mapping[str, str]:
    """The hashes of the two wheels; none for a repository. Those of a folder are computed.

    Raises ``TablectlError`` if a wheel is missing, or the hashes of a URL are unknown.
    """
    if source.is_git:
        return {}
    if source.is_url:
        missing = [each for each in DISTRIBUTIONS if each not in known]
        if missing:
            hint = f"add `install: {{hashes: {{{missing[0]}: sha256:…}}}}` to {FILE}, as `make dist` prints them"
            raise TablectlError(f"the hash of {' and '.join(missing)} at {source.text} is unknown", hint)
        return known
    return {each: _hash_of(directory / source.text / wheel_name(each, __version__)) for each in DISTRIBUTIONS}


def _hash_of(wheel: Path) -> str:
    try:
        return f"sha256:{sha256(read_regular(wheel, _LARGEST_WHEEL)).hexdigest()}"
    except OSError as error:
        hint = f"put the two wheels of tablectl {__version__} there (`make dist` builds them)"
        raise TablectlError(f"{shown_path(wheel)} cannot be read: {error.strerror or error}", hint) from error


def recorded_source() -> tuple[InstallSource, Mapping[str, str]] | None:
    """Where this tablectl was installed from, and the hashes of its wheels, if other machines can reach that place.

    pip records it (https://packaging.python.org/en/latest/specifications/direct-url/). ``None`` for an index, for which
    nothing says who owns the name there. For a checkout it is the commit of the checkout.
    """
    found = [_origin(each) for each in DISTRIBUTIONS]
    if len({origin and origin[0] for origin in found}) != 1 or found[0] is None:
        return None
    return found[0][0], {name: origin[1] for name, origin in zip(DISTRIBUTIONS, found, strict=True) if origin}


def _origin(distribution: str) -> tuple[InstallSource, str] | None:
    try:
        text = metadata.distribution(distribution).read_text("direct_url.json")
        return None if text is None else next(_read_origin(read_json(text)), None)
    except (metadata.PackageNotFoundError, ValueError, TypeError, KeyError, AttributeError):
        return None  # a record that we do not understand says nothing


def _of_checkout(folder: Path) -> Iterator[tuple[InstallSource, str]]:
    """The remote and the commit of a checkout from which pip installed. Raises ``ValueError`` for a remote that other
    machines do not reach, and for one with credentials.
    """
    with suppress(GitError):
        checkout = find_checkout(folder)
        words = ("remote", "get-url", "origin"), ("rev-parse", "HEAD")
        remote, commit = (checkout.git(*each).decode().strip() for each in words)
        remote = re.sub(r"\Agit@([^:/]+):", r"ssh://git@\1/", remote)
        yield parse_source(f"git+{remote}@{commit}"), ""


def _read_origin(record: Mapping[str, object]) -> Iterator[tuple[InstallSource, str]]:
    """The source in a ``direct_url.json``. Raises what a record of another form causes."""
    url, vcs, archive = str(record["url"]), record.get("vcs_info"), record.get("archive_info")
    if isinstance(vcs, dict) and vcs["vcs"] == "git":
        yield parse_source(f"git+{url}@{vcs['commit_id']}"), ""
    elif isinstance(record.get("dir_info"), dict) and url.startswith("file://"):
        yield from _of_checkout(Path(unquote(url.removeprefix("file://"))))
    elif isinstance(archive, dict) and url.startswith("https://"):
        yield parse_source(url.rpartition("/")[0]), parse_hash(f"sha256:{archive['hashes']['sha256']}")
