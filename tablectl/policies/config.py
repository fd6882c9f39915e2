"""``tablectl.yaml``: its settings. ``read_config`` reads them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Literal, get_args

from tablectl.attributes.policy import SECRET_KEYS
from tablectl.delta.credentials import find_credentials
from tablectl.delta.databricks_runtimes import Runtime, parse_runtime
from tablectl.delta.dialects import DEFAULT_DIALECT, DIALECTS, dialect_of
from tablectl.delta.locations import is_absolute
from tablectl.delta.names import DEFAULT_CATALOG, is_environment
from tablectl.delta.properties import parse_interval
from tablectl.lint_rules import RULES, LintSetting, Severities
from tablectl.model.calendar import Calendar, Rule
from tablectl.model.install_source import DISTRIBUTIONS, InstallSource, parse_hash, parse_source
from tablectl.model.store_options import CONCURRENCY, OPTIONS, SECRETS
from tablectl.model.table_options import parse_size
from tablectl.policies.catalog_config import CATALOG, CatalogConfig, why_no_catalog
from tablectl.policies.declare_setting import given_settings, section, setting
from tablectl.policies.field_types import (
    CommandLine,
    LibraryOptions,
    ListOf,
    MapOf,
    Section,
    Text,
    Word,
    flag,
    matching,
    number,
    whole,
)
from tablectl.policies.option_fields import DRAIN, RULE_KEYS, RULE_REQUIRED, always
from tablectl.policies.own_rules import OWN_CODE, is_own_code, own_rule_codes
from tablectl.policies.spelling_hints import did_you_mean
from tablectl.policies.variables import is_variable, why_unusable

THRIFT, WAREHOUSE = "thrift://", "warehouse://"
"""What the addresses of SQL endpoints begin with."""
_LONGEST_ON_WAREHOUSE = 172_800
"""Seconds; docs.databricks.com, "STATEMENT_TIMEOUT"."""
_LONGEST_SOAK = 10_080
"""The maximum number of minutes for which tables are watched: a week."""
"""The port of a Spark Connect server whose address names none."""
_CLUSTER = re.compile(r"[A-Za-z0-9_-]{1,100}")
_WAREHOUSE = re.compile(r"[A-Za-z0-9]{1,64}")


def _clean(given: str) -> str:
    if not given or any(ord(char) < 32 for char in given) or why_unusable(given):
        raise ValueError("needs text without control characters")
    return given


def parse_remote(given: str) -> str:
    """The address of a Spark Connect server. Raises ``ValueError`` for another text."""
    if not re.fullmatch(r"sc://.+|databricks(://[A-Za-z0-9_. -]+)?", _clean(given), re.DOTALL):
        raise ValueError("needs the address of a Spark Connect server, such as sc://host:15002, or databricks")
    return given


def _thrift(given: str) -> str:
    host, _, port = given.rpartition(":")
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\]", host) or not re.fullmatch(
        r"[0-9]{1,5}", port
    ):
        raise ValueError("needs the host and the port of a Thrift server, such as spark.example.com:10000")
    return given


def _some_bytes(given: str) -> int:
    size = parse_size(given)
    if not size:
        raise ValueError
    return size


def _place(given: str) -> str:
    if not is_absolute(_clean(given)):
        raise ValueError("needs an absolute path or a URI, such as s3://lake/tablectl")
    if find_credentials(given):
        raise ValueError("needs a place without credentials, which belong in the environment")
    return given


def _globs(description: str) -> ListOf:
    return ListOf(of=Text(parse=_clean), description=description)


# Engine


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """Settings of the engine that a flag and a parameter of Python override."""

    remote: str | None = setting(
        None,
        Text(
            parse=parse_remote,
            description="A Spark Connect server to use instead of a Spark session in this process; `databricks` or "
            "`databricks://PROFILE` for Databricks Connect.",
        ),
        "--remote",
        metavar="sc://HOST:PORT",
    )


def _property_pattern(text: str) -> str:
    if re.fullmatch(r"delta\.[A-Za-z0-9_.*-]{1,100}", text) is None or text == "delta.*":
        raise ValueError("begins with `delta.` and a part of the name")
    return text


@dataclass(frozen=True, kw_only=True)
class EngineConfig(ServerSettings):
    """How statements reach the tables."""

    catalog: str = setting(
        DEFAULT_CATALOG, Text(parse=_clean, description="The catalog of identifiers with two parts.")
    )
    dialect: str = setting(
        DEFAULT_DIALECT,
        Word(words=tuple(each.name for each in DIALECTS), description="The dialect of statements."),
    )
    runtime: Runtime | None = setting(
        None, Text(parse=parse_runtime, description="The Databricks Runtime of the engine, such as 15.4.")
    )
    thrift: str | None = setting(
        None,
        Text(
            parse=_thrift,
            description="A Spark Thrift server or Kyuubi to use instead of a Spark session; the user and the password "
            "are `TABLECTL_THRIFT_USER` and `TABLECTL_THRIFT_PASSWORD`.",
        ),
    )
    thrift_login: str = setting(
        "plain", Word(words=("plain", "kerberos", "none"), description="How the Thrift server knows its clients.")
    )
    thrift_tls: bool = setting(False, flag("Whether the Thrift server is reached by TLS."))
    warehouse: str | None = setting(
        None,
        Text(
            parse=matching(_WAREHOUSE, "needs the id of a SQL warehouse, such as 1234567890abcdef"),
            description="A Databricks SQL warehouse to use instead of a Spark session, by its id.",
        ),
    )
    cluster: str = setting(
        "",
        Text(
            parse=matching(_CLUSTER, "needs the id of a cluster, such as 0710-123456-abcdefgh"),
            description="The id of the cluster for `remote: databricks`.",
        ),
    )
    extra_properties: tuple[str, ...] = setting(
        (),
        ListOf(
            of=Text(parse=_property_pattern, noun="a pattern such as delta.parquet.*"),
            description="Patterns of table properties of other engines, which policies may declare although tablectl "
            "does not know them.",
        ),
    )
    conf: Mapping[str, str] = setting({}, MapOf(of=Text(), description="Spark settings of a session in this process."))
    exclusive_commits: bool = setting(
        False,
        flag(
            "Whether concurrent commits of several drivers exclude each other, which the engine's settings do not show."
        ),
    )
    heartbeat: int = setting(5, whole(1, 300, "Seconds between two checks whether a server is alive."))
    dead_after: int = setting(20, whole(2, 3600, "Seconds without an answer after which the server counts as dead."))
    commit_bound: int = setting(
        60,
        whole(
            5,
            3600,
            "Seconds after which a SQL endpoint ends a statement that changes only metadata, such as a property.",
        ),
    )
    statement_bound: int | None = setting(
        None,
        whole(
            0,
            604_800,
            "Seconds after which the engine ends a statement whose client is gone; a SQL endpoint, any statement.",
        ),
    )

    @property
    def server(self) -> str | None:
        """The address of the server that runs statements; ``None`` for a Spark session in this process."""
        if self.thrift:
            return f"{THRIFT}{self.thrift}"
        return f"{WAREHOUSE}{self.warehouse}" if self.warehouse else self.remote


def _why_no_engine(made: EngineConfig) -> str:
    """What is wrong with the engine as a whole; empty if nothing is. Addresses can hold tokens: none is shown."""
    if made.cluster and not (made.remote or "").startswith("databricks"):
        return "has a `cluster`, which only `remote: databricks` uses"
    if made.cluster and made.runtime is not None and made.runtime.version is None:
        return "has a `cluster` and `runtime: serverless`, which exclude each other"
    where = [each for each in ("remote", "thrift", "warehouse") if getattr(made, each)]
    if len(where) > 1:
        return f"has both `{where[0]}` and `{where[1]}`: keep one of them"
    if made.warehouse and dialect_of(made.dialect).runtime is None:
        return "has a `warehouse`, which needs `dialect: databricks`"
    if (made.warehouse or made.thrift) and made.statement_bound == 0:
        return "has `statement_bound: 0`, with which an endpoint would never end a statement: leave it out for an hour"
    if made.warehouse and (made.statement_bound or 0) > _LONGEST_ON_WAREHOUSE:
        return f"has a `statement_bound` above {_LONGEST_ON_WAREHOUSE}, the most that a warehouse takes"
    return ""


# Window


_SHORTEST_UPKEEP, _LONGEST_UPKEEP = 10.0, 86_400.0


@dataclass(frozen=True, kw_only=True)
class RunSettings:
    """Settings of the window that a flag of ``apply`` and a parameter of ``tablectl.apply`` override."""

    canary: int = setting(
        0,
        whole(
            0,
            100_000,
            "How many tables an apply changes before the others, at least one of each group of equal changes; 0 starts "
            "all alike.",
        ),
        "--canary",
        metavar="N",
    )
    soak: float = setting(
        10.0,
        number(0, _LONGEST_SOAK, "Minutes for which the logs of these tables are watched before the others start."),
        "--soak",
        metavar="MINUTES",
    )
    stop_if_failed: int = setting(
        1,
        whole(0, 100_000, "How many failed tables keep the others from starting; 0 is not a limit."),
        "--stop-if-failed",
        metavar="N",
    )
    stop_if_silent: int = setting(
        0,
        whole(0, 100_000, "How many silent writers keep the others from starting; 0 is not a limit."),
        "--stop-if-silent",
        metavar="N",
    )


def _upkeep_seconds(text: str) -> float:
    seconds = parse_interval(text) / 1_000_000
    if not _SHORTEST_UPKEEP <= seconds <= _LONGEST_UPKEEP:
        raise ValueError("needs an interval from 10 seconds to 1 day, such as '2 minutes'")
    return seconds


_RULES = Section(
    make=always,
    keys={
        **RULE_KEYS,
        "tables": _globs("Globs of the tables that the rule is about; default: all."),
        "tags": _globs("Tags of the tables that the rule is about."),
    },
    required=RULE_REQUIRED,
)


@dataclass(frozen=True, kw_only=True)
class WindowConfig(RunSettings):
    """How the protected window runs."""

    parallel: int = setting(4, whole(1, 64, "The number of tables that are changed in parallel."))
    ttl: int = setting(60, whole(10, 3600, "Seconds after which a lease that was not renewed may be taken over."))
    drain: int = setting(300, DRAIN)
    cutover: int = setting(
        30,
        whole(
            1,
            3600,
            "The most seconds of work that `rewrite: {copy: beside}` may leave for the time of the closed gate.",
        ),
    )
    before: tuple[tuple[str, ...], ...] = setting(
        (),
        ListOf(
            of=CommandLine(),
            description="Commands that run before the first gate that stops more than schema changes.",
        ),
    )
    after: tuple[tuple[str, ...], ...] = setting(
        (), ListOf(of=CommandLine(), description="Commands that run when the gate is open again.")
    )
    hook_timeout: int = setting(60, whole(1, 3600, "Seconds after which a command is stopped and counts as failed."))
    together: tuple[str, ...] = setting((), _globs("Names (globs) and tags of tables that share one window."))
    max_bytes_per_hour: int | None = setting(
        None,
        Text(
            parse=_some_bytes,
            noun="a size above 0",
            values={"type": ["string", "integer"], "examples": ["500 GB"]},
            example="500 GB",
            description="The most data that a run may rewrite in an hour; default: no limit.",
        ),
    )
    quiet: float = setting(
        0.1,
        number(
            0.001,
            1_000_000,
            "The expected number of failed writes below which a moment is quiet, for `--when quiet`.",
        ),
    )
    upkeep: float = setting(
        120.0,
        Text(
            parse=_upkeep_seconds,
            noun="an interval",
            values={"type": "string", "examples": ["2 minutes"]},
            example="2 minutes",
            description="How long a guarded writer waits at most for `tablectl upkeep`; default: 2 minutes.",
        ),
    )
    allow: tuple[Rule, ...] = setting(
        (), ListOf(of=_RULES, description="Periods in which a window may open; default: always.")
    )
    deny: tuple[Rule, ...] = setting((), ListOf(of=_RULES, description="Periods in which no window may open."))

    @property
    def calendar(self) -> Calendar:
        """The times when a window may open."""
        return Calendar(allow=self.allow, deny=self.deny)


# Stores, reports, notifications, installation, lint


def _options(family: str) -> Any:
    about = f"Options of obstore for {family}:// locations, without secrets."
    known, secrets = OPTIONS[family], SECRETS[family]
    return setting({}, LibraryOptions(of=Text(parse=_clean), known=known, secrets=secrets, description=about))


@dataclass(frozen=True, kw_only=True)
class StoresConfig:
    """How to reach object stores, by store kind: obstore's options without secrets."""

    concurrency: int = setting(
        CONCURRENCY, whole(1, 512, "The number of tables that are read in parallel. A proxy may need fewer.")
    )
    processes: int | None = setting(
        None,
        whole(
            1, 64, "The number of processes that read many tables on local disks; default: one for each core, up to 8."
        ),
    )
    s3: Mapping[str, str] = _options("s3")
    gs: Mapping[str, str] = _options("gs")
    az: Mapping[str, str] = _options("az")

    def families(self) -> Mapping[str, Mapping[str, str]]:
        """The options of each store kind that has any."""
        return {family: given for family, given in (("s3", self.s3), ("gs", self.gs), ("az", self.az)) if given}


