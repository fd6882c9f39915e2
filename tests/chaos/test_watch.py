from __future__ import annotations

import json
from pathlib import Path

from chaos.watch import Watch


def record(place: Path, number: int, run: str, kind: str, gate: str = "open") -> None:
    folder = place / "_tablectl" / "lease"
    folder.mkdir(parents=True, exist_ok=True)
    body = {"run": run, "kind": kind, "gate": gate, "more": 1}
    (folder / f"{number:020d}.json").write_text(json.dumps(body), encoding="utf-8")


def watched(*places: Path) -> Watch:
    watch = Watch(places, None)
    watch.start()
    watch.close()
    return watch


def test_a_lease_that_was_given_back_is_not_lost(tmp_path: Path) -> None:
    for number, (run, kind) in enumerate([("a", "acquire"), ("a", "release"), ("b", "acquire")], start=1):
        record(tmp_path / "t0", number, run, kind)
    watch = watched(tmp_path / "t0")
    assert watch.lost("t0") == {}
    assert list(watch.acquired("t0")) == ["a", "b"]


def test_a_lease_that_another_run_took_is_lost(tmp_path: Path) -> None:
    for number, (run, kind) in enumerate([("a", "acquire"), ("a", "gate"), ("b", "acquire")], start=1):
        record(tmp_path / "t0", number, run, kind)
    record(tmp_path / "t1", 1, "a", "acquire")
    watch = watched(tmp_path / "t0", tmp_path / "t1")
    assert watch.lost("t0") == {"a": "b"}
    assert watch.lost("t1") == {}
