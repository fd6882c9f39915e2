"""Which policies changed since a commit: those of the commit are read from Git, and compared by their effect."""

from __future__ import annotations

import io
import subprocess
import tarfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tablectl.delta.names import TableName
from tablectl.model.errors import InputError, UsageError
from tablectl.policies.config import FILE, Config, load_config
from tablectl.policies.repository import has_policies, open_repository, variables_for
from tablectl.policies.resolve import resolve
from tablectl.policies.spec import Specs, TableSpec, effect_of

_SECONDS = 120
_MOST_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class EarlierPolicies:
    """The policies of an earlier commit."""

    specs: Specs
    named: Mapping[str, TableSpec]
    """By ``name.key``."""

    def differ(self, spec: TableSpec) -> bool:
        """Whether a table's policy had another effect, or none, at that commit."""
        before = self.named.get(spec.name.key) or self._by_pattern(spec.name)
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
            specs = open_repository(None, before, folder, variables_for(before, given, environ))[1]
        except InputError:
            return EarlierPolicies(Specs.of(()), {})
    return EarlierPolicies(specs, {spec.name.key: spec for spec in specs.tables})


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
