"""What a forged plan can do when the policies are at hand: nothing that they do not ask for."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.attributes.policy import ATTRIBUTES, OWNED_KEYS
from tablectl.delta.client_families import FAMILIES
from tablectl.delta.databricks_runtimes import CAPABILITIES, SERVERLESS
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.protocol import READER_FEATURES
from tablectl.lint_rules import RULES
from tablectl.model.calendar import TableWindow
from tablectl.model.errors import PlanFileError, TablectlError
from tablectl.model.plan import Change, Finding, Plan, ProtocolFact, TablePlan
from tablectl.model.run_report import RunOutcome, RunReport
from tablectl.model.table_options import CONSENTS
from tablectl.planning.derive_statements import derive_table
from tablectl.planning.locked_out_clients import added_features
from tablectl.planning.plan_file import _canonical, _digest, dump_plan
from tablectl.planning.plan_table import derived_findings
from tablectl.policies.schemas import policy_schema
from tablectl.reports.schema import plan_schema
from tablectl.support.typed_json import read_record
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo
from tests.commands.log_lake import Logged

__all__ = ["Cli", "FakeSpark", "Repository", "cli", "fake_spark", "repo"]

Body = dict[str, Any]


@pytest.fixture
def lake(repo: Repository, fake_spark: FakeSpark) -> Repository:
    """Two tables that change, one as declared, one that no policy names."""
    repo.table("orders", properties={"owner.team": "web"})
    repo.table("events", features=["deletionVectors"], vectors=1, properties={"delta.enableDeletionVectors": "true"})
    repo.table("ready", properties={"delta.isolationLevel": "Serializable"})
    repo.table("payroll", partitions=["day"])
    repo.policies(
        "version: 1\ntables:\n"
        f"  delta.`{repo.lake}/orders`: {{tags: [ledger], clustering: [id], properties: {{owner.team: pay}}}}\n"
        f"  delta.`{repo.lake}/e*`: {{deletion_vectors: purged, max_bytes: 1 GB}}\n"
        f"  delta.`{repo.lake}/ready`: {{isolation: Serializable}}\n"
    )
    return repo


def rederived(table: TablePlan, dialect: str = "oss") -> TablePlan:
    """A forged table as its forger would complete it: all that follows from changes and basis fits again."""
    derived = derive_table(table.changes, table.basis, table.table, dialect)
    findings = tuple(
        Finding(code=each.code, severity="note", message=each.message) for each in derived_findings(derived)
    )
    return replace(
        table,
        statements=derived.statements,
        protocol_after=ProtocolFact.of(derived.after),
        features=added_features(derived.before, derived.after),
        undo=derived.undo(table.table),
        findings=findings,
        refusals=(),
    )


def forged(plan: Plan, forge: Callable[[TablePlan], TablePlan], name: str) -> Plan:
    """The plan with one table forged and completed."""
    tables = tuple(rederived(forge(table)) if table.name == name else table for table in plan.tables)
    return replace(plan, tables=tables)


def applied(plan: Plan, **more: Any) -> RunReport:
    """As from a file: what the digest and the derivation refuse is refused here too."""
    Path("p.json").write_bytes(dump_plan(plan))
    return tablectl.apply("p.json", **more)


def refused(plan: Plan) -> str:
    with pytest.raises(PlanFileError) as caught:
        applied(plan)
    return caught.value.message


def test_an_unedited_plan_is_applied(lake: Repository, fake_spark: FakeSpark) -> None:
    report = applied(tablectl.plan())
    assert {run.outcome for run in report.tables} == {RunOutcome.APPLIED}
    assert applied(tablectl.plan()).exit_code == 0


def test_a_plan_with_a_table_that_no_policy_declares_is_refused(lake: Repository, fake_spark: FakeSpark) -> None:
    """The forger plans it by policies of his own, and puts it into a plan with the digest of the merged ones."""
    honest = tablectl.plan()
    own = lake.root / "own.yaml"
    own.write_text(f"version: 1\ntables:\n  delta.`{lake.lake}/payroll`: {{partitioning: [kind], rewrite: allowed}}\n")
    theirs = tablectl.plan(own)
    plan = replace(honest, tables=(*honest.tables, *theirs.tables))
    assert refused(plan) == f"{lake.name('payroll')}: no policy declares this table"
    assert fake_spark.engines == []
    moved = replace(honest, unchanged=(*honest.unchanged, lake.name("payroll")))
    assert refused(moved) == f"{lake.name('payroll')}: `unchanged` names a table that no policy declares"


FORGERIES: list[tuple[str, Callable[[TablePlan], TablePlan], str]] = [
    ("tags", lambda table: replace(table, tags=()), "`tags`"),
    (
        "value",
        lambda table: _changed(table, "properties.owner.team", after="mallory"),
        "`properties.owner.team`",
    ),
    ("columns", lambda table: _changed(table, "clustering", after=("day",)), "`clustering`"),
    ("consent", lambda table: _options(table, rewrite="allowed"), "`rewrite`"),
    ("max_bytes", lambda table: _options(table, max_bytes=5), "`max_bytes`"),
    ("optimize", lambda table: _options(table, optimize="full"), "`optimize`"),
    ("truncate_history", lambda table: _options(table, truncate_history=True), "`truncate_history`"),
    (
        "allowed_features",
        lambda table: _options(table, allowed_features=("clustering", "domainMetadata")),
        "`allowed_features`",
    ),
    ("clients", lambda table: _options(table, clients=(("spark", "4.2"),)), "`clients`"),
    ("allow", lambda table: _options(table, allow=("lockout",)), "`allow`"),
    (
        "a property of its own",
        lambda table: replace(
            table,
            changes=(
                *table.changes,
                Change(attribute="properties", key="delta.appendOnly", before=None, after="false"),
            ),
        ),
        "`properties.delta.appendOnly`",
    ),
    (
        "an attribute of its own",
        lambda table: replace(
            table, changes=(*table.changes, Change(attribute="isolation", before="default", after="Serializable"))
        ),
        "`isolation`",
    ),
    ("owner", lambda table: replace(table, owner="mallory"), "`owner`"),
    ("window", lambda table: replace(table, window=TableWindow(allow=())), "`window`"),
]


def _changed(table: TablePlan, change: str, **over: Any) -> TablePlan:
    return replace(table, changes=tuple(replace(each, **over) if each.id == change else each for each in table.changes))


def _options(table: TablePlan, **over: Any) -> TablePlan:
    return replace(table, basis=replace(table.basis, options=replace(table.basis.options, **over)))


@pytest.mark.parametrize(("forge", "key"), [each[1:] for each in FORGERIES], ids=[each[0] for each in FORGERIES])
def test_what_the_policies_do_not_say_is_refused_by_table_and_key(
    lake: Repository, fake_spark: FakeSpark, forge: Callable[[TablePlan], TablePlan], key: str
) -> None:
    plan = forged(tablectl.plan(), forge, lake.name("orders"))
    assert refused(plan) == f"{lake.name('orders')}: {key} is not what the policies declare"
    assert fake_spark.engines == []


def test_a_table_that_a_pattern_matches_is_compared_with_the_pattern(lake: Repository, fake_spark: FakeSpark) -> None:
    plan = forged(tablectl.plan(), lambda table: _options(table, max_bytes=None), lake.name("events"))
    assert refused(plan) == f"{lake.name('events')}: `max_bytes` is not what the policies declare"


def test_a_plan_of_a_stricter_value_than_the_declared_one_is_refused(lake: Repository, fake_spark: FakeSpark) -> None:
    """``purged`` satisfies ``disabled``; a policy that says ``disabled`` asks for no rewrite all the same."""
    plan = tablectl.plan()
    lake.policies({"events": "{deletion_vectors: disabled, max_bytes: 1 GB}"})
    assert "`deletion_vectors` is not what the policies declare" in refused(
        replace(plan, tables=tuple(each for each in plan.tables if each.name == lake.name("events")))
    )


def test_plan_values_are_compared_with_those_of_the_environment_and_variables(
    lake: Repository, fake_spark: FakeSpark
) -> None:
    Path("tablectl.yaml").write_text("env: {dev: {variables: {TEAM: dev}}, prod: {variables: {TEAM: pay}}}\n")
    lake.policies({"orders": '{properties: {owner.team: "${TEAM}"}}'})
    plan = tablectl.plan(env="dev")
    assert refused(replace(plan, env="prod")) == (
        f"{lake.name('orders')}: `properties.owner.team` is not what the policies declare"
    )
    with pytest.raises(PlanFileError, match=r"owner\.team"):
        tablectl.apply(plan, variables={"TEAM": "other"})
    assert tablectl.apply(plan).committed


def test_a_plan_from_which_a_change_was_removed_is_stale(lake: Repository, fake_spark: FakeSpark) -> None:
    plan = forged(
        tablectl.plan(),
        lambda table: replace(table, changes=tuple(each for each in table.changes if each.attribute != "clustering")),
        lake.name("orders"),
    )
    (run,) = [each for each in applied(plan).tables if each.name == lake.name("orders")]
    assert (run.outcome, run.statements) == (RunOutcome.STALE, ())
    assert run.message == "the policies also ask for clustering, which the plan does not hold"


def test_a_plan_from_which_a_refusal_was_removed_is_refused(lake: Repository, fake_spark: FakeSpark) -> None:
    """``lint: error`` of the repository refuses what the forger's copy of the plan no longer mentions."""
    Path("tablectl.yaml").write_text("lint: {P002: error}\n")
    honest = tablectl.plan()
    (table,) = [each for each in honest.tables if each.name == lake.name("orders")]
    assert table.refusals
    run = {each.name: each for each in applied(forged(honest, lambda each: each, table.name)).tables}[table.name]
    assert (run.outcome, run.statements) == (RunOutcome.REFUSED, ())
    assert run.message == f"{table.refusals[0].change}: {table.refusals[0].reason}"


