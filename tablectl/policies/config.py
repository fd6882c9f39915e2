"""``tablectl.yaml``: locations, and how to reach the engine.

Precedence, lowest first: the file, the section of an environment, variables ``TABLECTL_…``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from tablectl.attributes.masked_values import SECRET_KEYS
from tablectl.delta.credentials import find_credentials, server_text
from tablectl.delta.databricks_runtimes import Runtime, parse_runtime
from tablectl.delta.dialects import DEFAULT_DIALECT, DIALECTS
from tablectl.delta.names import DEFAULT_CATALOG, is_absolute, is_environment
from tablectl.frozen import frozen
from tablectl.lint_rules import RULES, LintSetting, Severities
from tablectl.model.calendar import Calendar, Rule
from tablectl.model.errors import InputError, Problem, UsageError
from tablectl.model.install import DISTRIBUTIONS, InstallSource, parse_hash, parse_source
from tablectl.model.own_rules import OWN_CODE, is_own_code
from tablectl.model.stop_condition import LONGEST_SOAK
from tablectl.model.store_options import CONCURRENCY, OPTIONS, SECRETS
from tablectl.model.table_options import parse_size
from tablectl.one_table import DEBUG
from tablectl.policies.branch import BASE, combined, ignored, is_unmerged
from tablectl.policies.catalog_config import CATALOG, CatalogConfig, why_no_catalog
from tablectl.policies.config_file import Places, as_node, read_values
from tablectl.policies.fields import (
    CommandLine,
    FieldName,
    Keys,
    LibraryOptions,
    ListOf,
    MapOf,
    Section,
    Text,
    Word,
    YamlField,
    environment_variables,
    flag,
    number,
    whole,
)
from tablectl.policies.find_files import shown_path
from tablectl.policies.identifiers import why_unusable
from tablectl.policies.suggestions import did_you_mean, nearest, shown
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables, is_variable
from tablectl.policies.window_fields import DRAIN, RULE_KEYS, RULE_REQUIRED, always
from tablectl.policies.yaml_nodes import SourceFile

FILE = "tablectl.yaml"
_CONNECT_PORT = 15002
"""The port of a Spark Connect server whose address names none."""
ENV = "TABLECTL_ENV"
"""Names the environment if nothing else does."""
_PREFIXES = ("TABLECTL_VAR_", "TABLECTL_GUARD_", "TABLECTL_TEST_")
"""Values of ``${NAME}`` in policies, what ``tablectl-guard run`` hands down, and what the project's own tests read."""
_OF_HOOKS = (
    *("TABLECTL_HOOK", "TABLECTL_TABLE", "TABLECTL_LOCATION", "TABLECTL_RUN", "TABLECTL_PLAN"),
    *("TABLECTL_STREAMS", "TABLECTL_OUTCOME", "TABLECTL_EVENT"),
)
"""What hooks and commands of notifications find in their environment; they may call tablectl."""


@frozen(kw_only=True)
class EngineConfig:
    """How statements reach the tables."""

    catalog: str = DEFAULT_CATALOG
    """The catalog of identifiers with two parts."""
    dialect: str = DEFAULT_DIALECT
    """The dialect of statements: ``oss`` or ``databricks``."""
    runtime: Runtime | None = None
    """The Databricks Runtime of the engine; ``None`` if it is not stated, which excludes no statement."""
    remote: str | None = None
    """The address of a Spark Connect server; ``None`` for a Spark session in this process."""
    remotes: tuple[str, ...] = ()
    """The addresses of several Spark Connect servers instead of ``remote``: an apply divides its tables among them."""
    cluster: str = ""
    """The id of the cluster that Databricks Connect uses; empty for that of the login's profile or environment."""
    conf: Mapping[str, str] = field(default_factory=dict)
    """Spark settings of a session in this process."""
    exclusive_commits: bool = False
    """Whether concurrent commits of several drivers exclude each other, which the engine's settings do not show."""
    heartbeat: int = 5
    """Seconds between two checks whether a Spark Connect server is alive."""
    dead_after: int = 20
    """Seconds without an answer after which the server counts as dead."""
    statement_bound: int | None = None
    """Seconds after which the engine ends a statement whose client is gone; ``None`` to use what is known about the
    engine.
    """

    @property
    def servers(self) -> tuple[str, ...]:
        """The Spark Connect servers, by their addresses; empty for a Spark session in this process."""
        return self.remotes or ((self.remote,) if self.remote else ())


