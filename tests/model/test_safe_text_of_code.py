"""Statements as lines: only a break that tablectl made begins a line, and only a break of a name is shown as one."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tablectl.delta.names import TableName, column_text
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.safe_text import read_code

_TEXT = st.text(min_size=1, max_size=12) | st.sampled_from(["it's", "a`b", "a'b\nc'", "`\n", "\\", "''", "${x}", '"'])
_TABLES = st.builds(lambda place: TableName("", (f"/{place}",)), _TEXT) | st.builds(
    lambda catalog, schema, table: TableName(catalog, (schema, table)), _TEXT, _TEXT, _TEXT
)
_PATHS = st.lists(_TEXT, min_size=1, max_size=2).map(tuple)
_OPERATIONS: st.SearchStrategy[Operation] = st.one_of(
    st.builds(SetProperties, st.lists(st.tuples(_TEXT, _TEXT), min_size=1, max_size=3).map(tuple)),
    st.builds(UnsetProperties, st.lists(_TEXT, min_size=1, max_size=3).map(tuple)),
    st.builds(ClusterBy, st.lists(_PATHS.map(column_text), max_size=3).map(tuple)),
    st.builds(Repartition, st.lists(_TEXT, max_size=3).map(tuple)),
    st.builds(DropFeature, _TEXT, st.booleans()),
    st.builds(OptimizeData, st.booleans()),
    st.builds(UpgradeUniform, st.integers(1, 3)),
    st.sampled_from([Purge(), RemoveMapping()]),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ALTER TABLE `t`\nCLUSTER BY NONE", ("ALTER TABLE `t`", "CLUSTER BY NONE;")),
        ("ALTER TABLE `t`\nCLUSTER BY (`a\n  DROP u`)", ("ALTER TABLE `t`", "CLUSTER BY (`a\\n  DROP u`);")),
        ("SET (\n  'it\\'s `' = '1'\n) `a\nb`", ("SET (", "  'it\\'s `' = '1'", ") `a\\nb`;")),
        ("`a``\n`\nx", ("`a``\\n`", "x;")),
        (
            "(spark.table('x')\n  # each column's\n  .save('x'))",
            ("(spark.table('x')", "  # each column's", "  .save('x'))"),
        ),
    ],
)
def test_a_name_cannot_break_a_line_of_a_statement(text: str, shown: tuple[str, ...]) -> None:
    assert read_code(text).shown() == shown


@settings(max_examples=400, deadline=None)
@given(_OPERATIONS, _TABLES)
@example(Repartition(("it's",)), TableName("", ("/it's a lake/clicks",)))
@example(ClusterBy(("a\nb",)), TableName("lake", ("s", "`'\n")))
def test_the_text_of_a_statement_gives_its_lines_back(operation: Operation, table: TableName) -> None:
    assert read_code(operation.sql(table)).lines == operation.lines(table)


@settings(max_examples=400, deadline=None)
@given(_OPERATIONS, _TABLES)
@example(Repartition(("day",)), TableName("", ("/it's a lake/clicks",)))
def test_no_line_shows_a_break_unless_the_policy_has_one(operation: Operation, table: TableName) -> None:
    asked = f"{operation!r}{table!r}"
    lines = read_code(operation.sql(table)).shown()
    assert all(line.isprintable() for line in lines)
    if "\\n" not in asked and "\\" not in asked:
        assert not any("\\n" in line for line in lines)
