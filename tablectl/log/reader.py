"""Reads live tables from their Delta logs. The entry points of this package."""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TypeVar

from tablectl.delta.names import TableName
from tablectl.log.catalog_managed import CatalogLog, differences, managed_live_table, open_log
from tablectl.log.file_facts import (
    files_without_row_counts,
    find_clustering_state,
    measure_layout,
    read_upkeep_facts,
    replay,
)
from tablectl.log.history import History
from tablectl.log.listing import Segment, commit_name, parse_listing, segment
from tablectl.log.open_version import commits_between, read_twice, with_version
from tablectl.log.state import (
    KnownState,
    State,
    TableCache,
    check_properties,
    check_protocol,
    find_state,
    frozen_properties,
    read_clustering,
    read_schema,
    unknown_features,
)
from tablectl.log.truncation import find_truncation
from tablectl.log.worker_processes import in_order, in_processes, processes_for, threads_for
from tablectl.log.write_history import read_write_history
from tablectl.model.catalog_answers import CatalogEntry, ManagedTable
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError, TablectlError, of_table
from tablectl.model.safe_text import printable
from tablectl.model.table import LOOK_BACK, WITH_HISTORY, Depth, LiveTable
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tablectl.storage.table_log import AHEAD, PAGE, TableLog

MOST_FILES = 200_000
"""The maximum number of files for which a layout is measured."""

