from __future__ import annotations

import re

import pytest

from tablectl.conflicts.streaming_readers import stream_reader
from tablectl.conflicts.transactions import Conflict, Level
from tablectl.delta.client_families import COMMIT_FAILED, DELTA_RS
from tablectl.insight.explain_word import (
    CONFLICT_TERMS,
    facts_about,
    find_fact,
    page_rows,
    rows_about,
    words_with_facts,
)
from tablectl.insight.glossary import find_term, looks_like_a_term, term_names
from tablectl.insight.table_operations import OPERATIONS
from tests.docs.sources import FACTS, SECTIONS
from tests.insight.settings import setting

ROWS = tuple(page_rows((CONFLICT_TERMS,)))


def test_every_row_of_the_page_has_all_cells_of_its_table() -> None:
    """A row without one, or with one too many, would not be read as what it is."""
    titles = {tuple(title for title, _ in row.cells) for row in ROWS}
    assert titles == {("meaning", "what to do", "facts"), ("what it adds",), ("facts about it",)}
    assert all(word for row in ROWS for word in row.words)


def test_the_page_explains_a_word_once_and_no_word_that_another_page_explains() -> None:
    words = [word for row in ROWS for word in row.words]
    assert len(words) == len(set(words))
    assert [name for name in term_names() if rows_about(name)] == []


def test_every_fact_that_the_page_names_is_known() -> None:
    for row in ROWS:
        for title, text in row.cells:
            ids = text.split(", ") if title.startswith("facts") else re.findall(r"\bD\d+\b", text)
            assert [each for each in ids if find_fact(each) is None] == [], row.words


def test_every_term_has_ways_to_fix_it_without_markup() -> None:
    for name in term_names():
        found = find_term(name)
        assert found
        assert all(found.ways)
        assert not re.search(r"[<>|]", "".join((found.meaning, *found.ways))), name


@pytest.mark.parametrize("conflict", Conflict)
def test_the_page_names_the_exception_after_the_class(conflict: Conflict) -> None:
    assert (conflict.value, conflict.exception) in {row.words for row in ROWS}


@pytest.mark.parametrize("conflict", Conflict)
def test_every_way_to_fail_is_explained_by_class_and_by_exception(conflict: Conflict) -> None:
    by_class = find_term(conflict.value)
    assert by_class is not None
    assert by_class.conflict is conflict
    by_name = find_term(f"io.delta.exceptions.{conflict.exception}")
    assert by_name is not None
    assert by_name.conflict is conflict


@pytest.mark.parametrize("level", Level)
def test_every_level_is_explained(level: Level) -> None:
    found = find_term(level.value.upper())
    assert found is not None
    assert found.level is level


def test_every_condition_that_stops_a_stream_is_explained() -> None:
    made = [[each.committed for each in operation.transactions(setting(), "a")] for operation in OPERATIONS]
    conditions = {
        stream_reader(all_committed, "oss", tracked=tracked).condition
        for all_committed in made
        for tracked in (False, True)
    }
    for condition in conditions - {""}:
        assert find_term(condition), condition


def test_a_part_of_a_class_says_more() -> None:
    found = find_term("[DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES]")
    assert found is not None
    assert found.name == "DELTA_CONCURRENT_APPEND.ROW_LEVEL_CHANGES"
    assert "same rows" in found.detail
    assert find_term("DELTA_CONCURRENT_APPEND.NONSENSE") is None
    assert find_term("WriteSerializable.ROW_LEVEL_CHANGES") is None


@pytest.mark.parametrize("text", ["", ".", "lake.sales.orders", "DELTA_", "Exception", "[]"])
def test_what_is_not_a_topic(text: str) -> None:
    assert find_term(text) is None


def test_what_can_be_meant_as_nothing_else() -> None:
    assert looks_like_a_term("DELTA_TYPO")
    assert looks_like_a_term("ConcurentAppendException")
    assert looks_like_a_term("io.delta.exceptions.Typo")
    assert not looks_like_a_term("lake.sales.orders")
    assert not looks_like_a_term("lake.errors.exception")


def test_names_are_found() -> None:
    for name in term_names():
        assert find_term(name), name


@pytest.mark.parametrize("name", [*FACTS, *SECTIONS])
def test_a_source_names_a_public_page(name: str) -> None:
    fact = find_fact(name)
    assert fact is not None
    delta = "https://github.com/delta-io/delta/blob/v4.4.0/"
    kernel = "https://github.com/delta-io/delta-kernel-rs/blob/"  # what delta-rs reads properties with
    assert fact.source.startswith((delta, kernel, "https://docs.databricks.com/"))


def test_a_message_of_deltalake_is_the_conflict_that_it_reports() -> None:
    message = (
        "Failed to commit transaction: Commit failed: a concurrent transaction deleted data this operation read.\n"
    )
    found = find_term(f"_internal.CommitFailedError: {message}Help: This transaction's query must be rerun")
    assert found
    assert found.conflict is Conflict.DELETE_READ
    assert looks_like_a_term(message)


def test_the_one_exception_of_deltalake_names_its_texts() -> None:
    found = find_term(DELTA_RS.commit_error)
    assert found
    texts = [f'"{message.removeprefix(COMMIT_FAILED)}"' for _, message in DELTA_RS.commit_messages]
    assert re.findall(r'"[^"]+"', found.meaning) == texts
    by_text = find_term("Metadata changed since last commit")
    assert by_text
    assert by_text.conflict is Conflict.METADATA_CHANGED


def test_each_word_of_the_isolation_page_has_facts() -> None:
    for word in (*words_with_facts(), *(word for row in ROWS if row.cell("facts about it") for word in row.words)):
        assert facts_about(word), word
    assert [each.id for each in facts_about("Identity columns")] == ["D23", "delta-1.12"]
    assert facts_about("row-level  CONCURRENCY") == facts_about("RLC") != ()
    assert facts_about("nonsense") == ()
