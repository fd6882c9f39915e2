from __future__ import annotations

import pytest

from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.matrix import row_levels
from tests.insight.settings import VECTORS, setting


def holds(where: ConflictContext) -> list[bool | None]:
    return [each.holds for each in row_levels(where)]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (setting("databricks 14.3", properties=VECTORS), [True, True, True]),
        (setting("databricks 14.3"), [False, False, False]),
        (setting("databricks 14.3", clustered=True), [True, True, True]),
        (setting("databricks 14.3", properties=VECTORS, partitioned=True), [False, False, False]),
        (setting("databricks 14.2", properties=VECTORS, photon=True), [True, True, True]),
        (setting("databricks 14.2", properties=VECTORS, photon=False), [True, True, False]),
        (setting("databricks 14.2", properties=VECTORS), [True, True, None]),
        (setting("databricks 14.1", properties=VECTORS, photon=True), [False, False, False]),
        (setting("databricks 14.1", properties=VECTORS, photon=True, preview=True), [True, True, True]),
        (setting("databricks 13.3", clustered=True, photon=False), [False, True, False]),
        (setting("databricks 12.2", clustered=True), [False, False, False]),
        (setting("databricks", properties=VECTORS), [None, None, None]),
    ],
)
def test_by_runtime_and_table(where: ConflictContext, expected: list[bool | None]) -> None:
    assert holds(where) == expected


@pytest.mark.parametrize(
    ("where", "says"),
    [
        (setting("databricks 14.3"), "deletion vectors are off"),
        (setting("databricks 14.3", properties=VECTORS, partitioned=True), "the table is partitioned"),
        (setting("databricks 12.2", properties=VECTORS), "the runtime is older than 13.3"),
        (setting("databricks 13.3", properties=VECTORS), "runtime 13.3 has it for clustered tables only"),
        (setting("databricks", properties=VECTORS), "the runtime is not known"),
        (setting("databricks 14.2", properties=VECTORS, photon=False), "on 14.2 a MERGE needs Photon"),
    ],
)
def test_what_stands_in_its_way(where: ConflictContext, says: str) -> None:
    assert says in row_levels(where)[-1].why_not


def test_what_holds_is_not_among_what_stands_in_the_way() -> None:
    merge = row_levels(setting("databricks 14.2", properties=VECTORS, photon=False))[-1]
    assert (merge.sources, merge.limits) == ("D50, D45", ("D45",))


def test_it_says_nothing_where_it_holds_and_nothing_of_open_source_delta() -> None:
    assert [each.why_not for each in row_levels(setting("databricks 14.3", properties=VECTORS))] == ["", "", ""]
    assert row_levels(setting(properties=VECTORS)) == ()