_AHEAD_BYTES = 4 << 20
"""The size of commits that may be read without need."""
_Taken = TypeVar("_Taken")
_DEFAULT = StoreOptions()
_log = logging.getLogger(__name__)
_NO_CACHE = TableCache()


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A table to read. ``depth`` chooses how much from the table's state: most tables match their policy and need no
    more.
    """

    name: TableName
    location: str
    depth: Callable[[LiveTable], Depth]


@dataclass(frozen=True, slots=True)
class _Extent:
    """What is to be read of one table."""

    version: int | None = None
    """By default the newest."""
    look_back: int = LOOK_BACK
    """The maximum look-back of the request."""
    ahead: int = 1
    """The number of commits that it certainly needs."""


_NEWEST = _Extent()


@dataclass(frozen=True, slots=True)
class Reading:
    """A table that was just read."""

    position: int
    """The place of its request, from 0."""
    table: LiveTable
    history: History | None
    """What was read of its log; ``None`` if its catalog alone was asked."""
    stores: Stores


Take = Callable[[Reading], _Taken]


def _only_table(reading: Reading) -> LiveTable:
    return reading.table


def _table_itself(table: LiveTable, _history: History | None) -> LiveTable:
    return table


def read_table(
    name: TableName,
    location: str,
    depth: Depth = WITH_HISTORY,
    *,
    version: int | None = None,
    cache: TableCache = _NO_CACHE,
    options: StoreOptions = _DEFAULT,
) -> LiveTable:
    """The table at a version, by default the newest. ``cache`` as in ``read_many``.

    ``location`` is taken literally: percent signs in a path are part of it, as in Hadoop's ``Path``. Raises
    ``LiveError`` if the table cannot be read. The contents of the log are never guessed.
    """
    look_back = depth.look_back
    with Stores(options) as stores:
        request = ReadRequest(name, location, lambda _table: depth)
        return _read_table(stores, request, cache, _table_itself, _Extent(version, look_back, max(look_back, 1)))


def read_many(
    requests: Iterable[ReadRequest],
    *,
    threads: int | None = None,
    cache: TableCache = _NO_CACHE,
    options: StoreOptions = _DEFAULT,
) -> Generator[LiveTable | TablectlError, None, None]:
    """Reads many tables in the order of the requests. The result for an unreadable table is its error.

    ``threads`` is the number of tables that are read in parallel; by default it depends on where they lie. ``cache``
    keeps the commits that show who writes the tables.
    """
    yield from read_each(requests, _only_table, threads=threads, cache=cache, options=options)


def read_each(
    requests: Iterable[ReadRequest],
    take: Take[_Taken],
    *,
    threads: int | None = None,
    cache: TableCache = _NO_CACHE,
    options: StoreOptions = _DEFAULT,
) -> Generator[_Taken | TablectlError, None, None]:
    """What ``take`` makes of each table, as ``read_many``. It runs where the table was read, with all that was read of
    its log. It can run again, if the log changed meanwhile.

    Of many tables on disks of this machine, that is in other processes: ``take`` must not depend on what it changes,
    and what it returns must be small, because it is pickled.
    """
    asked = list(requests)
    if threads is None:
        threads = threads_for((request.location for request in asked), options)
    processes = 1 if threads else processes_for(len(asked), options)
    with Stores(options) as stores:

        def one(item: tuple[int, ReadRequest]) -> _Taken | TablectlError:
            position, request = item

            def taken(table: LiveTable, history: History | None) -> _Taken:
                return take(Reading(position, table, history, stores))

            return of_table(request.name.text, lambda: _read_table(stores, request, cache, taken))

        items = list(enumerate(asked))
        if processes > 1:
            cache.flush()  # so that no process takes over a connection
            parallel = in_processes(one, items, processes, cache.flush)
        else:
            parallel = in_order(one, items, threads)
        try:
            with closing(parallel) as found:
                yield from found
        finally:
            cache.flush()


def read_commits(
    location: str,
    *,
    after: int = -1,
    until: int | None = None,
    limit: int = 1000,
    within: timedelta | None = None,
    options: StoreOptions = _DEFAULT,
) -> tuple[Commit, ...]:
    """The commits after ``after`` up to ``until`` (by default the newest), newest first, at most ``limit``.

    ``within`` stops at the first commit that is older than the newest by more than this. Both times come from the
    commits, so that the same log gives the same answer tomorrow. A commit without a timestamp does not stop. If the log
    was cleaned up, the oldest commits are missing: compare the last one's version with ``after``.
    """
    with Stores(options) as stores:
        log = open_log(stores, location, stores.managed(location))

        def read() -> tuple[Commit, ...]:
            wanted = commits_between(log, after, until, limit)
            if wanted is None:
                return ()
            recent = History(log, wanted).recent(min(limit, max(wanted.version - after, 0)))
            return tuple(_lately((each.commit for each in recent), within))

        return read_twice(read, read)


def newest_version(location: str, *, options: StoreOptions = _DEFAULT) -> int:
    """The newest version of the table, at the cost of a listing."""
    with Stores(options) as stores:
        managed = stores.managed(location)
        if managed is not None:
            return managed.version
        return with_version(stores.open(location), None, 0, lambda wanted: wanted.version)


def _lately(commits: Iterable[Commit], within: timedelta | None) -> Iterator[Commit]:
    """The leading commits, newest first, that are not older than the newest by more than ``within``."""
    oldest = 0
    for commit in commits:
        if within is not None and commit.timestamp and not oldest:
            oldest = commit.timestamp - round(within.total_seconds() * 1000)
        if commit.timestamp and commit.timestamp < oldest:
            return
        yield commit


def _read_table(
    stores: Stores,
    request: ReadRequest,
    cache: TableCache,
    take: Callable[[LiveTable, History | None], _Taken],
    extent: _Extent = _NEWEST,
) -> _Taken:
    """``take`` is what to make of the table."""
    version, look_back = extent.version, extent.look_back
    managed = stores.managed(request.location)
    entries = _Entries(stores, request)
    if managed is not None and version is None:
        return take(_read_managed(stores, request, managed, look_back, cache, entries), None)
    log = open_log(stores, request.location, managed)
    kept = _read_kept(entries, log, cache) if version is None else None
    if kept is not None:
        return take(*kept)

    def read(wanted: Segment) -> _Taken:
        history = History(log, wanted)
        history.read_ahead(history.segment.version, max(extent.ahead, _walked(history)))
        history.read_checksum_ahead(history.segment.version)
        found, state = _state_of(entries.request.name, history)
        _keep(history, state, cache)
        table, depth = entries.depth(found)
        return take(_deepened(table, depth, history, cache), history)

    return with_version(log, version, look_back, read)


@dataclass(slots=True)
class _Entries:
    """Asks the catalog for a table's entry, at most once, and the request for the depth that follows from it."""

    stores: Stores
    request: ReadRequest
    _found: CatalogEntry | None = None

    def depth(self, table: LiveTable) -> tuple[LiveTable, Depth]:
        """The table with the entry, if the depth asks for it, and the depth."""
        depth = self.request.depth(table)
        if not depth.entry:
            return table, depth
        if self._found is None:
            self._found = self.stores.entry(self.request.location) or CatalogEntry()
        known = replace(table, entry=self._found)
        return known, self.request.depth(known)


