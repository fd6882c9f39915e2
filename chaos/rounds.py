"""One round: pending policies, writers at work, an apply that a fault hits, the same command again, and the checks."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from chaos.check import (
    Told,
    Violation,
    check_attempts,
    check_exits,
    check_interleaving,
    check_jobs,
    check_lost,
    check_metadata,
    check_rows,
    check_writers,
    expected_rows,
)
from chaos.features import Feature
from chaos.harness import Harness
from chaos.journal import Attempt, read_hooks, read_journal
from chaos.processes import Command
from chaos.replay import Log, LogError, read_log, rows_at
from chaos.scenario import FREE, PATIENCE, SLACK, TTL, Pending, Scenario, Strike, copy_table, policy_text
from chaos.server import ROOT
from chaos.watch import Bucket, Probe, Watch

LONGEST_RUN = 150.0
"""Seconds for one run of the command; a longer one is killed and fails the round. ``--patience`` multiplies it."""
PLANNING = 60.0
"""Seconds for one plan, likewise."""
TRIES = 6
"""Runs of the same command until it must have ended with 0."""
ENGINE_DEAD = 20.0
"""Seconds after which a run takes a silent engine for dead."""
START_UP = 6.0
"""Seconds that a command may take before it looks at the first lease, on a busy machine."""
ENDPOINT_BOUND = 45
"""Seconds after which a Thrift server ends a statement."""
_ENDPOINT_LONGER = 240.0
"""Seconds for which the next run waits for a dead one's statement: the bound, two announcements, and a quarter."""
_DRAIN = 60
_REST = 60.0
_SEEN = 0.5
"""Seconds in which the watch has seen all records that were put before."""


@dataclass
class Outcome:
    """What a round came to, as a line of the results has it."""

    facts: dict[str, Any]
    violations: list[Violation] = field(default_factory=list)

    def wrong(self, promise: str, what: str, table: str = "") -> None:
        """Note a broken promise."""
        self.violations.append(Violation(promise, table, what))  # type: ignore[arg-type]


