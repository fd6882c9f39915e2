"""Every interleaving of one apply and two writers, by exhaustion (window.md 6.4, T5).

Each action of the model is one step that no other can divide: one call of the store, the begin or the end of a write or
of a statement. Anyone may crash, or be paused until its records count as dead, between any two steps. In no state may a
writer that is alive be inside its write while the apply that is alive runs a statement whose gate stops that writer.
Each rule is also switched off, to show that the exploration would find what it is for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import pytest

from tablectl.window.guards import Mode
from tablectl.window.lease_log import Gate

GATES = (Gate.NO_SCHEMA, Gate.APPENDS_ONLY, Gate.CLOSED)


@dataclass(frozen=True)
class Rules:
    """What the protocol consists of."""

    guard_then_gate: bool = True
    """The writer puts its guard before it reads the gate."""
    gate_then_guards: bool = True
    """The apply puts its gate before it lists the guards."""
    drains: bool = True
    """The apply waits for the guards that it has listed."""
    live_guard: bool = True
    """A writer that was paused after it put its guard, for longer than that holds, begins again."""
    proven_lease: bool = True
    """The apply starts a statement only if its lease has not run out."""
    dead_gate: bool = True
    """A gate whose apply is dead stops nobody."""
    dead_guard: bool = True
    """A guard whose writer is dead is not waited for."""


class Writer(NamedTuple):
    mode: Mode
    at: str = "start"
    """The step that comes next; between ``begin`` and ``end`` it is inside its write."""
    guard: bool = False
    """Whether its guard is in the store."""
    alive: bool = True
    """False when it crashed, or was paused for longer than its guard holds: by its own clock it knows."""
    crashed: bool = False


class Apply(NamedTuple):
    at: str = "start"
    turn: int = 0
    """Which of ``GATES`` it works towards."""
    waits: frozenset[int] = frozenset()
    """The writers on its list whose guards it still waits for."""
    alive: bool = True
    crashed: bool = False


class State(NamedTuple):
    gate: Gate
    """As the store has it."""
    apply: Apply
    writers: tuple[Writer, ...]

    def with_writer(self, number: int, **changes: object) -> State:
        writers = list(self.writers)
        writers[number] = writers[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(writers=tuple(writers))

    def with_apply(self, **changes: object) -> State:
        return self._replace(apply=self.apply._replace(**changes))  # type: ignore[arg-type]


Step = tuple[str, State]


def writer_steps(rules: Rules, state: State, number: int) -> Iterator[Step]:
    me = state.writers[number]
    stops = me.mode.waits(state.gate) and not (rules.dead_gate and not state.apply.alive)
    first, second = ("put", "read") if rules.guard_then_gate else ("read", "put")
    after = {"start": first, first: second, second: "begin"}

    def go(label: str, to: str, **changes: object) -> Step:
        return f"writer {number} {label}", state.with_writer(number, at=to, **changes)

    at = first if me.at == "start" else me.at
    if at == "put":
        yield go("puts its guard", after["put"], guard=True, alive=True)
    elif at == "read":
        yield go("sees the gate", "withdraw") if stops else go("passes the gate", after["read"])
    elif at == "withdraw":
        yield go("withdraws and waits", "wait", guard=False)
    elif at == "wait" and not stops:
        yield go("finds the gate open", "start", alive=True)
    elif at == "begin" and rules.live_guard and not me.alive:
        yield go("begins again", "start", guard=False, alive=True)
    elif at == "begin":
        yield go("begins to write", "end", alive=True)  # as far as it knows
    elif at == "end":
        yield go("has written", "delete")
    elif at == "delete":
        yield go("deletes its guard", "done", guard=False)


def listed(state: State) -> frozenset[int]:
    return frozenset(number for number, writer in enumerate(state.writers) if writer.guard)


def still_waited_for(rules: Rules, state: State, gate: Gate) -> frozenset[int]:
    return frozenset(
        number
        for number in state.apply.waits
        if (writer := state.writers[number]).guard
        and writer.mode.waits(gate)
        and not (rules.dead_guard and not writer.alive)
    )


def apply_steps(rules: Rules, state: State) -> Iterator[Step]:
    me = state.apply
    if me.turn == len(GATES):
        if me.at == "start":
            yield "apply opens", state._replace(gate=Gate.OPEN).with_apply(at="done")
        return
    gate = GATES[me.turn]

    def go(label: str, **changes: object) -> Step:
        return f"apply {label}", state.with_apply(**changes)

    def shut(at: str) -> Step:
        return f"apply shuts the gate: {gate}", state._replace(gate=gate).with_apply(at=at)

    may_run = not rules.proven_lease or me.alive
    match me.at:
        case "start":
            yield shut("shut") if rules.gate_then_guards else go("lists the guards", at="shut", waits=listed(state))
        case "shut":
            yield go("lists the guards", at="drain", waits=listed(state)) if rules.gate_then_guards else shut("drain")
        case "drain" if not (rules.drains and still_waited_for(rules, state, gate)) and may_run:
            yield go(f"begins a statement under {gate}", at="running", waits=frozenset(), alive=True)
        case "running":
            yield go("ends the statement", at="start", turn=me.turn + 1)


def steps(rules: Rules, state: State) -> Iterator[Step]:
    for number, writer in enumerate(state.writers):
        if not writer.crashed and writer.at != "done":
            yield from writer_steps(rules, state, number)
            if writer.at != "start":
                yield f"writer {number} crashes", state.with_writer(number, alive=False, crashed=True)
                if writer.alive:
                    yield f"writer {number} is paused for too long", state.with_writer(number, alive=False)
    apply = state.apply
    if not apply.crashed and apply.at != "done":
        yield from apply_steps(rules, state)
        yield "apply crashes", state.with_apply(alive=False, crashed=True)
        if apply.alive:
            yield "apply is paused for too long", state.with_apply(alive=False)


def harmed(state: State) -> bool:
    """Whether a statement commits under a live writer that its gate should have kept away."""
    apply = state.apply
    return (
        apply.at == "running"
        and apply.alive
        and any(
            writer.at == "end" and writer.alive and writer.mode.waits(GATES[apply.turn]) for writer in state.writers
        )
    )


def stuck(rules: Rules, state: State) -> bool:
    """Whether somebody who is alive has not come to the end, and can never take a step again."""
    waits = [writer for writer in state.writers if writer.at != "done" and not writer.crashed]
    apply_waits = state.apply.at != "done" and not state.apply.crashed and state.apply.alive
    return bool(waits or apply_waits) and not any(
        "crashes" not in label and "paused" not in label for label, _ in steps(rules, state)
    )


@dataclass(frozen=True)
class Explored:
    states: int
    trace: tuple[str, ...]
    """The shortest way to what was looked for; empty where there is none."""


def explore(rules: Rules, modes: tuple[Mode, ...], wrong: Callable[[State], bool] = harmed) -> Explored:
    start = State(Gate.OPEN, Apply(), tuple(Writer(mode) for mode in modes))
    came_from: dict[State, tuple[State, str] | None] = {start: None}
    todo = deque([start])
    while todo:
        state = todo.popleft()
        if wrong(state):
            return Explored(len(came_from), trace(came_from, state))
        for label, after in steps(rules, state):
            if after not in came_from:
                came_from[after] = (state, label)
                todo.append(after)
    return Explored(len(came_from), ())


def trace(came_from: dict[State, tuple[State, str] | None], state: State) -> tuple[str, ...]:
    labels: list[str] = []
    while (before := came_from[state]) is not None:
        state, label = before
        labels.append(label)
    return tuple(reversed(labels))


PAIRS = list(combinations_with_replacement(Mode, 2))


@pytest.mark.parametrize("modes", PAIRS)
def test_no_interleaving_harms_a_writer(modes: tuple[Mode, Mode]) -> None:
    explored = explore(Rules(), modes)
    assert explored.trace == ()
    assert explored.states > 10_000


@pytest.mark.parametrize("modes", PAIRS)
def test_nobody_waits_for_ever(modes: tuple[Mode, Mode]) -> None:
    """Not for a dead one, and no two for each other."""
    assert explore(Rules(), modes, lambda state: stuck(Rules(), state)).trace == ()


@pytest.mark.parametrize("rule", ["guard_then_gate", "gate_then_guards", "drains", "live_guard", "proven_lease"])
def test_each_rule_of_safety_is_needed(rule: str) -> None:
    found = explore(Rules(**{rule: False}), (Mode.ANY,))
    assert found.trace, f"without {rule} the exploration finds nothing wrong"


@pytest.mark.parametrize("rule", ["dead_gate", "dead_guard"])
def test_each_rule_of_liveness_is_needed(rule: str) -> None:
    rules = Rules(**{rule: False})
    assert explore(rules, (Mode.ANY,), lambda state: stuck(rules, state)).trace


def test_a_gate_that_is_read_before_the_guard_is_put_misses_the_apply() -> None:
    """The counterexample that the order of the two is there for."""
    assert explore(Rules(guard_then_gate=False), (Mode.ANY,)).trace == (
        "writer 0 passes the gate",
        "apply shuts the gate: no-schema",
        "apply lists the guards",
        "writer 0 puts its guard",
        "writer 0 begins to write",
        "apply begins a statement under no-schema",
    )


def test_guards_that_are_listed_before_the_gate_is_shut_miss_a_writer() -> None:
    assert explore(Rules(gate_then_guards=False), (Mode.ANY,)).trace == (
        "apply lists the guards",
        "writer 0 puts its guard",
        "writer 0 passes the gate",
        "writer 0 begins to write",
        "apply shuts the gate: no-schema",
        "apply begins a statement under no-schema",
    )
