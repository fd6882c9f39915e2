"""Deterministic interleavings: a writer stopped inside its Delta transaction while another statement commits.

The writer calls the SQL function ``hold``, a Python UDF that comes back only when the test lets it go. Delta opens a
write's transaction before it runs the write's query, so a writer that is inside ``hold`` has read its version of the
table and not yet committed. A UDF runs in a process of its own: it and the test meet over a socket. Nobody sleeps.

    with Writer(spark, "INSERT INTO t SELECT hold(id) FROM range(1)") as writer:
        writer.wait_inside()
        spark.sql("ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')")
        assert writer.release().condition == "DELTA_METADATA_CHANGED"
"""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
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


class Writer:
    """A write in a thread and a (classic) session of its own, in the JVM of the session given.

    ``write`` is SQL, or a function of the writer's session; in both, ``hold(value)`` gives back a BIGINT when the test
    lets it go. Leaving the ``with`` block lets go of everything, so that a failing test leaves no thread behind.
    """

    def __init__(self, spark: Any, write: str | Callable[[Any], object]) -> None:
        self._door = _Door()
        self._write: Callable[[Any], object] = write if callable(write) else lambda session: session.sql(write)
        self._session = spark.newSession()
        self._session.udf.register("hold", _hold(self._door.port), "bigint")
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
        assert self._ended is not None, "the writer was let go and never ended"
        return self._ended

    def _run(self) -> None:
        try:
            self._write(self._session)
        except Exception as error:  # noqa: BLE001  # whatever ended the writer is the outcome
            self._ended = Ended(error)
        else:
            self._ended = Ended()
        self._door.events.put("ended")


class _Door:
    """A listening socket: whoever connects is inside, and is let go by the end of the connection."""

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

    def open(self) -> None:
        with self._lock:
            if self._opened:
                return
            self._opened = True
            for connection in self._inside:
                connection.close()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)  # wakes the thread in accept, which a close alone does not
        self._listener.close()


def _hold(port: int) -> Callable[[int], int]:
    """The UDF. A nested function travels to the worker by value, so the worker needs no module of the tests."""

    def hold(value: int) -> int:
        import socket

        try:
            with socket.create_connection(("127.0.0.1", port)) as door:
                door.recv(1)
        except OSError:
            return value  # the door is open: nobody listens any more
        return value

    return hold
