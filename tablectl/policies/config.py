"""``tablectl.yaml``: its settings. ``read_config`` reads them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cache
from types import MappingProxyType
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    TypeAdapter,
    WithJsonSchema,
)
from pydantic_core import CoreSchema, core_schema

from tablectl.attributes.policy import SECRET_KEYS
from tablectl.delta.credentials import find_credentials
from tablectl.delta.databricks_runtimes import Runtime, parse_runtime
from tablectl.delta.dialects import DEFAULT_DIALECT, DIALECTS, dialect_of
from tablectl.delta.locations import is_absolute
from tablectl.delta.names import DEFAULT_CATALOG, is_environment
from tablectl.delta.properties import parse_interval
from tablectl.lint_rules import RULES, LintSetting, Severities
from tablectl.model.calendar import Calendar, Rule, check_cron, check_zone, parse_duration
from tablectl.model.install_source import DISTRIBUTIONS, InstallSource, parse_hash, parse_source
from tablectl.model.plan import Severity
from tablectl.model.store_options import CONCURRENCY, OPTIONS, SECRETS
from tablectl.model.table_options import parse_size
from tablectl.policies.catalog_config import CatalogConfig, why_no_catalog, why_not
from tablectl.policies.own_rules import OWN_CODE, is_own_code, own_rule_codes
from tablectl.policies.spelling_hints import did_you_mean, nearest
from tablectl.policies.value_kinds import (
    FLAG,
    MINUTES,
    NUMBER,
    SECONDS,
    TEXT,
    WHOLE,
    FileSchema,
    FileSection,
    Key,
    Parsed,
    ReadAs,
    ShortFor,
    Words,
    inlined,
    matching,
    whole_value,
    wrong,
)
from tablectl.policies.variables import is_variable, why_unusable
from tablectl.policies.wrong_values import Keys, Schema, kind_of
from tablectl.policies.yaml_nodes import Scalar

THRIFT, WAREHOUSE = "thrift://", "warehouse://"
"""What the addresses of SQL endpoints begin with."""
_LONGEST_ON_WAREHOUSE = 172_800
"""Seconds; docs.databricks.com, "STATEMENT_TIMEOUT"."""
LONGEST_SOAK = 10_080
"""The maximum number of minutes for which tables are watched: a week."""
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


def _arguments(given: object) -> object:
    """The arguments of a command, which a text is split into as a shell would. No shell runs it."""
    found = given if isinstance(given, list) else []
    if isinstance(given, str):
        try:
            found = shlex.split(given)
        except ValueError as error:  # an unclosed quote
            raise wrong(f"is not a command: {str(error).lower()}") from None
    if not found or not all(isinstance(word, str | Scalar) for word in found):
        raise wrong(f"needs a command, not {kind_of(given)}", "for example [./pause.sh, nightly]")
    return found


def _named(line: tuple[str, ...]) -> tuple[str, ...]:
    if not line[0] or any("\0" in word for word in line):
        raise wrong("needs a command with a name, and without NUL")
    return line


_COMMAND: Schema = {
    "anyOf": [{"type": "string"}, {"type": "array", "items": dict(TEXT), "minItems": 1}],
    "examples": [["./pause.sh", "nightly"]],
}
Line = Annotated[str, Parsed(_clean)]
Globs = tuple[Line, ...]
Command = Annotated[tuple[str, ...], BeforeValidator(_arguments), AfterValidator(_named), WithJsonSchema(_COMMAND)]


# Engine


_REMOTE = (
    "A Spark Connect server to use instead of a Spark session in this process; `databricks` or `databricks://PROFILE` "
    "for Databricks Connect."
)


def _property_pattern(text: str) -> str:
    if re.fullmatch(r"delta\.[A-Za-z0-9_.*-]{1,100}", text) is None or text == "delta.*":
        raise ValueError("begins with `delta.` and a part of the name")
    return text


@dataclass(frozen=True, kw_only=True)
class EngineConfig(FileSection):
    """How statements reach the tables."""

    remote: Annotated[Annotated[str, Parsed(parse_remote)] | None, Field(description=_REMOTE)] = None
    catalog: Annotated[Line, Field(description="The catalog of identifiers with two parts.")] = DEFAULT_CATALOG
    dialect: Annotated[
        str, Words(tuple(each.name for each in DIALECTS)), Field(description="The dialect of statements.")
    ] = DEFAULT_DIALECT
    runtime: Annotated[
        Annotated[Runtime, Parsed(parse_runtime)] | None,
        Field(description="The Databricks Runtime of the engine, such as 15.4."),
    ] = None
    thrift: Annotated[
        Annotated[str, Parsed(_thrift)] | None,
        Field(
            description="A Spark Thrift server or Kyuubi to use instead of a Spark session; the user and the password "
            "are `TABLECTL_THRIFT_USER` and `TABLECTL_THRIFT_PASSWORD`."
        ),
    ] = None
    thrift_login: Annotated[
        str, Words(("plain", "kerberos", "none")), Field(description="How the Thrift server knows its clients.")
    ] = "plain"
    thrift_tls: Annotated[bool, FLAG, Field(description="Whether the Thrift server is reached by TLS.")] = False
    warehouse: Annotated[
        Annotated[str, Parsed(matching(_WAREHOUSE, "needs the id of a SQL warehouse, such as 1234567890abcdef"))]
        | None,
        Field(description="A Databricks SQL warehouse to use instead of a Spark session, by its id."),
    ] = None
    cluster: Annotated[
        str,
        Parsed(matching(_CLUSTER, "needs the id of a cluster, such as 0710-123456-abcdefgh")),
        Field(description="The id of the cluster for `remote: databricks`."),
    ] = ""
    extra_properties: Annotated[
        tuple[Annotated[str, Parsed(_property_pattern, noun="a pattern such as delta.parquet.*")], ...],
        Field(
            description="Patterns of table properties of other engines, which policies may declare although tablectl "
            "does not know them."
        ),
    ] = ()
    conf: Annotated[
        Mapping[str, Annotated[str, Parsed(str)]], Field(description="Spark settings of a session in this process.")
    ] = field(default_factory=dict)
    exclusive_commits: Annotated[
        bool,
        FLAG,
        Field(
            description="Whether concurrent commits of several drivers exclude each other, which the engine's settings "
            "do not show."
        ),
    ] = False
    heartbeat: Annotated[
        int, Field(ge=1, le=300, description="Seconds between two checks whether a server is alive."), SECONDS
    ] = 5
    dead_after: Annotated[
        int,
        Field(ge=2, le=3600, description="Seconds without an answer after which the server counts as dead."),
        SECONDS,
    ] = 20
    commit_bound: Annotated[
        int,
        Field(
            ge=5,
            le=3600,
            description="Seconds after which a SQL endpoint ends a statement that changes only metadata, such as a "
            "property.",
        ),
        SECONDS,
    ] = 60
    statement_bound: Annotated[
        Annotated[int, Field(ge=0, le=604_800), SECONDS] | None,
        Field(
            description="Seconds after which the engine ends a statement whose client is gone; a SQL endpoint, any "
            "statement."
        ),
    ] = None

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
_CANARY = (
    "How many tables an apply changes before the others, at least one of each group of equal changes; 0 starts all "
    "alike."
)
_SOAK = "Minutes for which the logs of these tables are watched before the others start."
_FAILED = "How many failed tables keep the others from starting; 0 is not a limit."
_SILENT = "How many silent writers keep the others from starting; 0 is not a limit."


@dataclass(frozen=True, kw_only=True)
class RunSettings(FileSection):
    """Settings of the window that a flag of ``apply`` and a parameter of ``tablectl.apply`` override."""

    canary: Annotated[int, Field(ge=0, le=100_000, description=_CANARY), WHOLE] = 0
    soak: Annotated[float, Field(ge=0, le=LONGEST_SOAK, description=_SOAK), MINUTES] = 10.0
    stop_if_failed: Annotated[int, Field(ge=0, le=100_000, description=_FAILED), WHOLE] = 1
    stop_if_silent: Annotated[int, Field(ge=0, le=100_000, description=_SILENT), WHOLE] = 0


def _upkeep_seconds(text: str) -> float:
    seconds = parse_interval(text) / 1_000_000
    if not _SHORTEST_UPKEEP <= seconds <= _LONGEST_UPKEEP:
        raise ValueError("needs an interval from 10 seconds to 1 day, such as '2 minutes'")
    return seconds


@dataclass(frozen=True, kw_only=True)
class RuleSection(FileSection):
    """A period that is about every table."""

    cron: Annotated[str, Parsed(check_cron), Field(description="When the period begins: the five fields of cron.")]
    duration: Annotated[
        timedelta,
        Parsed(parse_duration, kind="a duration", schema={"type": "string", "examples": ["2h30m", "1d"]}),
        Field(description="How long it lasts."),
    ]
    timezone: Annotated[str, Parsed(check_zone), Field(description="The time zone of the fields; default: UTC.")] = (
        "UTC"
    )


@dataclass(frozen=True, kw_only=True)
class _CalendarRule(RuleSection):
    """A period of the calendar."""

    tables: Annotated[Globs, Field(description="Globs of the tables that the rule is about; default: all.")] = ()
    tags: Annotated[Globs, Field(description="Tags of the tables that the rule is about.")] = ()


CalendarRules = tuple[Annotated[Rule, ReadAs(_CalendarRule, Rule)], ...]


@dataclass(frozen=True, kw_only=True)
class WindowConfig(RunSettings):
    """How the protected window runs."""

    parallel: Annotated[
        int, Field(ge=1, le=64, description="The number of tables that are changed in parallel."), WHOLE
    ] = 4
    ttl: Annotated[
        int,
        Field(ge=10, le=3600, description="Seconds after which a lease that was not renewed may be taken over."),
        SECONDS,
    ] = 60
    drain: Annotated[
        int,
        Field(ge=0, le=86_400, description="Seconds that writers have to finish each time the gate becomes stricter."),
        SECONDS,
    ] = 300
    cutover: Annotated[
        int,
        Field(
            ge=1,
            le=3600,
            description="The most seconds of work that `rewrite: {copy: beside}` may leave for the time of the closed "
            "gate.",
        ),
        SECONDS,
    ] = 30
    before: Annotated[
        tuple[Command, ...],
        Field(description="Commands that run before the first gate that stops more than schema changes."),
    ] = ()
    after: Annotated[tuple[Command, ...], Field(description="Commands that run when the gate is open again.")] = ()
    hook_timeout: Annotated[
        int,
        Field(ge=1, le=3600, description="Seconds after which a command is stopped and counts as failed."),
        SECONDS,
    ] = 60
    together: Annotated[Globs, Field(description="Names (globs) and tags of tables that share one window.")] = ()
    max_bytes_per_hour: Annotated[
        Annotated[int, Parsed(_some_bytes, noun="a size above 0", schema={"type": ["string", "integer"]})] | None,
        Field(description="The most data that a run may rewrite in an hour; default: no limit.", examples=["500 GB"]),
    ] = None
    quiet: Annotated[
        float,
        Field(
            ge=0.001,
            le=1_000_000,
            description="The expected number of failed writes below which a moment is quiet, for `--when quiet`.",
        ),
        NUMBER,
    ] = 0.1
    upkeep: Annotated[
        float,
        Parsed(_upkeep_seconds, noun="an interval", schema={"type": "string"}),
        Field(
            description="How long a guarded writer waits at most for `tablectl upkeep`; default: 2 minutes.",
            examples=["2 minutes"],
        ),
    ] = 120.0
    allow: Annotated[CalendarRules, Field(description="Periods in which a window may open; default: always.")] = ()
    deny: Annotated[CalendarRules, Field(description="Periods in which no window may open.")] = ()

    @property
    def calendar(self) -> Calendar:
        """The times when a window may open."""
        return Calendar(allow=self.allow, deny=self.deny)


# Stores, reports, notifications, installation, lint


@dataclass(frozen=True, eq=False)
class _StoreOptions:
    """Options of obstore for one store kind. Only the names are checked. A secret in Git is leaked."""

    family: str

    def _why_not(self, key: str) -> str:
        known = key in OPTIONS[self.family]
        return "is a secret" if key in SECRETS[self.family] else "" if known else "is not an option"

    def _hint(self, key: str) -> str:
        if key in SECRETS[self.family]:
            return f"put it into the environment, as {SECRETS[self.family][key]}"
        meant = nearest(key, OPTIONS[self.family])
        listed = f"known are {', '.join(sorted(OPTIONS[self.family]))}"
        return f"did you mean `{meant}`? {listed}" if meant else listed

    @staticmethod
    def _value(given: object) -> object:
        found = find_credentials(given) if isinstance(given, str) else ""
        if found:  # the message must not contain it
            raise wrong(f"holds {found}", "put it into the environment")
        return Parsed(_clean).read(given)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """As pydantic asks for it."""
        reads = Key(self._why_not, hint=self._hint).read, self._value
        return core_schema.dict_schema(*map(core_schema.no_info_plain_validator_function, reads))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> Schema:
        """As pydantic asks for it."""
        known = sorted(OPTIONS[self.family] - set(SECRETS[self.family]))
        return {"type": "object", "additionalProperties": False, "properties": {key: dict(TEXT) for key in known}}


@dataclass(frozen=True, kw_only=True)
class StoresConfig(FileSection):
    """How to reach object stores, by store kind: obstore's options without secrets."""

    concurrency: Annotated[
        int,
        Field(ge=1, le=512, description="The number of tables that are read in parallel. A proxy may need fewer."),
        WHOLE,
    ] = CONCURRENCY
    processes: Annotated[
        Annotated[int, Field(ge=1, le=64), WHOLE] | None,
        Field(
            description="The number of processes that read many tables on local disks; default: one for each core, up "
            "to 8."
        ),
    ] = None
    s3: Annotated[
        Mapping[str, str],
        _StoreOptions("s3"),
        Field(description="Options of obstore for s3:// locations, without secrets."),
    ] = field(default_factory=dict)
    gs: Annotated[
        Mapping[str, str],
        _StoreOptions("gs"),
        Field(description="Options of obstore for gs:// locations, without secrets."),
    ] = field(default_factory=dict)
    az: Annotated[
        Mapping[str, str],
        _StoreOptions("az"),
        Field(description="Options of obstore for az:// locations, without secrets."),
    ] = field(default_factory=dict)

    def families(self) -> Mapping[str, Mapping[str, str]]:
        """The options of each store kind that has any."""
        return {family: given for family, given in (("s3", self.s3), ("gs", self.gs), ("az", self.az)) if given}