def test_max_bytes_uses_the_size_of_the_live_table_not_of_the_plan(lake: Repository, fake_spark: FakeSpark) -> None:
    def small(table: TablePlan) -> TablePlan:
        return replace(table, basis=replace(table.basis, bytes=5, files=1))

    plan = forged(tablectl.plan(), small, lake.name("events"))
    for more in ({}, {"without_policies": True}):
        report = applied(plan, max_bytes=10, **more)
        (run,) = [each for each in report.tables if each.name == lake.name("events")]
        assert (run.outcome, run.statements) == (RunOutcome.REFUSED, ())
        assert run.message.startswith("this table rewrites up to ")
    assert applied(plan, max_bytes=10_000).exit_code == 0


def test_max_bytes_limits_all_tables_together(repo: Repository, fake_spark: FakeSpark) -> None:
    vectors: dict[str, Any] = {
        "features": ["deletionVectors"],
        "vectors": 1,
        "properties": {"delta.enableDeletionVectors": "true"},
    }
    for name in ("one", "two", "three"):
        repo.table(name, **vectors)
    repo.policies(dict.fromkeys(("one", "two", "three"), "{deletion_vectors: purged}"))
    plan = tablectl.plan()
    sizes = {each.rewrite.bytes_at_most for table in plan.tables for each in table.statements if each.rewrite}
    (size,) = sizes
    assert size
    small = replace(
        plan,
        tables=tuple(rederived(replace(each, basis=replace(each.basis, bytes=1, files=1))) for each in plan.tables),
    )
    report = applied(small, max_bytes=2 * size)
    assert sorted(str(run.outcome) for run in report.tables) == ["applied", "applied", "refused"]


