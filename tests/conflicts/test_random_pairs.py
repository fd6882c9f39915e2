"""Random pairs of small transactions, on real Delta and by the rules: a disagreement is an error of the rules.

hypothesis draws a table, a loser, and one or two winners. The loser is held where it begins to write its commit.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import NOTHING, CurrentTransaction, Reads
from tablectl.model.commit_contents import Kind, Partition
from tests.conflicts.examples import EVERYTHING
from tests.conflicts.interleavings import DELTA, LETTERS, Lake, Layout, live_files
from tests.conflicts.log_records import Log
from tests.interleaving import Hold, Writer

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Where:
    """The rows of some letters, or the one with an id among them. File ``n`` holds ids ``2n + 1`` and ``2n + 2``."""

    letters: tuple[str, ...]
    id: int | None

    @property
    def sql(self) -> str:
        listed = ", ".join(f"'{letter}'" for letter in self.letters)
        return f"p IN ({listed})" + (f" AND id = {self.id}" if self.id else "")

    @property
    def files(self) -> list[int]:
        """What is left after files are skipped by statistics."""
        found = [index for index, letter in enumerate(LETTERS) if letter in self.letters]
        return [index for index in found if self.id is None or self.id in {2 * index + 1, 2 * index + 2}]


@st.composite
def _wheres(draw: st.DrawFn) -> Where:
    letters = draw(st.sampled_from([("a",), ("b",), ("a", "b")]))
    ids = [number for number in range(1, 7) if LETTERS[(number - 1) // 2] in letters]
    return Where(letters, draw(st.none() | st.sampled_from(ids)))


@dataclass(frozen=True)
class Statement:
    """A statement, and what Delta registers of it as read and removed."""

    kind: Kind
    where: Where

    @property
    def sql(self) -> str:
        where = self.where.sql
        match self.kind:
            case Kind.APPEND:
                return f"INSERT INTO $t VALUES (9, '{self.where.letters[0]}', 9)"
            case Kind.READING_INSERT:
                return f"INSERT INTO $t SELECT id + 10, p, v FROM $t WHERE {where}"
            case Kind.UPDATE:
                return f"UPDATE $t SET v = v + 1 WHERE {where}"
            case Kind.DELETE:
                return f"DELETE FROM $t WHERE {where}"
            case Kind.MERGE:
                rows = f"SELECT {self.where.id or 2 * self.where.files[0] + 1} AS id"
                listed = ", ".join(f"'{letter}'" for letter in self.where.letters)
                on = f"t.id = s.id AND t.p IN ({listed})"
                return f"MERGE INTO $t t USING ({rows}) s ON {on} WHEN MATCHED THEN UPDATE SET v = t.v + 1"
            case Kind.OVERWRITE:
                return f"INSERT OVERWRITE $t VALUES (9, '{self.where.letters[0]}', 9)"
            case Kind.OPTIMIZE:
                return "OPTIMIZE $t"
            case _:
                return "ALTER TABLE $t SET TBLPROPERTIES ('owner.team' = 'x')"

    def current(self, layout: Layout, log: Log) -> CurrentTransaction:
        """The same as the rules take it, on a table that no one changed yet."""
        paths = live_files(log)
        partitions: tuple[Partition, ...] | None = None
        if layout.partitioned:
            partitions = tuple((letter,) for letter in self.where.letters)
        found = tuple(paths[index] for index in self.where.files)
        named = replace(self.where, id=None).files
        reads, removes = Reads(partitions=partitions, files=found), found
        match self.kind:
            case Kind.APPEND:
                reads, removes = NOTHING, ()
            case Kind.READING_INSERT:
                removes = ()
            case Kind.MERGE:
                # Its target is read by the conditions on the target alone; what it rewrites is what matched.
                reads, removes = replace(reads, files=tuple(paths[index] for index in named)), found[:1]
            case Kind.OVERWRITE:
                reads, removes = replace(EVERYTHING, files=paths), paths
            case _:
                pass
        return CurrentTransaction(
            kind=self.kind,
            client=DELTA,
            level=layout.level,
            partitioned=layout.partitioned,
            reads=reads,
            removes=removes,
        )


_LOSING = (Kind.APPEND, Kind.READING_INSERT, Kind.UPDATE, Kind.DELETE, Kind.MERGE, Kind.OVERWRITE)
_CURRENT = st.builds(Statement, st.sampled_from(_LOSING), _wheres())
_COMMITTED = st.builds(Statement, st.sampled_from((*_LOSING, Kind.OPTIMIZE, Kind.SET_PROPERTIES)), _wheres())
_LAYOUTS = st.sampled_from(["plain", "partitioned", "weak", "weak partitioned"])
_NUMBERS = count()


@pytest.fixture(scope="module")
def lake(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(spark, tmp_path_factory.mktemp("layouts"))


def _check(
    spark: Any, lake: Lake, place: Path, layout_name: str, current: Statement, all_committed: list[Statement]
) -> None:
    layout, log = lake.copy(layout_name, place), Log(place)
    described, read = current.current(layout, log), log.newest()
    with Writer(spark, current.sql.replace("$t", f"delta.`{place}`"), Hold.AT_COMMIT) as writer:
        writer.wait_inside()
        for committed in all_committed:
            spark.sql(committed.sql.replace("$t", f"delta.`{place}`"))
        made = [log.committed(version) for version in range(read + 1, log.newest() + 1)]
        happened = writer.release().condition.partition(".")[0]
    expected = decide_all(made, described)
    assert happened == (expected.conflict or ""), f"{expected}\nafter {made}\nfor {described}\n{current.sql}"
    shutil.rmtree(place)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


@_settings(6)
@given(layout=_LAYOUTS, current=_CURRENT, all_committed=st.lists(_COMMITTED, min_size=1, max_size=2))
def test_the_rules_know_what_delta_does(
    spark: Any, lake: Lake, tmp_path: Path, layout: str, current: Statement, all_committed: list[Statement]
) -> None:
    _check(spark, lake, tmp_path / f"t{next(_NUMBERS)}", layout, current, all_committed)


@pytest.mark.slow
@_settings(150)
@given(layout=_LAYOUTS, current=_CURRENT, all_committed=st.lists(_COMMITTED, min_size=1, max_size=3))
def test_the_rules_know_what_delta_does_more_often(
    spark: Any, lake: Lake, tmp_path: Path, layout: str, current: Statement, all_committed: list[Statement]
) -> None:
    _check(spark, lake, tmp_path / f"t{next(_NUMBERS)}", layout, current, all_committed)
