"""Policies written from live tables: planning them changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta import keys
from tablectl.delta.names import NameSyntaxError, TableName, parse_table
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.import_table import policy_of_table
from tablectl.planning.plan_table import plan_table
from tablectl.policies.declared_tables import Specs
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.write_yaml import write_policies
from tests.planning.test_convergence import tables

Live = Callable[..., LiveTable]

odd = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.text(
    "ab:#, -${}[]'\"\\\n*&!`~01.", max_size=8
)
names = st.builds(lambda schema, table: TableName("spark_catalog", (schema, table)), odd.filter(bool), odd.filter(bool))
KEYS = st.sampled_from(["delta.constraints.c", "delta.feature.x", "DELTA.APPENDONLY", "delta.enableChangeDataCapture"])


def read(text: str) -> Specs:
    return read_specs([("p.yaml", text.encode())], ValueReader(Variables(), "oss", "spark_catalog", []))


def imported(*live: LiveTable) -> str:
    return write_policies([policy_of_table(each, "oss") for each in live])


def check(*live: LiveTable) -> None:
    """Every table is declared, and nothing differs."""
    specs = read(imported(*live))
    by_key = {each.name.key: each for each in live}
    assert {spec.name.key for spec in specs.tables} == by_key.keys()
    for spec in specs.tables:
        assert diff(spec.policy, by_key[spec.name.key]) == ()


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_an_import_plans_to_nothing(live: Live, data: st.DataObject) -> None:
    facts = data.draw(st.lists(tables(), min_size=1, max_size=4))
    check(
        *(
            live(**each, name=parse_table(f"s.t{number}"), location=f"/lake/{number}")
            for number, each in enumerate(facts)
        )
    )


@settings(max_examples=200, deadline=None)
@given(
    properties=st.dictionaries(odd | KEYS, odd),
    columns=st.lists(odd.filter(bool), min_size=1, max_size=5, unique_by=str.casefold),
)
def test_whatever_keys_values_and_columns_hold(live: Live, properties: dict[str, str], columns: list[str]) -> None:
    schema = Schema(tuple(Field(name, "long") for name in columns))
    table = live(properties=properties, schema=schema)
    check(replace(table, clustering=tuple((name,) for name in columns)))
    check(replace(table, partition_columns=tuple(columns)))


_SETTINGS = {
    "delta.logRetentionDuration": ["interval 7 days", "60 days", "interval 90 days", "interval 1 month", "soon"],
    "delta.deletedFileRetentionDuration": ["interval 30 days", "2 weeks", "INTERVAL 1 WEEK", "interval 0 hours"],
    "delta.compatibility.symlinkFormatManifest.enabled": ["true", "TRUE", "false"],
    "delta.columnMapping.mode": ["name", "NAME", "id", "none"],
    "delta.enableDeletionVectors": ["true", "TRUE", "false"],
    "delta.enableIcebergCompatV1": ["true", "false"],
    "delta.enableIcebergCompatV2": ["true", "false"],
    "delta.universalFormat.enabledFormats": ["iceberg"],
    "delta.enableRowTracking": ["true", "false"],
    "delta.isolationLevel": ["Serializable", "serializable", "WriteSerializable", "SnapshotIsolation"],
    "delta.appendOnly": ["true", "True", "perhaps"],
    "delta.autoOptimize.autoCompact": ["true", "AUTO", "legacy"],
    "delta.checkpointPolicy": ["v2", "V2", "classic"],
    "delta.checkpointRetentionDuration": ["2 days", "interval 1 day 2 hours"],
    "delta.dataSkippingStatsColumns": ["id", "`id`, day", "gone", ""],
    "delta.dataSkippingNumIndexedCols": ["0", "+3", "-1"],
}
"""Values that Delta stores, or that another writer left behind."""
settings_of_tables = st.fixed_dictionaries({}, optional={key: st.sampled_from(each) for key, each in _SETTINGS.items()})


@settings(max_examples=500, deadline=None)
@given(facts=st.lists(settings_of_tables, min_size=1, max_size=3), dialect=st.sampled_from(["oss", "databricks"]))
def test_no_import_is_refused_by_validate_or_planned(live: Live, facts: list[dict[str, str]], dialect: str) -> None:
    protocol = Protocol(3, 7, frozenset({"columnMapping"}), frozenset({"columnMapping", "icebergCompatV2"}))
    found = {
        f"spark_catalog.s.t{number}": live(name=parse_table(f"s.t{number}"), properties=properties, protocol=protocol)
        for number, properties in enumerate(facts)
    }
    text = write_policies([policy_of_table(each, dialect) for each in found.values()])
    reading = ValueReader(Variables(), dialect, "spark_catalog", [])
    for spec in read_specs([("p.yaml", text.encode())], reading).tables:
        assert plan_table(spec.policy, found[spec.name.key], dialect) is None, text


def test_a_constraint_whose_text_is_a_word_of_policies_is_imported_as_an_expression(live: Live) -> None:
    table = live(properties={"delta.constraints.flag": "none"})
    assert policy_of_table(table, "oss").declared == (("constraints", "flag", "(none)"),)


def test_a_constraint_with_a_name_that_no_policy_declares_is_named(live: Live) -> None:
    table = live(properties={"delta.constraints.odd name": "id > 0"})
    entry = policy_of_table(table, "oss")
    assert entry.left_out == ("constraints.odd name is id > 0, which no policy can declare",)


def test_of_two_values_that_exclude_each_other_one_is_left_out(live: Live) -> None:
    table = live(
        properties={
            "delta.logRetentionDuration": "interval 7 days",
            "delta.deletedFileRetentionDuration": "interval 30 days",
            "delta.columnMapping.mode": "name",
            "delta.compatibility.symlinkFormatManifest.enabled": "true",
        }
    )
    entry = policy_of_table(table, "oss")
    assert entry.declared == (("column_mapping", "", "name"), ("retention", "log", "interval 7 days"))
    assert entry.left_out == (
        "retention.deleted_files excludes retention.log, and a policy can declare only one of them",
        f"properties.{keys.MANIFEST} excludes column_mapping, and a policy can declare only one of them",
    )


def test_a_key_that_no_engine_reads_is_named_and_not_declared(live: Live) -> None:
    entry = policy_of_table(
        live(properties={"delta.appendonly": "true", "delta.isolationlevel": "Serializable"}), "oss"
    )
    assert entry.declared == ()
    text = imported(live(properties={"delta.appendonly": "true"}))
    assert "delta.appendonly is delta.appendOnly in another letter case, which no engine reads" in text


def test_a_text_that_some_client_ignores_is_left_to_the_reader(live: Live) -> None:
    entry = policy_of_table(live(properties={"delta.logRetentionDuration": "60 days"}), "oss")
    assert entry.declared == ()
    assert entry.left_out == (
        "retention.log is 60 days, a text that some clients ignore; declare it, and an apply writes interval 60 days",
    )


def test_what_it_looks_like(live: Live) -> None:
    orders = live(
        name=parse_table("sales.orders"),
        location="s3://lake/sales/orders",
        properties={
            "delta.isolationLevel": "Serializable",
            "delta.enableDeletionVectors": "true",
            "delta.columnMapping.maxColumnId": "4",
            "delta.sampleRetentionDuration": "interval 1 month",
            "delta.checkpointPolicy": "v2",
            "owner.team": "on",
        },
        clustering=(("id",), ("day",)),
    )
    events = live(
        name=parse_table("delta.`/lake/events`"),
        properties={"delta.isolationLevel": "SERIALIZABLE", "owner.team": "on"},
        partition_columns=("day",),
    )
    plain = live(name=parse_table("delta.`/lake/plain`"), properties=dict(events.properties))
    assert imported(orders, events, plain) == (
        "# Written by `tablectl import`: what these tables are. What no line names is not managed.\n"
        "version: 1\n"
        "\n"
        "defaults:\n"
        "  isolation: Serializable\n"
        "  properties:\n"
        '    owner.team: "on"\n'
        "\n"
        "tables:\n"
        "  delta.`/lake/events`:\n"
        "    partitioning: [day]\n"
        "\n"
        "  delta.`/lake/plain`: {}\n"
        "\n"
        "  sales.orders:\n"
        "    # left out: delta.columnMapping.maxColumnId is written by Delta itself\n"
        "    # left out: delta.sampleRetentionDuration is 'interval 1 month', "
        "and it needs an interval in weeks or smaller: "
        "months and years have no fixed length\n"
        "    location: s3://lake/sales/orders\n"
        "    deletion_vectors: enabled\n"
        "    clustering: [id, day]\n"
        "    properties:\n"
        "      delta.checkpointPolicy: v2\n"
    )


def test_nothing_is_lifted_that_makes_the_file_no_shorter(live: Live) -> None:
    web = [live(name=parse_table(f"s.{name}"), properties={"owner.team": "web"}) for name in "abc"]
    assert [("defaults" in imported(*web[:count])) for count in (1, 2, 3)] == [False, False, True]
    assert "defaults" not in imported(*web, live(name=parse_table("s.d")))
    assert "defaults" not in imported(*(replace(each, properties={}, clustering=(("id",),)) for each in web))


def test_what_engines_take_for_granted_is_not_declared(live: Live) -> None:
    table = live(protocol=Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "clustering"})))
    entry = policy_of_table(replace(table, clustering=()), "oss")
    assert (entry.declared, entry.left_out) == ((), ())


def test_a_level_that_no_policy_knows(live: Live) -> None:
    table = live(properties={"delta.isolationLevel": "SnapshotIsolation", "delta.enableRowTracking": "true"})
    entry = policy_of_table(table, "oss")
    assert entry.declared == (("row_tracking", "", "enabled"),)
    assert entry.left_out == ("isolation is SnapshotIsolation, which no policy can declare",)


def test_suspended_row_tracking_is_disabled(live: Live) -> None:
    properties = {"delta.enableRowTracking": "false", "delta.rowTrackingSuspended": "true"}
    entry = policy_of_table(live(properties=properties), "oss")
    assert entry.declared == (("row_tracking", "", "disabled"),)
    assert entry.left_out == ("delta.rowTrackingSuspended is written by Delta itself",)


@given(names)
def test_every_name_is_read_back(name: TableName) -> None:
    live = LiveTable(name, "/lake/t", 1, "i", Protocol(1, 2), Schema())
    try:
        text = write_policies([policy_of_table(live, "oss")])
    except NameSyntaxError:
        assert set("".join(name.parts)) & set(UNUSABLE)
    else:
        assert [spec.name for spec in read(text).tables] == [name]


UNUSABLE = "".join(map(chr, (*range(32), *range(127, 160), 0x2028, 0x2029)))


def test_a_table_of_100_000_properties_gets_a_short_entry_that_says_what_is_missing(live: Live) -> None:
    many = {f"team.{number:06}": "x" * 20 for number in range(100_000)}
    wrong = {f"delta.unknownKey{number}": "1" for number in range(5_000)}
    table = live(properties={**many, **wrong, "delta.checkpointRetentionDuration": "interval 1 day"})
    text = imported(table)
    check(table)
    assert len(text) < 200_000
    assert "delta.checkpointRetentionDuration: interval 1 day" in text, "Delta's own keys come first"
    assert "    # left out: 99,001 more properties: an entry gets 1,000 properties and 100,000 characters; " in text
    assert "    # left out: 4,900 more properties that no policy can declare" in text


def test_long_values_leave_no_room_for_others(live: Live) -> None:
    table = live(properties={f"k{number:03}": "v" * 9_000 for number in range(500)} | {"z": "small"})
    text = imported(table)
    check(table)
    assert len(text) < 150_000
    assert "489 more properties" in text
    assert "z: small" in text
