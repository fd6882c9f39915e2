"""Copies beside the table under faults: ``python -m chaos.copies --rounds 20`` runs so many rounds of each step.

Three processes take part, on one JVM. The *server* owns the JVM and four guarded writers and one without a guard, which
write all the time and record what they were told. The *apply* changes the partition columns by a copy beside the table,
in a process of its own that is attached to that JVM. The *harness* (this module) waits for a step of the apply, then
for a random moment of it, and does one of:

* ``kill``: ``kill -9`` of the apply. Its call in the JVM goes on without it, and so do the writers.
* ``pause``: the apply is stopped for longer than its lease lives. A second apply starts meanwhile.
* ``server``: ``kill -9`` of the JVM, with all writers.
* a stranger of ``chaos.strangers``: a VACUUM, an ALTER … in a session of its own.

Then the same apply runs until it exits with 0. At the end the rows must be those that the writers were told, the table
must have its new partition columns and its old id, no record of the copy may be left, and no guarded writer may have
failed because of the apply.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.copy_server import ROWS, TWICE
from chaos.results import code_version
from chaos.server import ROOT
from chaos.strangers import SQL

STEPS: Mapping[str, float] = {"copy": 2.5, "follow": 0.15, "gate": 0.6, "cut over": 1.2, "verify": 0.1}
"""The steps of an apply, with the longest delay from the begin of each to the fault, in seconds."""
FAULTS = ("kill", "pause", "server", *(each.name for each in SQL))
RESULTS = ROOT / "benchmarks" / "results" / "copies.jsonl"
TTL = 10
_CONFIG = f"engine:\n  statement_bound: 15\nwindow:\n  ttl: {TTL}\n  drain: 60\n  cutover: 2\n"
_PAUSE = 1.8 * TTL
_PATIENCE = 420.0
_TRIES = 12


class Server:
    """The process with the JVM and the writers. It is started again if it has died."""

    def __init__(self, work: Path) -> None:
        self._work = work
        self._process: subprocess.Popen[str] | None = None
        self.environ: dict[str, str] = {}

    def ask(self, **order: Any) -> Any:
        """Send an order, and return the answer."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def kill(self) -> None:
        """End the server, its JVM and its writers at once."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        with (self._work / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "chaos.copy_server"],
                cwd=self._work,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self.environ = self._answer()

    def _answer(self) -> Any:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("{"):
                return json.loads(line)
        raise RuntimeError(f"the server ended; see {self._work / 'server.log'}")


class Apply:
    """An apply in a process of its own, attached to the server's JVM."""

    def __init__(self, server: Server, folder: Path, number: int) -> None:
        self._steps = folder / f"steps-{number}"
        self._result = folder / f"result-{number}.json"
        self._steps.touch()
        with (folder / f"apply-{number}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "chaos.copy_server", str(self._steps), str(self._result)],
                cwd=folder,
                env={**os.environ, **server.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def reaches(self, step: str) -> bool:
        """Wait until the apply comes to a step. False if it ends before."""
        until = time.monotonic() + _PATIENCE
        while time.monotonic() < until:
            if step in self._steps.read_text(encoding="utf-8").splitlines():
                return True
            if self._process.poll() is not None:
                return False
            time.sleep(0.005)
        return False

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, sign: signal.Signals) -> None:
        """Send a signal, if the apply still runs."""
        if self.runs:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)

    def end(self) -> dict[str, Any]:
        """Wait for its end, and return its exit code and message; -9 if it was killed."""
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self._process.wait()
            return {"code": -9, "message": f"did not end within {_PATIENCE:.0f} s"}
        if not self._result.exists():
            return {"code": -9, "message": ""}
        found: dict[str, Any] = json.loads(self._result.read_text(encoding="utf-8"))
        return found


