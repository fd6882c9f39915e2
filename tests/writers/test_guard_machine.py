"""Lease, gate and guards together: hypothesis looks for a schedule in which a live writer is unprotected.

Two applies and three writers, all of them the real code, on one table. Each goes on step by step as hypothesis decides;
they pause and crash, answers are lost, requests fail or come late, and the store is down for a while.
"""

from __future__ import annotations

from itertools import count, pairwise
from typing import Any

import hypothesis.strategies as st
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import KEEP, record_name
from tests.leases.lease_fakes import Fault
from tests.writers.stepping import Actor, Apply, World, Writer

APPLIES = ("ann", "ben")
WRITERS = ("etl", "load", "merge")
WHO = st.sampled_from((*APPLIES, *WRITERS))
APPLY_GOES = st.sampled_from(("", "create lease/", "names guards/", "sleep", "statement", "landed", "its end"))
WRITER_GOES = st.sampled_from(("", "create guards/", "names lease/", "sleep", "begin", "commit", "its end"))


class GuardMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.numbers = count(1)
        offsets = iter((0.0, -5e8, 1e6, 3e3, -7.0))
        self.applies = {name: Apply(self.world, name, next(offsets)) for name in APPLIES}
        self.writers = {name: Writer(self.world, name, next(offsets)) for name in WRITERS}
        self.actors: dict[str, Actor] = {**self.applies, **self.writers}

    @rule(who=st.sampled_from(APPLIES), kind=st.sampled_from(("closed", "free", "rewrite")), to=APPLY_GOES)
    def apply(self, who: str, kind: str, to: str) -> None:
        """A closed change each time, and a free one or a rewrite before it."""
        me = self.applies[who]
        if me.ended and not me.paused:
            policy: dict[str, Any] = {"properties": {"owner.team": f"t{next(self.numbers)}"}}
            vectors = {"free": "enabled", "rewrite": "purged"}.get(kind)
            me.begin(**policy, **({"deletion_vectors": vectors} if vectors else {}))
        self.go(me, to)

    @rule(who=st.sampled_from(WRITERS), mode=st.sampled_from(GuardMode), to=WRITER_GOES)
    def write(self, who: str, mode: GuardMode, to: str) -> None:
        me = self.writers[who]
        if me.ended and not me.paused:
            me.begin(mode)
        self.go(me, to)

    def go(self, me: Actor, to: str) -> None:
        """Step by step until it stands before ``to``: the start of a step's name, or any step."""
        for _ in range(150):
            if me.ended or me.paused:
                return
            self.world.pass_time(max(0.0, me.wakes - self.world.now))
            me.step()
            self.nobody_is_harmed()
            if me.at.startswith(to):
                return

    @rule(seconds=st.sampled_from((1.0, 9.0, 40.0, 80.0)))
    def time_passes(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    @rule(who=WHO, seconds=st.sampled_from((0.0, 30.0, 80.0)))
    def somebody_is_stopped(self, who: str, seconds: float) -> None:
        """For a while, or until the next time that it comes to someone."""
        me = self.actors[who]
        me.paused = not me.paused
        if seconds and me.paused:
            self.world.pass_time(seconds)
            me.paused = False

    @rule(who=WHO)
    def somebody_crashes(self, who: str) -> None:
        self.actors[who].kill()

    @rule(fault=st.sampled_from((*Fault, "down")))
    def break_the_network(self, fault: Fault | str) -> None:
        if isinstance(fault, Fault):
            self.world.store.faults.append(fault)
        else:
            self.world.store.down = not self.world.store.down

    @precondition(lambda self: self.world.store.late)
    @rule()
    def what_was_late_arrives(self) -> None:
        self.world.store.deliver()

    @invariant()
    def nobody_is_harmed(self) -> None:
        assert self.world.unprotected_writers() == []

    @invariant()
    def one_apply_at_a_time_is_alive_and_runs_a_statement(self) -> None:
        assert sum(apply.alive and apply.executing is not None for apply in self.applies.values()) <= 1

    @invariant()
    def numbers_have_no_hole(self) -> None:
        lease = self.world.store.lease
        assert [record.seq for record in lease] == list(range(1, len(lease) + 1))
        assert not lease or record_name(lease[-1].seq) in self.world.store.kept
        assert all(record.seq <= newest - KEEP for record, newest in self.world.store.strays)

    @invariant()
    def a_gate_only_tightens_until_it_opens(self) -> None:
        for before, after in pairwise(self.world.store.lease):
            if after.kind != "acquire" and after.held:
                assert after.epoch == before.epoch
                assert after.gate.strictness in {0, *range(before.gate.strictness, 4)}

    def teardown(self) -> None:
        """In the end all come home: no one waits forever for one who crashed, or for each other."""
        try:
            self.world.store.faults.clear()
            self.world.store.down = False
            for actor in self.actors.values():
                actor.paused = False
            for _ in range(2000):
                going = [actor for actor in self.actors.values() if not actor.ended]
                if not going:
                    return
                for actor in going:
                    while actor.ready:
                        actor.step()
                        self.nobody_is_harmed()
                self.world.pass_time(1)
            raise AssertionError(f"they never end: {[(actor.name, actor.at) for actor in going]}")
        finally:
            for actor in self.actors.values():
                actor.kill()


GuardMachine.TestCase.settings = settings(
    max_examples=100, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestGuardMachine = GuardMachine.TestCase