@dataclass(frozen=True, kw_only=True)
class ReportsConfig:
    """What reports show."""

    mask: tuple[str, ...] = setting(
        SECRET_KEYS, _globs("Globs of property keys whose values reports hide; default: keys like secrets.")
    )


NotifyEvent = Literal["applied", "failed", "drift", "refused"]
NOTIFY_EVENTS: tuple[NotifyEvent, ...] = get_args(NotifyEvent)


@dataclass(frozen=True, kw_only=True)
class NotifyConfig:
    """One receiver of notifications."""

    events: tuple[NotifyEvent, ...] = setting(
        NOTIFY_EVENTS,
        ListOf(
            of=Word(words=NOTIFY_EVENTS), description="What to report: applied, failed, drift, refused; default: all."
        ),
    )
    command: tuple[str, ...] = setting(
        (), CommandLine(description="A command that gets the event as JSON on its standard input.")
    )
    timeout: int = setting(10, whole(1, 120, "Seconds after which it is given up; default: 10."))


@dataclass(frozen=True, kw_only=True)
class InstallConfig:
    """Where CI and the pages install tablectl from. Without a source, nothing is written that names an installation."""

    source: InstallSource | None = setting(
        None, Text(parse=parse_source, description="A version, a URL or a path to install from.")
    )
    hashes: Mapping[str, str] = setting(
        {},
        MapOf(
            of=Text(parse=parse_hash),
            why_not=lambda name: "" if name in DISTRIBUTIONS else "is not one of the two wheels",
            description="The hashes of the two wheels, for a URL.",
        ),
    )


