"""Two to four applies at once, of equal and of different plans."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaos.check import Told
from chaos.harness import Harness
from chaos.processes import Command
from chaos.rounds import PLANNING, Outcome, Round
from chaos.scenario import PROPERTY_KEYS, Pending, Scenario, choose, policy_text

_PROPERTIES = ("properties", "clustering", "clustering again")
"""Kinds of which two policies can want different things."""


def race(harness: Harness, seed: int, folder: Path) -> Outcome:
    """One round: the applies of a seed, and the same command of the first one until it has ended with 0."""
    chosen = random.Random(seed)
    equal = chosen.random() < 0.5
    racers, wait = chosen.choice([2, 2, 3, 4]), chosen.choice(["0", "2"])
    starts = tuple(chosen.uniform(0.0, 1.5) for _ in range(racers))
    scenario = choose(seed, "none")
    return Race(harness, scenario, folder, equal=equal, starts=starts, wait=wait).run()


class Race(Round):
    """A round in which several applies start at about the same time."""

    def __init__(
        self, harness: Harness, scenario: Scenario, folder: Path, *, equal: bool, starts: tuple[float, ...], wait: str
    ) -> None:
        super().__init__(harness, scenario, folder)
        self.writers = harness.writers[:1]  # appends alone: what is looked for is among the applies
        self._equal = equal
        self._starts = starts
        self._wait = wait

    def _plan(self) -> bool:
        if self._equal:
            return super()._plan()
        return all(self._own_plan(number) for number in range(1, len(self._starts) + 1))

    def _own_plan(self, number: int) -> bool:
        """A plan of the racer's own: on every table it wants something that no other wants."""
        folder = self.folder / f"policies-{number}"
        folder.mkdir()
        wanted = {place: _of_racer(pending, number) for place, pending in self.tables.items()}
        (folder / "all.yaml").write_text(policy_text(wanted), encoding="utf-8")
        made = self._command("plan", folder.name, "--out", f"plan-{number}.json", log=f"plan-{number}.log")
        code = made.wait(PLANNING * self.harness.patience)
        if code != 0:
            self.outcome.wrong("finish", f"plan {number} ended with {code}")
        return code == 0

    def _plan_of(self, number: int) -> tuple[str, str]:
        """A racer's plan, and the policies that it is compared with."""
        return ("plan.json", "policies") if self._equal else (f"plan-{number}.json", f"policies-{number}")

    def _disturb(self) -> None:
        """All applies at once; none of them is disturbed by anything else."""
        began = time.monotonic()
        running: list[tuple[Command, int]] = []
        for number, start in sorted(enumerate(self._starts, start=1), key=lambda each: each[1]):
            time.sleep(max(began + start - time.monotonic(), 0.0))
            self.told.append(Told(-9))
            arguments = ["apply", *self._plan_of(number), "--yes", "--remote", self.harness.remote]
            arguments += ["--wait", self._wait, "--report", f"report-{len(self.told)}.json"]
            running.append((self._command(*arguments, log=f"apply-{len(self.told)}.log"), len(self.told)))
        for command, number in running:
            self._ended(command, number, disturbed=False, longer=60.0 * float(self._wait))
        self.hits = len(running)

    def _finish(self) -> None:
        if self._equal:
            super()._finish()
            return
        for place in self.tables:
            done = [each for each in self.told if each.of(place.name).get("outcome") in {"applied", "already"}]
            if len(done) > 1:
                self.outcome.wrong(
                    "exits", f"{len(done)} applies of different plans say that it is as planned", place.name
                )
        if all(each.code != 0 for each in self.told) and self._wait != "0":
            self.outcome.wrong("finish", f"no apply finished its plan: {[each.code for each in self.told]}")

    def _keys(self, pending: Pending) -> tuple[str, ...]:
        return pending.keys if self._equal else (*pending.keys, *PROPERTY_KEYS)

    def _facts(self, seconds: float) -> dict[str, Any]:
        facts = super()._facts(seconds)
        kind = "races equal" if self._equal else "races different"
        return {**facts, "mode": "races", "fault": kind, "racers": len(self._starts), "wait": self._wait}


def _of_racer(pending: Pending, number: int) -> Mapping[str, object]:
    """The policy of a racer: that of the table with properties of its own; of properties and clustering, its own."""
    own = {"delta.checkpointRetentionDuration": f"interval {100 + number} days", "owner.team": f"racer{number}"}
    if pending.kind not in _PROPERTIES:
        return {**pending.policy, "properties": own}
    if pending.kind == "properties":
        return {"properties": {**own, "stray": None}}
    return {"clustering": [["id"], ["w"], ["m"], ["w", "m"]][number % 4], "properties": own}
