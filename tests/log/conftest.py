"""Logs made by hand, in memory, for the tests of the reader."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.log.log_actions import LOCATION

LATENCY = 0.02


@dataclass
class Requests:
    """What a store was asked for, and how much of it at the same time."""

    asked: list[str] = field(default_factory=list)
    running: int = 0
    most: int = 0
    rounds: int = 0
    """How many requests began while none was running: the latencies that were waited for one after the other."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def one(self, path: str) -> Iterator[None]:
        with self.lock:
            self.asked.append(path)
            self.rounds += self.running == 0
            self.running += 1
            self.most = max(self.most, self.running)
        try:
            time.sleep(LATENCY)
            yield
        finally:
            with self.lock:
                self.running -= 1


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """A slow store: each request takes as long as one to the next data centre."""
    seen = Requests()
    for call in ("get", "list", "head", "get_range"):
        original = getattr(obstore, call)

        def slow(store: Any, path: str = "", *args: Any, original: Any = original, **options: Any) -> Any:
            with seen.one(path):
                return original(store, path, *args, **options)

        monkeypatch.setattr(obstore, call, slow)
    return seen


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
