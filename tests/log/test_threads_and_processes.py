"""How many tables are read at a time, and in what order their results come."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from tablectl.log import worker_processes
from tablectl.log.worker_processes import in_order, processes_for, threads_for
from tablectl.storage.object_stores import StoreOptions


def test_tables_on_a_disk_of_this_machine_are_read_without_threads(tmp_path: Path) -> None:
    assert threads_for([f"{tmp_path}/a", f"file:{tmp_path}/b"], StoreOptions()) == 0
    this = threading.get_ident()
    assert list(in_order(lambda _: threading.get_ident(), [1, 2], 0)) == [this, this]


def test_tables_on_a_network_drive_are_read_by_a_few_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "network_mount", lambda place: "nfs4" if place == "/mnt/lake" else "")
    assert threads_for(["/mnt/lake/a", "/data/b"], StoreOptions()) == 4


def test_tables_in_a_bucket_are_read_by_as_many_threads_as_configured() -> None:
    assert threads_for(["s3://lake/a", "/data/b"], StoreOptions(concurrency=7)) == 7


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_results_come_in_the_order_of_the_items(threads: int) -> None:
    assert list(in_order(lambda each: each * 2, range(50), threads)) == list(range(0, 100, 2))


def test_as_many_items_are_worked_on_at_a_time_as_there_are_threads() -> None:
    together = threading.Barrier(5)
    assert len(list(in_order(lambda _: together.wait(60), range(5), 5))) == 5


@pytest.mark.parametrize("threads", [0, 2])
def test_a_caller_that_stops_ends_the_work_on_the_rest(threads: int) -> None:
    begun: list[int] = []
    found = in_order(begun.append, range(1000), threads)
    next(found)
    found.close()
    assert len(begun) <= 2 * 4 + 2 + 1


@pytest.mark.parametrize(
    ("tables", "options", "processes"),
    [
        (1000, StoreOptions(), 6),
        (1000, StoreOptions(processes=2), 2),
        (1000, StoreOptions(processes=12), 12),
        (1000, StoreOptions(processes=1), 1),
        (199, StoreOptions(processes=2), 1),
        (1000, StoreOptions(access=cast("Any", object())), 1),
    ],
)
def test_many_tables_are_read_by_a_process_for_each_core(
    monkeypatch: pytest.MonkeyPatch, tables: int, options: StoreOptions, processes: int
) -> None:
    monkeypatch.setattr(worker_processes, "can_fork", lambda: True)
    monkeypatch.setattr(worker_processes, "usable_cores", lambda: 6)
    assert processes_for(tables, options) == processes


def test_a_process_for_each_of_many_cores_would_wait_for_this_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "can_fork", lambda: True)
    monkeypatch.setattr(worker_processes, "usable_cores", lambda: 64)
    assert processes_for(1000, StoreOptions()) == 8


def test_one_process_reads_where_others_cannot_be_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_processes, "can_fork", lambda: False)
    assert processes_for(1000, StoreOptions(processes=4)) == 1
