"""Every step of a copy beside a table × what a stranger can do between two of them, on a fake lake.

The steps are those that a run makes: its events, and each call of the copy. So a new step joins by itself.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

import pytest

from tablectl.applying import copy_beside
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import parse_schema
from tablectl.model.run_report import RunOutcome, TableRun
from tablectl.model.table_options import TableOptions
from tests.applying.fake_lake import COLUMNS, FakeEngine, FakeTable, LakeCopy
from tests.applying.world import Kill, World

DAY = 24 * 3600.0
_CALLS = ("follow", "write", "compare", "use", "prepare", "commit", "exchange")
_DONE = {RunOutcome.APPLIED, RunOutcome.ALREADY}


@dataclass
class CopyingEngine(FakeEngine):
    """A fake engine with access to its driver."""

    copies: bool = True


@dataclass
class Scene:
    """One table of four files that is copied in parts of two files, and the rows that it must have."""

    world: World
    moments: list[str] = field(default_factory=list)
    act: Callable[[], object] = lambda: None
    at: int = -1
    """The moment before which the stranger acts."""
    rows: list[str] = field(default_factory=lambda: ["v0", "v1", "v2", "v3"])
    acted: bool = False

    @property
    def table(self) -> FakeTable:
        return self.world.table

    def reach(self, moment: str) -> None:
        self.moments.append(moment)
        if len(self.moments) - 1 == self.at and not self.acted:
            self.acted = True
            self.act()

    def now(self) -> float:
        return self.world.clock.utc().timestamp()

    def run(self, partitioning: tuple[str, ...] = ("day",)) -> TableRun:
        return self.world.run(self.world.plan(partitioning=partitioning))

    def live(self) -> list[str]:
        """The files of the newest version."""
        files = self.table.copies
        commits = [each for each in self.table.history if each.version > files.since]
        rows = [f"v{each.version}" for each in commits if each.changes_data or each.version == 0]
        return [each for each in (*files.live, *rows) if each not in files.removed]

    def held(self) -> list[str]:
        """The rows of the newest version."""
        return sorted(row for path in self.live() for row in self.table.copies.holds.get(path, (path,)))

    # What strangers do

    def append(self) -> None:
        self.table.commit("WRITE", "stream")
        self.rows.append(f"v{self.table.live.version}")

    def delete(self) -> None:
        """A DELETE of all rows of one file."""
        path = self.live()[0]
        for row in self.table.copies.holds.get(path, (path,)):
            self.rows.remove(row)
        self.table.commit("DELETE", "job", files=2)
        self.table.copies.removed.add(path)

    def alter(self, **facts: Any) -> None:
        self.table.commit("ALTER", "admin", **facts)

    def set(self, key: str, value: str) -> None:
        self.alter(properties={**self.table.live.properties, key: value})

    def doomed(self, retain: float) -> list[str]:
        """What a VACUUM that lists the folder now will delete."""
        return [path for path, at in self.table.copies.unnamed().items() if at < self.now() - retain]

    def vacuum(self, retain: float = 7 * DAY, *, logged: bool = True) -> None:
        doomed = self.doomed(retain)
        self.log_vacuum("VACUUM START", retain if logged else None)
        self.erase(doomed)
        self.log_vacuum("VACUUM END", retain if logged else None)

    def erase(self, paths: list[str]) -> None:
        for path in paths:
            self.table.copies.written.pop(path, None)

    def log_vacuum(self, operation: str, retain: float | None) -> None:
        if retain is None:
            return
        self.table.commit(operation, "cleaner", files=3)
        parameters = {"specifiedRetentionMillis": str(int(retain * 1000))}
        last = replace(self.table.history[-1], changes_metadata=False, timestamp=int(self.now() * 1000))
        self.table.history[-1] = replace(last, parameters=parameters)

    def slow_vacuum(self, retain: float, *, logged: bool) -> None:
        """It lists the folder now. The next commit of the copy comes before it deletes."""
        doomed = self.doomed(retain)
        self.log_vacuum("VACUUM START", retain if logged else None)
        self.world.after = lambda _table, _sql: self.erase(doomed)

    def add_column(self) -> None:
        text = json.loads(self.table.live.schema.text)
        text["fields"].append({"name": "late", "type": "string"})
        self.alter(schema=parse_schema(json.dumps(text)))

    def drop_day(self) -> None:
        text = json.loads(self.table.live.schema.text)
        text["fields"] = [each for each in text["fields"] if each["name"] != "day"]
        self.alter(schema=parse_schema(json.dumps(text)))

    def wait(self, days: float) -> Scene:
        """By the clock on the wall: the lease is renewed meanwhile."""
        self.world.clock.wall += timedelta(days=days)
        return self


ALTERS: dict[str, Callable[[Scene], object]] = {
    "append only": lambda scene: scene.set("delta.appendOnly", "true"),
    "row tracking": lambda scene: scene.alter(
        properties={"delta.enableRowTracking": "true"},
        protocol=Protocol(1, 7, frozenset(), frozenset({"rowTracking", "domainMetadata"})),
    ),
    "cluster by": lambda scene: scene.alter(clustering=(("id",),)),
    "a feature": lambda scene: scene.alter(protocol=Protocol(1, 7, frozenset(), frozenset({"icebergCompatV2"}))),
    "manifests": lambda scene: scene.set("delta.compatibility.symlinkFormatManifest.enabled", "true"),
    "not null": lambda scene: scene.alter(
        schema=parse_schema(COLUMNS.text.replace('"long"', '"long", "nullable": false'))
    ),
    "drop the partition column": Scene.drop_day,
}
"""After these, the table must not be rewritten."""

OTHERS: dict[str, Callable[[Scene], object]] = {
    "append": Scene.append,
    "delete": Scene.delete,
    "two deletes and an append": lambda scene: [act() for act in (scene.delete, scene.delete, scene.append)],
    "replace": lambda scene: scene.alter(table_id="another"),
    "property": lambda scene: scene.set("owner", "web"),
    "add column": Scene.add_column,
    "constraint": lambda scene: scene.set("delta.constraints.positive", "id > 0"),
    "shorter retention": lambda scene: scene.set("delta.deletedFileRetentionDuration", "interval 2 hours"),
    "vacuum": Scene.vacuum,
    "a week, and a vacuum": lambda scene: scene.wait(8).vacuum(),
    "a week, and a vacuum without a log": lambda scene: scene.wait(8).vacuum(logged=False),
    "five days": lambda scene: scene.wait(5),
    "six days": lambda scene: scene.wait(6),
    "vacuum retain 0": lambda scene: scene.vacuum(0),
    "vacuum retain 0 without a log": lambda scene: scene.vacuum(0, logged=False),
    "a day, and a vacuum of a day": lambda scene: scene.wait(1.1).vacuum(DAY),
    "a slow vacuum": lambda scene: scene.slow_vacuum(7 * DAY, logged=True),
    "a week, and a slow vacuum": lambda scene: scene.wait(8).slow_vacuum(7 * DAY, logged=False),
    "a slow vacuum retain 0": lambda scene: scene.slow_vacuum(0, logged=True),
    "a slow vacuum retain 0 without a log": lambda scene: scene.slow_vacuum(0, logged=False),
    "nothing": lambda _scene: None,
}


@pytest.fixture
def scene(monkeypatch: pytest.MonkeyPatch) -> Scene:
    return made(monkeypatch)


def made(patch: pytest.MonkeyPatch) -> Scene:
    world = World(options=TableOptions(rewrite="copy"), engine=CopyingEngine)
    table = world.lake.add()
    for _ in range(3):
        table.commit("WRITE")
    scene = Scene(world)
    world.tick = scene.reach
    patch.setattr(copy_beside, "_MOST_FILES", 2)
    for name in _CALLS:
        patch.setattr(LakeCopy, name, _announced(scene, name))
    return scene


_REAL = {name: getattr(LakeCopy, name) for name in _CALLS}


def _announced(scene: Scene, name: str) -> Callable[..., Any]:
    def call(self: LakeCopy, *args: Any) -> Any:
        scene.reach(name)
        if name == "write":
            scene.world.clock.wall += timedelta(minutes=1)
        return _REAL[name](self, *args)

    return call


def moments(patch: pytest.MonkeyPatch) -> list[str]:
    scene = made(patch)
    assert scene.run().outcome is RunOutcome.APPLIED
    return scene.moments


def check(scene: Scene, run: TableRun, cell: str) -> None:
    """What is true after every cell."""
    missing = scene.table.copies.missing()
    if run.outcome is RunOutcome.UNVERIFIED and "VACUUM" in run.message:
        assert "RESTORE" in run.hint, cell
    if missing:
        assert run.outcome is RunOutcome.UNVERIFIED, (cell, missing, run.outcome)
        return
    assert scene.held() == sorted(scene.rows), (cell, run.outcome, run.message)
    if run.outcome in _DONE:
        assert scene.table.live.partition_columns == ("day",), cell


@pytest.mark.parametrize("action", OTHERS)
def test_no_row_and_no_live_file_is_lost_whatever_a_stranger_does_at_any_step(
    action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = moments(monkeypatch)
    for at, step in enumerate(steps):
        scene = made(monkeypatch)
        scene.act, scene.at = (lambda scene=scene: OTHERS[action](scene)), at  # type: ignore[misc]
        check(scene, scene.run(), f"{action} before {at} {step}")


@pytest.mark.parametrize("action", ALTERS)
def test_a_change_of_the_table_at_any_step_before_the_commit_is_decided_again(
    action: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = moments(monkeypatch)
    last = steps.index("execute")  # the commit itself
    for at, step in enumerate(steps[: last + 1]):
        scene = made(monkeypatch)
        scene.act, scene.at = (lambda scene=scene: ALTERS[action](scene)), at  # type: ignore[misc]
        run = scene.run()
        cell = f"{action} before {at} {step}"
        assert run.outcome in {RunOutcome.REFUSED, RunOutcome.STALE}, (cell, run.outcome, run.message)
        assert scene.table.live.partition_columns == (), cell
        assert scene.held() == sorted(scene.rows), cell


_AFTER_A_KILL: dict[str, Callable[[Scene], object]] = {
    "nothing": lambda _scene: None,
    "a week, and a vacuum": lambda scene: scene.wait(8).vacuum(logged=False),
    "a week": lambda scene: scene.wait(8),
    "vacuum retain 0": lambda scene: scene.vacuum(0, logged=False),
    "a delete": Scene.delete,
}


@pytest.mark.parametrize("action", _AFTER_A_KILL)
def test_a_killed_copy_goes_on_at_any_step_without_a_lost_row(action: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def kill() -> None:
        raise Kill

    steps = moments(monkeypatch)
    for at, step in enumerate(steps):
        scene = made(monkeypatch)
        scene.act, scene.at = kill, at
        plan = scene.world.plan(partitioning=("day",))
        with pytest.raises(Kill):
            scene.world.run(plan)
        _AFTER_A_KILL[action](scene)
        scene.at = len(scene.moments) + 7  # a VACUUM that lists the folder while the next run goes on
        scene.acted, scene.act = False, lambda scene=scene: scene.vacuum(logged=False)  # type: ignore[misc]
        check(scene, scene.world.run(plan, "ben"), f"killed before {at} {step}, then {action}")


@pytest.mark.parametrize(
    ("first", "then"),
    [(("day", "id"), ("day",)), (("id",), ("day",)), (("day",), ("day", "id")), (("day", "id"), ("id", "day"))],
)
def test_a_part_that_was_made_for_other_partition_columns_is_never_taken(
    first: tuple[str, ...], then: tuple[str, ...], scene: Scene
) -> None:
    scene.act, scene.at = scene.world.stop.set, 10**6
    scene.world.tick = lambda event: scene.world.stop.set() if event == "gate closed" else None
    assert scene.run(first).outcome is RunOutcome.INTERRUPTED
    before = set(scene.table.copies.written)
    scene.world.stop.clear()
    scene.world.tick = lambda _event: None
    run = scene.run(then)
    assert (run.outcome, scene.table.live.partition_columns) == (RunOutcome.APPLIED, then)
    assert before
    assert before.isdisjoint(scene.table.copies.live)


FORESEEN: dict[str, tuple[Callable[[Scene], object], Callable[[Scene], object]]] = {
    "the files are gone": (lambda _scene: None, lambda scene: scene.vacuum(0, logged=False)),
    "one file is gone": (lambda _scene: None, lambda scene: scene.erase(list(scene.table.copies.unnamed())[:1])),
    "a part of a file is older than the log says": (
        lambda _scene: None,
        lambda scene: scene.table.copies.written.update({"new-1.parquet": scene.now() - 6 * DAY}),
    ),
    "the files get old, and a VACUUM is slow": (
        lambda _scene: None,
        lambda scene: scene.wait(8).slow_vacuum(7 * DAY, logged=False),
    ),
    "a VACUUM has begun": (lambda _scene: None, lambda scene: scene.slow_vacuum(0, logged=True)),
    "the table is vacuumed with a RETAIN of a day": (
        lambda scene: scene.vacuum(DAY),
        lambda scene: scene.wait(1.1).slow_vacuum(DAY, logged=False),
    ),
    "the table keeps files for a day": (
        lambda scene: scene.set("delta.deletedFileRetentionDuration", "interval 1 day"),
        lambda scene: scene.wait(1.1).slow_vacuum(DAY, logged=False),
    ),
}
"""What happened before the copy, and what happens behind the gate."""


@pytest.mark.parametrize("case", FORESEEN)
def test_files_that_a_vacuum_may_delete_are_not_committed(case: str, scene: Scene) -> None:
    before, act = FORESEEN[case]
    before(scene)
    scene.world.tick = lambda event: _once(scene, act) if event == "before closed-overwrite" else None
    run = scene.run()
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert scene.table.copies.missing() == []
    assert scene.held() == sorted(scene.rows)
    assert len(scene.table.copies.holds) > len(scene.table.copies.live), "parts were made again before the commit"


def _once(scene: Scene, act: Callable[[Scene], object]) -> None:
    if not scene.acted:
        scene.acted = True
        act(scene)


def test_files_that_a_slow_vacuum_deletes_after_the_commit_are_written_again(scene: Scene) -> None:
    plan = scene.world.plan(partitioning=("day",))
    run = _with_a_slow_vacuum(scene)
    assert (run.outcome, scene.table.copies.missing(), scene.held()) == (RunOutcome.UNVERIFIED, [], sorted(scene.rows))
    assert run.message.startswith("a VACUUM has deleted files of version 4 at the moment of its commit; their rows")
    assert "RESTORE TABLE `delta`.`/lake/orders` TO VERSION AS OF 3" in run.hint
    assert scene.world.run(plan, "ben").outcome is RunOutcome.ALREADY


def test_files_whose_source_is_gone_too_end_with_the_version_to_restore(scene: Scene) -> None:
    run = _with_a_slow_vacuum(scene, sources=True)
    assert (run.outcome, bool(scene.table.copies.missing())) == (RunOutcome.UNVERIFIED, True)
    assert "they could not be written again" in run.message
    assert "RESTORE TABLE `delta`.`/lake/orders` TO VERSION AS OF 3" in run.hint


def _with_a_slow_vacuum(scene: Scene, *, sources: bool = False) -> TableRun:
    def act(_table: FakeTable, sql: str) -> None:
        if sql.startswith("CUT OVER"):
            scene.erase(list(scene.table.copies.live)[:2])
            scene.table.copies.gone |= {"v0", "v1", "v2", "v3"} if sources else set()

    scene.world.after = act
    return scene.run()


def test_files_that_are_gone_after_a_killed_commit_end_with_the_version_to_restore(scene: Scene) -> None:
    def kill(event: str) -> None:
        if event == "landed":
            scene.erase(list(scene.table.copies.live)[:1])
            raise Kill

    plan = scene.world.plan(partitioning=("day",))
    scene.world.tick = kill
    with pytest.raises(Kill):
        scene.world.run(plan)
    scene.world.tick = lambda _event: None
    run = scene.world.run(plan, "ben")
    assert run.outcome is RunOutcome.UNVERIFIED
    assert run.message.startswith("version 4 is not what version 3 was: files of it are gone, as after a VACUUM with")
    assert "RESTORE TABLE `delta`.`/lake/orders` TO VERSION AS OF 3" in run.hint


def test_a_copy_that_takes_longer_than_deleted_files_are_kept_says_so_at_once(scene: Scene) -> None:
    scene.world.pace.limit = 1  # a byte an hour
    scene.set("delta.deletedFileRetentionDuration", "interval 2 hours")
    run = scene.run()
    assert (run.outcome, scene.table.copies.written) == (RunOutcome.NO_WINDOW, {})
    assert run.message == (
        "the copy takes 4.0 hours, and VACUUM deletes files without a commit after 2.0 hours: parts are made again "
        "after 1.4 hours, so it never ends"
    )
    assert "retention: {deleted_files: …}" in run.hint
