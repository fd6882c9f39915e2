from __future__ import annotations

import base64
import struct
from pathlib import Path

import pytest

from chaos.replay import LogError, deleted_positions, read_log, rows_at, settings_after, settings_at
from tests.chaos.logs import HandMade, rows, stamp

SPARK_VECTOR = "AQAAADTR0zlkAQAAAAAAAAAAAAAAOjAAAAEAAAAAAAkAEAAAAAAACgAUAB4AKAAyADwARgBQAFoAqB+Org=="
"""A file that Delta Spark 4.4 wrote: every tenth of a hundred positions."""


def test_the_rows_are_those_of_the_files_that_are_left(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(table.metadata(), table.add("a", rows(1, range(3))))
    table.commit(table.add("b b", rows(1, [9])))
    table.commit({"remove": {"path": "a"}}, table.add("c", rows(1, [0, 2])))
    log = table.log()
    assert sorted(row[1] for row in rows_at(log, 1)) == [0, 1, 2, 9]
    assert sorted(row[1] for row in rows_at(log, 2)) == [0, 2, 9]


def test_a_row_that_two_files_hold_is_there_twice(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(table.metadata(), table.add("a", rows(1, [5])), table.add("b", rows(1, [5])))
    assert rows_at(table.log(), 0) == [(1, 5, 7, 1), (1, 5, 7, 1)]


def test_partition_values_are_read_from_the_log(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.partitions = ["w", "m"]
    table.commit(table.metadata(), table.add("a", rows(3, [4, 8])))
    assert rows_at(table.log(), 0) == [(3, 4, 7, 0), (3, 8, 7, 0)]


def test_rows_under_a_deletion_vector_of_delta_spark_are_gone(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    (tmp_path / "t" / "deletion_vector_54f5bc8e-068c-4997-97f9-3af83f2809d0.bin").write_bytes(
        base64.b64decode(SPARK_VECTOR)
    )
    vector = {"storageType": "u", "pathOrInlineDv": "rq0[:28(cuM?-Yqkpu&+", "offset": 1, "sizeInBytes": 52}
    table.commit(table.metadata(), table.add("a", rows(1, range(100)), deletionVector=vector))
    assert [row[1] for row in rows_at(table.log(), 0)] == [key for key in range(100) if key % 10]


def test_an_inline_vector_is_read(tmp_path: Path) -> None:
    # The protocol's example of an inline deletion vector, section "Deletion Vector Format".
    inline = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"
    found = deleted_positions(tmp_path, {"storageType": "i", "pathOrInlineDv": inline, "sizeInBytes": 44})
    assert found == {3, 4, 7, 11, 18, 29}


@pytest.mark.parametrize(
    ("body", "values"),
    [
        pytest.param(
            struct.pack("<II HH I", 12346, 1, 0, 4999, 16) + ((1 << 5000) - 1).to_bytes(8192, "little"),
            set(range(5000)),
            id="bits",
        ),
        pytest.param(
            struct.pack("<IB HH H HHHH", 12347, 1, 2, 4, 2, 10, 2, 100, 1),
            {2 << 16 | v for v in (10, 11, 12, 100, 101)},
            id="runs",
        ),
    ],
)
def test_every_container_of_a_bitmap_is_read(tmp_path: Path, body: bytes, values: set[int]) -> None:
    data = struct.pack("<iqi", 1681511377, 1, 1) + body
    (tmp_path / "v.bin").write_bytes(b"\1" + struct.pack(">i", len(data)) + data)
    vector = {"storageType": "p", "pathOrInlineDv": str(tmp_path / "v.bin"), "offset": 1, "sizeInBytes": len(data)}
    assert deleted_positions(tmp_path, vector) == {1 << 32 | value for value in values}


def test_settings_follow_metadata_protocol_and_clustering(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(table.metadata(stray="x"), {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}})
    clustered = {"domainMetadata": {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}'}}
    table.commit(
        table.metadata(stray=None, owner="a"),
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering"]}},
        clustered,
    )
    log = table.log()
    before, after = settings_at(log, 0), settings_at(log, 1)
    changed = {key for key in before.keys() | after.keys() if before.get(key) != after.get(key)}
    assert changed == {
        "property.stray",
        "property.owner",
        "protocol.minWriterVersion",
        "feature.writerFeatures.clustering",
        "clustering",
    }
    assert settings_after(before, log.commits[1]) == after


def test_the_ids_of_row_tracking_are_not_a_setting(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(table.metadata())
    table.commit({"domainMetadata": {"domain": "delta.rowTracking", "configuration": "{}"}})
    assert not table.log().commits[1].sets


def test_a_stamp_names_run_and_plan_and_nothing_else_is_one(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(table.metadata(), user=stamp("r1", "p1"))
    table.commit(user="7-1-0")
    table.commit(user='{"tablectl": 1}')
    assert [commit.stamp for commit in table.log().commits] == [("r1", "p1"), None, None]


def test_a_gap_in_the_log_is_an_error(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    for _ in range(3):
        table.commit()
    (tmp_path / "t" / "_delta_log" / f"{1:020d}.json").unlink()
    with pytest.raises(LogError, match=r"\[0, 2\]"):
        read_log(tmp_path / "t")
