"""Deterministic interleavings: a writer stopped inside its Delta transaction while another statement commits.

Two ways to hold it. In a UDF: the writer calls the SQL function ``hold``, a Python UDF that comes back only when the
test lets it go. Delta opens a write's transaction before it runs the write's query, so a writer that is inside ``hold``
has read its version of the table and not yet committed. A UDF runs in a process of its own: it and the test meet over
a socket. No one sleeps.

    with Writer(spark, "INSERT INTO t SELECT hold(id) FROM range(1)") as writer:
        writer.wait_inside()
        spark.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
        assert writer.release().condition == "DELTA_METADATA_CHANGED"

At its commit: Delta tells an observer, which is the thread's own, that it begins to write a commit, and waits for it to
come back. That holds what evaluates no function of ours: ALTER, OPTIMIZE, REORG. The observer is an interface of Delta
that a Python object implements through py4j, so nothing needs to be compiled.
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from enum import Enum, auto
from types import TracebackType
from typing import Any, Literal, Self

from tablectl.engine.errors import conflict_in, engine_error

TIMEOUT = 300.0
"""Seconds after which a wait fails the test: only a test that is wrong ever waits so long."""


@dataclass(frozen=True)
class Ended:
    """How a writer ended."""

    error: Exception | None = None

    @property
    def condition(self) -> str:
        """Delta's error class, such as ``DELTA_METADATA_CHANGED``; empty where it committed."""
        if self.error is None:
            return ""
        return (
            conflict_in(self.error)
            or engine_error(self.error).condition
            or f"{type(self.error).__name__}: {self.error}"
        )


class Hold(Enum):
    """Where a writer is held."""

    IN_UDF = auto()
    AT_COMMIT = auto()
    """Its first commit, or the one whose number is given."""


class Writer:
    """A write in a thread and a (classic) session of its own, in the JVM of the session given.

    ``write`` is SQL, or a function of the writer's session; in both, ``hold(value)`` gives back a BIGINT when the test
    lets it go. A writer that is held at its commit need not call it. Leaving the ``with`` block lets go of everything,
    so that a failing test leaves no thread behind.
    """

    def __init__(
        self, spark: Any, write: str | Callable[[Any], object], hold: Hold = Hold.IN_UDF, *, commit: int = 1
    ) -> None:
        self._write: Callable[[Any], object] = write if callable(write) else lambda session: session.sql(write)
        self._session = spark.newSession()
        self._door: _Door | _Observer
        if hold is Hold.IN_UDF:
            self._door = _Door()
            self._session.udf.register("hold", _hold(self._door.port), "bigint")
        else:
            self._door = _Observer(spark, commit)
        self._ended: Ended | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._door.open()
        self._thread.join(TIMEOUT)
        self._door.close()

    @property
    def ended(self) -> bool:
        """Whether it came to its end, well or not."""
        return self._ended is not None

    def wait_inside(self) -> None:
        """Come back when the writer stands inside its transaction. Fails if it ends without, or never gets there."""
        try:
            event = self._door.events.get(timeout=TIMEOUT)
        except queue.Empty:
            raise AssertionError("the writer never came inside") from None
        assert event == "inside", f"the writer ended before it came inside: {self._ended and self._ended.error}"

    def release(self) -> Ended:
        """Let it go on, wait for its end, and say how it ended."""
        self._door.open()
        self._thread.join(TIMEOUT)
        assert self._ended is not None, "the writer was released and never ended"
        return self._ended

    def _run(self) -> None:
        try:
            with self._door.watching():
                self._write(self._session)
        except Exception as error:  # noqa: BLE001  # whatever ended the writer is the outcome
            self._ended = Ended(error)
        else:
            self._ended = Ended()
        self._door.events.put("ended")