@dataclass(frozen=True, kw_only=True)
class ReportsConfig(FileSection):
    """What reports show."""

    mask: Annotated[
        Globs, Field(description="Globs of property keys whose values reports hide; default: keys like secrets.")
    ] = SECRET_KEYS


NotifyEvent = Literal["applied", "failed", "drift", "refused"]
NOTIFY_EVENTS: tuple[NotifyEvent, ...] = get_args(NotifyEvent)


@dataclass(frozen=True, kw_only=True)
class NotifyConfig(FileSection):
    """One receiver of notifications."""

    events: Annotated[
        tuple[Annotated[NotifyEvent, Words(NOTIFY_EVENTS)], ...],
        Field(description="What to report: applied, failed, drift, refused; default: all."),
    ] = NOTIFY_EVENTS
    command: Annotated[Command, Field(description="A command that gets the event as JSON on its standard input.")]
    timeout: Annotated[
        int, Field(ge=1, le=120, description="Seconds after which it is given up; default: 10."), SECONDS
    ] = 10


def _why_no_wheel(name: str) -> str:
    return "" if name in DISTRIBUTIONS else "is not one of the two wheels"


@dataclass(frozen=True, kw_only=True)
class InstallConfig(FileSection):
    """Where CI and the pages install tablectl from. Without a source, nothing is written that names an installation."""

    source: Annotated[
        Annotated[InstallSource, Parsed(parse_source)] | None,
        Field(description="A version, a URL or a path to install from."),
    ] = None
    hashes: Annotated[
        Mapping[Annotated[str, Key(_why_no_wheel)], Annotated[str, Parsed(parse_hash)]],
        Field(description="The hashes of the two wheels, for a URL."),
    ] = field(default_factory=dict)


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
    return "is not a finding code"


