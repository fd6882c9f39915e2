"""Read the ``tablectl.yaml`` of the base branch of a pull request with Git, from the checkout."""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tarfile import TarError

from tablectl.model.errors import InputError, UsageError
from tablectl.policies.changed_policies import extract_archive
from tablectl.policies.read_config import FILE, load_config
from tablectl.support.processes import Invocation, ProcessLimits, run_captured

_TIMEOUT = 120
_MOST = 1 << 20
_MOST_OUTPUT = (256 << 20) + 1
"""One byte more than ``extract_archive`` takes."""
_SHORT = 80
_FILES = ("100644", "100755")
"""The modes of regular files. A symbolic link would lead to any file on the runner."""


def save_base(base: str, environ: Mapping[str, str], folder: Path) -> Path:
    """Saves ``tablectl.yaml`` for the current directory as it is in a commit, or in the newest one of
    ``refs/heads/BRANCH``; an empty file if the commit has none. Returns its path. The policies of the commit are saved
    next to it, if they can be: they say which variables are secret.

    A checkout of a single commit does not contain the base. Then that commit alone is fetched, with the job's token.
    Raises ``UsageError`` if the file cannot be read.
    """
    commit, data = _base_file(base, environ)
    file = folder / FILE
    file.write_bytes(data)
    with suppress(InputError, UsageError, TarError):
        merged = load_config(folder, {}, "")
        for path in dict.fromkeys(each.policies for each in (merged, *merged.env.values())):
            extract_archive(_git(("archive", "--format=tar", commit, "--", path), environ) or b"", folder)
    return file


def _base_file(base: str, environ: Mapping[str, str]) -> tuple[str, bytes]:
    """The commit, and the contents of its file."""
    commit = base
    if base.startswith("refs/"):
        fetched = _fetch(base, environ) is not None
        commit = (_git(("rev-parse", "FETCH_HEAD"), environ) or b"").decode().strip() if fetched else ""
    elif _git(("cat-file", "-e", f"{commit}^{{commit}}"), environ) is None:
        _fetch(commit, environ)
    listed = _git(("ls-tree", commit, "--", FILE), environ) if commit else None
    if listed is None:
        raise UsageError(
            f"the base {base[:_SHORT]} is not in this checkout and cannot be fetched, so it is not known what the "
            "branch may decide",
            "check out with `actions/checkout` before, and give this step INPUT_TOKEN: ${{ github.token }}",
        )
    if not listed:
        return commit, b""
    mode = listed.split(b" ", 1)[0].decode(errors="replace")
    data = _git(("cat-file", "blob", f"{commit}:./{FILE}"), environ) if mode in _FILES else None
    if data is None or len(data) > _MOST:
        raise UsageError(f"{FILE} of the base {base[:_SHORT]} is not a file of a usual size", "make it one")
    return commit, data


def _fetch(what: str, environ: Mapping[str, str]) -> bytes | None:
    return _git(("fetch", "--quiet", "--no-tags", "--depth=1", "origin", what), environ)


def _git(args: Sequence[str], environ: Mapping[str, str]) -> bytes | None:
    """The output of a Git command; ``None`` if it fails."""
    root = _checkout()
    if root is None:
        return None
    own = {key: value for key, value in os.environ.items() if key != "INPUT_TOKEN"}
    own |= {"GIT_TERMINAL_PROMPT": "0", "GIT_DIR": str(root / ".git"), "GIT_WORK_TREE": str(root), **_header(environ)}
    command = Invocation(["git", "--no-replace-objects", *args], environ=own)
    ran = run_captured(command, _MOST_OUTPUT, ProcessLimits(_TIMEOUT))
    return None if ran.why else ran.out


def _checkout() -> Path | None:
    """The directory of the checkout.

    Git itself would take a directory of the branch that looks like a bare repository for the repository, and run what
    its ``config`` says. No branch can contain a file named ``.git``.
    """
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if os.path.lexists(each / ".git")), None)


def _header(environ: Mapping[str, str]) -> dict[str, str]:
    """The token for the job's own server: checkouts of private repositories do not keep it
    (``persist-credentials``).
    """
    token, server = environ.get("INPUT_TOKEN", "").strip(), environ.get("GITHUB_SERVER_URL", "")
    if not token or not server.startswith("https://"):
        return {}
    basic = base64.b64encode(f"x-access-token:{token}".encode()).decode()
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": f"http.{server.rstrip('/')}/.extraheader",
        "GIT_CONFIG_VALUE_0": f"AUTHORIZATION: basic {basic}",
    }
