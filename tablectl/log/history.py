"""The commits of one version, newest first. Each is read once."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from tablectl.log.checksum import Checksum, belongs_to, parse_checksum
from tablectl.log.listing import LogFiles, Segment, checksum_name, commit_name, segment
from tablectl.log.parse_commit import CommitSyntaxError, ParsedCommit, parse_commit
from tablectl.model.errors import LiveError
from tablectl.model.safe_text import printable
from tablectl.storage.read_budget import OversizeError
from tablectl.storage.table_log import AHEAD, TableLog, VanishedError

_WHOLE = 100
"""The number of commits of which all that was parsed is kept until it is asked for."""
_log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class DamagedCommitError(LiveError):
    """A commit that cannot be parsed."""


class History:
    """The commits and checksums of a segment. A commit that was read for the state is not read again for the history.

    If the store answers slowly, files that will be needed are prefetched in parallel: twenty commits then take as long
    as one. Prefetched files that are not needed are ignored, even if they are damaged or missing.
    """

    def __init__(self, log: TableLog, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self._read: dict[int, ParsedCommit] = {}
        self._checksums: dict[int, Checksum | None] = {}
        self._doubted = False
        self._ahead: dict[str, Future[Any]] = {}
        self._lowest = segment.version + 1
        """The oldest commit that was prefetched so far."""

    def at(self, version: int) -> History:
        """The same log at an earlier version, sharing everything that was read. Raises ``GapError`` if too much of the
        log was cleaned up to reconstruct that version.
        """
        earlier = copy(self)
        earlier.segment = segment(self.segment.files, version)
        return earlier

    def read_ahead(self, newest: int, count: int) -> None:
        """Prefetches up to ``count`` commits, from ``newest`` back, that exist and were not read yet; none if they are
        too large together.
        """
        if not self.log.parallel:
            return
        try:
            self._check_sizes(max(newest - count, -1))
        except OversizeError:
            return
        for version in range(newest, max(newest - count, -1), -1):
            wanted = version in self.segment.files.commits and version not in self._read
            if wanted:
                self._start(commit_name(version), self._commit_reader(version))
        self._lowest = min(self._lowest, max(newest - count, -1) + 1)

    def read_checksum_ahead(self, version: int) -> None:
        """Prefetches a checksum, if it exists."""
        if self.log.parallel and version in self.segment.files.checksums:
            self._start(checksum_name(version), self._checksum_reader(version))

    def commit(self, version: int) -> ParsedCommit:
        """One commit. Raises ``LiveError`` with file and line if it is malformed."""
        if version not in self._read:
            commit = self._take(commit_name(version), self._commit_reader(version))
            self._read[version] = commit if len(self._read) < _WHOLE else commit.summarize()
        return self._read[version]

    def checksum(self, version: int) -> Checksum | None:
        """The checksum of a version; ``None`` if there is none that belongs to its commit."""
        if self._doubted:
            return None
        if version not in self._checksums:
            self._checksums[version] = self._read_checksum(version)
        return self._checksums[version]

    def doubt_checksums(self) -> bool:
        """Ignores checksums from now on. Returns whether this can change a result, because a checksum was
        used before.
        """
        believed = not self._doubted and any(self._checksums.values())
        self._doubted = True
        return believed

    def _read_checksum(self, version: int) -> Checksum | None:
        files = self.segment.files
        if version not in files.checksums or version not in files.commits:
            return None
        try:
            raw = self._take(checksum_name(version), self._checksum_reader(version))
        except (VanishedError, OversizeError):
            return None
        checksum = parse_checksum(raw)
        return checksum if checksum and belongs_to(checksum, self.commit(version)) else None

    def known(self, version: int) -> bool:
        """Whether a commit was read, or is being read."""
        return version in self._read or commit_name(version) in self._ahead

    def recent(self, count: int, sure: int | None = None) -> Iterator[ParsedCommit]:
        """The newest commits, at most ``count``, as far back as the log has no gap. The caller takes the first ``sure``
        of them in any case, so no others are prefetched before.

        Commits before the checkpoint can be cleaned up at any time, so a missing one ends the history without an
        error. So does a damaged one: the state needs it no more than Delta does.
        """
        version, base = self.segment.version, self.segment.base
        first = version - (count if sure is None else min(sure, count))
        self._check_sizes(max(version - count, -1))
        for each in range(version, max(version - count, -1), -1):
            if each not in self.segment.files.commits:
                return
            self._read_on(each, each - (first if each > first else version - count))
            try:
                commit = self.commit(each)
            except (VanishedError, DamagedCommitError) as error:
                if each > base:
                    raise
                if isinstance(error, DamagedCommitError):
                    _log.warning("%s; the history ends there", printable(error.message))
                return
            yield commit

    def on(self, wanted: Segment) -> History:
        """Another segment of the same log, sharing everything that was read."""
        other = copy(self)
        other.segment = wanted
        return other

    def relisted(self, files: LogFiles) -> History:
        """The same version, with another listing of its log."""
        other = copy(self)
        other.segment = replace(self.segment, files=files)
        return other

    def skim(self, versions: Iterable[int]) -> Generator[Callable[[], ParsedCommit], None, None]:
        """For each version a call that returns its commit. The next ``AHEAD`` of them are read in parallel, and none is
        kept: a long history would fill the memory.
        """
        waiting = deque[Callable[[], ParsedCommit]]()
        for version in versions:
            waiting.append(self._reading(version))
            if len(waiting) > AHEAD:
                yield waiting.popleft()
        yield from waiting

    def _reading(self, version: int) -> Callable[[], ParsedCommit]:
        if version in self._read:
            return partial(self.commit, version)
        started = self._ahead.pop(commit_name(version), None) or self.log.start(self._commit_reader(version))
        return started.result if started else self._commit_reader(version)

    def steps(self) -> Iterator[ParsedCommit]:
        """The commits after the checkpoint, newest first."""
        base = self.segment.base
        self._check_sizes(base)
        for version in range(self.segment.version, base, -1):
            self._read_on(version, version - base)
            yield self.commit(version)

    def _check_sizes(self, after: int) -> None:
        """Raises ``OversizeError`` if the commits after a version are too large together, before one is read."""
        unread = (each for each in range(after + 1, self.segment.version + 1) if each not in self._read)
        self.log.check_sizes(commit_name(each) for each in unread if each in self.segment.files.commits)

    def _read_on(self, version: int, left: int) -> None:
        """Prefetches the next commits when half of the prefetched ones are used up, so that reads never pause."""
        if not self.log.parallel or version - self._lowest >= AHEAD // 2:
            return
        if version < self._lowest:  # a walk that began further back
            self._lowest = version + 1
        newest, oldest = self._lowest - 1, version - min(left, AHEAD) + 1
        if newest >= oldest:
            self.read_ahead(newest, newest - oldest + 1)

    def _commit_reader(self, version: int) -> Callable[[], ParsedCommit]:
        return lambda: read_commit(self.log, commit_name(version), version)

    def _checksum_reader(self, version: int) -> Callable[[], bytes]:
        return lambda: self.log.read(checksum_name(version))

    def _start(self, name: str, call: Callable[[], object]) -> None:
        """Starts a read unless it is already running."""
        started = None if name in self._ahead else self.log.start(call)
        if started is not None:
            self._ahead[name] = started

    def _take(self, name: str, call: Callable[[], _Result]) -> _Result:
        """The result of a read. Waits for the prefetch if one was started."""
        started: Future[_Result] | None = self._ahead.pop(name, None)
        return call() if started is None else started.result()


def read_commit(
    log: TableLog, name: str, version: int, *, with_files: bool = False, statistics: bool = False
) -> ParsedCommit:
    """Reads one commit or JSON checkpoint. Raises ``LiveError`` with file and line if it is malformed."""
    try:
        with closing(log.lines(name)) as lines:
            count = log.budget.take_action
            return parse_commit(version, lines, with_files=with_files, statistics=statistics, count=count)
    except CommitSyntaxError as error:
        raise DamagedCommitError(
            f"{log.file(name)}:{error.line}: {error}",
            "the log is damaged: restore the file from a copy; nothing of the table is believed until then",
        ) from error
