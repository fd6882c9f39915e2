from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tablectl.applying import run as run_module
from tablectl.applying import silent_writers
from tablectl.applying.events import RunEvent
from tablectl.commands import show
from tablectl.commands.output import Output
from tablectl.commands.parameters import function
from tablectl.commands.progress_display import Lines
from tablectl.commands.run_plan import RunOptions, When, Within
from tablectl.engine import spark
from tablectl.engine.local_spark import INSTALL
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import SystemClock
from tablectl.leases.guards import GuardRecord
from tablectl.leases.lease import Lease
from tablectl.leases.lease_records import Gate, RunningStatement, tail
from tablectl.leases.owner import Owner
from tablectl.model.errors import EngineError, TablectlError
from tablectl.storage.records import open_records
from tests.commands.conftest import AnsweringTerminal, Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, append, set_property
from tests.leases.lease_fakes import try_acquire

ROOT = Path(__file__).parents[2]
POLICIES = {
    "a": "{isolation: Serializable, deletion_vectors: enabled, clustering: [id, day], properties: {debug: null}}",
    "b": "{deletion_vectors: purged}",
    "c": "{isolation: Serializable}",
    "d": "{properties: {owner.team: web, delta.checkpointRetentionDuration: interval 60 days}}",
}


@pytest.fixture
def lake(repo: Repository) -> Repository:
    repo.table("a", properties={"debug": "on"})
    vectors = {"features": ["deletionVectors"], "properties": {"delta.enableDeletionVectors": "true"}}
    repo.table("b", vectors=2, **vectors)
    repo.table("c", properties={"delta.isolationLevel": "Serializable"})
    repo.table("d", partitions=["day"])
    repo.policies(POLICIES)
    return repo


def log(repo: Repository, table: str) -> Logged:
    return Logged(repo.lake / table)


def lease(repo: Repository, table: str) -> Lease:
    """Someone else's."""
    owner = Owner(who="ben", host="laptop", pid=7, ci="", tool="0.1.0")
    taken = try_acquire(open_records(str(repo.lake / table)), Claim(owner, "run-of-ben", "d", 10), SystemClock())
    assert isinstance(taken, Lease)
    return taken


def guard(repo: Repository, table: str, beat: int = 1) -> None:
    """A writer that is in the middle of its work."""
    record = GuardRecord("0123abcd", beat, "nightly load")
    open_records(str(repo.lake / table)).create(record.name, record.to_bytes())


def last_record(repo: Repository, table: str) -> str:
    record = tail(open_records(str(repo.lake / table)))
    return record.kind if record else "none"


# End to end


