"""The lease log is a lock: hypothesis looks for a schedule in which it is not.

Three contenders with clocks of their own share one store. They pause, their clocks going on or standing still, crash,
come back; answers are lost, requests come late or twice; the log is pruned; a writer takes a silent holder for dead;
and right before any put others may act.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count, pairwise

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tablectl.leases.acquire import Claim, Held, break_lease
from tablectl.leases.lease import Lease, LeaseLost
from tablectl.leases.lease_records import (
    KEEP,
    Gate,
    LeaseRecord,
    RunningStatement,
    died,
    dump_record,
    parse_record,
    prune,
    put,
    record_name,
)
from tablectl.leases.owner import Owner
from tablectl.model.errors import WindowError
from tests.leases.lease_fakes import Fault, MemoryRecords, acquire, try_acquire

TTL = 60.0
NAMES = ("ann", "ben", "cleo")
WHO = st.sampled_from(NAMES)
ACT = st.sampled_from(("try", "acquire", "renew", "prove", "close", "open", "announce", "ended", "release", "break"))


class World(MemoryRecords):
    """The store, and the true time, which no contender knows. ``history`` is all that ever landed, and when."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.history: list[tuple[float, LeaseRecord]] = []
        self.pass_time: Callable[[float], None] = lambda _: None

    def land(self, name: str, data: bytes) -> bool:
        new = super().land(name, data)
        record = parse_record(data)
        # One that lands on a pruned number is far behind the tail, and no record of the log.
        if new and (self.last is None or record.seq > self.last.seq):
            self.history.append((self.now, record))
        return new

    @property
    def last(self) -> LeaseRecord | None:
        return self.history[-1][1] if self.history else None


class Contender:
    """One process after another on one host. It is also its own clock, which may be off by years."""

    def __init__(self, world: World, who: str, offset: float) -> None:
        self.world = world
        self.who = who
        self.offset = offset
        self.runs = count(1)
        self.ids = count(1)
        self.lease: Lease | None = None
        self.paused = False
        self.acting = False
        self.stopped_at: float | None = None
        """The true time at which its clock stopped."""

    def monotonic(self) -> float:
        return (self.world.now if self.stopped_at is None else self.stopped_at) + self.offset

    def pause(self, *, clock_stops: bool) -> None:
        if not self.paused:
            self.paused, self.stopped_at = True, self.world.now if clock_stops else None

    def resume(self) -> None:
        if self.stopped_at is not None:
            self.offset -= self.world.now - self.stopped_at
        self.paused, self.stopped_at = False, None

    def sleep(self, seconds: float) -> None:
        self.world.pass_time(seconds)

    def utc(self) -> datetime:
        return datetime(2026, 8, 22, tzinfo=UTC) + timedelta(seconds=self.offset)

    @property
    def owner(self) -> Owner:
        return Owner(who=self.who, host="h", pid=1, ci="", tool="0.1.0")

    def start(self, *, watch: bool) -> None:
        """A new run tries to take the lease."""
        claim = Claim(self.owner, f"{self.who}-{next(self.runs)}", "d", TTL)
        take = acquire if watch else try_acquire
        try:
            got = take(self.world, claim, self, lambda: f"{self.who}.{next(self.ids)}")
        except WindowError:
            assert self.world.last is None or self.world.last.run != claim.run
            raise
        if isinstance(got, Held):
            assert got.record.held
            assert got.record.run != claim.run
        else:
            assert got.record == self.world.last
            self.lease = got

    def prove(self, budget: float = 1) -> bool:
        """Whether a statement may start now; if so, the lease is really ours; if it is lost, that has a reason."""
        assert self.lease is not None
        over = self.lease._over is not None or self.lease._left() <= 0
        try:
            self.lease.prove(budget)
        except LeaseLost:
            assert over or self.lease._left() <= 0 or self.lease.record != self.world.last
            with pytest.raises(LeaseLost):
                self.lease.prove(budget)
            return False
        assert not over
        assert self.lease.record == self.world.last
        assert self.lease._left() > 0
        return True

    def renew_if_due(self) -> None:
        """What the renewal thread does."""
        if self.lease and not (self.paused or self.acting) and self.lease._left() <= TTL * 5 / 6:
            try:
                self.lease.renew()
            except WindowError:
                return


class LeaseMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.pass_time = self.pass_time
        offsets = (0.0, -5e8, 1e6)
        self.contenders = {who: Contender(self.world, who, off) for who, off in zip(NAMES, offsets, strict=True)}

    def pass_time(self, seconds: float) -> None:
        """In steps, so that those who are awake renew in time."""
        until = self.world.now + seconds
        while self.world.now < until:
            self.world.now = min(until, self.world.now + TTL / 12)
            for contender in self.contenders.values():
                contender.renew_if_due()

    def act(self, who: str, act: str) -> None:
        me = self.contenders[who]
        if me.paused or me.acting:
            return
        me.acting = True
        try:
            self.do(me, act)
        except WindowError:
            return  # it would stop here, or try again later
        finally:
            me.acting = False

    def do(self, me: Contender, act: str) -> None:  # one branch an act
        if act == "break" and self.world.last:
            break_lease(self.world, self.world.last.epoch, "because", me.owner, me)
        elif me.lease is None:
            if act in {"try", "acquire"}:
                me.start(watch=act == "acquire")
        elif act == "prove":
            me.prove()
        elif act == "renew":
            me.lease.renew()
        elif act == "announce":
            running = me.lease.record.running
            if running is None or running.tag == f"{me.who}-statement":
                me.lease.announce(RunningStatement("spark", f"{me.who}-statement", 100))
        elif act == "ended":
            me.lease.statement_ended()
        elif act in {"close", "open"}:
            me.lease.gate(Gate.CLOSED if act == "close" else Gate.OPEN)
        elif act == "release" and me.lease.release():
            me.lease = None

    @rule(who=WHO, act=ACT)
    def somebody_acts(self, who: str, act: str) -> None:
        self.act(who, act)

    @rule(who=WHO, act=ACT, others=st.lists(st.tuples(WHO, ACT), min_size=1, max_size=4), prunes=st.booleans())
    def others_are_faster(self, who: str, act: str, others: list[tuple[str, str]], prunes: bool) -> None:
        """Between what one has read and its put."""

        def hook() -> None:
            self.world.before_create = lambda: None
            for other, other_act in others:
                self.act(other, other_act)
            if prunes:
                self.the_log_is_pruned()

        self.world.before_create = hook
        self.act(who, act)
        self.world.before_create = lambda: None

    @rule()
    def the_log_is_pruned(self) -> None:
        """By its holder, down to the last two records: the put looks back no further than one."""
        if self.world.last is not None:
            prune(self.world, self.world.last.seq + KEEP - 2)

    @rule()
    def a_writer_takes_the_holder_for_dead(self) -> None:
        """It has watched the tail for as long as the tail has been there."""
        if self.world.history and self.world.last is not None and self.world.last.held:
            then, last = self.world.history[-1]
            if self.world.now - then >= last.statement_silence and record_name(last.seq) in self.world.kept:
                writer = self.contenders["ann"]
                name = f"writer.{next(writer.ids)}"
                with suppress(WindowError):  # a writer whose put fails goes on waiting
                    put(self.world, died(last, writer.owner, "no sign of life", name, writer.utc()), last)

    @rule(seconds=st.sampled_from((1.0, 9.0, 40.0, 80.0)))
    def time_passes(self, seconds: float) -> None:
        self.pass_time(seconds)

    @rule(who=WHO, clock_stops=st.booleans())
    def pause(self, who: str, clock_stops: bool) -> None:
        self.contenders[who].pause(clock_stops=clock_stops)

    @rule(who=WHO)
    def resume(self, who: str) -> None:
        self.contenders[who].resume()

    @rule(who=WHO)
    def crash(self, who: str) -> None:
        self.contenders[who].lease = None
        self.contenders[who].resume()

    @rule(fault=st.sampled_from(Fault))
    def break_the_network(self, fault: Fault) -> None:
        self.world.faults.append(fault)

    @rule()
    def what_was_late_arrives(self) -> None:
        self.world.deliver()

    @precondition(lambda self: self.world.history)
    @rule(data=st.data())
    def a_request_comes_twice(self, data: st.DataObject) -> None:
        """Even one whose record was pruned meanwhile."""
        _, record = data.draw(st.sampled_from(self.world.history))
        self.world.kept.setdefault(record_name(record.seq), dump_record(record))

    @rule()
    def the_directory_is_deleted(self) -> None:
        """With all that is on its way to it: a late record in an empty directory would be a hole in the numbers."""
        self.world.kept.clear()
        self.world.late.clear()
        self.world.history.clear()

    @rule()
    def all_want_to_run_a_statement(self) -> None:
        """At one instant, also those who slept."""
        self.world.faults.clear()
        ready = [me.who for me in self.contenders.values() if me.lease is not None and me.prove()]
        assert len(ready) <= 1, ready

    @invariant()
    def numbers_have_no_hole(self) -> None:
        assert [record.seq for _, record in self.world.history] == list(range(1, len(self.world.history) + 1))

    @invariant()
    def the_tail_is_kept(self) -> None:
        assert self.world.last is None or max(self.world.kept) == record_name(self.world.last.seq)

    @invariant()
    def epochs_grow_one_by_one_with_each_owner(self) -> None:
        for (_, before), (_, after) in pairwise(self.world.history):
            assert after.epoch == before.epoch + (after.kind == "acquire")

    @invariant()
    def an_epoch_has_one_owner(self) -> None:
        runs = {(record.epoch, record.run) for _, record in self.world.history}
        assert len(runs) == len({epoch for epoch, _ in runs})

    @invariant()
    def nobody_is_taken_over_who_gave_a_sign_of_life(self) -> None:
        for (then, before), (now, after) in pairwise(self.world.history):
            assert after.kind not in {"acquire", "dead"} or not before.held or now - then >= TTL * 1.25

    @invariant()
    def no_writer_passes_while_a_statement_may_run(self) -> None:
        """A closed gate with a statement in flight opens only after its end or its bound, or by its holder or force."""
        for (then, before), (now, after) in pairwise(self.world.history):
            if before.running is not None and before.gate is Gate.CLOSED and before.held and after.gate is Gate.OPEN:
                by_others = after.kind in {"acquire", "dead"}
                assert not by_others or now - then >= (TTL + before.running.until) * 1.25


LeaseMachine.TestCase.settings = settings(
    max_examples=150, stateful_step_count=40, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
TestLeaseMachine = LeaseMachine.TestCase