class Round:
    """The tables, files and processes of one round."""

    def __init__(self, harness: Harness, scenario: Scenario, folder: Path) -> None:
        self.harness = harness
        self.scenario = scenario
        self.folder = folder
        self.tables: dict[Path, Pending] = {}
        self.bases: dict[str, int] = {}
        self.told: list[Told] = []
        self.hits = 0
        self.missed = 0
        self.times: dict[str, list[float]] = {}
        self.outcome = Outcome({})
        self.state: str | None = None
        self.watch: Watch | None = None
        self.writers = [each for each in harness.writers if each.kind in scenario.kinds]
        self._left: list[Strike] = []
        """Faults still to be done."""
        self.commands: list[Command] = []
        """All that were started: whatever breaks off the round, they end with it."""

    # The order of a round ------------------------------------------------------------------------------------------

    def run(self) -> Outcome:
        """All of it; every process of the round has ended when it returns."""
        began = time.monotonic()
        self._prepare()
        assert self.watch is not None
        self.watch.start()
        try:
            if self._plan():
                # An error or a signal in here ends the harness, which kills its writers: none is waited for.
                self._set_to_work()
                self._disturb()
                self._finish()
                self._rest()
        finally:
            self.watch.close()
            for command in self.commands:
                command.send(signal.SIGKILL)
        self._check()
        self.outcome.facts = self._facts(time.monotonic() - began)
        return self.outcome

    def _prepare(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.folder / "policies").mkdir(parents=True)
        for number, pending in enumerate(self.scenario.tables):
            place = self.folder / f"t{number}"
            copy_table(self.harness.template(pending.template), place)
            self.tables[place] = pending
            self.bases[place.name] = read_log(place).commits[-1].version
        (self.folder / "policies" / "all.yaml").write_text(
            policy_text({place: pending.policy for place, pending in self.tables.items()}), encoding="utf-8"
        )
        hook = [sys.executable, str(ROOT / "chaos" / "hook.py"), str(self.folder / "hooks.jsonl")]
        window = {"ttl": TTL, "drain": int(_DRAIN * self.harness.patience), **self.scenario.window(hook)}
        config: dict[str, Any] = {"window": window}
        if Feature.ENDPOINT in self.scenario.features:
            config["engine"] = {"thrift": self.harness.endpoint, "statement_bound": ENDPOINT_BOUND}
        bucket = None
        if self.scenario.in_bucket:
            name = f"round-{self.scenario.seed}-{int(time.time())}"
            self.state = self.harness.s3.make_bucket(name) + "/records"
            config["state"] = self.state
            bucket = Bucket(self.harness.client(), name)
        (self.folder / "tablectl.yaml").write_text(json.dumps(config), encoding="utf-8")
        self.watch = Watch(tuple(self.tables), bucket)

    def _plan(self) -> bool:
        code = self._command("plan", "--out", "plan.json", log="plan.log").wait(PLANNING * self.harness.patience)
        if code != 0:
            self.outcome.wrong("finish", f"the plan ended with {code}: see plan.log")
        return code == 0

    def _set_to_work(self) -> None:
        order = {
            "remote": self.harness.server.url,
            "tables": [str(place) for place in self.tables],
            "seed": self.scenario.writers,
            "state": self.state,
            "folder": str(self.folder),
            "pace": self.harness.patience,
        }
        for writer in self.writers:
            writer.work({**order, "journal": str(self._journal(writer.number))})
        # The history must know the writers, and they must be warm; one that is slow is waited for no longer.
        deadline = time.monotonic() + 20 * self.harness.patience
        while time.monotonic() < deadline:
            told = [any(a.told == "ok" for a in read_journal(self._journal(w.number))) for w in self.writers]
            if sum(told) >= max(len(told) - 1, 1):
                return
            time.sleep(0.2)

    def _journal(self, number: int) -> Path:
        return self.folder / f"journal-{number}.jsonl"

    def _rest(self) -> None:
        for writer in self.writers:
            limit = _REST * self.harness.patience
            if not writer.rest(limit):
                self.outcome.wrong("free", f"writer {writer.number} did not end its transaction in {limit:g} s")

    # The command ---------------------------------------------------------------------------------------------------

    def _command(self, *arguments: str, log: str) -> Command:
        guarded = Feature.GUARDED_PROCESS in self.scenario.features
        made = Command(arguments, self.folder, self.folder / log, self.harness.through, guarded=guarded)
        self.commands.append(made)
        return made

    def _apply(self) -> tuple[Command, int]:
        number = len(self.told) + 1
        self.told.append(Told(-9))
        report = f"report-{number}.json"
        remote = () if Feature.ENDPOINT in self.scenario.features else ("--remote", self.harness.remote)
        arguments = ("apply", "plan.json", "--yes", *remote, "--report", report, *self.scenario.arguments)
        return self._command(*arguments, log=f"apply-{number}.log"), number

    def _ended(self, command: Command, number: int, *, disturbed: bool, longer: float = 0.0) -> int | None:
        """Wait for a run and note what it left. A run that does not end is a broken promise."""
        longer += _ENDPOINT_LONGER if Feature.ENDPOINT in self.scenario.features else 0.0
        limit = (LONGEST_RUN + longer) * self.harness.patience
        code = command.wait(limit)
        if code is None:
            self.outcome.wrong("finish", f"run {number} did not end in {limit:g} s and was killed")
        path, report = self.folder / f"report-{number}.json", None
        if path.exists():
            report = json.loads(path.read_text(encoding="utf-8"))
        self.told[number - 1] = Told(-9 if code is None else code, report, disturbed)
        if "Traceback (most recent call last)" in command.log.read_text(encoding="utf-8", errors="replace"):
            self.outcome.wrong("exits", f"run {number} ended in a traceback")
        return code

    def _finish(self) -> None:
        for _ in range(TRIES):
            command, number = self._apply()
            if self._ended(command, number, disturbed=False) == 0:
                break
        else:
            self.outcome.wrong("finish", f"the same command ended with {[each.code for each in self.told]}")
            return
        code = self._command("plan", "--detailed-exitcode", log="plan-after.log").wait(PLANNING * self.harness.patience)
        if code != 0:
            self.outcome.wrong("finish", f"the plan afterwards ended with {code}: see plan-after.log")

    # The faults ----------------------------------------------------------------------------------------------------

    def _disturb(self) -> None:
        self._left = list(self.scenario.strikes)
        while self._left:
            self._strike(self._left.pop(0))

    def _strike(self, strike: Strike) -> None:
        """A run of the command and a fault done to it. Where nothing is left to do, no further fault follows."""
        act = {
            "kill": self._kill,
            "pause": self._pause,
            "cut": self._cut,
            "store": self._cut,
            "server": self._kill_server,
            "stranger": self._let_a_stranger_act,
        }
        command, number = self._apply()
        if self._await(strike, command):
            self.hits += 1
            act[self.scenario.fault](strike, command, number)
        else:
            self.missed += 1
            if self._ended(command, number, disturbed=False) == 0:
                self._left.clear()

    def _await(self, strike: Strike, command: Command) -> bool:
        """Wait for the moment of a strike; False where the run ended before it."""
        assert self.watch is not None
        records, commits = len(self.watch.seen), self.watch.commits()

        def come() -> bool:
            assert self.watch is not None
            if strike.moment == "start":
                return True
            if strike.moment == "commit":
                return self.watch.commits() > commits
            new = self.watch.seen[records:]
            return any(strike.moment == "lease" or each.gate == "closed" for each in new)

        deadline = time.monotonic() + LONGEST_RUN * self.harness.patience
        while command.runs and not come() and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(strike.delay)
        return command.runs

    def _kill(self, strike: Strike, command: Command, number: int) -> None:
        command.send(signal.SIGINT if Feature.SIGNAL in self.scenario.features else signal.SIGKILL)
        killed = time.time()
        self._ended(command, number, disturbed=True)
        if strike.how == "later":
            self._wait_until_free("after the kill")
        elif not self._left:  # else the run that the next fault is done to follows at once
            successor, following = self._apply()
            self._ended(successor, following, disturbed=False)
            self._check_takeover(killed)

    def _check_takeover(self, killed: float) -> None:
        """Who begins at once after a kill has the lease when it was free in time."""
        assert self.watch is not None
        run = self.told[-1].run
        for place in self.tables:
            at = self.watch.acquired(place.name).get(run)
            if at is not None:
                self._note_waits(
                    {place.name: at - killed}, FREE + START_UP * self.harness.patience, "for the lease after the kill"
                )

    def _pause(self, strike: Strike, command: Command, number: int) -> None:
        command.send(signal.SIGSTOP)
        try:
            if strike.how == "short":
                time.sleep(min(1.0 + strike.lasts, TTL * 0.6))
            elif strike.how == "later":
                self._wait_until_free("behind a paused run")
                time.sleep(strike.lasts)
            elif self._left:
                self._strike(self._left.pop(0))
            else:
                successor, following = self._apply()
                self._ended(successor, following, disturbed=False)
                time.sleep(strike.lasts)
        finally:
            command.send(signal.SIGCONT)
        self._ended(command, number, disturbed=True)

    def _cut(self, strike: Strike, command: Command, number: int) -> None:
        """Cut the run off. Where that lasts for longer than others may be held up by it, they must be free by then."""
        engine = self.scenario.fault == "cut"
        proxy = self.harness.store_proxy
        if engine:
            endpoint = Feature.ENDPOINT in self.scenario.features
            proxy = self.harness.endpoint_proxy if endpoint else self.harness.engine_proxy
        limit = ENGINE_DEAD + TTL + SLACK if engine else FREE
        # A run cut off from its records cannot say that its statement has ended.
        result = self._probe(limit + 60, set() if engine else self._in_flight()) if strike.lasts > limit else None
        began = time.monotonic()
        proxy.set("refuse" if strike.how == "refuse" else "hold")
        try:
            while command.runs and time.monotonic() < began + strike.lasts:
                time.sleep(0.05)
        finally:
            proxy.set("pass")
        lasted = time.monotonic() - began
        self._ended(command, number, disturbed=True)
        if result is not None and lasted > limit:
            self._note_waits(result(), limit, f"behind a run cut off from its {'server' if engine else 'records'}")

    def _kill_server(self, strike: Strike, command: Command, number: int) -> None:
        self.harness.server.kill()
        # A statement that had no answer keeps the gate shut until it has ended, or until its bound.
        limit = ENGINE_DEAD + TTL + TTL * PATIENCE + SLACK
        result = self._probe(limit + 60, self._in_flight())
        time.sleep(strike.lasts)
        self.harness.server.start()
        waited = result()
        # The run may have sent a statement before it saw that the server was dead: this one keeps its gate, too.
        sent = self._in_flight()
        self._ended(command, number, disturbed=True)
        known = {table: seconds for table, seconds in waited.items() if table not in sent}
        self._note_waits(known, limit, "behind a run whose server had died")

    def _let_a_stranger_act(self, strike: Strike, command: Command, number: int) -> None:
        """Another client's statement on each table while the run goes on."""
        for place in self.tables:
            sent = [
                sys.executable,
                "-W",
                "ignore",
                "-m",
                "chaos.strangers",
                self.harness.server.url,
                str(place),
                strike.how,
            ]
            subprocess.run(sent, cwd=ROOT, capture_output=True, timeout=120 * self.harness.patience, check=False)
        self._ended(command, number, disturbed=True)

    def _wait_until_free(self, what: str) -> None:
        """Until writers may go on: in time, where no statement was left in the engine. That one the next run ends."""
        began = time.monotonic()
        self._note_waits(self._probe(FREE + 30, self._in_flight())(), FREE, what)
        time.sleep(max(began + FREE - time.monotonic(), 0.0))

    def _in_flight(self) -> set[str]:
        assert self.watch is not None
        time.sleep(_SEEN)
        return self.watch.in_flight()

    def _probe(self, limit: float, without: Collection[str] = ()) -> Any:
        return Probe(tuple(each for each in self.tables if each.name not in without), self.state, limit).start()

    def _note_waits(self, waited: Mapping[str, float], limit: float, what: str) -> None:
        for table, seconds in waited.items():
            self.times.setdefault(what, []).append(round(seconds, 2))
            if seconds > limit:
                self.outcome.wrong("free", f"{seconds:.1f} s {what}; {limit:g} s at most", table)

    # The checks ----------------------------------------------------------------------------------------------------

    @property
    def attempts(self) -> list[Attempt]:
        """All attempts of all writers."""
        return [each for path in sorted(self.folder.glob("journal-*.jsonl")) for each in read_journal(path)]

    def _check(self) -> None:
        logs: dict[str, Log] = {}
        for place, pending in self.tables.items():
            try:
                logs[place.name] = read_log(place)
            except LogError as error:
                self.outcome.wrong("rows", str(error), place.name)
            else:
                self.outcome.violations += self._of_table(logs[place.name], pending)
        self.outcome.violations += check_exits(self.told, logs)

    def _of_table(self, log: Log, pending: Pending) -> list[Violation]:
        assert self.watch is not None
        table, base = log.place.name, self.bases[log.place.name]
        attempts = [each for each in self.attempts if each.table == table]
        found = check_attempts(log, base, attempts)
        expected = expected_rows(log, base, rows_at(log, base), attempts)
        found += check_rows(table, expected, rows_at(log, log.commits[-1].version))
        found += check_metadata(log, base, _plans(self.folder), self._keys(pending))
        found += check_interleaving(log, base, self.told, self.watch.acquired(table))
        found += check_lost(table, self.told, self.watch.lost(table))
        if Feature.OWED_HOOKS in self.scenario.features:
            shared = Feature.TOGETHER in self.scenario.features
            found += check_jobs(log, base, read_hooks(self.folder / "hooks.jsonl"), shared=shared)
        failed, others = check_writers(log, attempts)
        self.times.setdefault("conflicts among writers", []).append(others)
        return found + failed

    def _keys(self, pending: Pending) -> tuple[str, ...]:
        """The settings that plans may change on a table."""
        return pending.keys

    def _facts(self, seconds: float) -> dict[str, Any]:
        scenario, attempts = self.scenario, self.attempts
        waits = sorted(each.waited for each in attempts if each.waited is not None)
        return {
            "mode": "faults",
            "seed": scenario.seed,
            "fault": scenario.fault,
            "hits": self.hits,
            "missed": self.missed,
            "strikes": [
                {"moment": s.moment, "delay": round(s.delay, 2), "lasts": round(s.lasts, 1), "how": s.how}
                for s in scenario.strikes
            ],
            "features": [each.value for each in scenario.features],
            "records": "bucket" if scenario.in_bucket else "disk",
            "writers": list(scenario.kinds),
            "tables": [f"{each.kind} on {each.template}" for each in scenario.tables],
            "exits": [each.code for each in self.told],
            "attempts": {word: sum(a.told == word for a in attempts) for word in ("ok", "failed", "unknown")},
            "conflicts": int(sum(self.times.pop("conflicts among writers", []))),
            "unguarded": sum(bool(each.warnings) for each in attempts),
            "longest_wait": round(waits[-1], 1) if waits else 0.0,
            "free": self.times,
            "seconds": round(seconds, 1),
        }


def _plans(folder: Path) -> list[str]:
    """The digests of the plans of a round."""
    return [json.loads(path.read_text(encoding="utf-8"))["sha256"] for path in sorted(folder.glob("plan*.json"))]
