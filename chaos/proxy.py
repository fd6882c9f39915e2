"""A TCP proxy that passes bytes on, refuses everybody, or holds bytes back: a network that fails on command."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Literal

Mode = Literal["pass", "refuse", "hold"]
"""``refuse``: connections are reset and new ones are closed. ``hold``: bytes wait until the proxy passes again."""

_CHUNK = 65_536


class Proxy:
    """Listens on a free port of this machine in threads of its own, for as long as it is not closed."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._lock = threading.Lock()
        self._flows = threading.Event()
        self._flows.set()
        self._mode: Mode = "pass"
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def set(self, mode: Mode) -> None:
        """Change how the network behaves."""
        with self._lock:
            self._mode = mode
            cut = list(self._open) if mode == "refuse" else []
        for each in cut:
            _reset(each)
        if mode == "hold":
            self._flows.clear()
        else:
            self._flows.set()

    def close(self) -> None:
        """Reset every connection and stop listening."""
        self.set("refuse")
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        self._flows.wait()
        try:
            far = socket.create_connection(("127.0.0.1", self._target), timeout=10)
        except OSError:
            _reset(near)
            return
        far.settimeout(None)
        with self._lock:
            refused = self._mode == "refuse"
            self._open |= {near, far}
        if refused:
            _reset(near)
            _reset(far)
        back = threading.Thread(target=self._pump, args=(far, near), daemon=True)
        back.start()
        self._pump(near, far)
        back.join()
        with self._lock:
            self._open -= {near, far}
        near.close()
        far.close()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(_CHUNK):
                self._flows.wait()
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)


def _reset(connection: socket.socket) -> None:
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