class _Door:
    """A listening socket: whoever connects is inside, and is released by the end of the connection."""

    def __init__(self) -> None:
        self.events: queue.SimpleQueue[Literal["inside", "ended"]] = queue.SimpleQueue()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._opened = False
        self._inside: list[socket.socket] = []
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        # The end of the listener ends the thread.
        with suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                with self._lock:
                    if self._opened:
                        connection.close()
                        continue
                    self._inside.append(connection)
                    if len(self._inside) == 1:
                        self.events.put("inside")

    def watching(self) -> AbstractContextManager[None]:
        """The UDF finds its way by itself."""
        return nullcontext()

    def open(self) -> None:
        with self._lock:
            if self._opened:
                return
            self._opened = True
            for connection in self._inside:
                connection.close()

    def close(self) -> None:
        """Stop listening, once the writer has ended. Another server may then get its port."""
        self.open()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, which a close alone does not
        self._listener.close()


class _Observer:
    """Delta's ``TransactionExecutionObserver``, which lets one commit of its thread wait.

    Every method of the interface is answered, those of Scala's traits too, under the names that the JVM has for them.
    """

    def __init__(self, spark: Any, number: int = 1) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        ensure_callback_server_started(spark.sparkContext._gateway)  # type: ignore[no-untyped-call]
        self.events: queue.SimpleQueue[Literal["inside", "ended"]] = queue.SimpleQueue()
        self._delta = spark._jvm.org.apache.spark.sql.delta
        self._none = spark._jvm.scala.Option.empty
        self._open = threading.Event()
        self._number = number

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """While this thread's transactions tell us."""
        observers = self._delta.TransactionExecutionObserver
        before = observers.getObserver()
        observers.setObserver(self)
        try:
            yield
        finally:
            observers.setObserver(before)

    def open(self) -> None:
        self._open.set()

    def close(self) -> None:
        self.open()

    def startingTransaction(self, start: Any) -> Any:  # noqa: N802  # the JVM's names, here and below
        return start.apply()

    def preparingCommit(self, prepare: Any) -> Any:  # noqa: N802
        return prepare.apply()

    def beginDoCommit(self) -> None:  # noqa: N802
        self._number -= 1
        if self._number == 0:
            self.events.put("inside")
            self._open.wait(TIMEOUT)

    def createChild(self) -> Any:  # noqa: N802
        return self

    def getNextObserver(self) -> Any:  # noqa: N802
        return self._none()

    nextObserver = getNextObserver  # noqa: N815

    def _nothing(self, *_: Any) -> None:
        """Told, and not asked."""

    beginBackfill = beginPostCommit = transactionCommitted = transactionAborted = _nothing  # noqa: N815
    advanceToNextThreadObserver = setNextObserver = _nothing  # noqa: N815

    def toString(self) -> str:  # noqa: N802
        return "held at its commit"


class Breaking:
    """An observer whose thread's commit of some number, from 1, does not come about: a chain breaks off before it.

    The thread is the one that runs a table's statements: ``at_statements`` gets the events of an apply, and hangs
    itself up there before each statement.
    """

    def __init__(self, spark: Any, number: int) -> None:
        self._observer = _BreakingObserver(spark, number)

    def at_statements(self, event: Any) -> None:
        """Watches the statement that follows, and nothing after it."""
        if event.step.startswith("before "):
            self._observer.hang()
        elif event.step.startswith("after "):
            self._observer.take_down()


class _BreakingObserver(_Observer):
    def __init__(self, spark: Any, number: int) -> None:
        super().__init__(spark)
        self._left = number
        self._before: Any = None

    class Java:
        implements = ("org.apache.spark.sql.delta.TransactionExecutionObserver",)

    def hang(self) -> None:
        observers = self._delta.TransactionExecutionObserver
        self._before = observers.getObserver()
        observers.setObserver(self)

    def take_down(self) -> None:
        self._delta.TransactionExecutionObserver.setObserver(self._before)

    def beginDoCommit(self) -> None:  # noqa: N802
        self._left -= 1
        if self._left == 0:
            raise ConnectionError("the driver is gone")

    def toString(self) -> str:  # noqa: N802
        return "breaks a commit off"


def _hold(port: int) -> Callable[[int], int]:
    """The UDF. A nested function travels to the worker by value, so the worker needs no module of the tests."""

    def hold(value: int) -> int:
        import socket

        try:
            with socket.create_connection(("127.0.0.1", port)) as door:
                door.recv(1)
        except OSError:
            return value  # the door is open: no one listens any more
        return value

    return hold
