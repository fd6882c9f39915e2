"""What is known of each ``delta.*`` property."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.properties import (
    canonical_key,
    feature_of,
    find_known,
    known_keys,
    parse_boolean,
    parse_columns,
    parse_interval,
    why_refused,
    written_text,
)

_DAY = 86_400_000_000


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        ("interval 1 week", 7 * _DAY),
        ("interval 7 days", 7 * _DAY),
        ("7 days", 7 * _DAY),
        ("  INTERVAL  1 Week ", 7 * _DAY),
        ("interval 1 day 24 hours", 2 * _DAY),
        ("interval 2 days -24 hours", _DAY),
        ("interval 0 seconds", 0),
        ("interval 1.5 seconds", 1_500_000),
        ("interval -0.5 seconds 1 second", 500_000),
        ("interval 3 milliseconds 2 microseconds", 3_002),
    ],
)
def test_intervals(text: str, micros: int) -> None:
    assert parse_interval(text) == micros


_UNITS = st.sampled_from(["microsecond", "millisecond", "second", "minute", "hour", "day", "week"])
_PARTS = st.builds(
    lambda number, fraction, unit, plural, blank: (
        f"{number}{fraction if unit == 'second' else ''}{blank}{unit}{plural}"
    ),
    st.integers(0, 10_000),
    st.sampled_from(["", ".5", ".000001"]),
    _UNITS,
    st.sampled_from(["", "s"]),
    st.sampled_from([" ", "  ", "\t"]),
)


@settings(max_examples=300, deadline=None)
@given(
    parts=st.lists(_PARTS, min_size=1, max_size=3),
    word=st.sampled_from(["interval ", "", " INTERVAL  "]),
    case=st.sampled_from([str, str.upper, str.title]),
)
def test_an_interval_is_written_as_one_number_and_one_unit(
    parts: list[str], word: str, case: Callable[[str], str]
) -> None:
    text = case(word + " ".join(parts))
    written = written_text("delta.logRetentionDuration", text)
    assert parse_interval(written) == parse_interval(text)
    interval, number, unit = written.split()  # as delta-rs splits it
    assert (interval, int(number) >= 0, unit.removesuffix("s")) == ("interval", True, unit.removesuffix("s").lower())
    assert written_text("DELTA.logRetentionDuration", written) == written


@pytest.mark.parametrize(
    ("key", "text", "written"),
    [
        ("delta.appendOnly", "TRUE", "true"),
        ("delta.enableChangeDataCapture", "True", "true"),
        ("delta.checkpointPolicy", "V2", "v2"),
        ("delta.columnMapping.mode", "NAME", "name"),
        ("delta.enableDeletionVectors", "TRUE", "true"),
        ("delta.checkpointInterval", "+2", "+2"),
        ("delta.dataSkippingStatsColumns", "`Id` , v", "`Id` , v"),
        ("delta.logRetentionDuration", "1 month", "1 month"),
        ("delta.logRetentionDuration", "interval  7   days", "interval  7   days"),
        ("delta.appendOnly", "perhaps", "perhaps"),
        ("owner.flag", "TRUE", "TRUE"),
        ("owner.logRetentionDuration", "2 weeks", "2 weeks"),
    ],
)
def test_the_text_that_every_client_reads(key: str, text: str, written: str) -> None:
    assert written_text(key, text) == written


@pytest.mark.parametrize(
    "text",
    [
        "",
        "interval",
        "7",
        "days",
        "interval 1 month",
        "interval 1 year",
        "interval -1 day",
        "1 fortnight",
        "1.5 days",
        "1 s",
        "interval\t7 days",
        "interval 7day",
        "interval '7' day",
        "7 days ago",
        "P30D",
        "2147483648 days",
        "interval - 7 days",
        "3 months -90 days",
        "７ days",
    ],
)
def test_what_is_not_an_interval(text: str) -> None:
    with pytest.raises(ValueError, match="needs an interval"):
        parse_interval(text)


@pytest.mark.parametrize(
    ("text", "micros"),
    [
        (" 7 DAYS ", 604_800_000_000),
        ("interval 7\tdays", 604_800_000_000),
        ("0 months 7 days", 604_800_000_000),
        ("interval 7 days -1 hours", 601_200_000_000),
        (".5 seconds", 500_000),
        ("interval 0 years", 0),
    ],
)
def test_odd_texts_that_delta_reads_as_intervals(text: str, micros: int) -> None:
    assert parse_interval(text) == micros
    assert parse_interval(written_text("delta.logRetentionDuration", text)) == micros


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("interval 0123456789.-+dayswekmonth\n"), max_size=40))
def test_any_text_is_an_interval_or_a_value_error(text: str) -> None:
    with contextlib.suppress(ValueError):
        assert parse_interval(text) >= 0


def test_booleans() -> None:
    assert parse_boolean("TRUE") is True
    assert parse_boolean("false") is False
    for text in ("", "yes", "1", " true"):
        with pytest.raises(ValueError, match="true or false"):
            parse_boolean(text)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("id", {("id",)}),
        ("ID, address.City", {("id",), ("address", "city")}),
        ("`a,b`.c , `x``y`", {("a,b", "c"), ("x`y",)}),
        (" ", set()),
    ],
)
def test_lists_of_columns(text: str, columns: set[tuple[str, ...]]) -> None:
    assert parse_columns(text) == columns


@pytest.mark.parametrize("text", ["a,,b", "a b", "`a", ","])
def test_what_is_not_a_list_of_columns(text: str) -> None:
    with pytest.raises(ValueError):
        parse_columns(text)


@pytest.mark.parametrize(
    ("key", "value", "taken"),
    [
        ("delta.checkpointInterval", "10", True),
        ("delta.checkpointInterval", "0", False),
        ("delta.checkpointInterval", "ten", False),
        ("delta.checkpointInterval", str(2**31), False),
        ("delta.dataSkippingNumIndexedCols", "-1", True),
        ("delta.dataSkippingNumIndexedCols", "-2", False),
        ("delta.checkpointPolicy", "V2", True),
        ("delta.checkpointPolicy", "v3", False),
        ("delta.appendOnly", "True", True),
        ("delta.appendOnly", "on", False),
    ],
)
def test_values_that_delta_takes(key: str, value: str, taken: bool) -> None:
    known = find_known(key, "oss")
    assert known is not None
    try:
        known.parse(value)
    except ValueError:
        assert not taken
    else:
        assert taken


def test_every_default_is_a_value_of_its_key() -> None:
    for dialect in ("oss", "databricks"):
        for key in known_keys(dialect):
            known = find_known(key, dialect)
            assert known is not None
            assert known.key == key
            if known.default is not None:
                known.parse(known.default)
            if known.feature:
                known.parse(known.feature_value)


def test_no_known_key_is_refused() -> None:
    for dialect in ("oss", "databricks"):
        assert [key for key in known_keys(dialect) if why_refused(key, dialect)] == []


def test_keys_in_deltas_own_spelling() -> None:
    assert canonical_key("DELTA.APPENDONLY", "oss") == "delta.appendOnly"
    assert canonical_key("delta.enableChangeDataCapture", "oss") == "delta.enableChangeDataFeed"
    assert canonical_key("Owner.Team", "oss") == "Owner.Team"


@pytest.mark.parametrize(
    ("key", "value", "feature"),
    [
        ("delta.enableDeletionVectors", "TRUE", "deletionVectors"),
        ("delta.enableDeletionVectors", "false", None),
        ("delta.enableRowTracking", "true", "rowTracking"),
        ("delta.checkpointPolicy", "v2", "v2Checkpoint"),
        ("delta.checkpointPolicy", "classic", None),
        ("delta.enableChangeDataCapture", "true", "changeDataFeed"),
        ("delta.enableMaterializePartitionColumnsFeature", "true", "materializePartitionColumns"),
        ("delta.enableMaterializePartitionColumnsFeature", "false", None),
        ("delta.writePartitionColumnsToParquet", "true", None),
        ("owner.team", "true", None),
        ("delta.logRetentionDuration", "interval 1 day", None),
    ],
)
def test_features_that_a_value_brings(key: str, value: str, feature: str | None) -> None:
    assert feature_of(key, value) == feature


@pytest.mark.parametrize(
    ("key", "why"),
    [
        ("", "needs text"),
        ("a\nb", "control characters"),
        ("delta.constraints.positive", "CHECK constraint"),
        ("delta.feature.rowTracking", "raises the protocol"),
        ("delta.rowTracking.materializedRowIdColumnName", "written by Delta itself"),
        ("delta.inCommitTimestampEnablementVersion", "written by Delta itself"),
        ("delta.requireCheckpointProtectionBeforeVersion", "written by Delta itself"),
        ("delta.minReaderVersion", "written by Delta itself"),
        ("Owner", "reserved by Spark"),
        ("table_type", "reserved by Spark"),
        ("delta.nonsense", "not known to Delta"),
        ("delta.tuneFileSizesForRewrites", "only in the databricks dialect"),
    ],
)
def test_keys_that_may_not_be_declared(key: str, why: str) -> None:
    refused = why_refused(key, "oss")
    assert refused is not None
    assert why in refused[0]


@pytest.mark.parametrize(
    "key", ["owner.team", "deltaish", "my.delta.appendOnly", "delta", "delta.appendonly", "a b;'`"]
)
def test_keys_that_may(key: str) -> None:
    assert why_refused(key, "oss") is None