def _why_no_code(code: str) -> str:
    if code in RULES:
        return ""
    if is_own_code(code):
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


# The file


def _why_no_variable(name: str) -> str:
    return "" if is_variable(name) else "is not a variable name: letters, digits and _, no digit first"


def _why_no_environment(name: str) -> str:
    return "" if is_environment(name) else "is not an environment name: letters, digits, '_', '.' and '-'"


@dataclass(frozen=True, kw_only=True)
class Config:
    """The configuration of one repository. Relative paths are relative to its directory."""

    policies: str = setting("policies", Text(parse=_clean, description="The policy files: a file or a folder."))
    variables: Mapping[str, str] = setting(
        {},
        MapOf(
            of=Text(),
            why_not=_why_no_variable,
            names={"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"},
            description="Values of ${NAME} in policies if neither --var nor TABLECTL_VAR_NAME sets one.",
        ),
    )
    ignore: tuple[str, ...] = setting(
        (),
        _globs(
            "Globs of tables that patterns, places and `--all` leave out, such as `*__dbt_tmp`. A table that is named "
            "is not ignored."
        ),
    )
    max_tables: int | None = setting(
        None,
        whole(
            0,
            1_000_000_000,
            "The most tables that a plan may change, unless `--max-tables` says another number; default: no limit.",
        ),
    )
    engine: EngineConfig = setting(
        EngineConfig(), section(EngineConfig, "How statements reach the tables.", check=_why_no_engine)
    )
    catalogs: Mapping[str, CatalogConfig] = setting(
        {},
        MapOf(of=CATALOG, why_not=why_no_catalog, description="How the tables of each catalog are found, by catalog."),
    )
    window: WindowConfig = setting(
        WindowConfig(),
        section(
            WindowConfig,
            "How the protected window runs.",
            gone={"stop_if": "write `stop_if_failed: N`, `stop_if_silent: N` or both (docs/many-tables.md)"},
        ),
    )
    state: str | None = setting(
        None,
        Text(
            parse=_place,
            description="Where lease records are stored, if not next to the tables: an absolute path or a URI.",
        ),
    )
    cache: str = setting(
        "",
        Text(
            parse=_clean,
            description="The directory of what earlier commands read of tables; by default the user's cache directory.",
        ),
    )
    stores: StoresConfig = setting(StoresConfig(), section(StoresConfig, "How to reach object stores."))
    reports: ReportsConfig = setting(ReportsConfig(), section(ReportsConfig, "What reports show."))
    notify: tuple[NotifyConfig, ...] = setting(
        (),
        ListOf(
            of=section(
                NotifyConfig,
                required=("command",),
                gone={
                    "webhook": "give a `command` that posts the event with curl, as in docs/recipes.md (Post to Slack)"
                },
            ),
            description="Receivers of messages about applies and drift. An unmerged branch cannot set it.",
        ),
    )
    lint: Mapping[str, LintSetting] = setting(
        {},
        MapOf(
            of=_LINT,
            why_not=_why_no_code,
            names={"anyOf": [{"enum": [*RULES]}, {"pattern": OWN_CODE}]},
            description="The severity of findings, by code.",
        ),
    )
    plans: str = setting(
        "", Text(parse=_clean, description="The folder of plan files that are named without a folder.")
    )
    install: InstallConfig = setting(InstallConfig(), section(InstallConfig, "Where tablectl is installed from."))
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


