"""Parses the lines of a commit file into a summary of the commit. Pure: the files are read elsewhere.

Delta protocol, "Actions" and "Commit Provenance Information"; operation names and parameters: delta-1.14.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from sys import intern
from types import MappingProxyType
from typing import Any, Self

from tablectl.delta.client_families import client_in
from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.protocol import Client, Protocol
from tablectl.log.parse_action import (
    ACTION_BYTES,
    CLUSTERING,
    DOMAINS,
    ROW_TRACKING,
    BudgetError,
    DomainMetadata,
    FileAction,
    Metadata,
    expect_object,
    parse_domain,
    parse_file,
    parse_json,
    parse_metadata,
    parse_protocol,
    parse_transaction,
)
from tablectl.model.commit import STATEMENT_ID, AppTransaction, Commit
from tablectl.support.json_text import write_json

_FILES = (b'{"add":', b'{"remove":', b'{"cdc":')
_ADD = _FILES[0]
_WRITTEN = re.compile(rb'"modificationTime":([0-9]{1,15})[,}]')
_TIMED = 1000
_KINDS = frozenset({"add", "remove", "cdc", "metaData", "protocol", "domainMetadata", "commitInfo", "txn"})

_STATE = ("metaData", "protocol", "domainMetadata")
_FILE_KINDS = frozenset({"add", "remove", "cdc"})
_REPLACES = ("RESTORE", "REPLACE TABLE", "CREATE OR REPLACE TABLE")
_NO_WRITERS = ("CREATE", "REPLACE", "CLONE", "CONVERT", "RESTORE", "REMOVE COLUMN MAPPING", "REORG", "OPTIMIZE")
"""Operations that can contain data and metadata although no writer evolves the schema."""

_KEPT = 1 << 14
"""A commit with up to so many bytes of actions that are not about files keeps what was parsed until it is asked for its
summary.
"""
_FILE_LINE = 1 << 16
"""The length of a line, in bytes, that an action about a file does not reach: Delta keeps statistics of 32 columns, in
prefixes.
"""
_SHORT, _TEXT_LIMIT, _VALUE_LIMIT = 32, 1000, 10_000
"""Limits in characters: for interned text, for a name, and for a value such as a predicate. Writers can put any text
there.
"""
_ENTRIES_LIMIT = 100
_JOB = frozenset({"job", "notebook", "clusterId", STATEMENT_ID})
_NUMBER_LIMIT = 2**63


class CommitSyntaxError(ValueError):
    """A commit file that cannot be parsed, with the line number, from 1."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line


@dataclass(slots=True)
class _Gathered:
    info: dict[str, Any] = field(default_factory=dict)
    protocol: Protocol | None = None
    metadata: Metadata | None = None
    domains: list[DomainMetadata] = field(default_factory=list)
    transactions: list[AppTransaction] = field(default_factory=list)
    files: list[FileAction] = field(default_factory=list)
    changes_data: bool = False
    marks: dict[str, str] = field(default_factory=dict)
    """Digests of its actions about the table's state, by kind."""
    first_file: int = 0
    timed: int = 0
    """How many lines were searched for the time of a new file."""
    counted: int = 0
    """The bytes of all lines that do not concern files."""

    def count(self, line: bytes) -> None:
        """Counts a line. Raises ``BudgetError`` if all lines together exceed the limit for one commit."""
        self.counted += len(line)
        if self.counted > ACTION_BYTES:
            raise BudgetError(f"the actions that are not about files have more than {ACTION_BYTES >> 20} MiB")

    def time(self, line: bytes) -> None:
        """Notes when a new file was written. A part of the files is enough for the time of the first."""
        if self.timed < _TIMED and line.startswith(_ADD):
            self.timed += 1
            found = _WRITTEN.search(line)
            if found is not None:
                self.first_file = min(self.first_file or int(found[1]), int(found[1]))

    def take(self, kind: str, value: object, *, with_files: bool, statistics: bool = False) -> None:
        if kind in _STATE:
            text = f"{self.marks.get(kind, '')}{write_json(value, sort=True)}"
            self.marks[kind] = blake2b(text.encode(errors="surrogatepass"), digest_size=8).hexdigest()
        match kind:
            case "protocol":
                if self.protocol is not None:
                    raise ValueError("a second protocol in one commit")
                self.protocol = parse_protocol(value)
            case "metaData":
                if self.metadata is not None:
                    raise ValueError("a second metaData in one commit")
                self.metadata = parse_metadata(value)
            case "domainMetadata":
                self.domains.append(parse_domain(value))
                if len(self.domains) > DOMAINS:
                    raise BudgetError(f"more than {DOMAINS:,} domains in one commit")
            case "txn":
                transaction = parse_transaction(value)
                if len(self.transactions) < _ENTRIES_LIMIT:
                    self.transactions.append(transaction)
            case "commitInfo":
                self.info = expect_object(value, "commitInfo")
            case "add" | "remove":
                self.changes_data = True
                if with_files:
                    self.files.append(parse_file(kind, value, statistics=statistics))


