"""Rules about what clients and Databricks Runtimes support, and what predictive optimization does by itself."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from tablectl.attributes.base import policy_line
from tablectl.attributes.clustering import CLUSTERED_DATA
from tablectl.attributes.features import Features, dropped_features
from tablectl.attributes.policy import Policy, attribute
from tablectl.delta import keys
from tablectl.delta.clients import (
    ClientData,
    find_client,
    find_engine,
    in_the_way,
    meant_client,
    parse_version,
    wrong_writes,
)
from tablectl.delta.databricks_runtimes import TRUNCATED, Capability, can, for_property, for_value
from tablectl.delta.dialects import dialect_of
from tablectl.lint_rules.rule import Found, LintedState, LintRule
from tablectl.model.plan import Value

OLD_DAYS = 180
_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)


@LintRule(
    code="L018",
    name="ClientDataOld",
    severity="note",
    title="What is known of a client is older than 180 days",
    breaks="Nothing by itself: a newer release of the client may know more features than tablectl knows "
    "of, and tablectl may refuse a change that it supports.",
    why="`clients:` or the history names the client, and the table's newest commit is more than 180 days younger "
    "than the newest day in the client's entry. The commit's own timestamp is the clock: lint reads no other.",
    fix="Upgrade tablectl. In its repository, `make probe-clients` tries the newest releases and rewrites the data.",
    source="the table of clients in this page",
    seen=("lint",),
)
def client_data_old(table: LintedState) -> Found:
    """The newest commit's timestamp is the current time, so that equal logs give equal findings."""
    now = max((each.timestamp for each in table.history), default=0) // _DAY
    for data in _clients(table):
        age = now - (date.fromisoformat(data.checked) - _EPOCH).days
        if age > OLD_DAYS:
            yield f"what is known of {data.name} is of {data.checked}, {age} days before the last commit", ""


@LintRule(
    code="D002",
    name="RuntimeTooOld",
    severity="warning",
    title="The engine's Databricks Runtime does not have what the policy needs",
    breaks="A plan that has to make this change is refused.",
    why="`engine.runtime` is older than the first runtime that has the statement, by the source in the message.",
    fix="Run applies with a newer runtime and set `engine.runtime`, or leave the setting out. Where a table has "
    "the value already, nothing has to be done.",
    source="docs/databricks.md, and the source in the message",
    seen=("validate", "lint"),
)
def runtime_too_old(table: LintedState) -> Found:
    if table.runtime is None:
        return
    for about, known in needs_of_policy(table.declared, truncates=table.truncates):
        if can(table.runtime, known) is False:
            text = f"{known.form} needs Databricks Runtime {known.first}, and the engine has {table.runtime.text}"
            yield f"{text} ({known.cited})", about


@LintRule(
    code="D003",
    name="RuntimeUnknown",
    severity="note",
    title="No source says which Databricks Runtime has what the policy needs",
    breaks="Possibly the apply: an older runtime may reject the statement.",
    why="The documentation that tablectl was made from names no runtime. tablectl refuses nothing because of "
    "something unknown.",
    fix="Try the statement on a copy of the table.",
    source="docs/databricks.md",
    seen=("validate", "lint"),
)
def runtime_unknown(table: LintedState) -> Found:
    if not dialect_of(table.dialect).catalog_settings:
        return
    for about, known in needs_of_policy(table.declared, truncates=table.truncates):
        if known.since is None:
            yield f"no source says which Databricks Runtime has {known.form}", about


@LintRule(
    code="D004",
    name="LeftToPredictiveOptimization",
    severity="note",
    title="OPTIMIZE is left to predictive optimization",
    breaks="Nothing: data is clustered later, by Databricks.",
    why="The policy asks for OPTIMIZE, and predictive optimization is on for the table. It runs OPTIMIZE by "
    "itself; a second one would cost without an effect.",
    fix="Leave `optimize` out, or declare `predictive_optimization: disabled`.",
    source="docs.databricks.com/aws/en/optimizations/predictive-optimization, seen on 2026-11-22",
    seen=("plan", "lint"),
)
def left_to_predictive_optimization(table: LintedState) -> Found:
    if table.optimize == "never" or table.clustering in {None, "none"}:
        return
    entry = table.live.entry if table.live else None
    own = table.declared.predictive_optimization
    if own == "enabled" or (own != "disabled" and entry is not None and entry.optimized is True):
        text = "no OPTIMIZE is planned: predictive optimization clusters the data of this table"
        yield text, CLUSTERED_DATA.partition(".")[0]


@LintRule(
    code="D005",
    name="WaitsForManagedTable",
    severity="note",
    title="A setting of managed tables waits for the next plan",
    breaks="Nothing: the next plan has the change.",
    why="`SET MANAGED` moves the table, so no statement of the run can follow it, and only managed tables have "
    "predictive optimization and automatic clustering.",
    fix="Apply, then plan again.",
    source="docs.databricks.com/aws/en/tables/convert-external-managed, seen on 2026-11-22",
    seen=("plan",),
)
def waits_for_managed_table(table: LintedState) -> Found:
    if "managed" not in table.changed or table.declared.managed != "true":
        return
    waiting = [name for name in ("predictive_optimization", "clustering") if _waits(table, name)]
    if waiting:
        text = f"after the table has moved, the next plan makes the change of {' and '.join(waiting)}"
        yield text, waiting[0]