def _meant_code(code: str) -> str:
    return "" if is_own_code(code) else did_you_mean(code, tuple(RULES))


def _unreasoned(made: LintSetting) -> str:
    if made.severity == "ignored" and not made.reason.strip():
        return "is ignored without a reason: say why, as `{severity: ignore, reason: …}`"
    return ""


@dataclass(frozen=True, kw_only=True)
class _LintSection(FileSection):
    """The severity of one code."""

    severity: Annotated[
        Severity,
        Words(("error", "warning", "note", "ignore"), {"ignore": "ignored"}),
        Field(description="`error` refuses the table; `ignore` needs a reason."),
    ]
    reason: Annotated[Line, Field(description="Why the severity is not the default.")] = ""
    tables: Annotated[Globs, Field(description="Globs of the tables that this is about; default: all.")] = ()


# The file


def _why_no_variable(name: str) -> str:
    return "" if is_variable(name) else "is not a variable name: letters, digits and _, no digit first"


def _why_no_environment(name: str) -> str:
    return "" if is_environment(name) else "is not an environment name: letters, digits, '_', '.' and '-'"


Catalog = Annotated[CatalogConfig, ShortFor("type"), AfterValidator(whole_value(why_not))]
Lint = Annotated[
    LintSetting, ReadAs(_LintSection, LintSetting), ShortFor("severity"), AfterValidator(whole_value(_unreasoned))
]


