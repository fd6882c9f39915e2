"""Finds the files of the version to read from a table's location. Rejects tables whose listing already shows
a problem.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import TypeVar

from tablectl.delta.names import LOG
from tablectl.log.listing import (
    DamagedCheckpointError,
    GapError,
    LogFiles,
    Segment,
    commit_name,
    parse_hint,
    parse_listing,
    segment,
)
from tablectl.log.parse_action import HINT_BYTES
from tablectl.log.state import catalog_managed, load_checkpoint_reader
from tablectl.model.errors import LiveError
from tablectl.model.safe_text import printable
from tablectl.storage.table_log import FirstNames, TableLog, VanishedError

_HINT = "_last_checkpoint"
_GAP_HINT = "a log needs every commit since a checkpoint that is whole and not empty: restore the file from a copy"
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class ListingGapError(LiveError):
    """A listing with a gap: real damage, or a listing that ran concurrently with a writer or a clean-up."""


def with_version(log: TableLog, version: int | None, look_back: int, read: Callable[[Segment], _Result]) -> _Result:
    """Runs ``read`` on a version's files, and again on a new and full listing if the log changed during the first
    attempt.

    ``look_back`` is the maximum number of commits before the last checkpoint that ``read`` needs.
    """
    try:
        return read_twice(
            lambda: read(_segment(log, _listing(log, version, look_back), version)),
            lambda: read(_segment(log, _checked(log, parse_listing(log.names(), whole=True)), version, alone=True)),
        )
    except DamagedCheckpointError as error:
        return _read_without(log, version, read, error)


def _read_without(
    log: TableLog, version: int | None, read: Callable[[Segment], _Result], damaged: DamagedCheckpointError
) -> _Result:
    """Runs ``read`` on the files without damaged checkpoints. As Delta, which then takes the one before
    (``createSnapshotFromGivenOrEquivalentLogSegment`` in ``SnapshotManagement.scala``, 4.4.0): the commits since then
    have the same state. Raises ``LiveError`` if they are not all there.
    """
    names, left = log.names(), set[str]()
    while True:
        left.update(damaged.files)
        try:
            found = segment(parse_listing((each for each in names if each not in left), whole=True), version)
        except GapError as error:
            hint = f"restore the file from a copy: without this checkpoint the log is not complete ({error})"
            raise LiveError(damaged.message, hint) from damaged
        _log.warning("%s; the commits before it are read instead, so it can be deleted", printable(damaged.message))
        try:
            return read(found)
        except DamagedCheckpointError as error:
            damaged = error


def read_twice(first: Callable[[], _Result], again: Callable[[], _Result]) -> _Result:
    """The result of ``first``, or of ``again`` if a file was missing."""
    try:
        return first()
    except (VanishedError, ListingGapError):
        return again()


def commits_between(log: TableLog, after: int, until: int | None, limit: int) -> Segment | None:
    """The available newest commits after one version, up to another; ``None`` if the table has none that new.

    Lists at least ``limit`` commits if there are as many. Raises ``LiveError`` if a commit is missing that was not
    cleaned up after a checkpoint.
    """
    start, files = _listing_after(log, after, until, limit)
    if not files.commits:
        _checked(log, parse_listing(log.names()))
        return None
    newest = max(files.commits)
    missing = last = newest if until is None else min(until, newest)
    while missing >= start and missing in files.commits:
        missing -= 1
    checkpoint = files.checkpoints[-1] if files.checkpoints else None
    if missing >= start and (checkpoint is None or missing > checkpoint.version):
        message = f"{log.location}: version {missing} is missing: there is no {commit_name(missing)}"
        raise ListingGapError(message, _GAP_HINT)
    return Segment(last, checkpoint, files)


def _listing_after(log: TableLog, after: int, until: int | None, limit: int) -> tuple[int, LogFiles]:
    """The files from a version on, and that version. If only the end of the log is needed, only the end is listed."""
    if after < 0 and until is None:
        hint = _last_checkpoint(log)
        start = hint - limit + 1
        if start > 0:
            files = parse_listing(log.names(f"{start:020d}"))
            if files.commits and max(files.commits) >= hint:
                return start, files
    return after + 1, parse_listing(log.names(f"{after + 1:020d}" if after >= 0 else ""))


def _listing(log: TableLog, version: int | None, look_back: int) -> LogFiles:
    """One listing: of the whole log if one request has it, otherwise from the last checkpoint if the hint about it is
    right.
    """
    first = log.first_names()
    if first.last is None:
        return _checked(log, parse_listing(first.names, whole=True))
    if not any(name.endswith(".crc") for name in first.names):
        log.start(load_checkpoint_reader)
    hint = _last_checkpoint(log)
    start = max(hint - look_back, 0)
    if start > 0 and (version is None or version >= hint):
        files = parse_listing(_after(log, first, f"{start:020d}"))
        if files.commits and any(version is None or checkpoint.version <= version for checkpoint in files.checkpoints):
            return _checked(log, files)
    return _checked(log, parse_listing(_after(log, first, ""), whole=True))


def _after(log: TableLog, first: FirstNames, name: str) -> Iterator[str]:
    """The files that sort after a name. Those that were listed first are not listed again."""
    assert first.last is not None
    yield from (each for each in first.names if each > name)
    yield from log.names(max(name, first.last))


def _last_checkpoint(log: TableLog) -> int:
    try:
        hint = parse_hint(log.read(_HINT, HINT_BYTES))
    except VanishedError:
        return -1
    return -1 if hint is None else hint


def _checked(log: TableLog, files: LogFiles) -> LogFiles:
    if files.staged > max(files.commits, default=-1):
        raise catalog_managed(log.location, f"commit {files.staged} is not published")
    if not files.commits and not files.checkpoints:
        if log.exists():
            raise LiveError(f"{log.location}: the table's log {LOG} is empty", "was the table created, and completely?")
        raise LiveError(f"{log.location}: not a Delta table: there is no {LOG}", "check the location")
    return files


def _segment(log: TableLog, files: LogFiles, version: int | None, *, alone: bool = False) -> Segment:
    """Use ``alone`` only for a second listing: a clean-up or a writer can have run during the first."""
    try:
        found = segment(files, version, alone=alone)
    except GapError as error:
        raise ListingGapError(f"{log.location}: {error}", _GAP_HINT) from error
    if found.version not in files.commits:
        _log.warning(
            "%s: %s is gone, so version %d is read from its checkpoint; Delta Spark loads the table only where "
            "another commit file is left, so restore the file",
            printable(log.location),
            commit_name(found.version),
            found.version,
        )
    return found
