"""The commits of one version, read once each, newest first."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import closing
from copy import copy
from typing import Any, TypeVar

from tablectl.log.checksum import Checksum, belongs, parse_checksum
from tablectl.log.commits import CommitSyntaxError, ParsedCommit, parse_commit
from tablectl.log.listing import Segment, checksum_name, commit_name, compacted_name, segment
from tablectl.log.table_log import AHEAD, OversizeError, TableLog, VanishedError
from tablectl.model.errors import LiveError

_Result = TypeVar("_Result")


class History:
    """The commits and checksums of a segment. A commit read for the state is not read again for the history.

    Where the store answers slowly, what will be asked for is read ahead, side by side: twenty commits then take as
    long as one. What was read ahead for nothing is never looked at, be it damaged or gone.
    """

    def __init__(self, log: TableLog, segment: Segment) -> None:
        self.log = log
        self.segment = segment
        self._read: dict[int, ParsedCommit] = {}
        self._checksums: dict[int, Checksum | None] = {}
        self._doubted = False
        self._ahead: dict[str, Future[Any]] = {}

    def at(self, version: int) -> History:
        """The same log at an earlier version, with all that is read of it already. Raises ``GapError`` where too much
        of the log was cleaned away to say what the table was then.
        """
        earlier = copy(self)
        earlier.segment = segment(self.segment.files, version)
        return earlier

    def read_ahead(self, newest: int, count: int) -> None:
        """Start to read commits, from a version back, as far as the log has them and they are not read yet."""
        for version in range(newest, max(newest - count, -1), -1):
            wanted = version in self.segment.files.commits and version not in self._read
            if wanted and not self._start(commit_name(version), self._commit_reader(version)):
                return

    def read_checksum_ahead(self, version: int) -> None:
        """Start to read a checksum, if there is one."""
        if version in self.segment.files.checksums:
            self._start(checksum_name(version), self._checksum_reader(version))

    def commit(self, version: int) -> ParsedCommit:
        """One commit. Raises ``LiveError`` with file and line where it is no commit."""
        if version not in self._read:
            self._read[version] = self._take(commit_name(version), self._commit_reader(version))
        return self._read[version]

    def checksum(self, version: int) -> Checksum | None:
        """The checksum of a version, if there is one that belongs to its commit."""
        if self._doubted:
            return None
        if version not in self._checksums:
            self._checksums[version] = self._read_checksum(version)
        return self._checksums[version]

    def doubt_checksums(self) -> bool:
        """Do without checksums from now on; whether that can change anything, since one of them was believed."""
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
        return checksum if checksum and belongs(checksum, self.commit(version)) else None

    def recent(self, count: int) -> Iterator[ParsedCommit]:
        """The newest commits, at most ``count``, as far as the log reaches back without a gap.

        Those behind the checkpoint may be cleaned away at any moment, so there a vanished one only ends the history.
        """
        version, base = self.segment.version, self.segment.base
        for each in range(version, max(version - count, -1), -1):
            if each not in self.segment.files.commits:
                return
            self._read_on(each, each - (version - count))
            try:
                commit = self.commit(each)
            except VanishedError:
                if each > base:
                    raise
                return
            yield commit

    def steps(self) -> Iterator[ParsedCommit]:
        """What happened after the checkpoint, newest first: commits already read, compacted logs, other commits."""
        version = self.segment.version
        while version > self.segment.base:
            first = self._compacted_from(version)
            if first is None:
                if not self.segment.files.compacted:
                    self._read_on(version, version - self.segment.base)
                yield self.commit(version)
                version -= 1
            else:
                yield read_commit(self.log, compacted_name(first, version), version)
                version = first - 1

    def _read_on(self, version: int, left: int) -> None:
        """Read the next few ahead, once those that were are used up."""
        if version not in self._read and commit_name(version) not in self._ahead:
            self.read_ahead(version, min(left, AHEAD))

    def _commit_reader(self, version: int) -> Callable[[], ParsedCommit]:
        return lambda: read_commit(self.log, commit_name(version), version)

    def _checksum_reader(self, version: int) -> Callable[[], bytes]:
        return lambda: self.log.read(checksum_name(version))

    def _start(self, name: str, call: Callable[[], object]) -> bool:
        """Start a reading unless it is started; whether that is possible at all."""
        if name not in self._ahead:
            started = self.log.start(call)
            if started is None:
                return False
            self._ahead[name] = started
        return True

    def _take(self, name: str, call: Callable[[], _Result]) -> _Result:
        """The result of a reading: of the one that was started, if it was."""
        started: Future[_Result] | None = self._ahead.pop(name, None)
        return call() if started is None else started.result()

    def _compacted_from(self, last: int) -> int | None:
        """Where the longest compacted log that ends at a version begins, unless that version is read already."""
        if last in self._read or commit_name(last) in self._ahead:
            return None
        base = self.segment.base
        return next((one for one, other in self.segment.files.compacted if other == last and base < one < last), None)


def read_commit(log: TableLog, name: str, version: int, *, with_files: bool = False) -> ParsedCommit:
    """One commit or compacted log. Raises ``LiveError`` with file and line where it is none."""
    try:
        with closing(log.lines(name)) as lines:
            return parse_commit(version, lines, with_files=with_files)
    except CommitSyntaxError as error:
        raise LiveError(
            f"{log.file(name)}:{error.line}: {error}",
            "the log is damaged: restore the file from a copy; nothing of the table is believed until then",
        ) from error
