"""A copy beside a table: which files it copies while the table changes, and when it gives up. On a fake table."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tablectl.applying import run_table
from tablectl.applying.copy_beside import (
    BesideCopy,
    OutdatedCopyError,
    _grown,
    _outrun,
    _Round,
    _worth_another,
    cut_over,
)
from tablectl.applying.copy_records import CopiedPart, copy_text, delete_parts, save_part, saved_parts
from tablectl.applying.row_sums import row_sums, unlike
from tablectl.applying.run_context import StopTableError
from tablectl.applying.scheduler import Pace
from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import parse_schema
from tablectl.engine.interface import FollowedFile, FollowedTable, MaySend, always
from tablectl.leases.lease_records import tail
from tablectl.model.calendar import Rule
from tablectl.model.commit import Commit
from tablectl.model.errors import WindowError
from tablectl.model.run_report import RunOutcome
from tablectl.model.table_options import TableOptions
from tablectl.planning.plan_table import plan_table
from tablectl.policies.config import WindowConfig
from tablectl.storage.records import RecordStore, open_records
from tests.applying.fake_lake import FakeEngine, LakeCopy, fails
from tests.applying.lake_run import Run, only, outcomes, plan_of
from tests.applying.world import WITH_VECTORS, Kill, World
from tests.leases.lease_fakes import FakeClock, MemoryRecords

NOW = 1_787_393_800
"""Seconds since the epoch, as in ``FakeClock`` at its start."""
SCHEMA = json.dumps({"type": "struct", "fields": [{"name": "day", "type": "date", "nullable": True, "metadata": {}}]})


def added(path: str, **facts: Any) -> str:
    """An ``add`` action of a new file, as Delta writes it."""
    values = {"partitionValues": {"day": None}, "size": 1, "modificationTime": NOW * 1000, "dataChange": True}
    return json.dumps({"add": {"path": path, **values, **facts}})


def rows_of(add: str) -> list[str]:
    return list(json.loads(add)["add"]["tags"]["rows"])


@dataclass
class FakeCopy:
    """A table of named files; each new file holds the rows of the files that it names."""

    files: dict[str, int]
    id: str = "id"
    layout: str = "one"
    version: int = 0
    used: set[str] = field(default_factory=set)
    written: list[tuple[str, ...]] = field(default_factory=list)
    gone: set[str] = field(default_factory=set)

    def follow(self) -> FollowedTable:
        files = tuple(FollowedFile(*each) for each in self.files.items())
        return FollowedTable(self.version, self.id, self.layout, SCHEMA, files, {}, ("day",))

    def write(self, keys: Any) -> tuple[str, ...]:
        self.written.append(tuple(keys))
        return (added(f"new-{len(self.written)}.parquet", tags={"rows": sorted(keys)}),)

    def compare(self, keys: Any, adds: Any, sums: Any) -> tuple[tuple[str, ...], ...]:
        held = [key for add in adds if add not in self.gone for key in rows_of(add)]
        return (str(sorted(keys)),) * len(sums), (str(sorted(held)),) * len(sums)

    def measure(self, adds: Any) -> tuple[str, ...]:
        measured = [json.loads(each)["add"] for each in adds]
        return tuple(json.dumps({"add": {**each, "stats": f"of {each['path']}"}}) for each in measured)

    def use(self, adds: Any) -> None:
        self.used |= set(adds)

    def drop(self, adds: Any) -> None:
        self.used -= set(adds)

    def prepare(self) -> None: ...

    def commit(self) -> int:
        return self.version + 1

    def exchange(self, old: Any, new: Any) -> int:
        raise NotImplementedError

    @property
    def rows(self) -> list[str]:
        """The files whose rows the commit would put in place."""
        return sorted(key for add in self.used for key in rows_of(add))


def records(name: str) -> RecordStore:
    store = open_records(f"memory://copies-{name}/t")
    delete_parts(store)
    return store


def copying(table: FakeCopy, store: RecordStore) -> BesideCopy:
    plan, lease = SimpleNamespace(table_id="id", location="/t"), SimpleNamespace(store=store)
    there = SimpleNamespace(commits=lambda *_, **__: (), modified=lambda _, paths: dict.fromkeys(paths, float(NOW)))
    window = SimpleNamespace(pace=Pace(None), clock=FakeClock(), reader=there, config=WindowConfig())
    return BesideCopy(window, plan, lease, table, ("day",), began=1000.0)  # type: ignore[arg-type]


_FILES = st.dictionaries(st.sampled_from([f"f{number}" for number in range(12)]), st.just(10), max_size=12)


@given(st.lists(st.tuples(_FILES, st.booleans(), st.booleans()), min_size=1, max_size=8))
def test_whatever_changes_the_commit_puts_each_file_in_place_once(
    steps: list[tuple[dict[str, int], bool, bool]],
) -> None:
    store, table = records("property"), FakeCopy({})
    copy = copying(table, store)
    for files, killed, renamed in steps:
        table.files, table.version = files, table.version + 1
        table.layout += "x" * renamed
        if killed:  # another process goes on, with what the store holds
            table.used.clear()
            copy = copying(table, store)
            copy.began += table.version
        copy.follow()
        list(copy.copy_missing())
        assert table.rows == sorted(files)
        assert not copy.missing


def test_a_part_with_a_file_that_changed_is_made_again_in_smaller_parts() -> None:
    table = FakeCopy({f"f{number:03d}": 10 for number in range(64)})
    copy = copying(table, records("smaller"))
    copy.follow()
    assert len(list(copy.copy_missing())) == 1
    table.files = {key: size for key, size in table.files.items() if key != "f007"} | {"f007 vector": 10}
    copy.follow()
    assert len(copy.missing) == 64
    assert len(list(copy.copy_missing())) == 4 + 1
    assert table.rows == sorted(table.files)


def test_a_run_that_goes_on_uses_only_parts_whose_rows_are_still_there() -> None:
    store, table = records("whole"), FakeCopy({"a": 10})
    copy = copying(table, store)
    copy.follow()
    list(copy.copy_missing())
    table.files["b"] = 10
    copy.follow()
    list(copy.copy_missing())
    assert copy_text(store) == "2 parts since 1970-01-01 00:16:40 UTC"
    table.gone = {next(iter(table.used))}
    table.used.clear()
    copy = copying(table, store)
    copy.follow()
    assert len(copy.missing) == 1
    list(copy.copy_missing())
    assert table.rows == ["a", "b"]


def test_a_file_that_no_listing_shows_counts_as_there() -> None:
    """A column named ``.x`` makes folders that start with a dot."""
    table = FakeCopy({"a": 10})
    copy = copying(table, records("hidden"))
    copy.follow()
    copy._keep(CopiedPart("00000000001000-000009", ("a",), (added(".x=1/part.parquet"),), 10))
    copy.context.reader.modified = lambda location, paths: dict.fromkeys(paths, 0.0)  # type: ignore[method-assign]
    copy.check_files()
    assert (list(copy.parts), copy.lost()) == (["00000000001000-000009"], [])


def test_statistics_of_a_record_are_taken_from_its_files() -> None:
    store, table = records("stats"), FakeCopy({"a": 10})
    copy = copying(table, store)
    copy.follow()
    list(copy.copy_missing())
    table.used.clear()
    copying(table, store).follow()
    assert [json.loads(each)["add"]["stats"] for each in table.used] == ["of new-1.parquet"]


def test_rows_that_were_not_copied_as_they_are_are_refused() -> None:
    table = FakeCopy({"a": 10})
    copy = copying(table, records("refused"))
    copy.follow()
    table.gone = {added("new-1.parquet", tags={"rows": ["a"]})}
    with pytest.raises(StopTableError) as stop:
        list(copy.copy_missing())
    assert stop.value.outcome is RunOutcome.REFUSED
    assert stop.value.message.startswith("the copy is not what the table holds: the number of rows")
    assert table.used == set()


def test_writers_that_outrun_the_copy_are_told_with_figures() -> None:
    copy = copying(FakeCopy({"a": 3_000_000_000}), records("outrun"))
    copy.follow()
    copy.rounds = [_Round(2_000_000_000, 60.0)]
    assert copy.seconds_for(copy.outstanding) == 90
    assert _outrun(copy, 90.0, 30.0).message == (
        "writers outrun the copy: while the last 2.0 GB were copied in 60 s, they changed files with 3.0 GB, about 90 "
        "s of work, and the gate may shut for 30 s of it"
    )
    copy.context.pace.limit = 2_000_000_000
    assert _outrun(copy, 90.0, 30.0).hint == (
        "run again when they write less (the copy is kept), or raise `window.cutover` or `window.max_bytes_per_hour`"
    )
    assert _grown(copy, 90.0).outcome is RunOutcome.NO_WINDOW
    assert not _worth_another(copy, 90.0)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON",
        "[" * 100_000,
        '{"layout": "one"}',
        '{"layout": "one", "keys": ["a"], "adds": ["{}"], "size": 1}',
        json.dumps({"layout": "other", "keys": ["a"], "adds": [added("x")], "size": 1}),
        json.dumps({"layout": "one", "keys": ["a", "a"], "adds": [added("x")], "size": 1}),
        *(
            json.dumps({"layout": "one", "keys": ["a"], "adds": [add], "size": 1})
            for add in (
                added("../x"),
                added("a/%2e%2e/%2E%2E/x"),
                added("%2Fx"),
                added("s3://x/y"),
                added("x", partitionValues={}),
                added("x", partitionValues={"day": None, "region": "1"}),
                added("x", partitionValues={"Day": None}),
                added("x", partitionValues=None),
                added("x", dataChange=False),
                added("x", dataChange="true"),
                added("x", deletionVector={"storageType": "u"}),
                added("x", baseRowId=7),
                added("x", size=-1),
                added("x", modificationTime=10**300),
                added("x", modificationTime="1"),
                json.dumps({"add": {"path": "x"}}),
                json.dumps({"remove": {"path": "x"}}),
                json.dumps([added("x")]),
            )
        ),
    ],
)
def test_a_record_that_is_not_a_part_is_deleted(text: str) -> None:
    store = records("hostile")
    store.create("copy/00000000001000-000000.0.1.json", text.encode())
    assert list(saved_parts(store, "one", ("day",))) == []
    assert copy_text(store) == ""


def test_a_part_of_any_size_is_saved_and_read_again_and_one_with_a_lost_record_is_not() -> None:
    store = records("large")
    add = added("a", stats="é" * 200_000)
    part = CopiedPart("00000000001000-000000", ("a", "b"), (add,), 7)
    save_part(store, "one", part)
    assert len(store.names("copy/")) > 1
    assert list(saved_parts(store, "one", ("day",))) == [part]
    store.delete(store.names("copy/")[0])
    assert list(saved_parts(store, "one", ("day",))) == []


def test_the_sums_tell_which_column_differs() -> None:
    schema = json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "id", "type": "long", "nullable": True, "metadata": {}},
                {"name": "Day", "type": "string", "nullable": True, "metadata": {}},
            ],
        }
    )
    sums = row_sums(schema, ("day",))
    assert [each.sql for each in sums][:2] == ["count_if(`Day` = '')", "count_if(`Day` = '__HIVE_DEFAULT_PARTITION__')"]
    same = ["0"] * len(sums)
    assert unlike(sums, (same, same)) == ""
    assert unlike(sums, (same, [*same[:-1], "1"])) == "values in `Day`"


def test_a_table_that_was_replaced_is_not_copied() -> None:
    table = FakeCopy({"a": 10}, id="another")
    with pytest.raises(StopTableError) as stop:
        copying(table, records("replaced")).follow()
    assert stop.value.outcome is RunOutcome.STALE


@dataclass
class SqlAlone(FakeEngine):
    rewrites: bool = False


def test_an_engine_without_access_to_its_driver_refuses_a_copy_before_anything_is_done() -> None:
    world = World(options=TableOptions(rewrite="copy"))
    world.lake.add()
    plan = world.plan(partitioning=("day",))
    (statement,) = plan.statements
    assert statement.rewrite is not None
    assert statement.rewrite.copies
    run = world.run(plan)
    assert (run.outcome, world.sent) == (RunOutcome.REFUSED, [])
    assert run.message.startswith("a copy beside the table is committed in the JVM of the driver")
    assert run.hint.endswith("or declare `rewrite: allowed` for a rewrite behind the closed gate")
    world.engine = SqlAlone
    assert world.run(plan).hint == "apply with a Spark of its own (no `remote`, `thrift` or `warehouse`)"
    assert "rewrite: allowed" in run.hint


@dataclass
class CopyingEngine(FakeEngine):
    """A fake engine with access to its driver, which never rewrites a table behind its gate."""

    copies: bool = True

    def overwrite(self, *_args: Any, may_send: MaySend = always, **_more: Any) -> None:
        raise AssertionError("the whole table is rewritten behind the closed gate")


APPEND_ONLY = {"delta.appendOnly": "true"}
TRACKED = {"delta.enableRowTracking": "true"}
WITH_TRACKING = Protocol(1, 7, frozenset(), frozenset({"rowTracking", "domainMetadata"}))


@pytest.mark.parametrize(
    ("live", "policy", "order"),
    [
        ({}, {"properties": {"owner.team": "web"}}, ["copy", "CUT", "ALTER"]),
        (WITH_VECTORS, {"deletion_vectors": "purged"}, ["REORG", "copy", "CUT", "ALTER"]),
        ({"properties": APPEND_ONLY}, {"properties": {"delta.appendOnly": None}}, ["ALTER", "copy", "CUT"]),
        (
            {"properties": APPEND_ONLY},
            {"isolation": "Serializable", "properties": {"delta.appendOnly": None}},
            ["ALTER", "ALTER", "copy", "CUT"],
        ),
        (
            {"properties": TRACKED, "protocol": WITH_TRACKING},
            {"row_tracking": "disabled", "constraints": {"positive": "id > 0"}},
            ["ALTER", "copy", "CUT", "ALTER"],
        ),
    ],
)
def test_a_table_is_copied_behind_an_open_gate_whatever_else_its_plan_changes(
    monkeypatch: pytest.MonkeyPatch, live: dict[str, Any], policy: dict[str, Any], order: list[str]
) -> None:
    world = World(options=TableOptions(rewrite="copy"), engine=CopyingEngine)
    world.lake.add(**live)
    steps: list[str] = []
    gates: list[str] = []
    write = LakeCopy.write

    def copied(self: LakeCopy, keys: Any) -> tuple[str, ...]:
        last = tail(world.store)
        gates.append(str(last.gate) if last else "open")
        steps.append("copy")
        return write(self, keys)

    monkeypatch.setattr(LakeCopy, "write", copied)
    world.before = lambda _table, sql: steps.append(sql.partition(" ")[0])
    run = world.run(world.plan(partitioning=("day",), **policy))
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert (steps, set(gates)) == (order, {"open"})
    assert world.table.live.partition_columns == ("day",)


MORE: dict[str, Any] = {"isolation": "Serializable", "properties": {"owner.team": "web", "debug": None}}
"""Two closed statements, which follow the copy behind the same gate."""


def gate_of(world: World) -> str:
    last = tail(world.store)
    return str(last.gate) if last else "open"


def gates_at(world: World, step: str) -> list[str]:
    """The gate at each step of this name, from now on."""
    gates: list[str] = []
    world.tick = lambda event: gates.append(gate_of(world)) if event == step else None
    return gates


def copied_world(**live: Any) -> World:
    world = World(options=TableOptions(rewrite="copy"), engine=CopyingEngine)
    world.lake.add(**live)
    return world


def test_a_table_without_its_copy_is_not_rewritten_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    """No plan comes here. If a change of the code should, the table is left as it is."""
    monkeypatch.setattr(run_table, "_may_run", lambda *_: True)
    world = copied_world()
    run = world.run(world.plan(partitioning=("day",)))
    assert (run.outcome, world.sent) == (RunOutcome.FAILED, [])
    assert run.message == "no copy beside the table was made, so the table is not rewritten"


def test_a_copy_whose_answer_was_lost_is_not_compared_as_a_whole_behind_the_gate() -> None:
    world = copied_world(properties={"debug": "1"})
    world.after = fails(1)
    compared = gates_at(world, "compare")
    run = world.run(world.plan(partitioning=("day",), **MORE))
    assert (run.outcome, len(world.sent), compared, world.asked) == (RunOutcome.APPLIED, 3, [], [])
    assert copy_text(world.store) == ""


def test_commits_of_the_hours_of_the_copy_are_not_read_again_behind_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    world = copied_world(properties={"debug": "1"})
    plan = world.plan(partitioning=("day",), **MORE)
    commits, after_versions = world.lake.commits, list[int]()

    def noted(location: str, *, after: int) -> tuple[Commit, ...]:
        if gate_of(world) == "closed":
            after_versions.append(after)
        return commits(location, after=after)

    def write(event: str) -> None:
        if event == "copy" and world.table.live.version < 5:
            for _ in range(5):
                world.table.commit("WRITE")

    monkeypatch.setattr(world.lake, "commits", noted)
    world.tick = write
    assert world.run(plan).outcome is RunOutcome.APPLIED
    assert after_versions
    assert min(after_versions) == 5


def test_a_copy_of_a_killed_run_is_compared_before_the_gate_shuts_again() -> None:
    world = copied_world(properties={"debug": "1"})
    plan = world.plan(partitioning=("day",), **MORE)

    def kill(event: str) -> None:
        if event == "after closed-overwrite":
            raise Kill

    world.tick = kill
    with pytest.raises(Kill):
        world.run(plan)
    compared = gates_at(world, "compare")
    run = world.run(plan, "ben")
    assert (run.outcome, len(world.sent), compared) == (RunOutcome.APPLIED, 3, ["open"])
    assert copy_text(world.store) == "", "the copy is the table now: nothing is left to go on with"


def test_a_store_that_deletes_nothing_does_not_fail_a_copy_that_is_in_place() -> None:
    class Kept(MemoryRecords):
        def delete(self, name: str) -> None:
            raise WindowError(f"{name}: access denied")

    world = copied_world()
    world.store = Kept()
    assert world.run(world.plan(partitioning=("day",))).outcome is RunOutcome.APPLIED


def test_vectors_that_are_written_during_the_copy_are_not_purged_behind_the_gate() -> None:
    """The copy has no vectors. A REORG would write files again that the copy must then follow."""
    world = copied_world(**{**WITH_VECTORS, "vectors": 0})
    done: list[str] = []

    def delete(event: str) -> None:
        if event == "copy" and not done:
            done.append(event)
            world.table.commit("DELETE", vectors=3)

    world.tick = delete
    run = world.run(world.plan(partitioning=("day",), deletion_vectors="purged"))
    assert (run.outcome, [sql.partition(" ")[0] for sql in world.sent]) == (RunOutcome.APPLIED, ["CUT", "ALTER"])
    assert world.table.live.vectors == 0


def test_a_column_that_is_added_during_the_copy_is_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    world = copied_world()
    compared: list[Sequence[str]] = []
    compare = LakeCopy.compare

    def noted(self: LakeCopy, keys: Any, adds: Any, sums: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        compared.append(sums)
        return compare(self, keys, adds, sums)

    def add_column(event: str) -> None:
        if event == "copy" and not compared:
            text = json.loads(world.table.live.schema.text)
            text["fields"].append({"name": "late", "type": "string"})
            world.table.commit("ADD COLUMNS", schema=parse_schema(json.dumps(text)))

    monkeypatch.setattr(LakeCopy, "compare", noted)
    world.tick = add_column
    run = world.run(world.plan(partitioning=("day",)))
    assert (run.outcome, run.message) == (RunOutcome.APPLIED, "")
    assert "sum(CAST(xxhash64(`late` IS NULL, `late`) AS DECIMAL(38, 0)))" in compared[-1]


def test_a_copy_whose_columns_changed_behind_the_gate_is_not_committed_but_decided_again() -> None:
    table = FakeCopy({"a": 10})
    copy = copying(table, records("again"))
    copy.follow()
    list(copy.copy_missing())
    table.layout = "two"
    with pytest.raises(OutdatedCopyError):
        cut_over(copy, always)
    assert len(table.written) == 1


def test_a_copy_that_a_killed_run_had_finished_does_not_follow_any_amount_behind_the_gate() -> None:
    """The next run had nothing to copy, so it measured nothing."""
    store, table = records("finished"), FakeCopy({"a": 10})
    copy = copying(table, store)
    copy.follow()
    list(copy.copy_missing())
    copy = copying(table, store)
    copy.follow()
    assert not copy.missing
    table.files["b"] = 3_000_000_000
    with pytest.raises(StopTableError) as stop:
        cut_over(copy, always)
    assert (stop.value.outcome, len(table.written)) == (RunOutcome.NO_WINDOW, 1)


def test_a_copy_that_outlasts_the_calendar_waits_for_its_next_window(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement before the copy had its own window, which has ended: the cut-over is not the rest of it."""
    morning = Rule(cron="0 10 * * *", duration=timedelta(hours=1))  # the clock starts at 10:16
    config = WindowConfig(allow=(morning,))
    world = World(options=TableOptions(rewrite="copy"), engine=CopyingEngine, config=config)
    world.lake.add(properties=APPEND_ONLY)
    plan = world.plan(partitioning=("day",), properties={"delta.appendOnly": None})

    def hours(_self: LakeCopy) -> None:
        world.clock.now += 7200

    monkeypatch.setattr(LakeCopy, "prepare", hours)
    run = world.run(plan)
    assert run.outcome is RunOutcome.NO_WINDOW
    assert run.message.startswith("the window ended at 2026-08-22 11:00 UTC")
    assert world.table.live.partition_columns == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("delta.compatibility.symlinkFormatManifest.enabled", "true"),
        ("delta.universalFormat.enabledFormats", "hudi"),
    ],
)
def test_what_delta_writes_after_its_own_statements_only_is_refused_for_a_copy(key: str, value: str) -> None:
    world = copied_world(properties={key: value})
    plan = plan_table(Policy({"partitioning": ("day",)}), world.live(), "oss", TableOptions(rewrite="copy"))
    assert plan is not None
    assert [each.change for each in plan.refusals] == ["partitioning"]
    assert "rewrite: allowed" in plan.refusals[0].fix
    allowed = plan_table(Policy({"partitioning": ("day",)}), world.live(), "oss", TableOptions(rewrite="allowed"))
    assert allowed is not None
    assert not allowed.refusals


