"""The writers in a table's history: which clients write rows, and which writers name its partition columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tablectl.model.commit import Commit
from tablectl.model.table import LiveTable
from tablectl.support.json_text import read_json

_KEEPS_ROWS = frozenset(
    {"OPTIMIZE", "REORG", "ROW TRACKING BACKFILL", "UPGRADE UNIFORM", "VACUUM START", "VACUUM END", "CLUSTER BY"}
)
STAMP = '{"tablectl":'
"""The start of the user metadata in tablectl's own commits."""
_MOST_PARTITION_WRITERS = 50
_CREATES = frozenset({"ErrorIfExists", "Ignore"})
"""Modes of a write that fails, or does nothing, if the table exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFact:
    """A client in a table's history."""

    engine: str
    version: tuple[int, ...]
    writes: bool = True
    """Whether the client wrote rows in the look-back, as opposed to metadata or files with the same rows. If no commit
    in the look-back wrote rows, every client in it counts as a writer. Commits of tablectl itself do not count.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterEvidence:
    """The commits from which a table's writers are known."""

    commits: int = 0
    since: int = 0
    """The time of the oldest one, in milliseconds since the epoch; 0 if unknown."""
    cut: bool = False
    """Whether older commits of the last 30 days were not read: other clients may write the table, too."""


NO_EVIDENCE = WriterEvidence()


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionWriter:
    """A writer in a table's history that names the table's partition columns, or a stream that may."""

    client: str
    """``Delta Spark 4.4.0``."""
    operation: str
    """``WRITE`` or ``STREAMING UPDATE``."""
    certain: bool
    """Whether the log shows that the writer names the columns. It does not for streams, for the write that made the
    table, nor for delta-rs, which always records the table's own columns.
    """
    who: str = ""
    """What committed (``Commit.source``), or the stream's id, if the log contains it."""
    version: int
    """The version of its newest commit."""


def client_facts(live: LiveTable) -> tuple[ClientFact, ...]:
    """The clients in a table's history, sorted, and which of them write rows."""
    theirs = [commit for commit in live.history if not commit.user_metadata.startswith(STAMP)]
    writers = {each.client for each in theirs if each.changes_data and each.operation not in _KEEPS_ROWS}
    writers = writers or {each.client for each in theirs}
    return tuple(
        ClientFact(engine=client.engine, version=client.version, writes=client in writers) for client in live.clients
    )


def writer_evidence(live: LiveTable) -> WriterEvidence:
    """The commits from which the clients of a table are known."""
    times = [commit.timestamp for commit in live.known_commits if commit.timestamp > 0]
    return WriterEvidence(
        commits=len(live.known_commits), since=min(times, default=0), cut=live.writes is not None and live.writes.cut
    )


def partition_writers(live: LiveTable) -> tuple[PartitionWriter, ...]:
    """The writers in a table's history that name its partition columns, without duplicates, the newest first.

    Delta's ``ImplicitMetadataOperation`` compares the columns that a write names with those of the table, and fails a
    write that names others. A write that names no columns uses those of the table. The write that made the table counts
    only while no rows were written since: how its code names columns in appends is unknown until then.
    """
    found: dict[tuple[str, str, str, bool], PartitionWriter] = {}
    theirs = [commit for commit in live.known_commits if not commit.user_metadata.startswith(STAMP)]
    writes = [commit for commit in theirs if commit.changes_data and commit.operation not in _KEEPS_ROWS]
    made_alone = all(map(_creates, writes))
    for commit in theirs if live.partition_columns else ():
        if made_alone or not _creates(commit):
            for each in _partition_writers_of(commit, live.partition_columns):
                found.setdefault((each.client, each.operation, each.who, each.certain), each)
    return tuple(found.values())[:_MOST_PARTITION_WRITERS]


def _partition_writers_of(commit: Commit, columns: tuple[str, ...]) -> Iterator[PartitionWriter]:
    client = commit.client.text()
    if commit.operation == "STREAMING UPDATE":
        streams = [each.app_id for each in commit.transactions] or [commit.parameters.get("queryId", "")]
        for stream in streams:
            yield PartitionWriter(
                client=client, operation=commit.operation, certain=False, who=stream, version=commit.version
            )
    elif _names(commit, columns):
        yield PartitionWriter(
            client=client,
            operation=commit.operation,
            certain=commit.client.family.partitions_in_commits and not _creates(commit),
            who=commit.source,
            version=commit.version,
        )


def _creates(commit: Commit) -> bool:
    """Whether a write only makes a table: on an existing one it fails, or does nothing."""
    return commit.parameters.get("mode") in _CREATES


def _names(commit: Commit, columns: tuple[str, ...]) -> bool:
    """Whether a write names the table's current partition columns. A write that names others predates a
    change of them.
    """
    text = commit.parameters.get("partitionBy", "")
    if commit.operation != "WRITE" or text in {"", "[]"}:
        return False
    try:
        named = read_json(text)
    except ValueError:
        return True  # cut or malformed: it names some columns
    return not isinstance(named, list) or [str(each).lower() for each in named] == [each.lower() for each in columns]
