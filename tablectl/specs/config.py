"""``tablectl.yaml``: where things lie and how the engine is reached. The file, then ``TABLECTL_…``; the later wins."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tablectl.model.calendar import LONGEST, Calendar, Rule, check_cron, check_zone
from tablectl.model.errors import InputError, Problem
from tablectl.model.names import DEFAULT_CATALOG, is_absolute
from tablectl.model.stores import OPTIONS, SECRETS
from tablectl.specs.config_file import Keys, read_values
from tablectl.specs.config_keys import (
    Command,
    ListOf,
    MapOf,
    Options,
    Section,
    duration,
    flag,
    read_section,
    text,
    variables_of,
    whole,
    word,
)
from tablectl.specs.files import shown_path
from tablectl.specs.identifiers import why_unusable
from tablectl.specs.tree import Source

FILE = "tablectl.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineConfig:
    """How statements reach the tables."""

    catalog: str = DEFAULT_CATALOG
    """The catalog of identifiers with two parts."""
    dialect: str = "oss"
    """The dialect of statements: ``oss`` or ``databricks``."""
    remote: str | None = None
    """A Spark Connect server; ``None`` for a session of this process."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of a session of this process."""
    exclusive_commits: bool = False
    """Whether commits of several drivers exclude each other, which this engine's settings do not tell."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowConfig:
    """How the protected window runs."""

    parallel: int = 4
    """Tables worked on at a time."""
    ttl: int = 60
    """Seconds after which an unrenewed lease may be taken over."""
    drain: int = 300
    """Seconds that writers get to end each time the gate tightens."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that run before the first gate that stops more than schema changes."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that run when the gate is open again."""
    hook_timeout: int = 60
    """Seconds after which such a command is stopped, and has failed."""
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @property
    def calendar(self) -> Calendar:
        """When the window may open."""
        return Calendar(allow=self.allow, deny=self.deny)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoresConfig:
    """How object stores are reached, by family: obstore's options, never a secret."""

    s3: Mapping[str, str] = field(default_factory=dict)
    gs: Mapping[str, str] = field(default_factory=dict)
    az: Mapping[str, str] = field(default_factory=dict)

    def families(self) -> Mapping[str, Mapping[str, str]]:
        """The options of each family that has some."""
        return {family: given for family, given in (("s3", self.s3), ("gs", self.gs), ("az", self.az)) if given}


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportsConfig:
    """What reports show."""

    mask: tuple[str, ...] = ()
    """Globs over property keys whose values no report shows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """The configuration of one repository. Relative paths count from its directory."""

    policies: str = "policies"
    engine: EngineConfig = field(default_factory=EngineConfig)
    window: WindowConfig = field(default_factory=WindowConfig)
    state: str | None = None
    """Where lease records lie if not beside the tables."""
    stores: StoresConfig = field(default_factory=StoresConfig)
    reports: ReportsConfig = field(default_factory=ReportsConfig)


def _clean(given: str) -> str:
    if not given or any(ord(char) < 32 for char in given) or why_unusable(given):
        raise ValueError("needs text without control characters")
    return given


def _remote(given: str) -> str:
    if not _clean(given).startswith("sc://"):
        raise ValueError("needs the address of a Spark Connect server, such as sc://host:15002")
    return given


def _place(given: str) -> str:
    if not is_absolute(_clean(given)):
        raise ValueError("needs an absolute path or a URI, such as s3://lake/tablectl")
    return given


def _always() -> Rule:
    return Rule(cron="* * * * *", duration=LONGEST)


_RULE = Section(
    _always,
    {
        "cron": text(check_cron),
        "duration": duration(LONGEST),
        "timezone": text(check_zone),
        "tables": ListOf(text(_clean)),
        "tags": ListOf(text(_clean)),
    },
    required=("cron", "duration"),
)

_CONFIG = Section(
    Config,
    {
        "policies": text(_clean),
        "engine": Section(
            EngineConfig,
            {
                "catalog": text(_clean),
                "dialect": word("oss", "databricks"),
                "remote": text(_remote),
                "conf": MapOf(text()),
                "exclusive_commits": flag(),
            },
        ),
        "window": Section(
            WindowConfig,
            {
                "parallel": whole(1, 64),
                "ttl": whole(10, 3600),
                "drain": whole(0, 86_400),
                "before": ListOf(Command()),
                "after": ListOf(Command()),
                "hook_timeout": whole(1, 3600),
                "allow": ListOf(_RULE),
                "deny": ListOf(_RULE),
            },
        ),
        "state": text(_place),
        "stores": Section(
            StoresConfig, {family: Options(text(_clean), OPTIONS[family], SECRETS[family]) for family in OPTIONS}
        ),
        "reports": Section(ReportsConfig, {"mask": ListOf(text(_clean))}),
    },
    later=("lint", "env", "plans"),
)
"""Every key of the file and what it takes. A key is a field of its dataclass and an entry here, and no more."""


def load_config(directory: Path, environ: Mapping[str, str]) -> Config:
    """The configuration of a directory; what neither file nor environment sets has its default.

    A single value under ``engine: {remote: …}`` is the variable ``TABLECTL_ENGINE_REMOTE`` too, and so on; an empty
    variable counts as not set. Raises ``InputError`` with everything that is wrong.
    """
    path, problems = directory / FILE, list[Problem]()
    values, places = read_values(path, problems)
    for variable, keys in variables_of(_CONFIG):
        if environ.get(variable):
            _set(values, keys, environ[variable])
            places[keys] = Source(variable, 0, 0)
    config = read_section(_CONFIG, values, places, Source(shown_path(path), 1, 1), problems)
    if problems:
        raise InputError(tuple(problems))
    assert isinstance(config, Config)  # else there is a problem
    return config


def _set(values: dict[str, Any], keys: Keys, value: str) -> None:
    """Put one value where it belongs; a section that is no map stays as it is and is a problem of its own."""
    section: Any = values
    for key in keys[:-1]:
        section = section.setdefault(key, {}) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section[keys[-1]] = value