def test_manifests_that_the_same_plan_turns_off_are_off_before_the_copy() -> None:
    world = copied_world(properties={"delta.compatibility.symlinkFormatManifest.enabled": "true"})
    off: dict[str, Any] = {"properties": {"delta.compatibility.symlinkFormatManifest.enabled": None}}
    run = world.run(world.plan(partitioning=("day",), **off))
    assert (run.outcome, [sql.partition(" ")[0] for sql in world.sent]) == (RunOutcome.APPLIED, ["ALTER", "CUT"])


def test_a_table_that_is_copied_shares_no_window_and_nothing_is_sent_to_the_others() -> None:
    run = Run(together=("*",)).tables("ab", properties=APPEND_ONLY)
    run.engine = CopyingEngine(run.lake, run.engine.stamp)
    a, b = run.lake.tables.values()
    unset: dict[str, Any] = {"properties": {"delta.appendOnly": None}}
    policy = Policy({**unset, "partitioning": ("day",)})
    copied = plan_table(policy, a.live, "oss", TableOptions(rewrite="copy"))
    assert copied is not None
    report = run.apply(plan_of(copied, run._table(b, unset)))
    assert outcomes(report) == {"a": "refused", "b": "refused"}
    assert only(report, "b").message.startswith("delta.`/lake/a` is copied beside itself, which may take hours")
    assert "out of `window.together`" in only(report, "b").hint
    assert run.engine.sent == []
