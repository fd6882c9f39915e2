"""A lake of many small tables, of the kinds that one finds side by side, and the policies for it."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from _lake import OLD_SPARK, RUST, Table

_SERIALIZABLE = {"delta.isolationLevel": "Serializable"}
_TABLES_PER_FILE = 100
_DIFFERENT = 20
"""One table in so many differs from its policy."""


def _appended(path: Path, rng: random.Random, properties: dict[str, str] | None = None) -> Table:
    table = Table(path, rng, rng.randrange(6, 30), properties=_properties(rng) if properties is None else properties)
    for _ in range(rng.randrange(2, 9)):
        table.write(rng.randrange(1, 4))
    return table


def _clustered(path: Path, rng: random.Random) -> Table:
    properties = {**_properties(rng), "delta.enableDeletionVectors": "true"}
    features = ("deletionVectors",)
    table = Table(path, rng, rng.randrange(10, 40), features=features, clustered=True, properties=properties)
    for _ in range(rng.randrange(8, 26)):
        table.write()
    table.update()
    return table


def _partitioned(path: Path, rng: random.Random) -> Table:
    checksums, columns = False, rng.randrange(10, 60)
    table = Table(path, rng, columns, OLD_SPARK, partitioned=True, properties=_properties(rng), checksums=checksums)
    for _ in range(rng.randrange(4, 30)):
        table.write(rng.randrange(1, 4))
    return table


def _streamed(path: Path, rng: random.Random) -> Table:
    table = Table(path, rng, rng.randrange(6, 20), properties=_properties(rng))
    for _ in range(rng.randrange(30, 60)):
        table.stream("orders")
    return table


def _altered(path: Path, rng: random.Random) -> Table:
    table = Table(path, rng, rng.randrange(20, 80), properties=_properties(rng))
    table.write(3)
    table.set_properties(**{"delta.checkpointRetentionDuration": "interval 60 days"})
    table.update(0.5)
    return table


def _rust(path: Path, rng: random.Random) -> Table:
    table = Table(path, rng, rng.randrange(4, 20), RUST, properties=_properties(rng), checksums=False, interval=0)
    for _ in range(rng.randrange(3, 15)):
        table.write()
    return table


def _properties(rng: random.Random) -> dict[str, str]:
    return {**(_SERIALIZABLE if rng.randrange(_DIFFERENT) else {}), "owner.team": rng.choice(("sales", "risk", "web"))}


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of table and how many of ten are of it."""

    words: str
    share: int
    build: Callable[[Path, random.Random], Table]


APPENDED = Kind("appended to", 3, _appended)
DECLARED = Kind("appended to, as declared", 1, lambda path, rng: _appended(path, rng, _SERIALIZABLE))
KINDS = (
    APPENDED,
    Kind("clustered, deletion vectors, checkpoints", 2, _clustered),
    Kind("partitioned, by an old Delta: no checksums", 1, _partitioned),
    Kind("streamed into, checkpoints", 1, _streamed),
    Kind("altered, wide", 2, _altered),
    Kind("by delta-rs: no checksums", 1, _rust),
)


@dataclass(frozen=True, slots=True)
class Lake:
    """What was built."""

    folder: Path
    locations: tuple[Path, ...]
    kinds: Counter[str]
    files: tuple[int, ...]
    """Data files in each table's newest version."""
    commits: int

    def text(self) -> str:
        """The mix, for people."""
        lines = [
            f"{len(self.locations):,} tables, {self.commits:,} commits, {sum(self.files):,} data files; of the tables"
        ]
        return "\n".join([*lines, *(f"  {count:6,}  {words}" for words, count in self.kinds.most_common())])


def build_lake(folder: Path, tables: int, seed: int = 1, mix: Sequence[Kind] = KINDS) -> Lake:
    """That many tables below a folder, the same for the same seed."""
    deck = [kind for kind in mix for _ in range(kind.share)]
    locations, kinds, files, commits = [], Counter[str](), [], 0
    for number in range(tables):
        kind = deck[number % len(deck)]
        location = folder / "lake" / f"table_{number:05d}"
        table = kind.build(location, random.Random(f"{seed} {number}"))
        locations.append(location)
        kinds[kind.words] += 1
        files.append(len(table.files))
        commits += table.version + 1
    return Lake(folder, tuple(locations), kinds, tuple(files), commits)


def write_policies(lake: Lake, tables: int | None = None, more: str = "", bucket: str = "") -> Path:
    """Policies for the first tables: the folder that holds them. Most tables are as declared already, unless ``more``,
    a line of ``defaults``, asks for something else. The lake's folder is served as ``bucket``, if that is given.
    """
    folder = Path(mkdtemp(prefix="policies-", dir=lake.folder))
    chosen = lake.locations[:tables]
    for start in range(0, len(chosen), _TABLES_PER_FILE):
        lines = ["version: 1", "defaults:", "  isolation: Serializable", *([f"  {more}"] if more else []), "tables:"]
        for location in chosen[start : start + _TABLES_PER_FILE]:
            place = f"{bucket}/{location.relative_to(lake.folder)}" if bucket else location
            lines += [f"  lake.{location.name}:", f"    location: {place}", "    tags: [benchmark]"]
        (folder / f"tables-{start:05d}.yaml").write_text("\n".join(lines) + "\n")
    return folder
