"""Which policies changed since a commit: those of the commit are read from Git, and compared by their effect."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.errors import InputError, UsageError
from tablectl.policies.config import FILE, Config, load_config
from tablectl.policies.find_files import read_files
from tablectl.policies.relevant_files import shared_files
from tablectl.policies.repository import has_policies, open_repository, variables_for
from tablectl.policies.resolve import resolve
from tablectl.policies.spec import Specs, TableSpec, effect_of

_SECONDS = 120
_MOST_BYTES = 256 << 20


@frozen
class EarlierPolicies:
    """The policies of an earlier commit."""

    specs: Specs
    named: Mapping[str, TableSpec]
    """By ``name.key``."""
    unchanged: frozenset[str] = frozenset()
    """The files of now whose tables are as they were, by real path. They are not in ``specs``."""

    def differ(self, spec: TableSpec) -> bool:
        """Whether a table's policy had another effect, or none, at that commit."""
        before = self.named.get(spec.name.key)
        if before is None and os.path.realpath(spec.declared.file) in self.unchanged:
            return False
        before = before or self._by_pattern(spec.name)
        if before is None:
            return True
        located = "location" in spec.sources or "location" in before.sources
        return effect_of(spec, located=located) != effect_of(before, located=located)

    def _by_pattern(self, name: TableName) -> TableSpec | None:
        patterns = self.specs.declarations.matching(name)
        found = resolve([(name, patterns)], self.specs.declarations.profiles, []) if patterns else []
        return found[0] if found else None


def policies_at(
    ref: str, directory: Path, config: Config, given: Mapping[str, str], environ: Mapping[str, str]
) -> EarlierPolicies:
    """The policies at a commit, with the configuration of that commit in the environment of ``config``. If they were
    invalid then, there are none, so every table counts as changed. Raises ``UsageError`` if Git cannot tell.
    """
    if PurePosixPath(config.policies).is_absolute():
        raise UsageError("--changed-since needs policies inside of the repository", "set `policies` to a relative path")
    commit = (
        _git(directory, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}").decode().strip()
    )
    with TemporaryDirectory(prefix="tablectl-since-") as folder:
        for path in (FILE, config.policies):
            if _git(directory, "ls-tree", "--name-only", commit, "--", path):
                _extract(_git(directory, "archive", "--format=tar", commit, "--", path), folder)
        try:
            before = load_config(Path(folder), {}, "")
            before = load_config(Path(folder), {}, config.environment if config.environment in before.env else "")
            if not has_policies(before, folder):
                return EarlierPolicies(Specs.of(()), {})
            unchanged = _unchanged_files(before, Path(folder), config, directory)
            choose = partial(_without, unchanged)
            specs = open_repository(None, before, folder, variables_for(before, given, environ), choose)[1]
        except InputError:
            return EarlierPolicies(Specs.of(()), {})
    named = {spec.name.key: spec for spec in specs.tables}
    return EarlierPolicies(specs, named, frozenset(map(os.path.realpath, unchanged.values())))


def _unchanged_files(before: Config, folder: Path, config: Config, directory: Path) -> dict[Path, Path]:
    """The files of the commit, as they are in ``folder``, whose tables cannot have changed, and those of now: the bytes
    are equal, and so is all that files share. Empty if anything shared differs.
    """
    now = load_config(directory, {}, config.environment)
    if now != before:
        return {}
    old, new = _relative_files(before, folder), _relative_files(config, directory)
    equal = {name for name, data in old.items() if new.get(name) == data}
    # Both texts of a file count: a pattern that was taken out changes tables of other files, too.
    differing = [data for files in (old, new) for name, data in files.items() if name not in equal]
    if shared_files(dict(enumerate(differing))):
        return {}
    own = equal - shared_files(old).keys()
    return {folder / name: directory / name for name in own}


def _relative_files(config: Config, directory: Path) -> dict[Path, bytes]:
    """The policy files below a directory, by their path from there. Unreadable files are left out."""
    found = read_files([directory / config.policies], [], config.confined_to)
    return {path.relative_to(directory): data for path, data in found.items()}


def _without(unchanged: Mapping[Path, Path], files: dict[Path, bytes]) -> dict[Path, bytes]:
    return {path: data for path, data in files.items() if path not in unchanged}


def _extract(archive: bytes, folder: str) -> None:
    if len(archive) > _MOST_BYTES:
        raise UsageError("the policies of that commit are too large", "compare with a later commit")
    with tarfile.open(fileobj=io.BytesIO(archive)) as files:
        files.extractall(folder, filter="data")


def _git(directory: Path, *words: str) -> bytes:
    try:
        ran = subprocess.run(  # noqa: S603  # no shell, and `--end-of-options` before what a caller gives
            ["git", *words],  # noqa: S607  # the user's Git
            cwd=directory,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"--changed-since needs Git: {error}") from None
    if ran.returncode != 0:
        said = ran.stderr.decode(errors="replace").strip().splitlines()
        hint = "fetch it: actions/checkout needs `fetch-depth: 0`, GitLab `GIT_DEPTH: 0`"
        raise UsageError(f"--changed-since: Git does not know this commit here{f': {said[0]}' if said else ''}", hint)
    return ran.stdout
