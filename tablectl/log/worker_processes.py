"""Work on many tables in order: in threads where their logs answer slowly, in processes for many logs on disks of this
machine, else one after the other. On disks the processor is what takes time, and threads of Python share one core.

The processes are forked, so they know what the caller knows and start at once. That is safe only while the process has
a single thread: a lock that another thread holds is never released in the child. On macOS and Windows, libraries use
threads on their own, so there everything happens in the caller's process.
"""

from __future__ import annotations

import copyreg
import gc
import os
import signal
import sys
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from io import BytesIO
from multiprocessing import current_process, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from pickle import HIGHEST_PROTOCOL, Pickler, loads
from types import MappingProxyType
from typing import Any, TypeVar

from tablectl.delta.locations import canonical_location, is_local
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
MOST = 8
"""The maximum number of processes unless the configuration names another: one process takes the results of all."""
_BATCH = 20
"""The number of items whose results are sent together."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_THREADS = Path("/proc/self/task")


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


def usable_cores() -> int:
    """The cores that this process may use, by its affinity and by the quota of its container."""
    cores = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    try:
        quota, period = _QUOTA.read_text("ascii").split()
        return max(min(cores, int(quota) // int(period)), 1)
    except (OSError, ValueError):  # no container, or no quota
        return cores


def can_fork() -> bool:
    """Whether this process may start others as copies of itself. See the module docstring."""
    if sys.platform != "linux":
        return False
    # A daemonic process, such as one of a `multiprocessing.Pool`, may have no children.
    return not current_process().daemon and len(list(_THREADS.iterdir())) == 1


def in_processes(
    work: Callable[[_Item], _Result], items: Sequence[_Item], count: int, at_end: Callable[[], None]
) -> Generator[_Result, None, None]:
    """The results of ``work``, in the order of the items, by ``count`` processes, each of which calls ``at_end`` once.

    ``work`` runs in a copy of this process: nothing that it changes is seen here, and its results are pickled. What a
    process does not deliver, because ``work`` raised an error or the process was killed, is worked on here.
    """
    workers = _Workers(work, items, count, at_end)
    try:
        for number, batch in enumerate(_batches(items)):
            found = workers.results(number)
            yield from map(work, batch) if found is None else found
        workers.join()
    finally:
        workers.end()


def _batches(items: Sequence[_Item]) -> Iterator[Sequence[_Item]]:
    return (items[start : start + _BATCH] for start in range(0, len(items), _BATCH))


class _Workers:
    """Processes that share batches: of three the first has batches 0, 3, 6 and so on, the second 1, 4, 7 and so on."""

    def __init__(
        self, work: Callable[[Any], Any], items: Sequence[Any], count: int, at_end: Callable[[], None]
    ) -> None:
        self._count = count
        self._processes: list[BaseProcess] = []
        self._arriving: list[Connection] = []
        """Where the results of each process arrive."""
        context = get_context("fork")
        with _interrupts_held_back():
            for first in range(count):
                receiver, sender = context.Pipe(duplex=False)
                self._arriving.append(receiver)
                process = context.Process(target=self._run, args=(work, items, first, sender, at_end), daemon=True)
                process.start()
                sender.close()
                self._processes.append(process)

    def _run(
        self,
        work: Callable[[Any], Any],
        items: Sequence[Any],
        first: int,
        sender: Connection,
        at_end: Callable[[], None],
    ) -> None:
        """What a process does. It ends by itself if its parent has ended, and at an error, which its parent will meet,
        too. Interrupts stay blocked: the parent gets them as well.
        """
        gc.freeze()  # what belongs to the parent is not for this process to collect and close
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        for receiver in self._arriving:
            receiver.close()
        try:
            for number, batch in enumerate(_batches(items)):
                if number % self._count == first:
                    value = list(map(work, batch))
                    data = BytesIO()
                    _RecordPickler(data, HIGHEST_PROTOCOL).dump(value)
                    sender.send_bytes(data.getvalue())
        except Exception:  # noqa: BLE001  # the parent gets it, with its trace
            return
        finally:
            at_end()

    def results(self, number: int) -> list[Any] | None:
        """The results of the next batch; ``None`` if its process has ended without them."""
        try:
            found: list[Any] = loads(self._arriving[number % self._count].recv_bytes())  # noqa: S301  # from a process of our own
        except (EOFError, OSError):
            return None
        return found

    def join(self) -> None:
        """Waits for their end."""
        for each in self._processes:
            each.join()

    def end(self) -> None:
        """Ends those that still work."""
        for each in self._processes:
            each.kill()
        self.join()


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """An interrupt (Ctrl-C) meanwhile has its effect afterwards: half-started processes cannot handle it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _RecordPickler(Pickler):
    """Takes read-only maps, too, which ``pickle`` refuses."""

    dispatch_table = copyreg.dispatch_table | {MappingProxyType: lambda view: (_read_only, (dict(view),))}


def _read_only(entries: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(entries)
