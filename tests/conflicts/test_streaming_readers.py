from __future__ import annotations

import pytest

from tablectl.conflicts.streaming_readers import ReaderEffect, ReaderStop, stopped_readers, stream_reader
from tablectl.insight.table_operations import operation
from tablectl.model.commit_contents import CommittedTransaction, Kind, MetadataChange
from tests.insight.settings import VECTORS, setting


def stop(key: str, dialect: str = "oss", *, tracked: bool = False, **more: object) -> ReaderStop:
    where = setting(**more)  # type: ignore[arg-type]
    made = [each.committed for each in operation(key).transactions(where, "a")]
    return stream_reader(made, dialect, tracked=tracked)


@pytest.mark.parametrize(
    "key",
    [
        "insert",
        "optimize",
        "purge",
        "set",
        "unset",
        "vectors-on",
        "cluster",
        "mapping-on",
        "comment-table",
        "comment-column",
    ],
)
def test_a_stream_goes_on_where_only_rows_were_added_or_properties_changed(key: str) -> None:
    assert stop(key).effect is ReaderEffect.GOES_ON


@pytest.mark.parametrize(
    ("key", "effect", "condition"),
    [
        ("update", ReaderEffect.STOPS, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ("overwrite", ReaderEffect.STOPS, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ("add-columns", ReaderEffect.RESTARTS, "DELTA_SCHEMA_CHANGED_WITH_VERSION"),
        ("evolving-insert", ReaderEffect.RESTARTS, "DELTA_SCHEMA_CHANGED_WITH_VERSION"),
        ("evolving-merge", ReaderEffect.STOPS, "DELTA_SOURCE_TABLE_IGNORE_CHANGES"),
        ("alter-column", ReaderEffect.STOPS, "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG"),
        ("widen-column", ReaderEffect.RESTARTS, "DELTA_SCHEMA_CHANGED_WITH_VERSION"),
        ("delete-files", ReaderEffect.STOPS, "DELTA_SOURCE_IGNORE_DELETE"),
        ("repartition", ReaderEffect.STOPS, "DELTA_SCHEMA_CHANGED_WITH_VERSION"),
        ("replace", ReaderEffect.STOPS, "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"),
    ],
)
def test_what_stops_it(key: str, effect: ReaderEffect, condition: str) -> None:
    found = stop(key)
    assert (found.effect, found.condition) == (effect, condition)
    assert found.fix


def test_identity_values_that_are_drawn_change_no_schema_that_it_reads() -> None:
    assert stop("insert", identity=True).effect is ReaderEffect.GOES_ON


@pytest.mark.parametrize("key", ["set", "vectors-on", "upgrade-protocol"])
def test_on_databricks_every_change_of_metadata_makes_it_restart(key: str) -> None:
    found = stop(key, "databricks")
    assert (found.effect, found.source) == (ReaderEffect.RESTARTS, "D22")


def test_with_schema_tracking_properties_of_delta_stop_it_too() -> None:
    assert stop("vectors-on", tracked=True).condition == "DELTA_STREAMING_METADATA_EVOLUTION"
    assert stop("vectors-off", tracked=True, properties=VECTORS).effect is ReaderEffect.RESTARTS
    assert stop("set", tracked=True).effect is ReaderEffect.GOES_ON
    assert stop("upgrade-protocol", tracked=True).effect is ReaderEffect.RESTARTS


def test_nothing_stops_no_one() -> None:
    assert stream_reader([], "oss").effect is ReaderEffect.GOES_ON


def stopped(key: str, dialect: str = "oss") -> tuple[str, ...]:
    return stopped_readers([each.committed for each in operation(key).transactions(setting(), "a")], dialect)


def test_a_plan_says_which_streams_stop() -> None:
    assert stopped("insert") == stopped("optimize") == ()
    assert stopped("vectors-on") == ("with schema tracking", "on Databricks")
    assert stopped("update") == ("every",)


def test_a_plan_for_databricks_does_not_speak_of_other_streams() -> None:
    assert stopped("vectors-on", "databricks") == ("on Databricks",)
    assert stopped("update", "databricks") == ("every",)
    assert stopped("insert", "databricks") == ()


def test_a_property_of_ones_own_does_not_concern_schema_tracking() -> None:
    made = CommittedTransaction(kind=Kind.SET_PROPERTIES, metadata=MetadataChange(sets=(("owner.team", "web"),)))
    assert stopped_readers([made], "oss") == ("on Databricks",)
