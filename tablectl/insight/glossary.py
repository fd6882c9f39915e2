"""The terms of conflicts that ``tablectl explain`` knows: exceptions, error classes, isolation levels, and conditions
that stop a stream. The words of the tool are those of the pages (``explain_word``).

Which operations cause an exception is not stated here: the matrix of a table states it. The sources are those of the
rules. The parts of error classes (``….ROW_LEVEL_CHANGES``) are those that Databricks documents; open-source Delta has
only ``WITH_PARTITION_HINT`` and ``WITHOUT_HINT`` of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from tablectl.conflicts.transactions import Conflict, Level
from tablectl.delta.client_families import COMMIT_FAILED, DELTA_RS
from tablectl.support.frozen import frozen
from tablectl.support.json_text import in_json


@frozen
class Term:
    """One explained term."""

    name: str
    """An error class or an isolation level."""
    meaning: str
    ways: tuple[str, ...]
    source: str
    conflict: Conflict | None = None
    level: Level | None = None
    detail: str = ""
    """The meaning of the part of the error class that was asked for: ``ROW_LEVEL_CHANGES``."""

    @property
    @in_json
    def exception(self) -> str:
        """What Spark raises for it; empty for an isolation level."""
        return self.conflict.exception if self.conflict else ""

    @property
    def title(self) -> str:
        """The name, and the exception."""
        return f"{self.name} ({self.exception})" if self.exception else self.name


_AGAIN = "retry the statement: it then starts from the newer version (tablectl.retry_on_conflict)"
_APART = "name partition columns with literals in the conditions of both, and partition the table by them"

_CONFLICTS: Mapping[Conflict, tuple[str, tuple[str, ...], str]] = MappingProxyType(
    {
        Conflict.APPEND: (
            (
                "While the statement ran, another commit added files where the statement reads: in a partition that"
                " its conditions admit, anywhere on a table without partitions. It may have missed rows, so it "
                "fails."
            ),
            (
                _APART,
                (
                    "a MERGE needs literal conditions on the target in ON: an equality with the source admits every"
                    " partition"
                ),
                (
                    "on Databricks: deletion vectors for row-level concurrency, or isolation: WriteSerializable "
                    "where the other is an INSERT that reads nothing"
                ),
                "run OPTIMIZE and REORG while no UPDATE, DELETE or MERGE runs: their files count as added ones",
                "on Databricks: let at most one UPDATE, DELETE or MERGE at a time read the appended rows (D57)",
                _AGAIN,
            ),
            "delta-3, D64",
        ),
        Conflict.DELETE_READ: (
            "While the statement ran, another commit removed or rewrote a file that the statement has read.",
            (_APART, "compact when no UPDATE, DELETE or MERGE runs", _AGAIN),
            "delta-3, D65",
        ),
        Conflict.DELETE_DELETE: (
            (
                "Both statements remove or rewrite the same file. On Databricks typical of two compactions at the same "
                "time, for which open-source Delta reports ConcurrentDeleteReadException."
            ),
            ("let only one job compact a table", _APART, _AGAIN),
            "delta-3, D66",
        ),
        Conflict.METADATA_CHANGED: (
            (
                "While the statement ran, another commit changed the table's properties, schema or constraints. "
                "Delta Spark adopts some of these since 4.1; Delta Kernel, delta-rs and Databricks adopt none."
            ),
            (
                "change tables with `tablectl apply`, and use tablectl.guard around writes: they wait for each other",
                (
                    "upgrade writers to Delta Spark 4.3, which adopt deletion vectors, row tracking, checkpoint "
                    "policy v2 and in-commit timestamps"
                ),
                (
                    "keep schema evolution and identity columns out of concurrent jobs: each of their "
                    "writes changes metadata"
                ),
                _AGAIN,
            ),
            "delta-2.2, D15, D67",
        ),
        Conflict.PROTOCOL_CHANGED: (
            (
                "While the statement ran, another commit changed the table's protocol: a feature left it, or both "
                "changed it, or several created or replaced one table at the same time. Delta Kernel, delta-rs and "
                "Databricks fail on each change of the protocol."
            ),
            (
                "create and upgrade tables before jobs write to them, or by `tablectl apply` under guards",
                "if it fails again, the client is too old for the table's new protocol: upgrade it",
                _AGAIN,
            ),
            "delta-2.1, D69",
        ),
        Conflict.TRANSACTION: (
            (
                "Two runs of one streaming query, with one checkpoint, write at the same time; or two idempotent "
                "writes with one txnAppId; or both change the clustering columns, which a full overwrite does too."
            ),
            (
                "run each streaming query once, each with a checkpoint of its own",
                "do not cluster a table again while it is overwritten",
                _AGAIN,
            ),
            "delta-2.1, delta-2.3, D68",
        ),
        Conflict.WRITE: (
            (
                "A commit that must be the very next one found another in its place: RESTORE, CLONE and CONVERT "
                "fail after any other commit. Delta Kernel says it of removed files and domains too."
            ),
            ("run it while no one writes", _AGAIN),
            "delta-2.5",
        ),
        Conflict.UNSUPPORTED: (
            "The other commit added a feature to the table that this client cannot write.",
            ("upgrade the client before the table", "or remove the feature from the table with DROP FEATURE"),
            "delta-2.1",
        ),
        Conflict.REVALIDATION: (
            "DROP FEATURE was ready, and then another commit used the feature.",
            ("turn the feature off and stop its writers first, then drop it", _AGAIN),
            "delta-1.15, delta-2.1",
        ),
        Conflict.BACKFILL: (
            "Row tracking was being enabled and dropped at the same time.",
            ("run one of the two", _AGAIN),
            "delta-1.6",
        ),
    }
)
_LEVELS: Mapping[Level, tuple[str, tuple[str, ...], str]] = MappingProxyType(
    {
        Level.SERIALIZABLE: (
            (
                "Reads and writes are as if one statement had run after the other, in the order of the table's "
                "history. A statement fails if files were added where it reads, even by an INSERT that reads "
                "nothing. Open-source Delta uses it where no level is set, and can set no other."
            ),
            ("to pin it: isolation: Serializable",),
            "delta-1.2, D7, D12",
        ),
        Level.WRITE_SERIALIZABLE: (
            (
                "Writes are as if one had run after the other, but not always in the order of the history: an "
                "INSERT that reads nothing conflicts with nothing, so a statement that began before it may commit after"
                " it without having seen its rows. Databricks uses it where no level is set. Open-source Delta "
                "cannot set it, and honours it where another engine stored it."
            ),
            (
                "to prevent the reordering: isolation: Serializable, under which such a statement fails once",
                "UPDATE, DELETE and MERGE conflict with each other at both levels",
            ),
            "delta-1.2, delta-3, D6, D8, D9",
        ),
        Level.SNAPSHOT: (
            (
                "The level of a commit that changes no row: OPTIMIZE, REORG and the row tracking backfill. Delta "
                "chooses it for that commit, whatever the table's level. Files that others added do not conflict;"
                " files that it rewrites must still exist. No table can be set to it."
            ),
            ("there is nothing to set; `commitInfo.isolationLevel` in the history says which commits used it",),
            "delta-2.4",
        ),
    }
)
_STREAMS: Mapping[str, tuple[str, tuple[str, ...], str]] = MappingProxyType(
    {
        "DELTA_SOURCE_TABLE_IGNORE_CHANGES": (
            "A stream that reads the table met a commit that rewrote rows: UPDATE, DELETE, MERGE or an overwrite.",
            ("read with skipChangeCommits=true", "or read the change data feed"),
            "delta-6",
        ),
        "DELTA_SOURCE_IGNORE_DELETE": (
            "A stream that reads the table met a commit that only removed rows.",
            ("read with skipChangeCommits=true or ignoreDeletes=true",),
            "delta-6",
        ),
        "DELTA_SCHEMA_CHANGED_WITH_VERSION": (
            "A stream that reads the table met new columns.",
            ("let it restart: it continues from its checkpoint with the new schema",),
            "delta-6",
        ),
        "DELTA_STREAMING_INCOMPATIBLE_SCHEMA_CHANGE_USE_SCHEMA_LOG": (
            "A stream that reads the table met a column renamed or dropped, or other partition columns.",
            ("read with a schemaTrackingLocation", "or start with a new checkpoint"),
            "delta-6",
        ),
        "DELTA_STREAMING_METADATA_EVOLUTION": (
            "A stream with a schemaTrackingLocation met another protocol, schema or delta.* property.",
            ("let it restart",),
            "delta-6",
        ),
        "DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE": (
            "The table was replaced: it has a new id, and a checkpoint belongs to the old one.",
            ("start with a new checkpoint", "overwrite tables that streams read, do not replace them"),
            "delta-6",
        ),
    }
)


def _quoted(texts: Iterable[str]) -> str:
    return ", ".join(f'"{text}"' for text in texts)


_CLIENTS: Mapping[str, tuple[str, tuple[str, ...], str]] = MappingProxyType(
    {
        DELTA_RS.commit_error: (
            (
                "The one exception of delta-rs, the Python package deltalake, for every conflict. Its text says which: "
                f"{_quoted(text.removeprefix(COMMIT_FAILED) for _, text in DELTA_RS.commit_messages)}."
            ),
            ("explain the text: `tablectl explain 'Metadata changed since last commit'`", _AGAIN),
            "delta-2.2",
        ),
    }
)
_PARTS: Mapping[str, str] = MappingProxyType(
    {
        "ALLOTTED_TIME_EXCEEDED": "Row-level resolution exceeded its time limit: retry.",
        "CHANGE_TYPE_COLUMN": "A column named _change_type prevents row-level detection: rename it.",
        "EMPTY_READ_PREDICATES": "The statement has no condition, so it read the whole table: give it one.",
        "METADATA_CHANGE": "The other commit changed metadata too.",
        "PARTITIONED_TABLE_WITHOUT_MERGE_SOURCE": "The table is partitioned, which excludes row-level detection here.",
        "PREDICATES_NEED_REWRITE": "The conditions cannot be checked by row: simplify them (D44).",
        "PROTOCOL_CHANGE": "The other commit upgraded the protocol too.",
        "ROW_LEVEL_CHANGES": "Both changed the same rows: row-level concurrency cannot resolve that.",
        "WHOLE_TABLE_READ": "The statement read the whole table: narrow it with a condition.",
        "WHOLE_TABLE_REPLACE": "The other commit replaced all rows.",
        "WITHOUT_HINT": "The file lies in no partition.",
        "WITH_PARTITION_HINT": "The message names the partition in which the conflict happened.",
    }
)


def find_term(text: str) -> Term | None:
    """The term of an exception, an error class with or without its part, or an isolation level; else ``None``.

    Letter case, brackets around a class and packages before an exception do not matter. Of ``deltalake``, whose
    exception is the same for every conflict, the text tells which one it is.
    """
    told = _of_message(text)
    word = told.value.casefold() if told else text.strip().strip("[]").casefold()
    class_, _, part = word.partition(".")
    for term in _terms():
        conflict = term.conflict
        if word == term.name.casefold() or (conflict and word.rpartition(".")[2] == conflict.exception.casefold()):
            return term
        if class_ == term.name.casefold() and conflict and part.upper() in _PARTS:
            return Term(
                f"{term.name}.{part.upper()}",
                term.meaning,
                term.ways,
                term.source,
                conflict,
                detail=_PARTS[part.upper()],
            )
    return None


def _of_message(text: str) -> Conflict | None:
    """The conflict that a text of delta-rs reports."""
    for condition, message in DELTA_RS.commit_messages:
        if message.rpartition(": ")[2].rstrip(".").casefold() in text.casefold():
            return Conflict(condition)
    return None


def looks_like_a_term(text: str) -> bool:
    """Whether a text can only be an error class, an exception or its message, and not a table name."""
    if _of_message(text):
        return True
    word = text.strip().strip("[]").casefold()
    return word.startswith(("delta_", "io.delta.exceptions.")) or (word.endswith("exception") and "." not in word)


def term_names() -> tuple[str, ...]:
    """All names that ``find_term`` knows, for suggestions."""
    exceptions = (term.conflict.exception for term in _terms() if term.conflict)
    return tuple(dict.fromkeys((*(term.name for term in _terms()), *exceptions)))


def _terms() -> Iterator[Term]:
    for conflict, (meaning, ways, source) in _CONFLICTS.items():
        yield Term(conflict.value, meaning, ways, source, conflict)
    for level, (meaning, ways, source) in _LEVELS.items():
        yield Term(level.value, meaning, ways, source, level=level)
    for name, (meaning, ways, source) in (*_STREAMS.items(), *_CLIENTS.items()):
        yield Term(name, meaning, ways, source)
