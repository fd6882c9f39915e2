from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest

from chaos.proxy import Proxy


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that sends everything back; its port."""
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=answer, args=(connection,), daemon=True).start()

    def answer(connection: socket.socket) -> None:
        with connection:
            while data := connection.recv(100):
                connection.sendall(data)

    threading.Thread(target=serve, daemon=True).start()
    yield listener.getsockname()[1]
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


@pytest.fixture
def proxy(echo: int) -> Iterator[Proxy]:
    made = Proxy(echo)
    yield made
    made.close()


def connect(proxy: Proxy) -> socket.socket:
    return socket.create_connection(("127.0.0.1", proxy.port), timeout=5)


def test_bytes_pass_both_ways(proxy: Proxy) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"


def test_refusing_ends_open_connections_and_takes_no_new_ones(proxy: Proxy) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        proxy.set("refuse")
        assert client.recv(10) == b""
    with connect(proxy) as client:
        assert client.recv(10) == b""
    proxy.set("pass")
    with connect(proxy) as client:
        client.sendall(b"two")
        assert client.recv(10) == b"two"


def test_held_bytes_arrive_when_the_proxy_passes_again(proxy: Proxy) -> None:
    with connect(proxy) as client:
        client.sendall(b"one")
        assert client.recv(10) == b"one"
        proxy.set("hold")
        client.sendall(b"two")
        client.settimeout(0.2)
        with pytest.raises(TimeoutError):
            client.recv(10)
        proxy.set("pass")
        client.settimeout(5)
        assert client.recv(10) == b"two"
