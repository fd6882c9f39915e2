"""Finds the commit that brought a table to its current state, by walking the log from the newest commit back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tablectl.log.catalog_managed import open_log
from tablectl.log.history import History
from tablectl.log.listing import GapError, LogFiles, parse_listing, segment
from tablectl.log.open_version import ListingGapError, read_twice
from tablectl.log.parse_commit import ParsedCommit
from tablectl.log.reader import Reading, table_of
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError
from tablectl.model.plan import Value
from tablectl.model.table import LOOK_BACK, LiveTable
from tablectl.storage.log_stores import Stores
from tablectl.storage.table_log import TableLog, VanishedError

MOST_COMMITS = 1000
"""The default maximum number of commits to walk per table."""


@dataclass(frozen=True, slots=True)
class BlameQuestion:
    """A fact of a table whose origin is requested."""

    read: Callable[[LiveTable], Value]
    same: Callable[[Value, Value], bool]
    """Whether two values of the fact mean the same."""
    brings: Callable[[Commit], bool] | None = None
    """Set if a commit alone shows that it brought the fact. The values are then not compared."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a fact of a table."""

    commit: Commit | None = None
    """The commit that brought the fact; ``None`` if no available commit did."""
    was: Value = None
    """The value before that commit, if ``known``."""
    known: bool = False
    before: int = 0
    """Set without a commit: the fact held before this version, and the available log does not show since when."""


@dataclass(frozen=True, slots=True)
class BlameQuery:
    """One table in its current state, and the questions about it."""

    live: LiveTable
    questions: tuple[BlameQuestion, ...]
    most: int = MOST_COMMITS


@dataclass(frozen=True, slots=True)
class BlameResult:
    """The answers to a query, one per question, and the walked commits, newest first."""

    origins: tuple[Origin, ...]
    commits: tuple[Commit, ...]
    trouble: LiveError | None = None
    """Why the history could not be read. All answers are then unknown."""


def blame(reading: Reading, query: BlameQuery) -> BlameResult:
    """The answers about a table that was just read. What was read of its log for its state is not read again."""
    history = reading.history
    if history is None:
        return _trace(reading.stores, query)
    try:
        listed = history if history.segment.files.whole else history.relisted(_whole(history.log))
        return _walk(listed, query)
    except (VanishedError, ListingGapError):
        return _trace(reading.stores, query)
    except LiveError as error:
        return _unknown(query, error)


def _unknown(query: BlameQuery, error: LiveError) -> BlameResult:
    nothing = Origin(before=query.live.version + 1)
    return BlameResult((nothing,) * len(query.questions), (), error)


def _trace(stores: Stores, inquiry: BlameQuery) -> BlameResult:
    try:
        log = open_log(stores, inquiry.live.location, stores.managed(inquiry.live.location))
        return read_twice(lambda: _walk(_opened(log, inquiry), inquiry), lambda: _walk(_opened(log, inquiry), inquiry))
    except LiveError as error:
        return _unknown(inquiry, error)


def _whole(log: TableLog) -> LogFiles:
    return parse_listing(log.names(), whole=True)


def _opened(log: TableLog, inquiry: BlameQuery) -> History:
    try:
        return History(log, segment(_whole(log), inquiry.live.version))
    except GapError as error:
        raise ListingGapError(f"{log.location}: {error}") from error


def _walk(history: History, inquiry: BlameQuery) -> BlameResult:
    """Walks from the newest commit back until every question is answered. Reads a minimum number of commits in any
    case.
    """
    found: dict[int, Origin] = {}
    walked: list[Commit] = []
    for each in history.recent(inquiry.most, sure=LOOK_BACK):
        walked.append(each.commit)
        left = [index for index in range(len(inquiry.questions)) if index not in found]
        found |= _answers(each, left, inquiry, history)
        if len(found) == len(inquiry.questions) and len(walked) >= LOOK_BACK:
            break
    oldest = walked[-1].version if walked else inquiry.live.version + 1
    answers = (found.get(index, Origin(before=oldest)) for index in range(len(inquiry.questions)))
    return BlameResult(tuple(answers), tuple(walked))


def _answers(each: ParsedCommit, left: Sequence[int], inquiry: BlameQuery, history: History) -> dict[int, Origin]:
    """The open questions that a commit answers."""
    asked = {index: inquiry.questions[index] for index in left}
    compared = {index: question for index, question in asked.items() if question.brings is None}
    found = {index: Origin(each.commit) for index, question in asked.items() if _brings(question, each.commit)}
    if not compared or not _may_matter(each):
        return found
    version = each.version
    if version == 0:
        return found | dict.fromkeys(compared, Origin(each.commit))
    earlier = _earlier(inquiry.live, history, version - 1)
    if earlier is None:
        return found | dict.fromkeys(compared, Origin(before=version + 1))
    for index, question in compared.items():
        was = question.read(earlier)
        if not question.same(was, question.read(inquiry.live)):
            found[index] = Origin(each.commit, was, known=True)
    return found


def _brings(question: BlameQuestion, commit: Commit) -> bool:
    return question.brings is not None and question.brings(commit)


def _may_matter(each: ParsedCommit) -> bool:
    """Whether a commit changes the table's state. Most commits contain only data."""
    return each.metadata is not None or each.protocol is not None or each.clustering is not None


def _earlier(live: LiveTable, history: History, version: int) -> LiveTable | None:
    """The table at an earlier version; ``None`` if the log no longer contains it."""
    try:
        return table_of(live.name, history.at(version), known_first=True)
    except VanishedError:
        raise
    except (GapError, LiveError):
        return None
