"""Logs with empty and missing files, as killed writers and clean-ups leave them: read as Delta itself reads them.

Each damage is generated: every file of a log emptied or removed, alone and in twos, with and without a clean-up. What
Delta reads, the reader reads to the same version, properties and files. What Delta refuses may still be read, if the
answer is the state of that version before the damage.
"""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tablectl.model.errors import LiveError
from tests.builders import read_path

pytestmark = pytest.mark.spark

State = tuple[int, str | None, int | None]
"""Version, a property that every commit changes, and the number of files."""
Damage = tuple[tuple[str, str], ...]
"""What happens to which files of a log: ``empty``, ``cut``, ``remove``."""

UUIDS = ("3a0d65cd-4056-49b8-937b-95f9e3ee90e5", "ffffffff-4056-49b8-937b-95f9e3ee90e5")


def classic(version: int) -> str:
    return f"{version:020d}.checkpoint.parquet"


def plain(_log: Path) -> None:
    """Classic checkpoints at 5 and 10, commits up to 12."""


def in_parts(log: Path) -> None:
    """The checkpoint of 10 as two parts, the first of which has all."""
    first, second = (log / f"{10:020d}.checkpoint.{part:010d}.{2:010d}.parquet" for part in (1, 2))
    rows = pq.read_table(log / classic(10))
    pq.write_table(rows.slice(0, 0), second)
    (log / classic(10)).rename(first)


def with_empty_v2(log: Path) -> None:
    """Two empty files next to the checkpoint of 10, with names of V2."""
    for uuid in UUIDS:
        (log / f"{10:020d}.checkpoint.{uuid}.parquet").write_bytes(b"")


def cleaned_up(log: Path) -> None:
    """No commit before the first checkpoint is left."""
    for version in range(5):
        (log / f"{version:020d}.json").unlink()


def with_checksums(_log: Path) -> None:
    """As ``plain``: the checksums stay."""


KINDS: tuple[Callable[[Path], None], ...] = (plain, in_parts, with_empty_v2, cleaned_up, with_checksums)


@pytest.fixture(scope="module")
def base(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("damage") / "t"
    spark.sql(f"create table delta.`{path}` (a int) using delta tblproperties ('delta.checkpointInterval' = '5')")
    for number in range(1, 13):
        if number % 2:
            spark.sql(f"insert into delta.`{path}` values ({number})")
        else:
            spark.sql(f"alter table delta.`{path}` set tblproperties ('owner.team' = '{number}')")
    return path


def damages(log: Path, seed: int, pairs: int, first: int) -> Iterator[Damage]:
    """Every file of the version ``first`` and later emptied, and every one removed; then so many random damages of two
    or three files.
    """
    names = sorted(each.name for each in log.iterdir() if each.is_file() and each.name[:20] >= f"{first:020d}")
    yield from chain.from_iterable((((name, "empty"),), ((name, "remove"),)) for name in names)
    drawn = random.Random(seed)
    for _ in range(pairs):
        chosen = drawn.sample(names, drawn.choice((2, 3)))
        yield tuple((name, drawn.choice(("empty", "empty", "remove", "cut"))) for name in chosen)


def harm(log: Path, damage: Damage) -> None:
    for name, what in damage:
        file = log / name
        (log / f".{name}.crc").unlink(missing_ok=True)
        match what:
            case "empty":
                file.write_bytes(b"")
            case "cut":
                file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
            case _:
                file.unlink()


def of_delta(spark: Any, path: Path) -> State | None:
    """What Delta reads; ``None`` if it refuses the log."""
    try:
        log = spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(path))
        snapshot = log.unsafeVolatileSnapshot()
        if snapshot.version() < 0:
            return None
        team = snapshot.metadata().configuration().get("owner.team")
        return snapshot.version(), team.get() if team.isDefined() else None, snapshot.numOfFiles()
    except Exception:  # noqa: BLE001  # what Py4J raises for any exception of the JVM
        return None


def of_reader(path: Path, version: int | None = None) -> State | LiveError:
    try:
        table = read_path(str(path), counts=True, look_back=20, version=version)
    except LiveError as error:
        return error
    return table.version, table.properties.get("owner.team"), table.files


def compare(
    spark: Any, base: Path, folder: Path, kind: Callable[[Path], None], pairs: int, first: int = 0
) -> tuple[int, list[str]]:
    """How many damaged logs were compared, and those that differ."""
    whole = folder / "whole"
    shutil.copytree(base, whole)
    for file in [] if kind is with_checksums else whole.glob("_delta_log/*.crc"):
        file.unlink()
    kind(whole / "_delta_log")
    right = of_reader(whole)
    assert right == of_delta(spark, whole)
    count, wrong = 0, list[str]()
    for count, damage in enumerate(damages(whole / "_delta_log", KINDS.index(kind), pairs, first), 1):
        path = folder / f"t{count}"
        shutil.copytree(whole, path)
        harm(path / "_delta_log", damage)
        theirs: State | LiveError | None = of_delta(spark, path)
        ours = of_reader(path)
        if theirs is None and not isinstance(ours, LiveError):
            theirs = of_reader(whole, ours[0])
        if theirs != ours and not (theirs is None and isinstance(ours, LiveError)):
            wrong.append(f"{damage}: Delta reads {theirs}, the reader {ours}")
        shutil.rmtree(path)
    return count, wrong


def test_a_log_that_delta_reads_is_read_to_the_same_state(spark: Any, base: Path, tmp_path: Path) -> None:
    count, wrong = compare(spark, base, tmp_path, with_empty_v2, 10, first=9)
    assert not wrong, "\n".join(wrong)
    assert count > 20


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_many_more_damaged_logs(spark: Any, base: Path, tmp_path: Path, kind: Callable[[Path], None]) -> None:
    wrong = compare(spark, base, tmp_path, kind, 40)[1]
    assert not wrong, "\n".join(wrong)