class Round:
    """One table, one fault, and what came of it."""

    def __init__(self, server: Server, folder: Path, seed: int, step: str) -> None:
        self._server, self._folder, self._seed, self._step = server, folder, seed, step
        self._number = 0
        chosen = random.Random(f"{seed} {step}")
        self._fault = chosen.choice(FAULTS)
        self._delay = chosen.uniform(0.0, STEPS[step])

    def run(self) -> dict[str, Any]:
        """The line of the round for the results."""
        began = time.monotonic()
        self._arrange()
        before = self._server.ask(do="make", folder=str(self._folder))
        self._server.ask(do="work", folder=str(self._folder))
        hit, ends = self._disturb()
        while ends[-1]["code"] != 0 and len(ends) < _TRIES:
            time.sleep(1)
            ends.append(self._apply().end())
        self._server.ask(do="rest")
        after = self._server.ask(do="read", folder=str(self._folder))
        wrong = list(self._wrong(ends, before, after))
        return {
            "step": self._step,
            "seed": self._seed,
            "fault": self._fault,
            "delay": round(self._delay, 3),
            "hit": hit,
            "exits": [each["code"] for each in ends],
            "messages": [each["message"] for each in ends],
            "told": sum(each["say"] == "ok" for each in self._journal()),
            "versions": after["version"],
            "seconds": round(time.monotonic() - began, 1),
            "code": code_version(),
            "wrong": wrong,
        }

    def _arrange(self) -> None:
        (self._folder / "policies").mkdir(parents=True)
        (self._folder / "tablectl.yaml").write_text(_CONFIG, encoding="utf-8")
        table = f"  delta.`{self._folder / 'table'}`: {{partitioning: [day], rewrite: {{copy: beside}}}}\n"
        (self._folder / "policies" / "all.yaml").write_text(f"version: 1\ntables:\n{table}", encoding="utf-8")

    def _apply(self) -> Apply:
        self._number += 1
        return Apply(self._server, self._folder, self._number)

    def _disturb(self) -> tuple[bool, list[dict[str, Any]]]:
        """Whether the fault met a running apply, and the ends of the applies so far."""
        first = self._apply()
        if not first.reaches(self._step):
            return False, [first.end()]
        time.sleep(self._delay)
        hit = first.runs
        if self._fault == "kill":
            first.send(signal.SIGKILL)
        elif self._fault == "server":
            self._server.kill()
            first.send(signal.SIGKILL)
            self._server.ask(do="work", folder=str(self._folder))
        elif self._fault != "pause":
            self._server.ask(do="act", folder=str(self._folder), stranger=self._fault)
        else:
            first.send(signal.SIGSTOP)
            second = self._apply()
            time.sleep(_PAUSE)
            first.send(signal.SIGCONT)
            return hit, [first.end(), second.end()]
        return hit, [first.end()]

    def _journal(self) -> list[dict[str, Any]]:
        lines = (self._folder / "journal.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines if line.endswith("}")]

    def _wrong(self, ends: Sequence[Mapping[str, Any]], before: Any, after: Any) -> Iterator[str]:
        if ends[-1]["code"] != 0:
            yield f"no apply finished: {ends[-1]['message']}"
        yield from (f"an apply {each['message']}" for each in ends if each["message"].startswith("did not end"))
        if after["partitions"] != ["day"]:
            yield f"the partition columns are {after['partitions']}"
        if after["id"] != before["id"]:
            yield "the table has another id"
        if after["records"]:
            yield f"records of the copy are left: {after['records']}"
        if after["gone"]:
            yield f"files of the newest version are gone: {after['gone']}"
        journal = self._journal()
        yield from wrong_rows(journal, after["rows"])
        if self._fault != "server":
            yield from (f"a guarded {each['kind']} failed: {each['error']}" for each in journal if each.get("ours"))


def wrong_rows(journal: Sequence[Mapping[str, Any]], rows: Sequence[Sequence[Any]]) -> Iterator[str]:
    """What the table holds otherwise than the writers were told.

    ``rows`` are id, v and how often. A write without an answer may have taken effect or not, up to the writer's end;
    one that failed has not.
    """
    allowed: dict[int, set[float | None]] = {id_: {float(id_)} for id_ in range(ROWS)}
    for each in journal:
        values = allowed.setdefault(each["id"], {None})
        if each["say"] == "try":
            values.add(each["v"])
        elif each["say"] == "ok":
            allowed[each["id"]] = {each["v"]}
        elif each["say"] == "failed":
            values.discard(each["v"])
    times: Counter[int] = Counter()
    for id_, value, count in rows:
        times[id_] += count
        if value not in allowed.get(id_, set()):
            yield f"row {id_} holds {value}, and only {sorted(map(str, allowed.get(id_, set())))} are possible"
    for id_, values in allowed.items():
        wanted = 2 if id_ in TWICE else 1
        if times[id_] != wanted and not (times[id_] == 0 and None in values):
            yield f"row {id_} is there {times[id_]} times instead of {wanted}"


def main() -> int:
    """Run the rounds; 1 if one broke a promise."""
    parser = argparse.ArgumentParser(prog="python -m chaos.copies", description=__doc__)
    parser.add_argument("--rounds", type=int, default=2, help="of each step")
    parser.add_argument("--seed", type=int, default=1, help="of the first round of each step")
    parser.add_argument("--only", nargs="+", choices=tuple(STEPS), default=tuple(STEPS), help="these steps")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no round after so many seconds")
    parser.add_argument("--work", type=Path, default=ROOT / ".chaos")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work, deadline, broken = asked.work.resolve(), time.monotonic() + asked.seconds, 0
    work.mkdir(parents=True, exist_ok=True)
    server = Server(work)
    try:
        for seed in range(asked.seed, asked.seed + asked.rounds):
            for step in asked.only:
                if time.monotonic() > deadline:
                    break
                folder = work / f"copies-{step.replace(' ', '-')}-{seed}"
                shutil.rmtree(folder, ignore_errors=True)
                line = Round(server, folder, seed, step).run()
                broken += bool(line["wrong"])
                with RESULTS.open("a", encoding="utf-8") as file:
                    file.write(json.dumps({**line, "wrong": line["wrong"][:20]}) + "\n")
                _say(line)
                if not line["wrong"]:
                    shutil.rmtree(folder)
    finally:
        server.kill()
    print(f"{broken} of the rounds broke a promise" if broken else "every round kept every promise", flush=True)
    return 1 if broken else 0


def _say(line: Mapping[str, Any]) -> None:
    verdict = "BROKEN" if line["wrong"] else "kept"
    met = "met" if line["hit"] else "came too late for"
    words = f"{line['fault']} {met} {line['step']!r} after {line['delay']} s; exits {line['exits']}"
    print(f"{line['seed']}: {verdict}: {words}; {line['told']} writes, {line['seconds']} s", flush=True)
    for each in line["wrong"][:5]:
        print(f"  {each[:300]}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
