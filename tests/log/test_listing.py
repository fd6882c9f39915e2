from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.log.listing import Checkpoint, GapError, parse_hint, parse_listing, segment

UUID = "748a6541-0f8d-4447-82ca-5c89ca51c5a3"


def names(*versions: int, also: tuple[str, ...] = ()) -> list[str]:
    return [f"{version:020d}.json" for version in versions] + list(also)


def classic(version: int, part: int = 0, parts: int = 0) -> str:
    return f"{version:020d}.checkpoint" + (f".{part:010d}.{parts:010d}" if parts else "") + ".parquet"


def test_names_are_sorted_out() -> None:
    files = parse_listing(
        [
            *names(0, 1, 2),
            f"{1:020d}.crc",
            classic(1),
            f"{2:020d}.checkpoint.{UUID}.json",
            f"{0:020d}.{1:020d}.compacted.json",
            f"_staged_commits/{2:020d}.{UUID}.json",
            f"_sidecars/{2:020d}.checkpoint.{1:010d}.{1:010d}.{UUID}.parquet",
            "_last_checkpoint",
            f".{1:020d}.json.crc",
            f"{1:020d}.json.tmp",
            "1.json",
            "٠" * 20 + ".json",
        ]
    )
    assert files.commits == {0, 1, 2}
    assert files.checksums == {1}
    assert [checkpoint.version for checkpoint in files.checkpoints] == [1, 2]
    assert files.staged == 2


def test_parts_make_a_checkpoint_only_together() -> None:
    complete = [classic(3, part, 2) for part in (1, 2)]
    lacking = [classic(5, part, 3) for part in (1, 3)]
    assert parse_listing(complete + lacking).checkpoints == (Checkpoint(3, tuple(complete)),)


def test_parts_of_two_attempts_are_not_mixed() -> None:
    assert parse_listing([classic(3, 1, 2), classic(3, 2, 3), classic(3, 3, 3)]).checkpoints == ()


def test_of_several_checkpoints_of_a_version_the_one_is_read_that_delta_reads() -> None:
    """``CheckpointInstance`` (Delta 4.4.0): a classic file, classic parts by their number, V2 files by their names."""
    two, three = [classic(3, part, 2) for part in (1, 2)], [classic(3, part, 3) for part in (1, 2, 3)]
    v2 = [f"{3:020d}.checkpoint.{uuid}.parquet" for uuid in (UUID, "8" + UUID[1:])]
    for besides, read in (
        ([], [classic(3)]),
        (two, two),
        ([*two, *three], three),
        ([*two, *three[1:]], two),
        ([*three, v2[0]], v2[:1]),
        ([*v2, *three], v2[1:]),
    ):
        assert parse_listing([*besides, classic(3)]).checkpoints == (Checkpoint(3, tuple(read)),)


def test_newest_and_given_versions() -> None:
    files = parse_listing(names(*range(6), also=(classic(2), classic(4))))
    assert (segment(files).version, segment(files).base) == (5, 4)
    assert (segment(files, 3).version, segment(files, 3).base) == (3, 2)
    assert segment(files, 1).base == -1


def test_commits_behind_the_checkpoint_may_be_gone() -> None:
    found = segment(parse_listing(names(4, 5, also=(classic(4),))))
    assert (found.version, found.base) == (5, 4)


@pytest.mark.parametrize(
    ("versions", "also", "version", "missing"),
    [
        ((0, 1, 3), (), None, "version 2 is missing"),
        ((1, 2), (), None, "version 0 is missing"),
        ((0, 1, 2, 4, 5), (classic(2),), None, "version 3 is missing"),
        ((0, 1), (classic(9),), None, "version 9 is missing"),
        ((0, 1), (), 5, "version 5 does not exist: the newest is 1"),
        ((3, 4), (classic(3),), 2, "version 0 is missing"),
        ((), (), None, "empty"),
    ],
)
def test_gaps_are_named(versions: tuple[int, ...], also: tuple[str, ...], version: int | None, missing: str) -> None:
    with pytest.raises(GapError, match=missing):
        segment(parse_listing(names(*versions, also=also)), version)


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)), st.none() | st.integers(0, 31))
def test_a_segment_is_always_contiguous(commits: set[int], checkpoints: set[int], version: int | None) -> None:
    files = parse_listing(names(*commits, also=tuple(map(classic, checkpoints))))
    try:
        found = segment(files, version)
    except GapError:
        return
    assert found.version == (max(commits) if version is None else version)
    assert found.version in commits
    assert found.base in checkpoints | {-1}
    assert set(range(found.base + 1, found.version + 1)) <= commits


@given(st.binary() | st.builds(lambda value: str(value).encode(), st.integers() | st.floats() | st.booleans()))
def test_a_bad_hint_is_not_a_hint(raw: bytes) -> None:
    assert parse_hint(raw) is None


def test_hints() -> None:
    assert parse_hint(b'{"version":7,"size":3}') == 7
    bad = (b'{"version":true}', b'{"version":-1}', b'{"version":1.5}', b'{"version":99999999999999999999}', b"[" * 9999)
    assert [parse_hint(each) for each in bad] == [None] * len(bad)