OVERRIDDEN: Mapping[type[Any], str] = MappingProxyType({ServerSettings: "engine", RunSettings: "window"})
"""The settings that a caller may give, and their section."""


def with_settings(config: Config, given: Mapping[str, Any]) -> Config:
    """The configuration with the settings that flags or parameters give, which have the highest precedence."""
    engine = given_settings(EngineConfig, ServerSettings, given)
    alone: dict[str, Any] = {"thrift": None, "warehouse": None} if engine else {}
    window = given_settings(WindowConfig, RunSettings, given)
    return replace(
        config,
        engine=replace(config.engine, **engine, **alone),
        window=replace(config.window, **window),
    )


def _whole_file() -> Section:
    about = "Where the policies of a repository are, and how tablectl reaches and changes its tables."
    gone = {
        "signatures": "remove it: plans have no signatures. `apply` compares a plan with the merged policies; to prove "
        "where a plan was made, use `gh attestation` (docs/recipes.md)"
    }
    top = section(Config, about, gone=gone)
    only_at_the_top = ("plans", "install", "env")
    keys = {key: takes for key, takes in top.keys.items() if key not in only_at_the_top}
    environments = MapOf(
        of=Section(make=Config, keys=keys, only_at_the_top=only_at_the_top, gone=gone),
        why_not=_why_no_environment,
        description="Environments by name; `--env NAME` selects one, and its values override those above.",
    )
    return replace(top, keys={**top.keys, "env": environments})


CONFIG = _whole_file()
"""The whole file."""
