"""Which policies changed since a commit: those of the commit are read from Git, and compared by their effect."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tablectl.model.errors import InputError, UsageError
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, TableSpec, effect_of, resolve
from tablectl.policies.read_config import FILE, load_config
from tablectl.policies.repository import has_policies, open_repository, variables_for
from tablectl.support.git import GitError, find_checkout


@dataclass(frozen=True, slots=True)
class EarlierPolicies:
    """The policies of an earlier commit."""

    specs: Specs
    named: Mapping[str, TableSpec]
    """By ``name.key``."""
    commit: str = ""
    """The whole hash of the commit."""

    def differ(self, spec: TableSpec) -> bool:
        """Whether a table's policy had another effect, or none, at that commit."""
        before = self.named.get(spec.name.key)
        if before is None:  # then patterns may have applied to it
            patterns = self.specs.declarations.matching(spec.name)
            found = resolve([(spec.name, patterns)], self.specs.declarations.profiles, []) if patterns else []
            if not found:
                return True
            before = found[0]
        located = "location" in spec.sources or "location" in before.sources
        return effect_of(spec, located=located) != effect_of(before, located=located)


def policies_at(
    ref: str, directory: Path, config: Config, given: Mapping[str, str], environ: Mapping[str, str]
) -> EarlierPolicies:
    """The policies at a commit, with the configuration of that commit in the environment of ``config``. If they were
    invalid then, or cannot be unpacked, there are none, so every table counts as changed. Raises ``UsageError`` if Git
    cannot tell.
    """
    if PurePosixPath(config.policies).is_absolute():
        raise UsageError("--changed-since needs policies inside of the repository", "set `policies` to a relative path")
    try:
        checkout = find_checkout(directory)
        commit = checkout.commit_of(ref)
    except GitError as error:
        hint = "fetch it: actions/checkout needs `fetch-depth: 0`, GitLab `GIT_DEPTH: 0`"
        raise UsageError(f"--changed-since: Git does not know this commit here: it {error}", hint) from error
    with TemporaryDirectory(prefix="tablectl-since-") as folder:
        try:
            checkout.save(commit, (FILE, str(PurePosixPath(config.policies))), Path(folder))
            before = load_config(Path(folder), {}, "")
            before = load_config(Path(folder), {}, config.environment if config.environment in before.env else "")
            if not has_policies(before, folder):
                return EarlierPolicies(Specs.of(()), {}, commit)
            specs = open_repository(None, before, folder, variables_for(before, given, environ))[1]
        except (InputError, GitError):  # such as a link out of the repository
            return EarlierPolicies(Specs.of(()), {}, commit)
    return EarlierPolicies(specs, {spec.name.key: spec for spec in specs.tables}, commit)
