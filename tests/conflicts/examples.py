"""Winners and losers that the tests of the rules share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tablectl.conflicts.transactions import NOTHING, CurrentTransaction, Reads
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, MetadataChange

A, B = File("a0", ("a",)), File("b0", ("b",))
"""A file of partition a, and one of partition b."""


EVERYTHING = Reads(partitions=None)


def client(text: str = "delta-spark 4.4.0") -> Client:
    engine, _, version = text.partition(" ")
    return Client(engine, tuple(map(int, version.split("."))) if version else ())


def sets(**values: str) -> MetadataChange:
    """``delta_x="1"`` stands for the key ``delta.x``."""
    return MetadataChange(sets=tuple((key.replace("_", "."), value) for key, value in values.items()))


def alter(metadata: MetadataChange | None = None, **more: Any) -> CommittedTransaction:
    return CommittedTransaction(
        kind=Kind.SET_PROPERTIES, metadata=metadata or MetadataChange(), blind=True, data_change=False, **more
    )


VECTORS_ON = alter(sets(delta_enableDeletionVectors="true"))
PROPERTY = alter(sets(owner_team="x"))
RECLUSTER = CommittedTransaction(kind=Kind.CLUSTER_BY, domains=("delta.clustering",), blind=True, data_change=False)
IDENTITY_DRAWN = CommittedTransaction(
    kind=Kind.APPEND, metadata=MetadataChange(schema="other", tag="identity"), added=(B,)
)


def appended(file: File = B, *, blind: bool = True) -> CommittedTransaction:
    return CommittedTransaction(kind=Kind.APPEND if blind else Kind.READING_INSERT, added=(file,), blind=blind)


def rewritten(file: File = A, kind: Kind = Kind.UPDATE) -> CommittedTransaction:
    new = File(f"{file.path}-new", file.partition)
    return CommittedTransaction(kind=kind, added=(new,), removed=(file,), data_change=kind is not Kind.OPTIMIZE)


def append(**more: Any) -> CurrentTransaction:
    return CurrentTransaction(**{"kind": Kind.APPEND, "client": client(), "reads": NOTHING, **more})


def reader(kind: Kind = Kind.MERGE, *files: File, **more: Any) -> CurrentTransaction:
    """Reads everything, and of all files those named; without a name, both."""
    paths = tuple(file.path for file in files or (A, B))
    return append(**{"kind": kind, "reads": replace(EVERYTHING, files=paths), "removes": paths, **more})


def in_partition(letter: str, kind: Kind = Kind.UPDATE, **more: Any) -> CurrentTransaction:
    """Reads and rewrites one partition of a partitioned table."""
    path = f"{letter}0"
    reads = Reads(partitions=((letter,),), files=(path,))
    return append(**{"kind": kind, "partitioned": True, "reads": reads, "removes": (path,), **more})
