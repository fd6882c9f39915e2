"""Which policies changed since a commit: those of the commit are read from Git, and compared by their effect.

Files that are as they were are not parsed, if nothing that files share has changed (``policies/repository.py``). So
an error in such a file is not found, as in the commands about one table.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tablectl.delta.names import TableName
from tablectl.model.errors import InputError, Problem, UsageError
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, TableSpec, effect_of, resolve
from tablectl.policies.read_config import FILE, load_config
from tablectl.policies.repository import (
    Paths,
    has_policies,
    naming_files,
    open_repository,
    parse_files,
    policy_paths,
    read_files,
    shared_files,
    variables_for,
)
from tablectl.policies.variables import Variables
from tablectl.support.git import GitError, find_checkout


@dataclass(frozen=True, slots=True)
class EarlierPolicies:
    """The policies of an earlier commit."""

    specs: Specs
    named: Mapping[str, TableSpec]
    """By ``name.key``."""
    unchanged: frozenset[str] = frozenset()
    """The files of now whose tables are as they were, by real path. They are not in ``specs``."""
    commit: str = ""
    """The whole hash of the commit."""

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

    def without(self, specs: Specs) -> list[TableSpec]:
        """The tables that had an entry, and have none in ``specs``."""
        named = {spec.name.key for spec in specs.tables}
        return [spec for key, spec in self.named.items() if key not in named]

    def _by_pattern(self, name: TableName) -> TableSpec | None:
        patterns = self.specs.declarations.matching(name)
        found = resolve([(name, patterns)], self.specs.declarations.profiles, []) if patterns else []
        return found[0] if found else None


def changed_specs(
    earlier: EarlierPolicies, paths: Paths, config: Config, directory: Path, variables: Variables
) -> Specs | None:
    """The policies of now in files that are not as they were, and in others that may declare the same tables, without
    patterns: these are as they were, so of the tables that no file names, none has changed.

    ``None`` if all files must be read to know what changed: because something that files share has changed, because a
    table lost its entry and a pattern applies to it now, or because these files have errors by themselves.
    """
    if not earlier.unchanged:
        return None
    problems: list[Problem] = []
    files = read_files(policy_paths(paths, config, directory), problems, config.confined_to)
    same = {path: data for path, data in files.items() if os.path.realpath(path) in earlier.unchanged}
    changed = {path: data for path, data in files.items() if path not in same}
    try:
        specs = parse_files(changed, config, variables, problems)
        others = naming_files(same, _names_of((*filter(earlier.differ, specs.tables), *earlier.without(specs))))
        if others:
            specs = parse_files({**changed, **others}, config, variables, problems)
    except InputError:
        return None
    gone = (spec.name for spec in earlier.without(specs))
    return None if any(map(specs.declarations.matching, gone)) else Specs.of(specs.tables)


def _names_of(specs: Iterable[TableSpec]) -> Iterator[TableName]:
    """The names of tables, and those that they would have by their declared locations."""
    for spec in specs:
        yield spec.name
        if spec.location:
            yield TableName("", (spec.location,))


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
                return EarlierPolicies(Specs.of(()), {}, commit=commit)
            unchanged = _unchanged_files(before, Path(folder), config, directory)
            choose = partial(_without, unchanged)
            specs = open_repository(None, before, folder, variables_for(before, given, environ), choose)[1]
        except (InputError, GitError):  # such as a link out of the repository
            return EarlierPolicies(Specs.of(()), {}, commit=commit)
    named = {spec.name.key: spec for spec in specs.tables}
    return EarlierPolicies(specs, named, frozenset(map(os.path.realpath, unchanged.values())), commit)


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
