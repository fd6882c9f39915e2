"""Logs made by hand, in memory, for the tests of the reader."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.log.log_actions import LOCATION


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def options(store: MemoryStore) -> StoreOptions:
    return StoreOptions(memory=store)


@pytest.fixture
def put(store: MemoryStore) -> Callable[..., None]:
    """Write a file of the log: bytes as they are, actions as lines."""

    def write(name: str | int, content: bytes | list[Mapping[str, Any]] | Mapping[str, Any]) -> None:
        file = f"{name:020d}.json" if isinstance(name, int) else name
        if isinstance(content, list):
            content = b"".join(json.dumps(action).encode() + b"\n" for action in content)
        elif not isinstance(content, bytes):
            content = json.dumps(content).encode()
        obstore.put(store, f"lake/t/_delta_log/{file}", content)

    return write


@pytest.fixture
def read(options: StoreOptions) -> Callable[..., LiveTable]:
    def table(**choices: Any) -> LiveTable:
        return read_path(LOCATION, options=options, **choices)

    return table