class ParsedCommit:
    """All parts of a commit that the reader uses. Do not change them."""

    def __init__(self, version: int, gathered: _Gathered) -> None:
        self.version = version
        self.txn_id = _text(gathered.info.get("txnId"))
        self.protocol = gathered.protocol
        self.metadata = gathered.metadata
        self.domains = tuple(gathered.domains)
        self.files = tuple(gathered.files)
        """Set only if files were requested."""
        self._rest: _Gathered | None = gathered
        self._summary: Commit | None = None

    @property
    def clustering(self) -> DomainMetadata | None:
        """The commit's clustering domain; ``None`` if it does not change it."""
        if not self.domains:
            return None
        return next((domain for domain in reversed(self.domains) if domain.name == CLUSTERING), None)

    @property
    def commit(self) -> Commit:
        """The summary. It is made when it is asked for, because the state of a table can be read without it."""
        rest = self._rest
        if rest is not None:  # two threads may both make it, and it is there before the rest is gone
            self._summary = _summary(self.version, rest)
            self._rest = None
        assert self._summary is not None
        return self._summary

    def summarize(self) -> Self:
        """Itself, without what was parsed and is not in its summary, which can be many times as large."""
        assert self.commit is not None
        return self


def parse_commit(
    version: int,
    lines: Iterable[bytes],
    *,
    with_files: bool = False,
    statistics: bool = False,
    count: Callable[[bytes], None] = lambda _line: None,
) -> ParsedCommit:
    """Parses a commit. Raises ``CommitSyntaxError`` for a line that is not an action. A file without any line, which a
    killed writer leaves, changes nothing, as for Delta.

    Lines of files are recognised by their start and are not parsed unless requested: a commit can contain 300,000 of
    them. A line that also contains a state action is parsed, so that a lost line end cannot hide the action.
    ``count`` gets each line that a file does not explain, before it is parsed.
    """
    gathered, last, number = _Gathered(), b"", 0
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        last = line
        gathered.time(line)
        if not with_files and _is_file_line(line):
            gathered.changes_data |= not line.startswith(b'{"cdc":')
            continue
        if not (line.startswith(_FILES) and len(line) <= _FILE_LINE):
            count(line)
        _take_line(gathered, number, line, with_files=with_files, statistics=statistics)
    if _is_file_line(last):
        _take_line(gathered, number, last, with_files=False)
    parsed = ParsedCommit(version, gathered)
    return parsed.summarize() if gathered.counted > _KEPT else parsed


def _is_file_line(line: bytes) -> bool:
    return (
        line.startswith(_FILES)
        and line.rstrip().endswith(b"}")
        and b'"metaData"' not in line
        and b'"protocol"' not in line
        and b'"domainMetadata"' not in line
        and b'"commitInfo"' not in line
        and b'"txn"' not in line
    )


def _take_line(gathered: _Gathered, number: int, line: bytes, *, with_files: bool, statistics: bool = False) -> None:
    try:
        action = expect_object(parse_json(line), "the line")
        known = [kind for kind in action if kind in _KINDS and action[kind] is not None]
        if not (line.startswith(_FILES) and _FILE_KINDS.issuperset(known)):
            gathered.count(line)
        if len(known) > 1:
            raise ValueError(f"{len(known)} actions in one line: {', '.join(known)}")
        for kind in known:
            gathered.take(kind, action[kind], with_files=with_files, statistics=statistics)
    except ValueError as error:
        raise CommitSyntaxError(number, str(error)) from error


