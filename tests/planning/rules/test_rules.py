"""Each rule of lint on a table, or a policy, that it is about, and on one that it is not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.clients import find_client
from tablectl.delta.databricks_runtimes import parse_runtime
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Client
from tablectl.delta.schema import Field, Schema
from tablectl.lint_rules import RULES, LintSetting, Severities
from tablectl.lint_rules.rule import LintedState, Seen, table_subject
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.commit import AppTransaction, Commit
from tablectl.model.file_layout import PartitionLayout
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.diff import diff
from tablectl.planning.lint import lint, refused_by

Live = Callable[..., LiveTable]

_DAY = 86_400_000
_NOW = 1_700_000_000_000
_VECTORS = "delta.enableDeletionVectors"
_MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"
_STATS = "delta.dataSkippingStatsColumns"
_LOG, _TOMBSTONES = "delta.logRetentionDuration", "delta.deletedFileRetentionDuration"
_STREAMS = "delta.setTransactionRetentionDuration"
_COMPACT = "delta.autoOptimize.autoCompact"
_NAME = parse_table("lake.s.t")
_LONG_AGO = _NOW - 40 * _DAY
_RESTED = Commit(5, _LONG_AGO, "WRITE", transactions=(AppTransaction("q", 3, _LONG_AGO),))


def commits(*kinds: str, **facts: Any) -> tuple[Commit, ...]:
    """A history, newest first, of commits named by what they did: ``append``, ``overwrite``, or an operation."""
    made = []
    for index, kind in enumerate(kinds):
        version = 100 - index
        if kind == "append":
            commit = Commit(version, _NOW, "WRITE", changes_data=True, blind_append=True, **facts)
        elif kind == "overwrite":
            given = {"mode": "Overwrite"}
            commit = Commit(version, _NOW, "WRITE", changes_data=True, overwrites=True, parameters=given, **facts)
        else:
            commit = Commit(version, _NOW, kind, changes_data=True, **facts)
        made.append(commit)
    return tuple(made)


def found(
    live: LiveTable, policy: Mapping[str, Any] | None = None, seen: Seen = "lint", **options: Any
) -> dict[str, str]:
    """What is found on a table under a policy: message by code."""
    declared = Policy(policy or {})
    subject = table_subject(declared, live, diff(declared, live), "oss", options=TableOptions(**options))
    return {each.code: each.message for each in lint(subject, _NAME, seen)}


def alone(**policy: Any) -> dict[str, str]:
    """What is found in a policy without a table."""
    return {each.code: each.message for each in lint(LintedState.of_policy(Policy(policy), "oss"), _NAME, "validate")}


def test_nothing_is_found_on_a_plain_table(live: Live) -> None:
    assert found(live()) == {}
    assert found(live(history=())) == {}
    assert alone() == {}


def test_a_code_without_a_check_is_found_by_another_module() -> None:
    elsewhere = {code for code, rule in RULES.items() if rule.check is None}
    assert elsewhere == {*(f"P00{number}" for number in range(1, 9)), "B001", "B002", "B003", "R001", "D001", "D007"}


def test_rules_are_documented_in_the_order_of_their_codes() -> None:
    assert "".join(dict.fromkeys(code[0] for code in RULES)) == "PLBRD"
    assert list(RULES) == sorted(RULES, key=lambda code: ("PLBRD".index(code[0]), code))


@pytest.mark.parametrize(
    ("facts", "policy", "code", "message"),
    [
        (
            {"partition_columns": ("day",)},
            {"clustering": ("id",)},
            "L001",
            "clustering is declared, and the table is partitioned by day",
        ),
        (
            {"properties": {_VECTORS: "true", _MANIFEST: "TRUE"}},
            {},
            "L002",
            f"deletion vectors are on, and so is {_MANIFEST}",
        ),
        (
            {"properties": {"delta.enableIcebergCompatV2": "true"}},
            {"deletion_vectors": "enabled"},
            "L003",
            "deletion vectors are on, and the table is Iceberg v2 too",
        ),
        (
            {"clustering": (("id",), ("day",))},
            {"properties": {_STATS: "day"}},
            "L004",
            f"the table is clustered by id, which {_STATS} leaves without statistics",
        ),
        (
            {"clustering": (("day",),), "properties": {"delta.dataSkippingNumIndexedCols": "2"}},
            {},
            "L004",
            "the table is clustered by day, which delta.dataSkippingNumIndexedCols leaves without statistics",
        ),
        (
            {"properties": {"delta.dataSkippingNumIndexedCols": "2"}},
            {"data_skipping": ("day",)},
            "L019",
            "delta.dataSkippingNumIndexedCols is 2, and the list of statistics columns takes precedence",
        ),
        (
            {},
            {"retention": {"log": "interval 60 days"}},
            "L020",
            "the log is kept 60 days, deleted files 1 week",
        ),
        (
            {"properties": {_LOG: "interval 6 days", _TOMBSTONES: "1 day"}, "history": (_RESTED,)},
            {},
            "L021",
            "the log is kept 6 days; recent streams: 1",
        ),
        (
            {"properties": {_TOMBSTONES: "2 weeks"}},
            {},
            "L022",
            f"delta-rs ignores the stored text of {_TOMBSTONES}, 2 weeks: it reads interval 2 weeks",
        ),
        (
            {"properties": {"delta.appendOnly": "TRUE"}},
            {"properties": {"delta.appendOnly": "true"}},
            "L022",
            "delta-rs ignores the stored text of delta.appendOnly, TRUE: it reads true",
        ),
        (
            {"properties": {"delta.columnMapping.mode": "NAME"}},
            {},
            "L022",
            "delta-rs ignores the stored text of delta.columnMapping.mode, NAME: it reads name; no plan replaces it",
        ),
        (
            {"properties": {_TOMBSTONES: "P30D"}},
            {},
            "L034",
            (
                f"Delta Spark cannot read {_TOMBSTONES}, 'P30D': it needs an interval such as 'interval 7 days'; "
                "INSERT, ALTER TABLE commit and then fail, so a job that retries writes its rows twice; SELECT, "
                "DELETE, VACUUM fail; declare `retention: {deleted_files: default}`"
            ),
        ),
        (
            {"properties": {"delta.appendOnly": "yes"}},
            {},
            "L034",
            (
                "Delta Spark cannot read delta.appendOnly, 'yes': it needs true or false; ALTER TABLE, DELETE fail; "
                "declare `properties: {delta.appendOnly: null}`"
            ),
        ),
        (
            {"properties": {"delta.enableDeletionVectors": "yes"}},
            {},
            "L034",
            (
                "Delta Spark cannot read delta.enableDeletionVectors, 'yes': it needs true or false; ALTER TABLE fails"
                "; run ALTER TABLE … UNSET TBLPROPERTIES ('delta.enableDeletionVectors')"
            ),
        ),
        (
            {"properties": {"delta.dataSkippingStatsColumns": "`id, c"}},
            {},
            "L034",
            (
                "Delta Spark cannot read delta.dataSkippingStatsColumns, '`id, c': it needs a list of columns, and a "
                "backtick in '`id, c' is never closed; SELECT, INSERT, DELETE fail; declare `data_skipping: default`"
            ),
        ),
        (
            {"properties": {_TOMBSTONES: "-1 days"}},
            {},
            "L036",
            (
                f"Delta would refuse {_TOMBSTONES}, '-1 days': it needs an interval that is not negative; declare "
                "`retention: {deleted_files: default}`"
            ),
        ),
        (
            {"properties": {"delta.appendonly": "true"}},
            {},
            "L033",
            "no engine reads delta.appendonly, true: delta.appendOnly is not set",
        ),
        (
            {"properties": {"delta.isolationlevel": "Serializable", "delta.isolationLevel": "WriteSerializable"}},
            {},
            "L033",
            "no engine reads delta.isolationlevel, Serializable: delta.isolationLevel is WriteSerializable",
        ),
        ({}, {"properties": {_LOG: "interval 2 days"}}, "L005", "the log is kept 2 days, deleted files 1 week"),
        (
            {},
            {"properties": {_TOMBSTONES: "interval 60 days"}},
            "L005",
            "the log is kept 30 days, deleted files 60 days",
        ),
        ({"properties": {_TOMBSTONES: "interval 0 hours"}}, {}, "L006", "deleted files are kept 0 hours only"),
        ({"properties": {_TOMBSTONES: "interval 1 days"}}, {}, "L006", "deleted files are kept 1 day only"),
        (
            {"layout": PartitionLayout(20_000, 200_000_000, (("id", 20_000), ("day", 30)))},
            {},
            "L007",
            "the partition column id has 20,000 values",
        ),
        (
            {"layout": PartitionLayout(50, 1_500, (("day", 50),))},
            {},
            "L008",
            "50 partitions, half of which hold at most 1.5 kB",
        ),
        (
            {"history": commits("MERGE", *["append"] * 5), "properties": {"delta.isolationLevel": "serializable"}},
            {},
            "L009",
            (
                "of the last 6 commits 5 only appended, and 1 read the table: "
                "at Serializable the appends make the readers fail"
            ),
        ),
        (
            {
                "schema": Schema((Field("id", "long", identity=True),)),
                "history": commits("WRITE", read_version=90) + commits("WRITE", read_version=99),
            },
            {},
            "L010",
            "id is generated by Delta, and 1 of the last 2 commits were concurrent",
        ),
        (
            {
                "history": commits("append", transactions=(AppTransaction("q", 3, _NOW),)),
                "properties": {_STREAMS: "interval 2 days"},
            },
            {},
            "L012",
            f"{_STREAMS} is interval 2 days; recent streams: 1",
        ),
        (
            {
                "history": (*commits("append", "append"), _RESTED),
                "properties": {_STREAMS: "interval 30 days"},
            },
            {},
            "L012",
            f"{_STREAMS} is interval 30 days; recent streams: 1, of which 1 idle for longer",
        ),
        (
            {"history": commits("append", "overwrite"), "clustering": (("id",),)},
            {"clustering": ("id",)},
            "L013",
            "1 of the last 2 commits overwrote the table, the last is 99: each clears the clustering columns",
        ),
        (
            {"clients": (Client("databricks", (14, 3)), Client("delta-spark", (4, 0)))},
            {},
            "L014",
            "no isolation level is set, and both Databricks and Delta Spark write the table",
        ),
        (
            {"history": commits("MERGE", "DELETE", "append"), "properties": {_COMPACT: "true"}},
            {},
            "L015",
            f"{_COMPACT} is true, and 2 of the last 3 commits rewrote rows (DELETE, MERGE)",
        ),
        (
            {"properties": {"delta.enableExpiredLogCleanup": "false"}},
            {},
            "L016",
            "delta.enableExpiredLogCleanup is off: the log grows without limit",
        ),
    ],
)
def test_a_rule_finds(live: Live, facts: dict[str, Any], policy: dict[str, Any], code: str, message: str) -> None:
    table = LiveTable(**{**_plain(live), **facts}) if "history" in facts else live(**facts)
    assert found(table, policy).get(code) == message


def _plain(live: Live) -> dict[str, Any]:
    table = live()
    return {name: getattr(table, name) for name in LiveTable.__dataclass_fields__ if name != "history"}


@pytest.mark.parametrize(
    ("facts", "policy"),
    [
        ({"partition_columns": ("day",)}, {"clustering": "none"}),
        ({"properties": {_VECTORS: "true", _MANIFEST: "false"}}, {}),
        (
            {
                "properties": {
                    _VECTORS: "true",
                    "delta.enableIcebergCompatV3": "true",
                    "delta.columnMapping.mode": "name",
                }
            },
            {},
        ),
        # What the plan itself clusters by is refused where it has no statistics, and told once.
        ({}, {"clustering": ("id",), "properties": {_STATS: "day"}}),
        ({"clustering": (("id",),)}, {"properties": {_STATS: "ID"}}),
        ({}, {"properties": {_LOG: "interval 7 days"}}),
        ({"properties": {"delta.appendonly": "TRUE", "delta.appendOnly": "true"}}, {}),
        ({}, {"properties": {_TOMBSTONES: "interval 168 hours"}}),
        ({"layout": PartitionLayout(49, 10, (("day", 49),))}, {}),
        ({"layout": PartitionLayout(60, 2_000_000_000, (("day", 60),))}, {}),
        ({"history": commits("MERGE", *["append"] * 5)}, {}),  # no one pinned the level
        ({"history": commits(*["append"] * 9), "properties": {"delta.isolationLevel": "Serializable"}}, {}),
        ({"history": commits("append"), "properties": {_STREAMS: "interval 1 day"}}, {}),
        ({"history": commits("overwrite")}, {}),
        ({"clients": (Client("databricks"), Client("delta-spark"))}, {"isolation": "Serializable"}),
        ({"history": commits("append", "OPTIMIZE"), "properties": {_COMPACT: "true"}}, {}),
    ],
)
def test_and_says_nothing_otherwise(live: Live, facts: dict[str, Any], policy: dict[str, Any]) -> None:
    table = LiveTable(**{**_plain(live), **facts}) if "history" in facts else live(**facts)
    assert found(table, policy) == {}


def test_append_only_where_the_plan_turns_it_on(live: Live) -> None:
    history = commits("DELETE", "overwrite", "append", "MERGE")
    table = LiveTable(**{**_plain(live), "history": history})
    message = "3 of the last 4 commits removed rows (DELETE, MERGE, overwrite): such commits will fail"
    assert found(table, {"properties": {"delta.appendOnly": "true"}}, "plan")["L011"] == message
    on = LiveTable(**{**_plain(live), "history": history, "properties": {"delta.appendOnly": "true"}})
    assert found(on, {"properties": {"delta.appendOnly": "true"}}, "plan") == {}


def test_new_clustering_columns_move_nothing_unless_optimize_is_declared(live: Live) -> None:
    assert found(live(), {"clustering": ("id",)}, "plan") == {
        "L017": "files stay as they are until OPTIMIZE clusters them"
    }
    assert found(live(), {"clustering": ("id",)}, "plan", optimize="full") == {}
    assert found(live(files=0), {"clustering": ("id",)}, "plan") == {}


@pytest.mark.parametrize(("days", "told"), [(0, False), (180, False), (181, True)])
@pytest.mark.parametrize("named", [True, False])
def test_client_data_is_old_by_the_clock_of_the_newest_commit(live: Live, days: int, told: bool, named: bool) -> None:
    data = find_client("deltalake")
    assert data
    day = int(datetime.fromisoformat(f"{data.checked}T12:00:00+00:00").timestamp() * 1000)
    client = Client("unknown") if named else Client("delta-rs", (1, 6, 6))
    history = (Commit(7, day + days * _DAY, "WRITE", client=client, changes_data=True),)
    options: dict[str, Any] = {"clients": (("deltalake", "1.6.6"),)} if named else {}
    table = replace(live(), history=history)
    messages = found(table, **options)
    assert ("L018" in messages) is told
    assert (
        not told
        or messages["L018"] == f"what is known of deltalake is of {data.checked}, 181 days before the last commit"
    )
    assert "L018" not in found(table, seen="plan", **options), "a plan takes no clock"


@pytest.mark.parametrize(
    ("version", "vectors", "told"),
    [("480", "false", 1), ("481", "false", 0), ("481", "true", 0), ("469", "true", 2), ("469", "false", 1)],
)
def test_a_trino_that_deletes_wrong_rows_is_named(live: Live, version: str, vectors: str, told: int) -> None:
    declared = TableOptions(clients=(("trino", version),))
    subject = table_subject(Policy(), live(properties={_VECTORS: vectors}), (), "oss", options=declared)
    messages = [each.message for each in lint(subject, _NAME, "lint") if each.code == "L026"]
    assert len(messages) == told
    assert all(each.startswith(f"trino {version}: ") for each in messages)


@pytest.mark.parametrize(
    ("name", "meant"),
    [("trinoo", "; did you mean trino?"), ("delta-rs", "; did you mean deltalake?"), ("impala", "")],
)
def test_a_client_that_is_misspelt_or_not_known_is_named(live: Live, name: str, meant: str) -> None:
    options = TableOptions(clients=((name, "470"), ("trino", "470")))
    text = f"{name} is not in the table of clients: nothing protects its access{meant}"
    state = LintedState.of_policy(Policy(), "oss", options=options)
    assert [(each.code, each.message, each.about) for each in lint(state, _NAME, "validate")] == [
        ("L027", text, "clients")
    ]
    assert found(live(), clients=options.clients)["L027"] == text


def test_a_policy_alone() -> None:
    assert alone(deletion_vectors="enabled", properties={_MANIFEST: "true"}).keys() == {"L002"}
    assert alone(clustering=("a", "b.c"), properties={_STATS: "a"})["L004"].startswith("the table is clustered by b.c,")
    assert alone(clustering=("a", "b.c"), properties={_STATS: "a,b"}) == {}
    assert alone(properties={_LOG: "interval 1 day", _TOMBSTONES: "interval 10 days"}).keys() == {"L005"}
    # The other one is not known, so nothing is known.
    assert alone(properties={_LOG: "interval 1 day"}) == {}
    assert alone(properties={_TOMBSTONES: "interval 1 day"}).keys() == {"L006"}


def on_databricks(live: LiveTable, seen: Seen = "plan", runtime: str = "", **policy: Any) -> dict[str, str]:
    """What is found on a table of Databricks: message by code."""
    options = TableOptions(optimize=policy.pop("optimize", "never"))
    declared = Policy(policy)
    changes = diff(declared, live, "databricks")
    known = parse_runtime(runtime) if runtime else None
    subject = table_subject(declared, live, changes, "databricks", options=options, runtime=known)
    return {each.code: each.message for each in lint(subject, _NAME, seen) if each.code.startswith("D")}


def test_a_policy_that_the_runtime_cannot_reach_is_reported_before_any_plan() -> None:
    policy = Policy(
        {"clustering": "auto", "deletion_vectors": "dropped", "properties": {"delta.enableTypeWidening": "true"}}
    )
    state = LintedState.of_policy(policy, "databricks", parse_runtime("14.3"))
    told = [(each.code, each.about) for each in lint(state, _NAME, "validate")]
    assert told == [
        ("D002", "deletion_vectors"),
        ("D002", "clustering"),
        ("D002", "properties.delta.enableTypeWidening"),
    ]
    given = TableOptions(truncate_history=True)
    truncates = LintedState.of_policy(policy, "databricks", parse_runtime("15.4"), options=given)
    assert lint(truncates, _NAME, "validate") == ()
    assert lint(LintedState.of_policy(policy, "databricks"), _NAME, "validate") == ()


def test_unknown_is_reported_on_databricks_and_nowhere_else(live: Live) -> None:
    properties = {"delta.enableInCommitTimestamps": "true"}
    told = on_databricks(live(), "lint", "9.1", properties=properties)["D003"]
    assert told.startswith("no source says which Databricks Runtime has ALTER TABLE t SET TBLPROPERTIES")
    assert "D003" not in found(live(), {"properties": properties})


def test_optimize_is_left_to_predictive_optimization(live: Live) -> None:
    on = CatalogEntry(managed=True, optimization="inherit", optimized=True)
    asked: dict[str, Any] = {"clustering": ("id",), "optimize": "full"}
    assert "D004" in on_databricks(live(entry=on), **asked)
    assert "D004" in on_databricks(live(entry=CatalogEntry(True)), **asked, predictive_optimization="enabled")
    assert "D004" not in on_databricks(live(entry=on), **asked, predictive_optimization="disabled")
    assert "D004" not in on_databricks(live(entry=on), clustering=("id",))
    assert "D004" not in on_databricks(live(), **asked)


def test_what_waits_for_a_managed_table_is_reported(live: Live) -> None:
    external = live(entry=CatalogEntry(managed=False, optimization="inherit"))
    policy: dict[str, Any] = {"managed": "true", "clustering": "auto", "predictive_optimization": "enabled"}
    message = "after the table has moved, the next plan makes the change of predictive_optimization and clustering"
    assert on_databricks(external, **policy) == {"D005": message}
    assert on_databricks(external, managed="true") == {}


def test_how_grave_it_is_the_repository_says(live: Live) -> None:
    severities = Severities(
        {
            "L005": LintSetting("error", tables=("lake.s.*",)),
            "L006": LintSetting("ignored", "short on purpose"),
            "L016": LintSetting("error", tables=("lake.other.*",)),
        }
    )
    properties = {_LOG: "interval 1 hour", _TOMBSTONES: "interval 1 day", "delta.enableExpiredLogCleanup": "false"}
    policy = Policy({"properties": properties})
    table = live()
    changes = diff(policy, table)
    findings = lint(table_subject(policy, table, changes, "oss"), _NAME, "plan", severities)
    assert [(each.code, each.severity, each.reason) for each in findings] == [
        ("L005", "error", ""),
        ("L006", "ignored", "short on purpose"),
        ("L016", "note", ""),
    ]
    (refusal,) = refused_by(findings, changes)
    assert (refusal.change, refusal.condition) == ("retention.log", "L005")
    assert refusal.fix == "keep the log at least as long as deleted files"


def test_columns_that_differ_in_letter_case_alone_refuse_the_table_and_are_named(live: Live) -> None:
    inner = Field("s", "struct", fields=(Field("x", "long"), Field("X", "long")))
    for fields, said in (
        ((Field("a", "long"), Field("A", "long")), "the columns a and A are one for Spark"),
        ((Field("a", "long"), Field("a", "string")), "the columns a and a are one for Spark"),
        ((inner,), "the columns s.x and s.X are one for Spark"),
    ):
        table = replace(live(), schema=Schema(fields))
        assert found(table)["L040"] == said
        assert found(table, {"isolation": "Serializable"}, "plan")["L040"] == said
    same_leaf = (replace(inner, fields=inner.fields[:1]), replace(inner, name="t", fields=inner.fields[1:]))
    assert "L040" not in found(replace(live(), schema=Schema(same_leaf)))


def test_a_stored_list_of_statistics_that_delta_refuses_refuses_every_other_change(live: Live) -> None:
    for properties, partitions, said in (
        ({"delta.dataSkippingStatsColumns": "id,gone"}, (), "names gone, which the table does not have"),
        ({"delta.dataSkippingStatsColumns": "ID"}, ("id",), "names the partition column ID"),
    ):
        table = replace(
            live(), properties=properties, partition_columns=partitions, schema=Schema((Field("id", "long"),))
        )
        assert said in found(table, {"isolation": "Serializable"}, "plan")["L041"]
        assert "L041" not in found(table, {"data_skipping": "default"}, "plan")
        assert "L041" not in found(
            replace(table, partition_columns=(), schema=Schema((Field("id", "long"), Field("Gone", "long"))))
        )


def test_iceberg_compatibility_without_mapping_refuses_all_but_what_mends_it(live: Live) -> None:
    table = replace(live(), properties={"delta.enableIcebergCompatV2": "true"})
    assert "the columns are not mapped" in found(table, {"isolation": "Serializable"}, "plan")["L042"]
    assert "the columns are not mapped" in found(table, {"uniform": "iceberg_v2"}, "plan")["L042"]
    for mends in ({"uniform": "none"}, {"column_mapping": "name"}):
        assert "L042" not in found(table, mends, "plan")
    assert "L042" not in found(live(), {"uniform": "iceberg_v2"}, "plan")