@frozen(kw_only=True)
class WindowConfig:
    """How the protected window runs."""

    parallel: int = 4
    """The number of tables that are changed in parallel."""
    ttl: int = 60
    """Seconds after which a lease that was not renewed may be taken over."""
    drain: int = 300
    """Seconds that writers have to finish each time the gate becomes stricter."""
    before: tuple[tuple[str, ...], ...] = ()
    """Commands that run before the first gate that stops more than schema changes."""
    after: tuple[tuple[str, ...], ...] = ()
    """Commands that run when the gate is open again."""
    hook_timeout: int = 60
    """Seconds after which a command is stopped and counts as failed."""
    together: tuple[str, ...] = ()
    """Names (globs) and tags of tables that share one window."""
    max_bytes_per_hour: int | None = None
    """The most bytes that a run may rewrite in an hour; ``None`` for no limit."""
    quiet: float = 0.1
    """The expected number of failed writes below which a moment is quiet, for ``--when quiet``."""
    canary: int = 0
    """How many tables an apply changes before the others; 0 to start all alike."""
    soak: float = 10.0
    """Minutes for which the logs of these tables are watched before the others start."""
    stop_if_failed: int = 1
    """The number of failed tables at which the others do not start; 0 for no limit."""
    stop_if_silent: int = 0
    """The number of silent writers at which the others do not start; 0 for no limit."""
    allow: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()

    @property
    def calendar(self) -> Calendar:
        """The times when a window may open."""
        return Calendar(allow=self.allow, deny=self.deny)


@frozen(kw_only=True)
class StoresConfig:
    """How to reach object stores, by store kind: obstore's options without secrets."""

    concurrency: int = CONCURRENCY
    """The maximum number of tables that are read in parallel."""
    processes: int | None = None
    """How many processes read many tables on local disks; ``None`` for one for each core."""
    s3: Mapping[str, str] = field(default_factory=dict)
    gs: Mapping[str, str] = field(default_factory=dict)
    az: Mapping[str, str] = field(default_factory=dict)

    def families(self) -> Mapping[str, Mapping[str, str]]:
        """The options of each store kind that has any."""
        return {family: given for family, given in (("s3", self.s3), ("gs", self.gs), ("az", self.az)) if given}


@frozen(kw_only=True)
class ReportsConfig:
    """What reports show."""

    mask: tuple[str, ...] = SECRET_KEYS
    """Globs over property keys whose values are hidden in reports."""


NotifyEvent = Literal["applied", "failed", "drift", "refused"]
NOTIFY_EVENTS: tuple[NotifyEvent, ...] = get_args(NotifyEvent)


@frozen(kw_only=True)
class NotifyConfig:
    """One receiver of notifications."""

    events: tuple[NotifyEvent, ...] = NOTIFY_EVENTS
    """The events that it gets."""
    command: tuple[str, ...] = ()
    timeout: int = 10
    """Seconds."""


@frozen(kw_only=True)
class InstallConfig:
    """Where CI and the pages install tablectl from. At the top alone."""

    source: InstallSource | None = None
    """``None`` if unknown: then nothing is written that names an installation."""
    hashes: Mapping[str, str] = field(default_factory=dict)
    """The hashes of the two wheels, if ``source`` is a URL."""


@frozen(kw_only=True)
class Config:
    """The configuration of one repository. Relative paths are relative to its directory."""

    policies: str = "policies"
    plans: str = ""
    """The directory of plan files that are named without one; empty for the current directory. At the top alone."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Values for ``${NAME}`` in policies if neither ``--var`` nor ``TABLECTL_VAR_NAME`` sets one."""
    engine: EngineConfig = field(default_factory=EngineConfig)
    catalogs: Mapping[str, CatalogConfig] = field(default_factory=dict)
    """How to look up the tables of each catalog. Catalogs that are not listed are those of the engine."""
    window: WindowConfig = field(default_factory=WindowConfig)
    state: str | None = None
    """The location of lease records, if it is not next to the tables."""
    cache: str = ""
    """The directory of what earlier commands read of tables; empty for the user's cache directory."""
    stores: StoresConfig = field(default_factory=StoresConfig)
    reports: ReportsConfig = field(default_factory=ReportsConfig)
    notify: tuple[NotifyConfig, ...] = ()
    """The receivers of messages about applies and drift."""
    install: InstallConfig = field(default_factory=InstallConfig)
    lint: Mapping[str, LintSetting] = field(default_factory=dict)
    """The severity of finding codes, if it differs from the default."""
    env: Mapping[str, Config] = field(default_factory=dict)
    """Every environment of the file, resolved as if it were the selected one."""
    environment: str = ""
    """The selected environment; empty for the top level alone."""
    confined_to: str = ""
    """The directory that policy files of an untrusted branch must be in; empty if the branch is trusted."""
    unmerged: tuple[str, ...] = ()
    """The keys that an unmerged branch sets and must not decide. Nothing may be reached with them."""

    @property
    def severities(self) -> Severities:
        """``lint`` in the form that looks up the severity for a table."""
        return Severities(self.lint)


