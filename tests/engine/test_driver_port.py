"""When the process of an engine is known to be gone, on real sockets of this machine and a clock of our own."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tablectl.engine import liveness
from tablectl.engine.liveness import SETTLED, DriverPort, find_driver


@pytest.fixture
def driver() -> Iterator[socket.socket]:
    """A driver that listens, until it is closed."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening


def port_of(driver: socket.socket) -> int:
    return int(driver.getsockname()[1])


def settings(driver: socket.socket, host: str = "localhost") -> Any:
    return {"spark.driver.host": host, "spark.driver.port": str(port_of(driver))}.get


class Ticks:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_driver_is_gone_once_its_port_has_refused_for_some_time(driver: socket.socket) -> None:
    clock = Ticks()
    port = DriverPort("127.0.0.1", port_of(driver), clock)
    assert not port.gone()
    driver.close()
    assert not port.gone()
    clock.now += SETTLED - 1
    assert not port.gone(), "a context that stops closes its port before its process ends"
    clock.now += 1
    assert port.gone()


def test_a_port_that_listens_again_is_watched_from_the_start(driver: socket.socket) -> None:
    clock, number = Ticks(), port_of(driver)
    port = DriverPort("127.0.0.1", number, clock)
    driver.close()
    assert not port.gone()
    clock.now += SETTLED
    with socket.create_server(("127.0.0.1", number)):
        assert not port.gone()
    assert not port.gone()


@pytest.mark.parametrize("error", [TimeoutError, OSError, PermissionError, ConnectionResetError])
def test_a_machine_that_does_not_answer_proves_nothing(error: type[OSError], monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be cut off, and its driver may go on."""

    def fail(*_: object) -> socket.socket:
        raise error

    monkeypatch.setattr(socket, "create_connection", fail)
    clock = Ticks()
    port = DriverPort("10.0.0.1", 7078, clock)
    for _ in range(3):
        assert not port.gone()
        clock.now += SETTLED


@pytest.mark.parametrize("server", ["localhost", "127.0.0.1", "0.0.0.0"])  # addresses of this machine
def test_the_driver_of_a_server_on_one_machine_with_it_is_found(driver: socket.socket, server: str) -> None:
    assert find_driver(settings(driver), server) is not None


def test_a_driver_behind_a_load_balancer_or_a_forwarded_port_proves_nothing(
    driver: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = {"localhost": {"127.0.0.1"}, "balancer": {"203.0.113.7"}, "pod": {"203.0.113.8"}}
    monkeypatch.setattr(liveness, "_addresses", places.__getitem__)
    assert find_driver(settings(driver), "balancer") is None
    assert find_driver(settings(driver, "pod"), "localhost") is None
    assert find_driver(settings(driver, "pod"), "balancer") is None
    assert find_driver(settings(driver), "localhost") is not None


def test_a_driver_that_takes_no_connection_when_it_is_found_proves_nothing(driver: socket.socket) -> None:
    """As that of a server behind a tunnel: its host is called localhost there, too."""
    driver.close()
    assert find_driver(settings(driver) if driver.fileno() >= 0 else lambda _key: "1", "localhost") is None


@pytest.mark.parametrize("told", [None, "", "x", "-5", "0", "99999", "9" * 5000])
def test_an_engine_that_tells_nonsense_has_no_known_driver(told: str | None) -> None:
    assert find_driver(lambda key: "localhost" if key.endswith("host") else told, "localhost") is None


def test_an_engine_that_does_not_tell_has_no_known_driver() -> None:
    def refuse(_key: str) -> str:
        raise RuntimeError("[CONFIG_NOT_AVAILABLE] Configuration spark.driver.port is not available.")

    assert find_driver(refuse, "localhost") is None
