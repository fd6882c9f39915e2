"""Logs made by hand, in memory, for the tests of the reader."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import obstore
import pytest
from obstore.store import MemoryStore

from tablectl.model.table import LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.builders import read_path
from tests.log.log_actions import LOCATION


@dataclass
class Requests:
    """What a store was asked for, and how much of it at the same time."""

    asked: list[str] = field(default_factory=list)
    together: tuple[int, ...] = ()
    """The first so many requests are answered when all of them are there, then the next so many. Where the reader waits
    for an answer before it asks further, they never come together. The rest is answered at once. Requests come in any
    order of their versions, so only what the reader asks without an answer of the group before may be a group.
    """
    running: int = 0
    most: int = 0
    changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def one(self, path: str) -> Iterator[None]:
        with self.changed:
            self.asked.append(path)
            self.running += 1
            self.most = max(self.most, self.running)
            number = len(self.asked)
            group_end = next((end for end in accumulate(self.together) if end >= number), 0)
            self.changed.notify_all()
            come = self.changed.wait_for(lambda: len(self.asked) >= group_end, 60)
        try:
            assert come, f"request {number} waits for request {group_end}, which never comes"
            yield
        finally:
            with self.changed:
                self.running -= 1


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> Requests:
    """The requests to a store, which answers as ``together`` says."""
    seen = Requests()
    for call in ("get", "list", "head", "get_range"):
        original = getattr(obstore, call)

        def held(store: Any, path: str = "", *args: Any, original: Any = original, **options: Any) -> Any:
            with seen.one(path):
                return original(store, path, *args, **options)

        monkeypatch.setattr(obstore, call, held)
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
