"""A Unity Catalog stand-in, and the reader that asks it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tablectl.catalogs.http_client import Bounds, HttpClient
from tablectl.catalogs.unity import UnityCatalog
from tests.catalogs.unity_server import UnityServer, serving


@pytest.fixture
def server() -> Iterator[UnityServer]:
    with serving(UnityServer()) as state:
        yield state


@pytest.fixture
def unity(server: UnityServer) -> Callable[..., UnityCatalog]:
    """Opens the reader, with a token and other bounds if they are given."""

    def opened(token: str = "", **bounds: float) -> UnityCatalog:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        limits = Bounds(pause=lambda _seconds: None, **bounds)  # type: ignore[arg-type]
        return UnityCatalog(HttpClient(server.url, lambda: headers, bounds=limits), {"lake": "lake"})

    return opened