def _clean(given: str) -> str:
    if not given or any(ord(char) < 32 for char in given) or why_unusable(given):
        raise ValueError("needs text without control characters")
    return given


def _remote(given: str) -> str:
    if not re.fullmatch(r"sc://.+|databricks(://[A-Za-z0-9_. -]+)?", _clean(given), re.DOTALL):
        raise ValueError("needs the address of a Spark Connect server, such as sc://host:15002, or databricks")
    return given


def _some_bytes(given: str) -> int:
    size = parse_size(given)
    if not size:
        raise ValueError
    return size


def _server(address: str) -> str:
    """The server of an address, the same for all spellings of its host, its port and its parameters."""
    if not address.startswith("sc://"):
        return address
    split = urlsplit(address)
    try:
        return f"sc://{(split.hostname or '').rstrip('.')}:{split.port or _CONNECT_PORT}"
    except ValueError:  # the port is no number: PySpark says so
        return server_text(address)


def _why_no_servers(made: EngineConfig) -> str:
    """What is wrong with the servers as a whole; empty if nothing is. Addresses can hold tokens: none is shown."""
    if wrong := _why_no_cluster(made):
        return wrong
    if made.remote and made.remotes:
        return "has both `remote` and `remotes`: keep one of them"
    servers = [_server(each) for each in made.remotes]
    twice = next((each for each in servers if servers.count(each) > 1), "")
    return f"names the server {twice} twice in `remotes`: keep one of them" if twice else ""


def _place(given: str) -> str:
    if not is_absolute(_clean(given)):
        raise ValueError("needs an absolute path or a URI, such as s3://lake/tablectl")
    if find_credentials(given):
        raise ValueError("needs a place without credentials, which belong in the environment")
    return given


def _globs(description: str) -> ListOf:
    return ListOf(of=Text(parse=_clean), description=description)


_RULE = Section(
    make=always,
    keys={
        **RULE_KEYS,
        "tables": _globs("Globs of the tables that the rule is about; default: all."),
        "tags": _globs("Tags of the tables that the rule is about."),
    },
    required=RULE_REQUIRED,
)


def _why_no_variable(name: str) -> str:
    return "" if is_variable(name) else "is not a variable name: letters, digits and _, no digit first"


def _why_no_code(code: str) -> str:
    if code in RULES:
        return ""
    if is_own_code(code):
        from tablectl.policies.own_rules import own_rule_codes  # noqa: PLC0415  # only where there are such codes

        known = own_rule_codes()
        return (
            ""
            if code in known
            else f"is the code of no lint rule that is installed here: {', '.join(known) or 'none'} is"
        )
    return f"is not a finding code: {did_you_mean(code, tuple(RULES))}"


def _unreasoned(made: LintSetting) -> str:
    if made.severity == "ignored" and not made.reason.strip():
        return "is ignored without a reason: say why, as `{severity: ignore, reason: …}`"
    return ""


_LINT = Section(
    make=LintSetting,
    keys={
        "severity": Word(
            words=("error", "warning", "note", "ignore"),
            meaning={"ignore": "ignored"},
            description="`error` refuses the table; `ignore` needs a reason.",
        ),
        "reason": Text(parse=_clean, description="Why the severity is not the default."),
        "tables": _globs("Globs of the tables that this is about; default: all."),
    },
    required=("severity",),
    short="severity",
    check=_unreasoned,
)


