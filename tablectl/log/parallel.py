"""Work on many tables in order: in parallel where their logs answer slowly, else one after the other."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from tablectl.delta.names import canonical_location, is_local
from tablectl.storage.mounts import network_mount
from tablectl.storage.object_stores import StoreOptions

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

_MOUNTED = 4
"""Tables in parallel on a network drive, which gains from a few threads."""
_MANY = 200
"""The number of tables from which several processes read them."""
_READY = 4
"""The number of tables per thread that are worked on ahead of the requested one."""


def threads_for(locations: Iterable[str], options: StoreOptions) -> int:
    """How many tables to read in parallel: 0 on disks of this machine, which answer faster than threads can switch."""
    found = set(locations)
    if not all(map(is_local, found)):
        return options.concurrency
    folders = {canonical_location(each).rpartition("/")[0] or "/" for each in found}
    return _MOUNTED if any(map(network_mount, folders)) else 0


def processes_for(tables: int, options: StoreOptions) -> int:
    """How many processes read tables on disks of this machine. 1 if they are few, if processes cannot be forked, or if
    a catalog is asked about each: its connections and credentials belong to this process.
    """
    if tables < _MANY or options.processes == 1 or options.access is not None:
        return 1
    from tablectl.log.worker_processes import MOST, can_fork, usable_cores  # noqa: PLC0415  # few commands need it

    return (options.processes or min(usable_cores(), MOST)) if can_fork() else 1


def in_order(work: Callable[[_Item], _Result], items: Iterable[_Item], threads: int) -> Generator[_Result, None, None]:
    """The results of ``work``, in the order of the items.

    Only the next few items are worked on ahead, so that ten thousand take no more memory than the caller keeps.
    """
    if not threads:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(max_workers=threads) as pool:
        ready = deque[Future[_Result]]()
        try:
            for item in items:
                ready.append(pool.submit(work, item))
                if len(ready) > threads * _READY:
                    yield ready.popleft().result()
            while ready:
                yield ready.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
