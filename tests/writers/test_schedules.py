"""Schedules of the real code of one writer and one apply, as the small model has them: all (slow), or some.

The usual tests run all schedules in which the turn changes twice.

Both stand still where the other can notice: at their records, and at the ends of the write and of each statement.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import pytest

from tablectl.applying import drain_writers as drain_module
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import LeaseRecord
from tablectl.model.run_report import RunOutcome
from tablectl.writers.gate_entry import StoredGuard
from tests.writers.stepping import Actor, Apply, World, Writer

_WRITER_STOPS = re.compile(r"create guards/.*|names lease/|begin|commit|delete guards/.*")
_APPLY_STOPS = re.compile(r"create lease/0*2\.json|names guards/|statement|landed")
"""The first record is the lease, the second the gate."""
_STEPS = 12
"""More steps than either makes where the other can notice."""
_CLOSED: dict[str, Any] = {"isolation": "Serializable"}
_FREE: dict[str, Any] = {"deletion_vectors": "enabled"}


@dataclass(frozen=True)
class Ran:
    """What came of one schedule."""

    choices: tuple[int, ...]
    """How many could have gone on at each step."""
    unprotected: list[str]
    outcomes: list[RunOutcome]
    wrote: int


def run(mode: GuardMode, policy: dict[str, Any], schedule: tuple[int, ...]) -> Ran:
    """The schedule, and the first who can go on wherever it says nothing more."""
    world = World()
    apply = Apply(world, "apply", stops=lambda at: _APPLY_STOPS.fullmatch(at) is not None)
    writer = Writer(world, "writer", stops=lambda at: _WRITER_STOPS.fullmatch(at) is not None)
    choices, unprotected = list[int](), list[str]()
    looked: Actor | None = None  # saw nothing to do, and would see the same again
    try:
        apply.begin(**policy)
        writer.begin(mode)
        while not (apply.ended and writer.ended):
            actors = [actor for actor in (apply, writer) if not actor.ended]
            if len(actors) == 2:
                actors = [actor for actor in actors if actor is not looked]
            chosen = actors[min(schedule[len(choices)], len(actors) - 1) if len(choices) < len(schedule) else 0]
            choices.append(len(actors))
            assert len(choices) < 200, "they wait for each other"
            world.now = max(world.now, chosen.wakes)
            chosen.step()
            unprotected += world.unprotected_writers()
            looked = chosen if chosen.at == "sleep" else None
        return Ran(tuple(choices), unprotected, [each.outcome for each in apply.runs], writer.wrote)
    finally:
        for actor in world.actors:
            actor.kill()


def schedules(mode: GuardMode, policy: dict[str, Any]) -> Iterator[Ran]:
    """All of them, depth first."""
    schedule: tuple[int, ...] | None = ()
    while schedule is not None:
        ran = run(mode, policy, schedule)
        yield ran
        taken = schedule + (0,) * (len(ran.choices) - len(schedule))
        schedule = next(
            (
                (*taken[:place], taken[place] + 1)
                for place in range(len(taken) - 1, -1, -1)
                if taken[place] + 1 < ran.choices[place]
            ),
            None,
        )


def two_switches(mode: GuardMode, policy: dict[str, Any]) -> Iterator[Ran]:
    """All schedules in which the turn changes twice: they are enough to find each mistake below."""
    for first, own, other in product((0, 1), range(1, _STEPS), range(1, _STEPS)):
        yield run(mode, policy, (first,) * own + (1 - first,) * other + (first,) * 2 * _STEPS)


BOTH = pytest.mark.parametrize(("mode", "policy"), [(GuardMode.APPEND, _CLOSED), (GuardMode.ANY, _FREE)])


@BOTH
def test_no_schedule_with_two_switches_fails_the_writer(mode: GuardMode, policy: dict[str, Any]) -> None:
    for ran in two_switches(mode, policy):
        assert (ran.unprotected, ran.outcomes, ran.wrote) == ([], [RunOutcome.APPLIED], 1)


@pytest.mark.slow
@BOTH
def test_no_schedule_fails_the_writer_and_all_come_to_their_end(mode: GuardMode, policy: dict[str, Any]) -> None:
    number = 0
    for ran in schedules(mode, policy):
        number += 1
        assert (ran.unprotected, ran.outcomes, ran.wrote) == ([], [RunOutcome.APPLIED], 1)
    assert number > 1000


def read_then_put(guard: StoredGuard) -> LeaseRecord | None:
    seen = guard.gate()
    guard.put()
    return seen


def put_and_do_not_read(guard: StoredGuard) -> LeaseRecord | None:
    guard.put()
    return None


@pytest.mark.parametrize("wrong", [read_then_put, put_and_do_not_read])
def test_otherwise_some_schedule_fails_the_writer(
    wrong: Callable[[StoredGuard], LeaseRecord | None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(StoredGuard, "read_gate", wrong)
    assert any(ran.unprotected for ran in two_switches(GuardMode.APPEND, _CLOSED))


def test_an_apply_that_does_not_drain_fails_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drain_module, "listed_twice", lambda _store: {})
    assert any(ran.unprotected for ran in two_switches(GuardMode.APPEND, _CLOSED))