def test_plan_apply_plan(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    assert cli("plan", "--detailed-exitcode", "--out", "plans/p.json").code == 2
    assert fake_spark.engines == []
    result = cli("apply", "plans/p.json", "--verbose")
    assert result.code == 0, result
    assert result.out.count("applied and verified") == 3
    assert "starting Spark" in result.err
    assert f"{lake.name('a')}: closed: SET TBLPROPERTIES" in result.err
    assert "Apply: 3 applied;" in result.out
    again = cli("plan", "--detailed-exitcode")
    assert (again.code, again.out) == (0, "No changes. 4 tables match their policies.\n")
    assert (len(fake_spark.engines), fake_spark.engines[0].closed) == (1, True)

    digest = json.loads((lake.root / "plans/p.json").read_text())["sha256"]
    stamps = [stamp for table in "abcd" for stamp in log(lake, table).stamps]
    assert {stamp["plan"] for stamp in stamps} == {digest}
    assert len({stamp["run"] for stamp in stamps}) == 1
    assert [len(log(lake, table).stamps) for table in "abcd"] == [4, 2, 0, 1]
    assert log(lake, "a").properties == {"delta.isolationLevel": "Serializable", "delta.enableDeletionVectors": "true"}
    assert log(lake, "b").vectors == []
    assert [last_record(lake, table) for table in "abcd"] == ["release", "release", "none", "release"]


def test_the_same_apply_again_makes_no_commit(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    cli("apply", "p.json")
    commits = [len(log(lake, table).commits) for table in "abcd"]
    result = cli("apply", "p.json")
    assert result.code == 0
    assert result.out.count("unchanged, no commit needed") == 3
    assert [len(log(lake, table).commits) for table in "abcd"] == commits
    assert fake_spark.engines[1].sent == []


def test_apply_from_policies_shows_the_plan_and_the_run(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("apply", "--yes", "--select", "*/d")
    assert result.code == 0
    assert result.out.index("Plan: 1 table to change") < result.out.index("Apply: 1 applied")
    assert len(log(lake, "a").stamps) == 0


def test_the_json_of_a_run_is_one_document(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("apply", "--yes", "--format", "json")
    body = json.loads(result.out)
    assert (result.code, body["exit_code"]) == (0, 0)
    assert [table["outcome"] for table in body["tables"]] == ["applied"] * 3
    assert [commit["version"] for commit in body["tables"][1]["commits"]] == [2, 3]


def test_an_empty_plan_starts_no_engine(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("apply", "--select", "*/c")
    assert result.code == 0
    assert "No changes." in result.out
    assert fake_spark.engines == []


# Asking


def test_without_a_terminal_no_one_can_say_yes(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    result = cli("apply")
    assert result.code == 64
    assert "Plan: 3 tables to change" in result.out
    assert (
        "error: cannot ask for confirmation: standard input is not a terminal\n  hint: add --yes, or save a plan"
        in result.err
    )
    assert (fake_spark.engines, log(lake, "a").stamps) == ([], [])


@pytest.mark.parametrize(
    ("answer", "code"), [("y\n", 0), (" YES \n", 0), ("n\n", 1), ("\n", 1), ("", 1), ("yess\n", 1)]
)
def test_only_yes_is_yes(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, answer: str, code: int
) -> None:
    monkeypatch.setattr(sys, "stdin", AnsweringTerminal(answer))
    result = cli("apply", "--select", "*/d")
    assert result.code == code
    assert "Apply these changes? [y/N]" in result.err
    assert len(log(lake, "d").stamps) == (1 if code == 0 else 0)
    assert ("nothing was changed" in result.err) == (code == 1)


def test_who_is_asked_has_seen_the_plan(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", AnsweringTerminal("y\n"))
    result = cli("apply", "--select", "*/d", "--format", "json")
    assert result.err.index("Plan: 1 table to change") < result.err.index("Apply these changes?")
    assert json.loads(result.out)["exit_code"] == 0


# Writers


def test_a_writer_that_does_not_end_leaves_its_table_as_it_is(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLECTL_WINDOW_DRAIN", "0")
    monkeypatch.setattr(silent_writers, "MOST_WATCHED", 0.0)
    guard(lake, "d")
    result = cli("apply", "--yes", "--select", "*/d")
    assert (result.code, fake_spark.sent) == (4, [])
    assert "no window, not changed" in result.out
    assert "nightly load (any)" in result.flat
    assert last_record(lake, "d") == "release"
    result = cli("apply", "--yes", "--select", "*/[da]")
    assert (result.code, len(log(lake, "a").stamps)) == (5, 4)


def test_proceed_goes_on_over_them_and_says_so_in_every_commit(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TABLECTL_WINDOW_DRAIN", "0")
    guard(lake, "d")
    result = cli("apply", "--yes", "--select", "*/d", "--proceed", " it hangs\nsince Monday ")
    assert result.code == 0
    assert [stamp["proceed"] for stamp in log(lake, "d").stamps] == ["it hangs since Monday"]
    told = result.flat
    assert "nightly load (any)" in told
    assert "did not end in time" in told
    assert "Proceeded despite active writers: it hangs since Monday" in result.out
    assert "going on over them: it hangs since Monday" in result.err


@pytest.mark.parametrize("reason", ["", "  ", "\x1b[2J"])
def test_proceed_wants_a_reason(cli: Cli, lake: Repository, reason: str) -> None:
    result = cli("apply", "--yes", "--proceed", reason)
    assert (result.code, "'--proceed': needs a reason" in result.err) == (64, True)


# Hooks


def hooks(repo: Repository, monkeypatch: pytest.MonkeyPatch, code: int = 0) -> Path:
    """Hooks that write down what they were told; the before-hook ends with ``code``."""
    script = repo.root / "hook.sh"
    variables = "$TABLECTL_HOOK $TABLECTL_TABLE $TABLECTL_OUTCOME"
    script.write_text(
        f'#!/bin/sh\necho "{variables}" >> hooks.log\necho "hook $1" >&2\n[ $TABLECTL_HOOK = after ] || exit {code}\n'
    )
    script.chmod(0o755)
    (repo.root / "tablectl.yaml").write_text('window: {before: ["./hook.sh in"], after: [[./hook.sh, out]]}\n')
    return repo.root / "hooks.log"


def test_hooks_run_around_the_window(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = hooks(lake, monkeypatch)
    result = cli("apply", "--yes", "--select", "*/d")
    name = lake.name("d")
    assert result.code == 0
    assert told.read_text() == f"before {name} \nafter {name} applied\n"
    lines = [line for line in result.err.splitlines() if "hook.sh" in line or "| hook" in line]
    assert lines == [
        f"{name}: before: ./hook.sh in",
        f"{name}: | hook in",
        f"{name}: after: ./hook.sh out",
        f"{name}: | hook out",
    ]


def test_a_before_hook_that_fails_opens_no_window(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = hooks(lake, monkeypatch, code=3)
    result = cli("apply", "--yes", "--select", "*/d")
    assert (result.code, fake_spark.sent) == (4, [])
    assert "the before-hook ./hook.sh in ended with exit code 3" in result.flat
    assert told.read_text().endswith("hook failed\n")


# The calendar


def test_outside_the_calendar_nothing_runs_but_by_an_override(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    (lake.root / "tablectl.yaml").write_text("window: {deny: [{cron: '* * * * *', duration: 1h}]}\n")
    result = cli("apply", "--yes", "--select", "*/d")
    assert (result.code, fake_spark.sent, last_record(lake, "d")) == (4, [], "none")
    assert "no window, not changed" in result.out
    assert cli("apply", "--yes", "--select", "*/d", "--override", " ").code == 64
    result = cli("apply", "--yes", "--select", "*/d", "--override", "the year is closing")
    assert result.code == 0
    assert [stamp["override"] for stamp in log(lake, "d").stamps] == ["the year is closing"]
    assert "calendar: the year is closing" in result.out


def test_rules_by_tag_hold_for_a_saved_plan(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    lake.policies({**POLICIES, "d": "{properties: {owner.team: web}, tags: [ledger]}"})
    cli("plan", "--out", "p.json")
    (lake.root / "tablectl.yaml").write_text("window: {deny: [{cron: '* * * * *', duration: 1h, tags: [ledger]}]}\n")
    assert cli("apply", "p.json").code == 5
    assert [bool(log(lake, table).stamps) for table in "abd"] == [True, True, False]


# Waiting


def test_wait_tries_again(cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLECTL_WINDOW_DRAIN", "0")
    monkeypatch.setattr(run_module, "PAUSES", (0.1,))
    guard(lake, "d")
    tries = 0

    def told(lines: Lines, event: RunEvent) -> None:
        nonlocal tries
        tries += event.step == "leased"
        if event.step == "silent writers":
            guard(lake, "d", beat=1000 + len(list((lake.lake / "d" / "_tablectl" / "guards").iterdir())))
        if tries == 3:
            shutil.rmtree(lake.lake / "d" / "_tablectl" / "guards", ignore_errors=True)
        told_before(lines, event)

    told_before = Lines.__call__
    monkeypatch.setattr(Lines, "__call__", told)
    result = cli("apply", "--yes", "--select", "*/d", "--wait", "1")
    assert (result.code, tries) == (0, 3)
    assert "writers did not finish in time: trying again in 0 s" in result.err
    assert cli("apply", "--wait", "-1").code == 64
    for text in ("30x", "", "1000001h", "nan"):
        assert cli("apply", "--wait", text).code == 64, text
    assert cli("apply", "--yes", "--wait", "30m", "--canary", "1", "--soak", "1h", "--select", "*/d").code == 0


# Trouble


def test_a_stale_table_is_left_alone_and_others_are_applied(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    set_property(lake.lake / "a", "delta.isolationLevel", "WriteSerializable")
    result = cli("apply", "p.json")
    assert result.code == 5
    assert "stale, not changed" in result.out
    assert "isolation was default and is WriteSerializable" in result.out
    assert "version 2: SET TBLPROPERTIES by Delta Spark 4.4.0" in result.out
    assert (log(lake, "a").stamps, len(log(lake, "d").stamps)) == ([], 1)


def test_a_plan_that_is_stale_everywhere_is_3(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--select", "*/d", "--out", "p.json")
    set_property(lake.lake / "d", "owner.team", "legal")
    assert cli("apply", "p.json").code == 3
    assert fake_spark.sent == []


def test_a_replaced_table_is_left_alone(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--select", "*/d", "--out", "p.json")
    metadata = log(lake, "d").last("metaData")
    append(lake.lake / "d", "REPLACE TABLE", [{"metaData": {**metadata, "id": "another"}}])
    result = cli("apply", "p.json")
    assert (result.code, fake_spark.sent) == (3, [])
    assert "it has a new table id" in result.out


def test_refused_and_unreadable_tables_make_a_partial_run(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    lake.policies({**POLICIES, "d": "{partitioning: none}"})
    assert cli("plan", "--out", "p.json").code == 3
    result = cli("apply", "p.json")
    assert result.code == 5
    assert "refused, not changed" in result.out
    lake.policies({"d": "{isolation: Serializable}", "missing": "{isolation: Serializable}"})
    assert cli("plan", "--out", "p.json").code == 1
    result = cli("apply", "p.json")
    assert result.code == 5
    assert "1 not readable" in result.out
    lake.policies({"d": "{partitioning: none}"})
    assert cli("apply", "--yes").code == 3
    lake.policies({"missing": "{isolation: Serializable}"})
    assert cli("apply", "--yes").code == 1


def test_a_failing_table_is_named_with_its_error_class(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    def fail(sql: str) -> None:
        if "owner.team" in sql:
            (lake.lake / "d" / "_delta_log" / f"{2:020d}.json").unlink()
            raise EngineError("the cluster said no", "ask the cluster", "SOME_CLASS")

    fake_spark.after = fail
    result = cli("apply", "--yes", "--verbose")
    assert result.code == 5
    assert "[SOME_CLASS] the cluster said no" in result.out
    assert "ask the cluster" in result.out
    assert result.out.count("applied and verified") == 2


def test_a_missing_spark_prints_the_install_line(cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    result = cli("apply", "--yes", "--select", "*/d")
    assert result.code == 1
    assert f"this command needs Spark, which is not installed\n  hint: {INSTALL}" in result.err
    assert last_record(lake, "d") == "none"


def test_a_plan_for_another_dialect_is_refused(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    cli("plan", "--select", "*/d", "--out", "p.json")
    monkeypatch.setenv("TABLECTL_ENGINE_DIALECT", "databricks")
    result = cli("apply", "p.json")
    assert (result.code, fake_spark.sent) == (3, [])
    assert "`dialect`: the plan is for 'oss', and tablectl.yaml says 'databricks'" in result.err


def test_a_table_whose_records_cannot_be_written_fails_alone(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    (lake.lake / "a" / "_tablectl").write_text("in the way")
    result = cli("apply", "--yes")
    assert result.code == 5
    assert "set `state:` in tablectl.yaml" in result.flat
    assert (log(lake, "a").stamps, len(log(lake, "d").stamps)) == ([], 1)


def test_records_lie_where_the_configuration_says(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    (lake.root / "tablectl.yaml").write_text(f"state: {lake.root}/state\n")
    assert cli("apply", "--yes", "--select", "*/d").code == 0
    assert not (lake.lake / "d" / "_tablectl").exists()
    assert len(list((lake.root / "state").iterdir())) == 1
    assert "last held (epoch 1)" in cli("window", "show", lake.name("d")).out


def test_what_was_committed_counts_though_the_report_cannot_be_written(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, _text: str) -> None:
        raise TablectlError("the result cannot be written: No space left on device")

    cli("plan", "--select", "*/d", "--out", "p.json")
    monkeypatch.setattr(Output, "result", full)
    result = cli("apply", "p.json")
    assert result.code == 5
    assert "No space left on device" in result.err
    assert cli("apply", "p.json").code == 1  # nothing was committed any more


def test_a_reader_that_went_away_is_not_a_failure_of_the_run(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Any, _text: str) -> None:
        raise BrokenPipeError

    cli("plan", "--select", "*/d", "--out", "p.json")
    monkeypatch.setattr(Output, "result", gone)
    assert cli("apply", "p.json").code == 0


# The window


def test_window_show_and_break(cli: Cli, lake: Repository) -> None:
    name = lake.name("a")
    assert cli("window", "show", name).out == f"{name}: no apply has ever held it\n"
    assert cli("window", "show", name, "--format", "json").out == "null\n"
    held = lease(lake, "a")

    shown = cli("window", "show", name)
    assert shown.code == 0
    assert shown.out.startswith(f"{name}: held by ben on laptop (pid 7), run run-of-ben, epoch 1, since ")
    assert shown.err == f"to free it: tablectl window break '{name}' --epoch 1 --reason …\n"
    body = json.loads(cli("window", "show", name, "--format", "json").out)
    assert (body["kind"], body["epoch"], body["owner"]["who"]) == ("acquire", 1, "ben")

    for args, code, says in [
        (("--reason", "stuck"), 64, "to break this lease, add --epoch 1"),
        (("--epoch", 1, "--reason", "  "), 64, "--reason is empty"),
        (("--epoch", 2, "--reason", "stuck"), 4, "to break that one, give epoch 1"),
    ]:
        result = cli("window", "break", name, *args)
        assert (result.code, result.out) == (code, "")
        assert says in result.err
        held.prove(1)

    broken = cli("window", "break", name, "--epoch", 1, "--reason", "the job was cancelled")
    assert (broken.code, broken.out) == (0, f"{name}: epoch 1 is broken; apply may run\n")
    assert "free; last held (epoch 1) by" in cli("window", "show", name).out
    assert "broken" in cli("window", "show", name).out
    again = cli("window", "break", name, "--reason", "stuck")
    assert (again.code, "there is nothing to break" in again.err) == (64, True)
    assert cli("window", "break", name, "--epoch", 1, "--reason", "stuck").code == 4


def test_a_gate_that_a_release_left_shut_is_shown_and_opened(cli: Cli, lake: Repository) -> None:
    name = lake.name("a")
    held = lease(lake, "a")
    held.gate(Gate.CLOSED)
    held.announce(RunningStatement("connect host:1 s u", "tablectl-r1-1", 400))
    held.release()
    shown = cli("window", "show", name)
    assert "free; last held (epoch 1) by" in shown.out
    assert "a statement of that run may still run, so writers wait for 500 s at most" in shown.err
    assert f"to free it: tablectl window break '{name}' --epoch 1 --reason …" in shown.err
    assert cli("window", "break", name, "--epoch", 1, "--reason", "the server is gone").code == 0
    assert cli("window", "show", name).err == ""


def test_window_break_as_json(cli: Cli, lake: Repository) -> None:
    lease(lake, "a")
    args = ("window", "break", lake.name("a"), "--epoch", 1, "--reason", "stuck", "--format", "json")
    body = json.loads(cli(*args).out)
    assert (body["kind"], body["reason"]) == ("break", "stuck")


@pytest.mark.parametrize("args", [("show",), ("break", "--reason", "r", "--epoch", "1")])
def test_the_window_of_a_table_that_is_none_is_a_typo(cli: Cli, lake: Repository, args: tuple[str, ...]) -> None:
    result = cli("window", args[0], lake.name("ordres"), *args[1:])
    assert result.code == 1
    assert "no such directory" in result.err


def test_the_window_of_a_catalog_table_is_looked_up(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    fake_spark.catalog["spark_catalog", "sales", "orders"] = lake.lake / "a"
    lease(lake, "a")
    assert "held by ben" in cli("window", "show", "sales.orders").out


# Signals: whole processes, with the fake in place of Spark

RUNNER = """
import os, sys
from tablectl.commands import apply as command
from tablectl.engine import spark
from tablectl.commands.command_line import run_cli
from tests.commands.log_lake import LogEngine

controls = []
real = command.Control

def control(**given):
    controls.append(real(**given))
    return controls[-1]

def after(sql):
    print("landed", file=sys.stderr, flush=True)
    if os.environ["MODE"] == "wait":  # until the handler has run: the signal cannot come too late
        assert controls[-1].stop.wait(60)
    if os.environ["MODE"] == "never":
        threading.Event().wait()

import threading
command.Control = control
spark.open_spark = lambda options, stamp="": LogEngine(stamp, options.dialect, {}, after)
sys.exit(run_cli(sys.argv[1:], os.environ))
"""


@contextmanager
def applying(repo: Repository, mode: str, ignored: tuple[signal.Signals, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    """``apply p.json`` in a process of its own, stopped after its first statement."""
    env = {**os.environ, "PYTHONPATH": str(ROOT), "MODE": mode, "TABLECTL_WINDOW_TTL": "10"}

    def ignore() -> None:
        # Whatever runs the tests may ignore signals (nohup, a shell's background job), and children inherit that.
        for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(each, signal.SIG_IGN if each in ignored else signal.SIG_DFL)

    process = subprocess.Popen(
        [sys.executable, "-c", RUNNER, "apply", "p.json"],
        cwd=repo.root,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=ignore,  # noqa: PLW1509  # no threads of ours run here
    )
    with process:
        assert process.stderr is not None
        for line in process.stderr:
            if line == "landed\n":
                break
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_ends_the_run_in_good_order(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, number: signal.Signals
) -> None:
    cli("plan", "--select", "*/a", "--out", "p.json")
    with applying(lake, "wait") as process:
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert process.returncode == 5
    assert "interrupted" in out
    assert "run the same command again" in out
    assert "stopping: waiting for running statements" in err
    assert "Traceback" not in err
    assert (len(log(lake, "a").stamps), last_record(lake, "a")) == (1, "release")

    result = cli("apply", "p.json")
    assert result.code == 0
    assert len(log(lake, "a").stamps) == 4
    assert cli("plan", "--select", "*/a", "--detailed-exitcode").code == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_second_signal_ends_the_process_at_once(cli: Cli, lake: Repository, number: signal.Signals) -> None:
    cli("plan", "--select", "*/a", "--out", "p.json")
    with applying(lake, "never") as process:
        assert process.stderr is not None
        process.send_signal(number)
        assert "stopping" in process.stderr.readline()
        process.send_signal(number)
        assert process.wait(60) == -number
    assert last_record(lake, "a") == "statement"


def test_a_hang_up_that_was_ignored_stays_so(cli: Cli, lake: Repository) -> None:
    """As under ``nohup``."""
    cli("plan", "--select", "*/a", "--out", "p.json")
    with applying(lake, "wait", ignored=(signal.SIGHUP,)) as process:
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 5
    with applying(lake, "free", ignored=(signal.SIGHUP,)) as process:
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_library_that_takes_the_handler_gets_it_taken_back(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new Spark context puts a handler of its own in the place of ours."""
    cli("plan", "--select", "*/a", "--out", "p.json")
    mine = signal.getsignal(signal.SIGINT)
    seen: list[Any] = []
    opened = fake_spark.__call__

    def theirs(*_: Any) -> None:
        raise KeyboardInterrupt

    def open_spark(options: Any, stamp: str = "") -> Any:
        signal.signal(signal.SIGINT, theirs)
        return opened(options, stamp)

    monkeypatch.setattr(spark, "open_spark", open_spark)
    fake_spark.after = lambda _sql: seen.append(signal.getsignal(signal.SIGINT))
    assert cli("apply", "p.json").code == 0
    assert seen
    assert theirs not in seen
    assert signal.getsignal(signal.SIGINT) is mine


def test_an_interrupt_anywhere_else_is_one_word(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(show, "read_plan", interrupted)
    result = cli("show", "p.json")
    assert (result.code, result.out, result.err) == (1, "", "error: interrupted\n")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ({}, None),
        ({"when": None, "within": None}, None),
        ({"when": "quiet"}, 21_600),
        ({"when": "quiet", "within": "90m"}, 5400),
        ({"when": "quiet", "within": "7d"}, 604_800),
    ],
)
def test_the_time_to_wait_for_a_quiet_moment(given: dict[str, Any], seconds: float | None) -> None:
    @function
    def waits(when: When = None, within: Within = None) -> float | None:
        return RunOptions(when=when, within=within).quiet

    assert waits(**given) == seconds