_NOTIFY = Section(
    make=NotifyConfig,
    keys={
        "events": ListOf(
            of=Word(words=NOTIFY_EVENTS), description="What to report: applied, failed, drift, refused; default: all."
        ),
        "command": CommandLine(description="A command that gets the event as JSON on its standard input."),
        "timeout": whole(1, 120, "Seconds after which it is given up; default: 10."),
    },
    required=("command",),
    gone={"webhook": "give a `command` that posts the event with curl, as in docs/recipes.md (Post to Slack)"},
)


def _why_no_environment(name: str) -> str:
    return "" if is_environment(name) else "is not an environment name: letters, digits, '_', '.' and '-'"


def _cluster(given: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,100}", given):
        raise ValueError("needs the id of a cluster, such as 0710-123456-abcdefgh")
    return given


def _why_no_cluster(made: EngineConfig) -> str:
    if made.cluster and not (made.remote or "").startswith("databricks"):
        return "has a `cluster`, which only `remote: databricks` uses"
    if made.cluster and made.runtime is not None and made.runtime.version is None:
        return "has a `cluster` and `runtime: serverless`, which exclude each other"
    return ""


_ENGINE = Section(
    make=EngineConfig,
    description="How statements reach the tables.",
    keys={
        "catalog": Text(parse=_clean, description="The catalog of identifiers with two parts."),
        "dialect": Word(words=tuple(each.name for each in DIALECTS), description="The dialect of statements."),
        "runtime": Text(parse=parse_runtime, description="The Databricks Runtime of the engine, such as 15.4."),
        "remote": Text(
            parse=_remote,
            description="A Spark Connect server to use instead of a Spark session in this process; `databricks` or "
            "`databricks://PROFILE` for Databricks Connect.",
        ),
        "remotes": ListOf(
            of=Text(parse=_remote),
            description="Several Spark Connect servers, among which an apply divides its tables; instead of `remote`.",
        ),
        "cluster": Text(parse=_cluster, description="The id of the cluster for `remote: databricks`."),
        "conf": MapOf(of=Text(), description="Spark settings of a session in this process."),
        "exclusive_commits": flag(
            "Whether concurrent commits of several drivers exclude each other, which the engine's settings do not show."
        ),
        "heartbeat": whole(1, 300, "Seconds between two checks whether a Spark Connect server is alive."),
        "dead_after": whole(2, 3600, "Seconds without an answer after which the server counts as dead."),
        "statement_bound": whole(0, 604_800, "Seconds after which the engine ends a statement whose client is gone."),
    },
    check=_why_no_servers,
)
_WINDOW = Section(
    make=WindowConfig,
    gone={"stop_if": "write `stop_if_failed: N`, `stop_if_silent: N` or both (docs/canary.md)"},
    description="How the protected window runs.",
    keys={
        "parallel": whole(1, 64, "The number of tables that are changed in parallel."),
        "ttl": whole(10, 3600, "Seconds after which a lease that was not renewed may be taken over."),
        "drain": DRAIN,
        "before": ListOf(
            of=CommandLine(), description="Commands that run before the first gate that stops more than schema changes."
        ),
        "after": ListOf(of=CommandLine(), description="Commands that run when the gate is open again."),
        "hook_timeout": whole(1, 3600, "Seconds after which a command is stopped and counts as failed."),
        "together": _globs("Names (globs) and tags of tables that share one window."),
        "max_bytes_per_hour": Text(
            parse=_some_bytes,
            noun="a size above 0",
            values={"type": ["string", "integer"], "examples": ["500 GB"]},
            example="500 GB",
            description="The most data that a run may rewrite in an hour; default: no limit.",
        ),
        "quiet": number(
            0.001,
            1_000_000,
            "The expected number of failed writes below which a moment is quiet, for `--when quiet`.",
        ),
        "canary": whole(0, 100_000, "How many tables an apply changes before the others; 0 starts all alike."),
        "soak": number(
            0, LONGEST_SOAK, "Minutes for which the logs of these tables are watched before the others start."
        ),
        "stop_if_failed": whole(0, 100_000, "How many failed tables keep the others from starting; default: 1."),
        "stop_if_silent": whole(
            0, 100_000, "How many silent writers keep the others from starting; default: 0, which is no limit."
        ),
        "allow": ListOf(of=_RULE, description="Periods in which a window may open; default: always."),
        "deny": ListOf(of=_RULE, description="Periods in which no window may open."),
    },
)
_STORES = Section(
    make=StoresConfig,
    description="How to reach object stores.",
    keys={
        "concurrency": whole(1, 512, "The number of tables that are read in parallel. A proxy may need fewer."),
        "processes": whole(
            1, 64, "The number of processes that read many tables on local disks; default: one for each core, up to 8."
        ),
        **{
            family: LibraryOptions(
                of=Text(parse=_clean),
                known=OPTIONS[family],
                secrets=SECRETS[family],
                description=f"Options of obstore for {family}:// locations, without secrets.",
            )
            for family in OPTIONS
        },
    },
)
_KEYS: Mapping[str, YamlField] = {
    "policies": Text(parse=_clean, description="The policy files: a file or a folder."),
    "variables": MapOf(
        of=Text(),
        why_not=_why_no_variable,
        names={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
        description="Values of ${NAME} in policies if neither --var nor TABLECTL_VAR_NAME sets one.",
    ),
    "engine": _ENGINE,
    "catalogs": MapOf(
        of=CATALOG, why_not=why_no_catalog, description="How the tables of each catalog are found, by catalog."
    ),
    "window": _WINDOW,
    "state": Text(
        parse=_place,
        description="Where lease records are stored, if not next to the tables: an absolute path or a URI.",
    ),
    "cache": Text(
        parse=_clean,
        description="The directory of what earlier commands read of tables; by default the user's cache directory.",
    ),
    "stores": _STORES,
    "reports": Section(
        make=ReportsConfig,
        keys={"mask": _globs("Globs of property keys whose values reports hide; default: keys like secrets.")},
        description="What reports show.",
    ),
    "notify": ListOf(
        of=_NOTIFY, description="Receivers of messages about applies and drift. An unmerged branch cannot set it."
    ),
    "lint": MapOf(
        of=_LINT,
        why_not=_why_no_code,
        names={"anyOf": [{"enum": [*RULES]}, {"pattern": OWN_CODE}]},
        description="The severity of findings, by code.",
    ),
}
"""Every key of the top level and of an environment. A new key needs a field of its dataclass and an entry here, and
nothing else.
"""
_GONE: Mapping[str, str] = {
    "signatures": "remove it: plans have no signatures. `apply` compares a plan with the merged policies; to prove "
    "where a plan was made, use `gh attestation` (docs/recipes.md)"
}
_AT_THE_TOP: Mapping[str, YamlField] = {
    "plans": Text(parse=_clean, description="The folder of plan files that are named without a folder."),
    "install": Section(
        make=InstallConfig,
        keys={
            "source": Text(parse=parse_source, description="A version, a URL or a path to install from."),
            "hashes": MapOf(
                of=Text(parse=parse_hash),
                why_not=lambda name: "" if name in DISTRIBUTIONS else "is not one of the two wheels",
                description="The hashes of the two wheels, for a URL.",
            ),
        },
        description="Where tablectl is installed from.",
    ),
    "env": MapOf(
        of=Section(make=Config, keys=_KEYS, only_at_the_top=("plans", "install", "env"), gone=_GONE),
        why_not=_why_no_environment,
        description="Environments by name; `--env NAME` selects one, and its values override those above.",
    ),
}
CONFIG = Section(
    make=Config,
    keys={**_KEYS, **_AT_THE_TOP},
    gone=_GONE,
    description="Where the policies of a repository are, and how tablectl reaches and changes its tables.",
)
"""The whole file."""


def _read(values: Mapping[str, Any], places: Places, file: SourceFile, problems: list[Problem]) -> object:
    """The whole file with its defaults. Errors are added to ``problems``; wrong values have their defaults."""
    reading = ValueReader(Variables(), "", "", problems, literal=True)
    return CONFIG.read(as_node(values, places, file), FieldName(()), reading)


def load_config(directory: Path, environ: Mapping[str, str], env: str | None = None) -> Config:
    """The configuration of a directory for an environment. Missing keys have their defaults.

    ``env`` names a section under ``env:``, whose values override those at the top level, as variables do. ``None``
    reads the name from ``TABLECTL_ENV``. Without a name, or with an empty one, only the top level applies. A single
    value under ``engine: {remote: …}`` can also be set by the variable ``TABLECTL_ENGINE_REMOTE``, and so on. An empty
    variable counts as not set. If ``TABLECTL_BASE_CONFIG`` names a file, the directory's own file sets only what a
    branch may set (see ``branch``). In a job of an unmerged branch without it, the other keys are listed in
    ``unmerged``. Raises ``InputError`` with all errors in all environments, and ``UsageError`` for
    an unknown environment.
    """
    path, problems = directory / FILE, list[Problem]()
    values, places = read_values(path, problems)
    file = SourceFile(shown_path(path), 1, 1)
    unmerged: tuple[str, ...] = ()
    if not environ.get(BASE) and is_unmerged(environ):
        unmerged = ignored(values, {})
    elif environ.get(BASE):
        _read(values, places, file, problems)  # errors in ignored keys are reported too
        base, base_places = _read_base(Path(environ[BASE]), problems)
        values, places = combined(values, base), {**base_places, **places}
    sections = {"env": values.pop("env")} if "env" in values else {}
    known = _read(sections, places, file, problems)
    chosen = environ.get(ENV, "") if env is None else env
    if not problems and chosen in sections.get("env", {}):
        _merge(values, sections["env"][chosen])
        places |= {keys[2:]: place for keys, place in places.items() if keys[:2] == ("env", chosen) and keys[2:]}
    problems += _unknown_variables(environ, str(values))
    for variable, keys in environment_variables(CONFIG):
        if environ.get(variable):
            _set(values, keys, environ[variable])
            places[keys] = SourceFile(variable, 0, 0)
    config = _read(values, places, file, problems)
    if problems:
        raise InputError(tuple(problems))
    assert isinstance(config, Config)  # otherwise there is a problem
    assert isinstance(known, Config)
    if chosen and chosen not in known.env:
        raise _no_such(chosen, known, "" if env is not None else f", which {ENV} names")
    confined = _checkout_of(directory) if environ.get(BASE) or is_unmerged(environ) else ""
    return replace(config, env=known.env, environment=chosen, confined_to=confined, unmerged=unmerged)


def _unknown_variables(environ: Mapping[str, str], config: str) -> Iterator[Problem]:
    """Variables that set nothing, most likely by a typing error. A variable that the configuration names is the
    user's.
    """
    known = [ENV, BASE, DEBUG, *(variable for variable, _ in environment_variables(CONFIG))]
    for name in sorted(environ):
        unknown = name.startswith("TABLECTL_") and not name.startswith(_PREFIXES) and name not in {*known, *_OF_HOOKS}
        if unknown and environ[name] and name not in config:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else "give a variable of your own another beginning"
            yield Problem(name, 0, 0, "no setting has this name, so the variable sets nothing", hint)


def _checkout_of(directory: Path) -> str:
    """The checkout of a directory, or itself outside of one, with links resolved."""
    here = Path(os.path.realpath(directory))
    return str(next((each for each in (here, *here.parents) if (each / ".git").exists()), here))


def config_values(directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The plain values of a directory's file, and of the one that ``TABLECTL_BASE_CONFIG`` names, which are valid."""
    values = read_values(directory / FILE, [])[0]
    return combined(values, read_values(Path(environ[BASE]), [])[0]) if environ.get(BASE) else values


def ignored_keys(directory: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of a directory's file that are ignored because ``TABLECTL_BASE_CONFIG`` names another file."""
    if not environ.get(BASE):
        return ()
    return ignored(read_values(directory / FILE, [])[0], read_values(Path(environ[BASE]), [])[0])


def _read_base(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    if not path.is_file():
        problems.append(Problem(shown_path(path), 0, 0, f"there is no such file, which {BASE} names"))
        return {}, {}
    return read_values(path, problems)


def _no_such(name: str, config: Config, why: str) -> UsageError:
    message = f"{FILE} has no environment {shown(name)}{why}"
    if not config.env:
        return UsageError(message, f"it has none: add `env: {{{name if is_environment(name) else 'prod'}: …}}` to it")
    meant = nearest(name, config.env)
    known = f"known are {', '.join(config.env)}"
    return UsageError(message, f"did you mean {meant}? {known}" if meant else known)


def _merge(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Override values in place: maps by key, everything else as a whole. A section that is not a map stays
    unchanged.
    """
    for key, value in over.items():
        if isinstance(value, dict) and key in values:
            if isinstance(values[key], dict):
                _merge(values[key], value)
        else:
            values[key] = value


def _set(values: dict[str, Any], keys: Keys, value: str) -> None:
    """Set one value in place. A section that is not a map stays unchanged and is reported elsewhere."""
    section: Any = values
    for key in keys[:-1]:
        section = section.setdefault(key, {}) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section[keys[-1]] = value
