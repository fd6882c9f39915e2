"""Ports for programs that take none of their own choice."""

from __future__ import annotations

import random
import socket

_PORTS = range(20_000, 32_000)
"""Below those that Linux gives to connections, and to servers that ask for any port (32768 and above). The tests have
hundreds of both, and a server that starts in a minute must still find its port free.
"""


def free_port() -> int:
    """A port without a listener."""
    for port in random.sample(_PORTS, 100):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")