@dataclass(frozen=True, kw_only=True)
class EnvironmentConfig(FileSection):
    """What an environment can set."""

    policies: Annotated[Line, Field(description="The policy files: a file or a folder.")] = "policies"
    variables: Annotated[
        Mapping[
            Annotated[
                str,
                Key(_why_no_variable, schema={"type": "string", "anyOf": [{"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}]}),
            ],
            Annotated[str, Parsed(str)],
        ],
        Field(description="Values of ${NAME} in policies if neither --var nor TABLECTL_VAR_NAME sets one."),
    ] = field(default_factory=dict)
    ignore: Annotated[
        Globs,
        Field(
            description="Globs of tables that patterns, places and `--all` leave out, such as `*__dbt_tmp`. A table "
            "that is named is not ignored."
        ),
    ] = ()
    max_tables: Annotated[
        Annotated[int, Field(ge=0, le=1_000_000_000), WHOLE] | None,
        Field(
            description="The most tables that a plan may change, unless `--max-tables` says another number; default: "
            "no limit."
        ),
    ] = None
    engine: Annotated[
        EngineConfig,
        AfterValidator(whole_value(_why_no_engine)),
        Field(description="How statements reach the tables."),
    ] = EngineConfig()
    catalogs: Annotated[
        Mapping[Annotated[str, Key(why_no_catalog)], Catalog],
        Field(description="How the tables of each catalog are found, by catalog."),
    ] = field(default_factory=dict)
    window: Annotated[WindowConfig, Field(description="How the protected window runs.")] = WindowConfig()
    state: Annotated[
        Annotated[str, Parsed(_place)] | None,
        Field(description="Where lease records are stored, if not next to the tables: an absolute path or a URI."),
    ] = None
    cache: Annotated[
        Line,
        Field(
            description="The directory of what earlier commands read of tables; by default the user's cache directory."
        ),
    ] = ""
    stores: Annotated[StoresConfig, Field(description="How to reach object stores.")] = StoresConfig()
    reports: Annotated[ReportsConfig, Field(description="What reports show.")] = ReportsConfig()
    notify: Annotated[
        tuple[NotifyConfig, ...],
        Field(description="Receivers of messages about applies and drift. An unmerged branch cannot set it."),
    ] = ()
    lint: Annotated[
        Mapping[
            Annotated[
                str,
                Key(
                    _why_no_code, _meant_code, {"type": "string", "anyOf": [{"enum": [*RULES]}, {"pattern": OWN_CODE}]}
                ),
            ],
            Lint,
        ],
        Field(description="The severity of findings, by code."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class FileConfig(EnvironmentConfig):
    """What a file can set."""

    plans: Annotated[Line, Field(description="The folder of plan files that are named without a folder.")] = ""
    install: Annotated[InstallConfig, Field(description="Where tablectl is installed from.")] = InstallConfig()
    env: Annotated[
        Mapping[Annotated[str, Key(_why_no_environment)], EnvironmentConfig],
        Field(description="Environments by name; `--env NAME` selects one, and its values override those above."),
    ] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Config(FileConfig):
    """The configuration of one repository. Relative paths are relative to its directory."""

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


CONFIG = TypeAdapter(FileConfig)
"""Reads the values of the whole file."""
GONE: Mapping[str, str] = MappingProxyType(
    {
        "signatures": "remove it: plans have no signatures. `apply` compares a plan with the merged policies; to prove "
        "where a plan was made, use `gh attestation` (docs/recipes.md)",
        "stop_if": "write `stop_if_failed: N`, `stop_if_silent: N` or both (docs/many-tables.md)",
        "webhook": "give a `command` that posts the event with curl, as in docs/recipes.md (Post to Slack)",
    }
)
"""Keys of earlier versions, each with what to do instead."""
TOP_ALONE = ("plans", "install", "env")
"""Keys that no environment has."""


@cache
def config_schema() -> Schema:
    """The schema of ``tablectl.yaml`` as JSON Schema 2020-12."""
    made = inlined(CONFIG.json_schema(schema_generator=FileSchema))
    about = "Where the policies of a repository are, and how tablectl reaches and changes its tables."
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, "title": "tablectl.yaml", **made, "description": about}


def environment_variables(section: FileSection | None = None, above: Keys = ()) -> Iterator[tuple[str, Keys]]:
    """The environment variables that set single values, with the keys that each sets. Lists and maps have none."""
    section = section or FileConfig()
    for each in fields(section):
        value, keys = getattr(section, each.name), (*above, each.name)
        if isinstance(value, FileSection):
            yield from environment_variables(value, keys)
        elif not isinstance(value, tuple | Mapping):
            yield "_".join(("TABLECTL", *keys)).upper(), keys


def with_settings(config: Config, given: Mapping[str, Any]) -> Config:
    """The configuration with the settings that flags or parameters give, which have the highest precedence."""
    window = {name: value for name, value in given.items() if name != "remote"}
    if "remote" in given:
        config = replace(config, engine=replace(config.engine, remote=given["remote"], thrift=None, warehouse=None))
    return replace(config, window=replace(config.window, **window))