def _summary(version: int, gathered: _Gathered) -> Commit:
    info = gathered.info
    operation = _text(info.get("operation"))
    changes_state = gathered.metadata is not None or gathered.protocol is not None
    changes_domain = any(domain.name != ROW_TRACKING for domain in gathered.domains)
    engine = _text(info.get("engineInfo")) or _text(info.get("clientVersion"))
    blind = info.get("isBlindAppend")
    return Commit(
        version=version,
        timestamp=whole_number(info.get("inCommitTimestamp")) or whole_number(info.get("timestamp")) or 0,
        operation=operation,
        user=_text(info.get("userName")) or _text(info.get("userId")),
        client=parse_client(engine),
        user_metadata=_text(info.get("userMetadata"), _VALUE_LIMIT),
        changes_metadata=changes_state or changes_domain,
        changes_data=gathered.changes_data,
        overwrites=version > 0 and _overwrites(operation, info.get("operationParameters")),
        schema_writer=version > 0 and changes_state and gathered.changes_data and not operation.startswith(_NO_WRITERS),
        state_marks=tuple(gathered.marks.get(kind, "") for kind in _STATE) if gathered.marks else (),
        engine=engine,
        parameters=_texts(info.get("operationParameters")),
        metrics=_texts(info.get("operationMetrics")),
        tags=_texts(info.get("tags")),
        read_version=whole_number(info.get("readVersion")),
        isolation=_text(info.get("isolationLevel")),
        blind_append=blind if isinstance(blind, bool) else None,
        transactions=tuple(gathered.transactions),
        first_file=gathered.first_file,
        job=_job(info),
    )


def _text(value: object, limit: int = _TEXT_LIMIT) -> str:
    """A text of bounded length. ``commitInfo`` can contain anything: values of other types count as absent.

    Short texts are interned, because ten thousand tables repeat the same few words.
    """
    if not isinstance(value, str):
        return ""
    return intern(value) if len(value) <= _SHORT else value[:limit]


def whole_number(value: object) -> int | None:
    """A version or a time. Values of other types count as absent."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _NUMBER_LIMIT else None


def _texts(value: object) -> Mapping[str, str]:
    """The entries of a map, limited in number and length."""
    if not isinstance(value, dict) or not value:
        return NOTHING_SET
    texts: dict[str, str] = {}
    for key, each in islice(value.items(), _ENTRIES_LIMIT):
        if each is not None:
            short = type(each) is str and len(each) <= _SHORT
            texts[_text(key)] = each if short else _shown(each)
    return MappingProxyType(texts)


def _job(info: Mapping[str, Any]) -> Mapping[str, str]:
    if not info.keys() & _JOB:
        return NOTHING_SET
    names = ("clusterId", STATEMENT_ID)
    found = {**_texts(info.get("job")), **_texts(info.get("notebook")), **{key: _text(info.get(key)) for key in names}}
    return MappingProxyType({key: value for key, value in found.items() if value})


def _shown(value: object) -> str:
    match value:
        case str():
            text = value
        case bool():
            return "true" if value else "false"
        case _:
            try:
                text = write_json(value, ascii=False)
            except RecursionError:
                return "…"
    return text if len(text) <= _VALUE_LIMIT else text[: _VALUE_LIMIT - 1] + "…"


def _overwrites(operation: str, parameters: object) -> bool:
    """Whether the whole table was replaced. ``replaceWhere``, ``REPLACE USING`` and dynamic partitions do not count."""
    if operation.startswith(_REPLACES):
        return True
    if operation != "WRITE" or not isinstance(parameters, dict) or parameters.get("mode") != "Overwrite":
        return False
    partial = ("predicate", "replaceOn", "replaceUsing", "isDynamicPartitionOverwrite")
    return not any(
        key.startswith(partial) and value not in (None, False, "", "[]", "false") for key, value in parameters.items()
    )


@lru_cache(maxsize=256)
def parse_client(engine_info: str) -> Client:
    """The client of a commit, from ``engineInfo``. Versions that do not start with a number are omitted."""
    family, version = client_in(engine_info)
    return Client(family.name, version)
