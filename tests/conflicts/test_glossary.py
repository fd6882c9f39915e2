from __future__ import annotations

import pytest

from tablectl.conflicts.glossary import find_topic, looks_like_a_topic, topic_names
from tablectl.conflicts.operations import OPERATIONS
from tablectl.conflicts.readers import stream_reader
from tablectl.conflicts.sources import FACTS, SECTIONS
from tablectl.conflicts.transactions import Conflict, Level
from tests.conflicts.settings import setting


@pytest.mark.parametrize("conflict", Conflict)
def test_every_way_to_fail_is_explained_by_class_and_by_exception(conflict: Conflict) -> None:
    by_class = find_topic(conflict.value)
    assert by_class is not None
    assert by_class.conflict is conflict
    by_name = find_topic(f"io.delta.exceptions.{conflict.exception}")
    assert by_name is not None
    assert by_name.conflict is conflict


@pytest.mark.parametrize("level", Level)
def test_every_level_is_explained(level: Level) -> None:
    found = find_topic(level.value.upper())
    assert found is not None
    assert found.level is level


def test_every_condition_that_stops_a_stream_is_explained() -> None:
    made = [[each.winner for each in operation.transactions(setting(), "a")] for operation in OPERATIONS]
    conditions = {
        stream_reader(winners, "oss", tracked=tracked).condition for winners in made for tracked in (False, True)
    }
    for condition in conditions - {""}:
        assert find_topic(condition), condition


def test_a_part_of_a_class_says_more() -> None:
    found = find_topic("[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES]")
    assert found is not None
    assert found.name == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    assert "same rows" in found.detail
    assert find_topic("DELTA_CONCURRENT_APPEND.NONSENSE") is None
    assert find_topic("WriteSerializable.ROW_LEVEL_CHANGES") is None


@pytest.mark.parametrize("text", ["", ".", "lake.sales.orders", "DELTA_", "Exception", "[]"])
def test_what_is_no_topic(text: str) -> None:
    assert find_topic(text) is None


def test_what_can_be_meant_as_nothing_else() -> None:
    assert looks_like_a_topic("DELTA_TYPO")
    assert looks_like_a_topic("ConcurentAppendException")
    assert looks_like_a_topic("io.delta.exceptions.Typo")
    assert not looks_like_a_topic("lake.sales.orders")
    assert not looks_like_a_topic("lake.errors.exception")


def test_names_are_found() -> None:
    for name in topic_names():
        assert find_topic(name), name


def test_a_source_says_what_it_is() -> None:
    fact, section = find_topic("d34"), find_topic("delta-2.2, Kernel")
    assert fact is not None
    assert "OPTIMIZE" in fact.meaning
    assert section is not None
    assert (section.name, section.ways) == ("delta-2.2", ())
    assert find_topic("D999") is None
    assert find_topic("delta-9.9") is None


@pytest.mark.parametrize("name", [*FACTS, *SECTIONS])
def test_a_source_names_a_public_page(name: str) -> None:
    topic = find_topic(name)
    assert topic is not None
    assert topic.page.startswith(("https://github.com/delta-io/delta/blob/v4.4.0/", "https://docs.databricks.com/"))
