"""Read the ``tablectl.yaml`` of the base branch of a pull request with Git, from the checkout."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from tablectl.applying.approval import policies_digest
from tablectl.commands.project import Project
from tablectl.model.errors import InputError, PlanFileError, UsageError
from tablectl.model.plan import Plan
from tablectl.policies.read_config import FILE, load_config
from tablectl.support.git import Config, GitError, find_checkout

_MOST = 1 << 20
_SHORT = 80
_HEADS = "refs/heads/"
_INSTALLED = "requirements"
"""The folder that says what a job installs, in the templates."""


def save_base(base: str, environ: Mapping[str, str], folder: Path) -> Path:
    """Saves ``tablectl.yaml`` for the current directory as it is in a commit, or in the newest one of
    ``refs/heads/BRANCH``; an empty file if the commit has none. Returns its path. The policies of the commit are saved
    next to it, if they can be: they say which variables are secret.

    A checkout of a single commit does not contain the base. Then that commit alone is fetched, with the job's token.
    Raises ``UsageError`` if the file cannot be read.
    """
    file, token = folder / FILE, _header(environ)
    try:
        checkout = find_checkout(Path())
        branch = base.removeprefix(_HEADS)
        commit = base if branch == base else checkout.newest(branch, token)
        checkout.fetch(commit, token)
        checkout.save(commit, (FILE,), folder, token)
    except GitError as error:
        raise UsageError(
            f"the base {base[:_SHORT]} is not in this checkout and cannot be fetched, so it is not known what the "
            f"branch may decide: Git {error}",
            "check out with `actions/checkout` before, and give this step INPUT_TOKEN: ${{ github.token }}",
        ) from error
    # A link could lead to any file of the commit, and a folder holds no settings.
    if file.is_symlink() or (file.exists() and not (file.is_file() and file.stat().st_size <= _MOST)):
        raise UsageError(f"{FILE} of the base {base[:_SHORT]} is not a file of a usual size", "make it one")
    file.touch()
    with suppress(InputError, UsageError, GitError):
        merged = load_config(folder, {}, "")
        paths = tuple(dict.fromkeys(each.policies for each in (merged, *merged.env.values())))
        checkout.save(commit, paths, folder, token)
    return file


def check_newest(plan: Plan, commit: str, branch: str, environ: Mapping[str, str], hint: str) -> None:
    """Raises ``PlanFileError`` if the branch from which plans are applied has, since this job's commit, other policies
    than those of the plan, another ``tablectl.yaml``, or installs something else.

    A job can be run again at any time, also after its change was reverted; then it would apply the change once more.
    The plan names its policies by their digest, so they are compared with those of the newest commit. That the plan
    was applied before proves nothing: a job that is run again finishes what is left. A newer commit of another
    part of the repository changes nothing here, and must not hold up an apply.
    """
    token = _header(environ)
    try:
        checkout = find_checkout(Path())
        newest = checkout.newest(branch, token)
        if newest == commit:
            return
        checkout.fetch(newest, token)
        ran = {checkout.git("ls-tree", "-r", each, "--", FILE, _INSTALLED) for each in (commit, newest)}
    except GitError as error:
        raise UsageError(
            f"it is not known whether {commit[:_SHORT]} is still what {branch} declares: Git {error}",
            "check out the branch before, and let this step reach the server: INPUT_TOKEN: ${{ github.token }}",
        ) from error
    with TemporaryDirectory(prefix="tablectl-newest-") as folder, suppress(InputError, UsageError):
        save_base(newest, environ, Path(folder))
        now = Project(load_config(Path(folder), environ, plan.env), Path(folder), environ=environ)
        if len(ran) == 1 and policies_digest(plan, now.policies()) == plan.policies:
            return
    raise PlanFileError(
        f"this job is of the commit {commit[:_SHORT]}. Since then {branch} has other policies, another tablectl.yaml "
        f"or other requirements: its newest commit is {newest}",
        hint,
    )


def _header(environ: Mapping[str, str]) -> Config:
    """The token for the job's own server: checkouts of private repositories do not keep it (``persist-credentials``).
    Where they do, it replaces the one of the checkout: GitHub answers two headers with an error.
    """
    token, server = environ.get("INPUT_TOKEN", "").strip(), environ.get("GITHUB_SERVER_URL", "")
    if not token or not server.startswith("https://"):
        return ()
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    key = f"http.{server.rstrip('/')}/.extraheader"
    return ((key, ""), (key, f"AUTHORIZATION: basic {basic}"))