@LintRule(
    code="L023",
    name="ClientStandsOutside",
    severity="warning",
    harm="clients locked out",
    title="A client of the policy cannot read or write the table",
    breaks="Each query of that client fails, today: the plan did not cause it, and would not change it.",
    why="`clients:` names the client, and by its documentation, or by a probe, its version does not know a feature "
    "that the table's protocol has.",
    fix="Declare the lines that the finding names: each drops a feature (docs/features.md). Or upgrade the client, or "
    "remove it from `clients`.",
    source="the table of clients in this page; delta-1.15",
)
def client_stands_outside(table: LintedState) -> Found:
    if table.live is None:
        return
    going = set(dropped_features(table.declared.declared))
    left = table.live.protocol.lowered(frozenset(going))
    for name, version in table.client_versions:
        lines = dict[str, str]()
        for feature, access in in_the_way(name, version, left):
            lines.setdefault(feature, access)
        if lines:
            does = "write" if "write" in lines.values() and "read" not in lines.values() else "read"
            ways = [f"`{line}`" for each in lines if (line := policy_line(each))]
            stay = [each for each in lines if not policy_line(each)]
            stand = "stands" if len(lines) == 1 else "stand"
            text = f"{name} {version} cannot {does} the table: {', '.join(lines)} {stand} in the way"
            text += f"; {' and '.join(ways)} would remove {'it' if len(lines) == 1 else 'them'}" if ways else ""
            yield text + (f"; no statement drops {', '.join(stay)}" if stay else ""), "clients"


@LintRule(
    code="L027",
    name="ClientIsUnknown",
    severity="warning",
    harm="clients locked out",
    title="A client of the policy is not known",
    breaks="Nothing by itself: a change that locks this client out is planned like any other, with P003.",
    why="`clients:` names a client of which tablectl has no data, or its name is misspelt.",
    fix="Correct the name. If the client is another one, `allowed_features:` with the features that it knows protects "
    "its access; then set this code to `ignore` for its tables.",
    source="the table of clients in this page",
    seen=("validate", "lint"),
)
def client_is_unknown(table: LintedState) -> Found:
    for name in table.clients:
        if find_client(name) is None:
            meant = meant_client(name)
            hint = f"; did you mean {meant}?" if meant else ""
            yield f"{name} is not in the table of clients: nothing protects its access{hint}", "clients"


@LintRule(
    code="L026",
    name="ClientWritesWrongRows",
    severity="warning",
    title="A client deletes wrong rows",
    breaks="A DELETE, UPDATE or MERGE of that client removes or brings back other rows than it should, without an "
    "error.",
    why="`clients:` names the client with a version that has this fault by its own release notes or issues. Some "
    "are only those of tables with `delta.enableDeletionVectors`.",
    fix="Upgrade the client to the release with the fix before it writes this table again, or let it only read.",
    source="the table of clients in this page",
    seen=("lint",),
    harm="data or history at risk",
    properties=(keys.DELETION_VECTORS,),
)
def client_writes_wrong_rows(table: LintedState) -> Found:
    vectors = (table.value(keys.DELETION_VECTORS) or "").lower() == "true"
    for name, version in table.client_versions:
        data = find_client(name)
        for each in wrong_writes(data, parse_version(version), vectors=vectors) if data else ():
            yield f"{name} {version}: {each.why} (source: {each.source})", "clients"


@LintRule(
    code="D006",
    name="CatalogCommitsBegin",
    severity="warning",
    title="Catalog commits change how clients reach the table",
    breaks="Jobs that use the table's path fail for good, and so do clients that do not know catalogManaged. "
    "Open-source Delta Spark refuses OPTIMIZE, REORG, VACUUM and DROP FEATURE on such a table.",
    why="With catalogManaged, the newest commits are known to the catalog first. Writes in flight may be retried or "
    "cancelled while it is turned on.",
    fix="Move each job to the table's name first. `clients:` refuses the change if it locks one of them out.",
    source="https://docs.databricks.com/gcp/en/delta/catalog-managed-commits; delta-1.11",
    seen=("plan",),
)
def catalog_commits_begin(table: LintedState) -> Found:
    if (
        "features.catalogManaged" in table.changed
        and (table.declared.features or {}).get("catalogManaged") == "supported"
    ):
        yield "from this commit on every reader and writer must go through Unity Catalog", "features.catalogManaged"


def _clients(table: LintedState) -> list[ClientData]:
    named = [find_client(name) for name in table.clients]
    seen = [find_engine(each.client.engine) for each in table.history]
    return sorted({each.name: each for each in (*named, *seen) if each}.values(), key=lambda data: data.name)


def _waits(table: LintedState, name: str) -> bool:
    declared = getattr(table.declared, name)
    return declared is not None and name not in table.changed and (name != "clustering" or declared == "auto")


def needs_of_policy(policy: Policy, *, truncates: bool = False) -> Iterator[tuple[str, Capability]]:
    """The id of each declared value with what it needs. ``truncates``: the policy accepts the loss of history."""
    for name, key, value in policy.values():
        about = f"{name}.{key}" if key else name
        for known in needs_of_value(name, key, value, truncates=truncates):
            yield about, known


def needs_of_value(name: str, key: str, value: Value, *, truncates: bool = False) -> Iterator[Capability]:
    """What one value of an attribute needs, if the table does not have it yet."""
    word = f"{value}{TRUNCATED}" if truncates and value == "dropped" else value
    yield from for_value(Features.name if value == "dropped" else name, word)  # one statement drops any feature
    declared = {key: value if isinstance(value, str) else None} if key else value
    if declared is None:
        return
    for each, text in attribute(name).planned(declared).items():
        yield from for_property(each, text)