def test_a_plan_without_a_declared_tag_is_refused_by_the_calendar(lake: Repository, fake_spark: FakeSpark) -> None:
    Path("tablectl.yaml").write_text('window: {deny: [{cron: "* * * * *", duration: 1h, tags: [ledger]}]}\n')
    honest = tablectl.plan()
    outcomes = {run.name: run.outcome for run in applied(honest).tables}
    assert outcomes[lake.name("orders")] is RunOutcome.NO_WINDOW
    assert "`tags`" in refused(
        replace(honest, tables=tuple(replace(each, tags=()) if each.tags else each for each in honest.tables))
    )


def test_apply_without_policies_needs_the_option_and_warns(lake: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    Path("p.json").write_bytes(dump_plan(forged(tablectl.plan(), FORGERIES[1][1], lake.name("orders"))))
    shutil.rmtree("policies")
    ran = cli("apply", "p.json")
    assert (ran.code, fake_spark.sent) == (64, [])
    assert "this folder has no policies to compare the plan with" in ran.err
    assert "--without-policies" in ran.err
    ran = cli("apply", "p.json", "--without-policies")
    assert ran.code == 0
    assert "the plan file alone decides which tables change" in ran.err
    assert Logged(lake.lake / "orders").properties["owner.team"] == "mallory"


def test_apply_takes_the_paths_of_policies(lake: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    Path("policies").rename("mine")
    assert cli("plan", "mine", "--out", "p.json").code == 0
    assert cli("apply", "p.json").code == 64
    assert cli("apply", "p.json", "mine").code == 0


# The runtime


@pytest.fixture
def partitioned(repo: Repository, fake_spark: FakeSpark) -> Repository:
    """A partitioned table that its policy clusters instead."""
    fake_spark.catalog["spark_catalog", "sales", "orders"] = repo.table("orders", partitions=["day"])
    repo.policies("version: 1\ntables:\n  sales.orders: {partitioning: none, clustering: [day]}\n")
    return repo


def configured(engine: str) -> None:
    Path("tablectl.yaml").write_text(f"engine: {{{engine}}}\n")


def test_the_honest_plan_that_replaces_partitions_in_place_is_applied(
    partitioned: Repository, fake_spark: FakeSpark
) -> None:
    configured('dialect: databricks, runtime: "18.1"')
    (run,) = applied(tablectl.plan()).tables
    assert run.outcome is RunOutcome.APPLIED, run.message
    (sent,) = fake_spark.sent
    assert "REPLACE PARTITIONED BY WITH CLUSTER BY (`day`)" in sent
    assert Logged(partitioned.lake / "orders").last("metaData")["partitionColumns"] == []
    assert applied(tablectl.plan()).exit_code == 0


@pytest.mark.parametrize("runtime", ["18.1", "serverless"])
@pytest.mark.parametrize("more", [{}, {"max_bytes": 1}, {"without_policies": True}])
def test_a_forged_runtime_is_refused_by_name_and_sends_nothing(
    partitioned: Repository, fake_spark: FakeSpark, runtime: str, more: Body
) -> None:
    """A forger turns the rewrite, which consent and limits bind, into a statement that they do not."""
    partitioned.policies(
        "version: 1\ntables:\n  sales.orders: {partitioning: none, clustering: [day], rewrite: allowed}\n"
    )
    honest = tablectl.plan()

    def forge(table: TablePlan) -> TablePlan:
        return replace(table, basis=replace(table.basis, runtime=runtime))

    tables = tuple(rederived(forge(table)) for table in honest.tables)
    with pytest.raises(PlanFileError) as caught:
        applied(replace(honest, tables=tables), **more)
    assert caught.value.message == (
        f"sales.orders: `runtime`: the plan is for {runtime!r}, and tablectl.yaml says none"
    )
    assert fake_spark.sent == []


def test_a_plan_for_another_runtime_than_the_configured_one_is_refused(
    partitioned: Repository, fake_spark: FakeSpark
) -> None:
    configured('dialect: databricks, runtime: "18.1"')
    plan = tablectl.plan()
    configured('dialect: databricks, runtime: "17.3"')
    assert refused(plan).endswith("`runtime`: the plan is for '18.1', and tablectl.yaml says '17.3'")


def test_an_edited_dialect_is_refused_without_policies_too(lake: Repository, fake_spark: FakeSpark) -> None:
    honest = tablectl.plan()
    forged = replace(honest, dialect="databricks", tables=())
    with pytest.raises(PlanFileError, match="`dialect`: the plan is for 'databricks'"):
        applied(forged, without_policies=True)


# Every field


def places(body: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a plan file, whole lists and objects too."""
    if path:
        yield path
    if isinstance(body, dict | list):
        items = body.items() if isinstance(body, dict) else enumerate(body)
        for key, value in items:
            yield from places(value, (*path, key))


def enums(schema: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """The words of a JSON Schema, by the key that takes them."""
    if isinstance(schema, list):
        for each in schema:
            yield from enums(each, key)
    elif isinstance(schema, dict):
        yield from ((key, word) for word in schema.get("enum", ()))
        for name, each in schema.items():
            below = name in {"properties", "$defs"} and isinstance(each, dict)
            for inner, field in each.items() if below else [(key, each)]:
                yield from enums(field, inner)


def valid_words() -> Mapping[str, Sequence[Any]]:
    """What a plan may say at each key: every word of its schema, and the names that the schema leaves open."""
    found: dict[str, list[Any]] = {}
    for key, word in enums(plan_schema()):
        found.setdefault(key, []).append(word)
    features = sorted(READER_FEATURES | {"clustering", "domainMetadata", "appendOnly", "rowTracking"})
    values = [*dict.fromkeys(word for _, word in enums(policy_schema())), "default", "true", "false", ["id"], ["day"]]
    return found | {
        "dialect": [each.name for each in DIALECTS],
        "runtime": ["", SERVERLESS, *sorted({each.first for each in CAPABILITIES if each.first})],
        "engine": [each.name for each in FAMILIES],
        "version": [[3, 2, 1], [4, 4, 0], [17, 3], 0, 1],
        "clients": [[], [["spark", "3.5"]], [["delta-rs", "1.0"], ["spark", "4.2"]]],
        "allow": [[], *([each] for each in CONSENTS), list(CONSENTS)],
        "allowed_features": [None, [], features],
        "max_bytes": [None, 1, 10**9, 10**15],
        "streams": [[], [["orders", "/checkpoints/orders"]]],
        "attribute": [each.name for each in ATTRIBUTES],
        "key": ["", *OWNED_KEYS, "delta.appendOnly", "owner.team"],
        "code": list(RULES),
        "reader": [1, 2, 3],
        "writer": [2, 5, 7],
        "reader_features": [[], features[:1], ["deletionVectors"]],
        "writer_features": [[], features],
        "env": ["", "dev"],
        **dict.fromkeys(("before", "after", "via"), values),
    }


def edits(value: Any, words: Sequence[Any] = ()) -> Iterator[Any]:
    """Other values of the same type, some that are not, and every valid word of the place."""
    yield from (word for word in words if word != value)
    match value:
        case bool():
            yield not value
        case int():
            yield from (-1, 0, value + 1, 10**15)
        case str():
            yield from ("", f"{value}x", value.upper(), "none", "/")
        case list():
            yield []
            if value:
                yield value[:-1]
                yield [*value, value[-1]]
                yield [*value[:-1], deepcopy(value[0])]
            yield ["day"]
        case None:
            yield from ("x", 5, ["id"])
        case _:
            yield None
    if value is not None and not isinstance(value, dict):
        yield None


def sealed(body: Body) -> bytes:
    rest = {key: value for key, value in body.items() if key != "sha256"}
    return json.dumps({**rest, "sha256": _digest(_canonical(rest))}).encode()


def completed(body: Body) -> bytes | None:
    """The same edit by a forger who also derives what follows from it; ``None`` where nothing can be derived."""
    try:
        plan = read_record(Plan, json.dumps({key: value for key, value in body.items() if key != "sha256"}))
        tables = tuple(rederived(each, plan.dialect) for each in plan.tables)
        return dump_plan(replace(plan, tables=tables))
    except (TablectlError, ValueError, KeyError, AttributeError, TypeError):
        return None


@pytest.mark.parametrize("step", [61, pytest.param(1, marks=pytest.mark.slow)])
def test_no_edited_field_of_a_plan_sends_another_statement(
    lake: Repository, fake_spark: FakeSpark, tmp_path: Path, capsys: pytest.CaptureFixture[str], step: int
) -> None:
    """Each is refused, or sends nothing that the honest plan would not send."""
    lake.table("parted", partitions=["day"])
    policy = f"  delta.`{lake.lake}/parted`: {{partitioning: none, clustering: [day], rewrite: allowed}}\n"
    with Path("policies/lake.yaml").open("a") as file:
        file.write(policy)
    honest_plan = tablectl.plan()
    whole = json.loads(dump_plan(honest_plan))
    pristine = tmp_path / "pristine"
    shutil.copytree(lake.lake, pristine)

    def run(data: bytes) -> tuple[frozenset[str], frozenset[str]]:
        fake_spark.engines.clear()
        Path("p.json").write_bytes(data)
        try:
            report = tablectl.apply("p.json")
        except TablectlError as error:
            return frozenset({error.message}), frozenset()
        sent = frozenset(fake_spark.sent)
        if sent or (lake.lake / "orders" / "_tablectl").exists():
            shutil.rmtree(lake.lake)
            shutil.copytree(pristine, lake.lake)
        told = [f"{run.name}: {run.message}" for run in report.tables if run.outcome is not RunOutcome.APPLIED]
        return frozenset(told), sent

    usual, honest = run(dump_plan(honest_plan))
    assert len(honest) >= 3
    assert f"OVERWRITE {lake.name('parted')}" in honest
    counts = {"refused whole": 0, "refused by table": 0, "without effect": 0, "sends less": 0}
    names = [table.name for table in honest_plan.tables]
    words = valid_words()
    assert words["rewrite"] == ["allowed", "copy", "refused"]
    forgeries = [
        (path, value)
        for path in places(whole)
        for value in edits(_at(whole, path), words.get(_key(path), ()))
        if path != ("sha256",)
    ]
    for path, value in forgeries[::step]:
        body = deepcopy(whole)
        _at(body, path[:-1])[path[-1]] = value
        for data in filter(None, (sealed(body), completed(body))):
            told, sent = run(data)
            assert sent <= honest, (path, value, sent - honest)
            if not sent and told and not any(name in each.split(": ")[0] for each in told for name in names):
                counts["refused whole"] += 1
            elif told - usual:
                counts["refused by table"] += 1
            else:
                counts["without effect" if sent == honest else "sends less"] += 1
    with capsys.disabled():
        sys.stdout.write(f"\nforged fields: {sum(counts.values())} edits, {counts}\n")
    assert counts["refused whole"] > 1000 // step
    assert counts["refused by table"] > 20 // step


def _key(path: tuple[Any, ...]) -> str:
    """The key of a place; that of the list for an item."""
    return next((step for step in reversed(path) if isinstance(step, str)), "")


def _at(body: Any, path: tuple[Any, ...]) -> Any:
    for step in path:
        body = body[step]
    return body