def _read_kept(entries: _Entries, log: TableLog, cache: TableCache) -> tuple[LiveTable, History] | None:
    """The table from what the cache has, if that is still right."""
    known = cache.state(log.location)
    try:
        return _read_known(entries, log, known, cache) if known else None
    except Exception as error:  # noqa: BLE001  # the log itself says what is wrong, if anything is
        _log.debug("%s: not read from the cache", printable(log.location), exc_info=error)
        return None


def _read_known(
    entries: _Entries, log: TableLog, known: KnownState, cache: TableCache
) -> tuple[LiveTable, History] | None:
    """The table from a kept state, at the cost of a listing and of the commits since then; ``None`` if the log is no
    longer the one that the state was read from. Raises ``LiveError`` if it cannot be read.
    """
    # The files from a version on, or all of them where that costs no more
    if log.parallel:
        files = parse_listing(log.names(f"{known.version:020d}"))
    else:
        files = parse_listing(log.names(), whole=True)
    identity = log.identity(commit_name(known.version))
    newest = max(files.commits, default=-1)
    unbroken = all(version in files.commits for version in range(known.version, newest + 1))
    if not identity or identity != known.identity or not unbroken or files.staged > newest:
        return None
    history, state = History(log, Segment(newest, None, files, known.version)), known.state
    if newest > known.version:
        history.read_ahead(newest, newest - known.version)
        state = find_state(history, before=known.state)
    table, depth = entries.depth(_interpreted(entries.request.name, history, state))
    if table.unknown or not depth.shallow:
        whole = files if files.whole else parse_listing(log.names(), whole=True)
        history = history.on(segment(whole, newest))
        table = _deepened(table, depth, history, cache)
    if newest > known.version:
        _keep(history, state, cache)
    return table, history


def _keep(history: History, state: State, cache: TableCache) -> None:
    """Keeps a state for the next read, if its version can be recognized then."""
    if not cache.keeps_states:
        return
    log, version = history.log, history.segment.version
    if version in history.segment.files.commits and not isinstance(log, CatalogLog):
        identity = log.identity(commit_name(version))
        if identity:
            cache.keep(log.location, KnownState(version, identity, state))


def _read_managed(
    stores: Stores,
    request: ReadRequest,
    managed: ManagedTable,
    look_back: int,
    cache: TableCache,
    entries: _Entries,
) -> LiveTable:
    """The state from the catalog's answer alone; the log is read only if more is asked for, and then compared.

    A log that cannot be read costs the history, not the table: the plan then expects every kind of writer.
    """
    table, depth = entries.depth(managed_live_table(request.name, managed))
    if depth.shallow:
        return table
    try:
        log = open_log(stores, request.location, managed)
        return with_version(
            log, managed.version, look_back, lambda wanted: _deep_managed(table, log, wanted, depth, cache)
        )
    except LiveError as error:
        assert table.catalog is not None
        return replace(table, catalog=replace(table.catalog, unread=error.message))


def _deep_managed(table: LiveTable, log: TableLog, wanted: Segment, depth: Depth, cache: TableCache) -> LiveTable:
    history = History(log, wanted)
    logged = table_of(table.name, history)
    assert table.catalog is not None
    facts = replace(table.catalog, differences=differences(table, logged))
    counted = replace(table, files=logged.files, bytes=logged.bytes, vectors=logged.vectors, catalog=facts)
    return _deepened(counted, depth, history, cache)


def _walked(history: History) -> int:
    """The number of commits that are requested at once to find the state. Without a checksum these are usually all
    commits. ``_AHEAD_BYTES`` bounds what is read without need if the newest commit has the whole state.
    """
    wanted = history.segment
    if wanted.version in wanted.files.checksums:
        return 1
    long = len(wanted.files.commits) >= PAGE and not wanted.files.checksums
    count = min(wanted.version - wanted.base, AHEAD if long else LOOK_BACK)
    names = map(commit_name, range(wanted.version - count + 1, wanted.version + 1))
    # Commits that are read without need must not use up the budget of those that are needed.
    return count if sum(history.log.size(name) or _AHEAD_BYTES for name in names) <= _AHEAD_BYTES else 1


def table_of(name: TableName, history: History, *, known_first: bool = False) -> LiveTable:
    """The table in the log, without a history. Raises ``LiveError`` if the log is not sufficient. ``known_first`` as in
    ``find_state``.
    """
    found = _state_of(name, history, known_first=known_first)[0]
    _check_known(found)
    return found


