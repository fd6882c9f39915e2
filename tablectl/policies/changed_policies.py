"""Which policies changed since a commit: those of the commit are read from Git, and compared by their effect."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory

from tablectl.model.calendar import TableWindow
from tablectl.model.errors import InputError, UsageError
from tablectl.model.plan import Change, Value
from tablectl.model.upkeep import UpkeepPolicy
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, TableSpec, effect_of, resolve
from tablectl.policies.read_config import FILE, load_config
from tablectl.policies.repository import has_policies, open_repository, variables_for
from tablectl.support.differences import differences, whole
from tablectl.support.git import GitError, find_checkout
from tablectl.support.json_text import write_json
from tablectl.support.typed_json import json_form


@dataclass(frozen=True, slots=True)
class EarlierPolicies:
    """The policies of an earlier commit."""

    specs: Specs
    named: Mapping[str, TableSpec]
    """By ``name.key``."""
    commit: str = ""
    """The whole hash of the commit."""

    def before(self, spec: TableSpec) -> TableSpec | None:
        """What the policies of that commit declare for a table; ``None`` if none did."""
        named = self.named.get(spec.name.key)
        if named is not None:
            return named
        patterns = self.specs.declarations.matching(spec.name)
        found = resolve([(spec.name, patterns)], self.specs.declarations.profiles, []) if patterns else []
        return found[0] if found else None

    def differ(self, spec: TableSpec) -> bool:
        """Whether a table's policy had another effect, or none, at that commit."""
        before = self.before(spec)
        if before is None:
            return True
        located = "location" in spec.sources or "location" in before.sources
        return effect_of(spec, located=located) != effect_of(before, located=located)

    def without(self, specs: Specs) -> list[TableSpec]:
        """The tables that had an entry, and have none in ``specs``."""
        named = {spec.name.key for spec in specs.tables}
        return [spec for key, spec in self.named.items() if key not in named]


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
        except GitError:  # such as a link out of the repository
            return EarlierPolicies(Specs.of(()), {}, commit)
        return policies_in(Path(folder), config, given, environ, commit)


def policies_in(
    folder: Path, config: Config, given: Mapping[str, str], environ: Mapping[str, str], commit: str = ""
) -> EarlierPolicies:
    """As ``policies_at``, from a folder with the files of a commit."""
    try:
        before = load_config(folder, {}, "")
        before = load_config(folder, {}, config.environment if config.environment in before.env else "")
        if not has_policies(before, folder):
            return EarlierPolicies(Specs.of(()), {}, commit)
        specs = open_repository(None, before, folder, variables_for(before, given, environ))[1]
    except InputError:
        return EarlierPolicies(Specs.of(()), {}, commit)
    return EarlierPolicies(specs, {spec.name.key: spec for spec in specs.tables}, commit)


_NOT_BESIDES = ("locked", "engine_properties")


def besides_settings(before: TableSpec | None, now: TableSpec, profiles: Collection[str]) -> tuple[Change, ...]:
    """What differs between two policies of a table besides declared settings, and which settings are declared no
    longer. Of a table that is new in the policies, upkeep and lock alone: its group in the plan tells the rest.
    """
    old, new = _lasting(before), _lasting(now)
    if before is not None:
        old |= _told(before, profiles)
        new |= _told(now, profiles)
        declared = {(name, key) for name, key, _ in now.policy.values()}
        for name, key, value in before.policy.values():
            if (name, key) not in declared:
                old.setdefault(name, {})[key] = value
                new.setdefault(name, {})
    return tuple(
        Change(attribute=str(name), key=str(key), before=_text(each.before), after=_text(each.after))
        for each in differences(old, new, whole)
        for name, key in [each.path]
    )


_Facts = dict[str, dict[str, object]]
"""By the name of an option or a setting and its key, which is empty for most."""


def _lasting(spec: TableSpec | None) -> _Facts:
    upkeep = (spec and spec.upkeep) or UpkeepPolicy()
    kinds = {"optimize": upkeep.optimize, "vacuum": upkeep.vacuum}
    locked = spec and spec.options.locked
    return {
        "upkeep": {kind: each.text for kind, each in kinds.items() if each},
        "locked": {"": locked.text} if locked else {},
    }


def _told(spec: TableSpec, profiles: Collection[str]) -> _Facts:
    options = {name: {"": each} for name, each in json_form(spec.options).items() if name not in _NOT_BESIDES}
    window = {key: each for key, each in json_form(spec.window or TableWindow()).items() if each is not None}
    tags = tuple(f"{tag} (its profile)" if tag in profiles else tag for tag in sorted(spec.tags))
    return {**options, "window": window, "tags": {"": tags}}


def _text(value: object) -> Value:
    """A value of JSON for people."""
    if value is None or isinstance(value, str):
        return value
    return tuple(map(str, value)) if isinstance(value, list | tuple) else write_json(value, spaces=True)
