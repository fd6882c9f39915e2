"""What one read of a table takes from its log, all files together."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import obstore
import pytest

from tablectl.model.errors import LiveError
from tablectl.storage import read_budget
from tablectl.storage.read_budget import OversizeError, ReadBudget
from tests.log.conftest import options, put, read, store
from tests.log.log_actions import PLAIN, add, info, metadata

__all__ = ["options", "put", "read", "store"]


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(read_budget, "LOG_BYTES", 10_000)
    monkeypatch.setattr(read_budget, "ACTION_BYTES", 4_000)
    monkeypatch.setattr(read_budget, "ACTION_VALUES", 100)


@pytest.mark.usefixtures("small")
def test_files_count_together_and_each_once() -> None:
    budget = ReadBudget("s3://lake/t")
    for _ in range(5):
        budget.take_file("1.json", 6_000)
    budget.check({"1.json": 6_000, "2.json": 4_000})
    with pytest.raises(OversizeError, match=r"s3://lake/t: the commits that are needed have 10,001 bytes"):
        budget.check({"2.json": 4_001})
    budget.take_file("2.json", 4_000)
    with pytest.raises(OversizeError):
        budget.take_file("3.json", 1)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("line", "fits"), [(b"x" * 1_000, 4), ("é".encode() * 500, 1), (b"\\u00e9" * 100, 1), (b"{}," * 10, 5)]
)
def test_actions_count_by_what_python_takes_for_them(line: bytes, fits: int) -> None:
    budget = ReadBudget("t")
    for _ in range(fits):
        budget.take_action(line)
    with pytest.raises(OversizeError):
        budget.take_action(line)


@pytest.mark.usefixtures("small")
def test_threads_share_one_budget() -> None:
    budget = ReadBudget("t")
    threads = [Thread(target=budget.take_action, args=(b"x" * 100,)) for _ in range(40)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    with pytest.raises(OversizeError):
        budget.take_action(b"x")


@pytest.mark.usefixtures("small")
def test_a_bucket_says_the_sizes_before_a_commit_is_read(
    put: Callable[..., None], read: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    put(0, [PLAIN, metadata()])
    for version in range(1, 5):
        put(version, [info(), *(add(f"{number}-{'x' * 80}", 1) for number in range(20))])
    put(5, [info()])
    asked: list[str] = []
    original = obstore.get

    def get(store: Any, path: str) -> Any:
        asked.append(path)
        return original(store, path)

    monkeypatch.setattr(obstore, "get", get)
    with pytest.raises(LiveError, match="the commits that are needed have"):
        read()
    assert {each.rpartition("/")[2] for each in asked} <= {"_last_checkpoint", f"{5:020d}.json"}
    monkeypatch.setattr(read_budget, "LOG_BYTES", 100_000)
    assert read(counts=True).files == 20