def _state_of(name: TableName, history: History, *, known_first: bool = False) -> tuple[LiveTable, State]:
    try:
        state = find_state(history, known_first=known_first)
        found = _interpreted(name, history, state)
    except LiveError:
        if not history.doubt_checksums():
            raise
    else:
        if not found.unknown or not history.doubt_checksums():
            return found, state
    # A damaged checksum can contain nonsense. If the checksum is not the cause, the commits say the same.
    state = find_state(history)
    return _interpreted(name, history, state), state


def _interpreted(name: TableName, history: History, state: State) -> LiveTable:
    log = history.log
    check_protocol(state.protocol, log.location, through_catalog=isinstance(log, CatalogLog))
    if not isinstance(log, CatalogLog):
        check_properties(state.metadata, log.location)
    unknown = unknown_features(state.protocol)
    try:
        schema = read_schema(state.metadata, log.location)
    except LiveError as error:
        # The feature may be the reason, and it is what a user can look up.
        raise (_unknown(log.location, unknown) if unknown else error) from error
    # A feature may change what the log says of files and domains. It cannot change what the protocol and the metadata
    # of a commit are: a client has to read those to learn of the feature.
    clustering = (
        None if unknown else read_clustering(state.protocol, state.metadata, state.clustering, schema, log.location)
    )
    files, size, vectors = (None, None, None) if unknown else _counted(state)
    return LiveTable(
        name=name,
        location=log.location,
        version=history.segment.version,
        table_id=log.managed.table_id if isinstance(log, CatalogLog) else state.metadata.table_id,
        protocol=state.protocol,
        schema=schema,
        partition_columns=state.metadata.partition_columns,
        clustering=clustering,
        properties=frozen_properties(state.metadata),
        files=files,
        bytes=size,
        vectors=vectors,
        unknown=unknown,
    )


def _counted(state: State) -> tuple[int | None, int | None, int | None]:
    """Files, bytes and vectors, if the state and the protocol determine them."""
    # No file has a deletion vector without the feature: DROP FEATURE purges them before it removes the feature.
    return state.files, state.bytes, state.vectors if state.protocol.has("deletionVectors") else 0


def _check_known(live: LiveTable) -> None:
    """Raise ``LiveError`` for a table of which only the settings were read."""
    if live.unknown:
        raise _unknown(live.location, live.unknown)


def _unknown(location: str, features: Sequence[str]) -> LiveError:
    named = f"the reader feature{'s' * (len(features) > 1)} {', '.join(features)}"
    return LiveError(
        f"{location}: the table asks for {named}, unknown here",
        "`tablectl status` and `drift` show what its log says in clear; a newer tablectl may know the feature",
    )


def _deepened(table: LiveTable, depth: Depth, history: History, cache: TableCache) -> LiveTable:
    if table.unknown and depth.partly:
        return replace(table, history=tuple(each.commit for each in history.recent(depth.look_back)))
    _check_known(table)
    table = _with_file_facts(table, depth, history)
    if depth.look_back:
        table = replace(table, history=tuple(each.commit for each in history.recent(depth.look_back)))
    if depth.writers and depth.writers(table):
        return replace(table, writes=read_write_history(table, history, cache))
    if depth.losses and depth.losses(table):
        return replace(table, past=read_write_history(table, history, cache))
    return table


def _with_file_facts(table: LiveTable, depth: Depth, history: History) -> LiveTable:
    """The table with what is read of all its files."""
    if depth.counts and None in {table.files, table.bytes, table.vectors}:
        total = replay(history.log, history.segment)
        table = replace(table, files=total.files, bytes=total.bytes, vectors=total.vectors)
    if depth.layout and table.partition_columns and (table.files or 0) <= MOST_FILES:
        layout = measure_layout(history.log, history.segment, table.partition_columns, table.schema, MOST_FILES)
        table = replace(table, layout=layout)
    if depth.row_counts:
        table = replace(table, uncounted=files_without_row_counts(history.log, history.segment, MOST_FILES))
    if depth.marks is not None:
        table = replace(table, marks=find_clustering_state(history), optimize=depth.marks)
    if depth.truncation:
        table = replace(table, truncation=find_truncation(table, history, depth.truncation))
    if depth.upkeep is not None:
        table = replace(table, upkeep=read_upkeep_facts(table, history, depth.upkeep))
    return table
