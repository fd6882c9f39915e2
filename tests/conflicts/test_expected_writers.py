"""Who may be in flight on a table."""

from __future__ import annotations

import pytest

from tablectl.conflicts.expected_writers import ExpectedWriters, WriterProfile, expected_writers
from tablectl.model.commit_contents import Kind
from tablectl.model.plan import Basis
from tests.builders import make_basis

_CORE = [
    "INSERT",
    "streaming append",
    "INSERT … SELECT from the table itself",
    "UPDATE",
    "DELETE",
    "MERGE",
    "OPTIMIZE",
]


def expected(basis: Basis, dialect: str = "oss") -> tuple[WriterProfile, ...]:
    return expected_writers(ExpectedWriters.of(basis, dialect))


def test_any_table_may_see_the_usual_writers_of_each_of_its_clients() -> None:
    writers = expected(make_basis("kernel", "delta-spark"))
    assert [writer.name for writer in writers] == _CORE * 2
    assert [writer.current.client.engine for writer in writers] == ["kernel"] * 7 + ["delta-spark"] * 7


def test_a_history_that_names_no_one_is_a_client_of_unknown_kind() -> None:
    assert {writer.current.client.engine for writer in expected(make_basis())} == {"unknown"}


def test_on_databricks_there_is_always_one_of_databricks() -> None:
    assert [writer.current.client.engine for writer in expected(make_basis("kernel"), "databricks")][::7] == [
        "databricks",
        "kernel",
    ]
    assert len(expected(make_basis("databricks"), "databricks")) == 7


@pytest.mark.parametrize(
    ("fact", "name"),
    [
        ("overwrites", "full overwrite"),
        ("identity", "INSERT that draws identity values"),
        ("schema_writers", "INSERT that changes the schema"),
    ],
)
def test_what_the_table_gives_reason_to_expect(fact: str, name: str) -> None:
    *usual, special = expected(make_basis("delta-spark", **{fact: True}))
    assert [writer.name for writer in usual] == _CORE
    assert special.name == name
    assert special.because


def test_an_overwrite_writes_clustering_columns_where_there_are_some() -> None:
    for clustered, domains in ((True, ("delta.clustering",)), (False, ())):
        overwrite = expected(make_basis("delta-spark", overwrites=True, clustered=clustered))[-1]
        assert overwrite.current.kind is Kind.OVERWRITE
        assert overwrite.current.domains == domains


def test_only_writers_that_read_nothing_and_carry_no_metadata_are_appends() -> None:
    writers = expected(make_basis("delta-spark", identity=True))
    assert [writer.name for writer in writers if writer.appends] == ["INSERT", "streaming append"]
