"""Every interleaving of one apply and two writers, by exhaustion (docs/guards.md, "How writers and applies wait").

Each action of the model is one step that no other can divide: one call of the store, the begin or the end of a write or
of a statement. Anyone may crash, or be paused until its records count as dead, between any two steps; the clock of who
is paused may go on or stand still. The engine goes on with a statement whose apply has crashed. A put may have no
answer and land later. In no state may a writer that gives signs of life be inside its write while a statement runs
whose gate stops that writer. Each rule is also switched off, to show that the exploration would find what it is for.

The table may be renamed, so that its name leads to another table from then on. A statement that goes there by its name
must be reported, one that rewrites the table must never go there.

A writer may go on to another write while the deletion of its guard is still on its way (``late_deletion``).

That a pruned number of the lease is never taken again is for the machine of ``tests/leases/test_lease_machine.py``:
here the lease is one value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import NamedTuple

import pytest

from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import Gate

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
    death_of_gate: bool = True
    """Who passes a dead gate puts that into the log before, and the apply reads the log before each statement."""
    death_of_guard: bool = True
    """The apply puts a guard that it takes for dead into the log, and the writer finds it when it reads the gate."""
    announced: bool = True
    """The log names a statement before it is sent, and a dead gate stays shut for as long as that may run."""
    asked_again: bool = True
    """The apply asks for its lease directly before the request of a statement, too."""
    checked_name: bool = True
    """The apply resolves the name after the writers have ended, and sends nothing if it leads elsewhere."""
    by_location: bool = True
    """A statement that rewrites the table goes to its location and not to its name."""
    settled: bool = True
    """After a statement, the log of the table says whether it landed there."""
    wanted_gate: bool = True
    """Whoever appends the next record writes the gate that is wanted, whatever became of the put before."""
    own_id: bool = True
    """Each write has a guard of its own name, so that the late deletion of one does not delete the next."""
    late_deletion: bool = False
    """Each writer writes twice, and does not wait for the deletion of its first guard."""
    dead_gate: bool = True
    """A gate whose apply is dead stops no one."""
    dead_guard: bool = True
    """A guard whose writer is dead is not waited for."""


class Writer(NamedTuple):
    mode: GuardMode
    at: str = "start"
    """The step that comes next; between ``begin`` and ``end`` it is inside its write."""
    guard: bool = False
    """Whether its guard is in the store."""
    alive: bool = True
    """False when it crashed, or was paused for longer than its guard holds and knows it by its own clock."""
    crashed: bool = False
    silent: bool = False
    """Whether others have seen no sign of life for so long that they may take it for dead."""
    old_guard: bool = False
    """Whether the guard of its first write is still in the store, with its deletion on its way."""
    again: bool = True
    """Whether it has a second write to do."""


class Apply(NamedTuple):
    at: str = "start"
    turn: int = 0
    """Which of ``GATES`` it works towards."""
    waits: frozenset[int] = frozenset()
    """The writers on its list whose guards it still waits for."""
    alive: bool = True
    crashed: bool = False
    silent: bool = False
    late: Gate | None = None
    """A gate whose put had no answer, and that may still land."""
    blind: bool = False
    """Whether the name led elsewhere already when its next statement was decided."""


class State(NamedTuple):
    gate: Gate
    """As the store has it."""
    apply: Apply
    writers: tuple[Writer, ...]
    running: Gate | None = None
    """The gate of the statement that the engine runs."""
    dead_gate: bool = False
    """Whether the log says that the apply is dead."""
    dead_guards: frozenset[int] = frozenset()
    """The writers whose guards the log says are dead."""
    name: str = "fixed"
    """Where the table's name leads: ``here``, and it may be given to another table, or ``elsewhere``."""
    elsewhere: bool = False
    """Whether the last statement went to another table."""
    wrong: str = ""
    """What must not be done to another table."""

    def with_writer(self, number: int, **changes: object) -> State:
        writers = list(self.writers)
        writers[number] = writers[number]._replace(**changes)  # type: ignore[arg-type]
        return self._replace(writers=tuple(writers))

    def with_apply(self, **changes: object) -> State:
        return self._replace(apply=self.apply._replace(**changes))  # type: ignore[arg-type]


Step = tuple[str, State]


def gate_stops(rules: Rules, state: State, me: Writer) -> bool:
    if not me.mode.waits(state.gate) or state.dead_gate:
        return False
    may_count_as_dead = state.apply.silent and not (rules.announced and state.running is not None)
    return rules.death_of_gate or not (rules.dead_gate and may_count_as_dead)


def writer_steps(rules: Rules, state: State, number: int) -> Iterator[Step]:  # one branch a step
    me = state.writers[number]
    stops = gate_stops(rules, state, me)
    first, second = ("put", "read") if rules.guard_then_gate else ("read", "put")
    after = {"start": first, first: second, second: "begin"}

    def go(label: str, to: str, **changes: object) -> Step:
        return f"writer {number} {label}", state.with_writer(number, at=to, **changes)

    def again(label: str) -> Step:
        """With a guard of a new id, which is in no record."""
        name, then = go(label, "start", guard=False, alive=True, silent=False)
        return name, then._replace(dead_guards=then.dead_guards - {number})

    at = first if me.at == "start" else me.at
    if at == "put":
        yield go("puts its guard", after["put"], guard=True, alive=True, silent=False)
    elif at == "read" and rules.death_of_guard and number in state.dead_guards:
        yield again("reads that its guard is dead")
    elif at == "read":
        # What it saw it saw now: a pause before is over, one that comes is a pause in the midst of its write.
        yield go("sees the gate", "withdraw") if stops else go("passes the gate", after["read"], silent=not me.alive)
    elif at == "withdraw":
        yield go("withdraws and waits", "wait", guard=False)
    elif at == "wait" and not stops:
        yield go("finds the gate open", "start", alive=True, silent=False)
    elif at == "wait" and rules.dead_gate and state.apply.silent and not (rules.announced and state.running):
        yield "writer records that the gate is dead", state._replace(dead_gate=True)
    elif at == "begin" and rules.live_guard and not me.alive:
        yield again("begins again")
    elif at == "begin":
        yield go("begins to write", "end", alive=True, silent=me.silent and me.alive)  # as far as it knows
    elif at == "end":
        yield go("has written", "delete")
    elif at == "delete":
        yield go("deletes its guard", "done", guard=False)
        if rules.late_deletion and me.again:
            label, then = go(
                "goes on to another write", "start", guard=False, old_guard=True, again=False, silent=False
            )
            # What was listed and taken for dead is the guard of the first write.
            waits = frozenset(old_guard(each) if each == number else each for each in then.apply.waits)
            yield label, then._replace(dead_guards=then.dead_guards - {number}).with_apply(waits=waits)


def deletions(rules: Rules, state: State, number: int) -> Iterator[Step]:
    if state.writers[number].old_guard and not state.writers[number].crashed:
        guard = state.writers[number].guard and rules.own_id
        yield f"the first guard of writer {number} is deleted", state.with_writer(number, old_guard=False, guard=guard)


def old_guard(writer: int) -> int:
    """The number of the guard of its first write, and the reverse; its second guard has the writer's number."""
    return -1 - writer


def listed(state: State) -> frozenset[int]:
    old = frozenset(old_guard(number) for number, writer in enumerate(state.writers) if writer.old_guard)
    return old | frozenset(number for number, writer in enumerate(state.writers) if writer.guard)


def aged(state: State) -> Iterator[Step]:
    """The guard of a write that has ended is not renewed, so the apply may take it for dead at any time."""
    for number in sorted(map(old_guard, state.apply.waits & listed(state))):
        if number >= 0:
            yield f"apply deletes the first guard of writer {number}", state.with_writer(number, old_guard=False)


def still_waited_for(rules: Rules, state: State, gate: Gate) -> frozenset[int]:
    return frozenset(
        number
        for number in state.apply.waits & listed(state)
        if state.writers[max(number, old_guard(number))].mode.waits(gate)
        and not (rules.dead_guard and number in dead_guards(rules, state))
    )


def dead_guards(rules: Rules, state: State) -> frozenset[int]:
    """Which writers the apply does not wait for: by the log, or, without that rule, as soon as they are silent."""
    silent = frozenset(number for number, writer in enumerate(state.writers) if writer.silent)
    return state.dead_guards if rules.death_of_guard else silent


def buried(rules: Rules, state: State) -> State:
    """The guards of the dead are deleted."""
    for number in state.apply.waits & dead_guards(rules, state):
        state = state.with_writer(number, guard=False)
    return state


def apply_steps(rules: Rules, state: State) -> Iterator[Step]:  # noqa: C901, PLR0912  # one branch a step
    me = state.apply
    if me.at == "failed":
        # It goes on to another table, and renews this lease meanwhile.
        yield from renewals(rules, state)
        return
    # Each record of ours needs the number behind our last one: who was taken for dead cannot append.
    may_append = not (rules.death_of_gate and state.dead_gate) and (me.alive or not rules.proven_lease)
    if me.turn == len(GATES):
        if me.at == "start" and may_append:
            yield "apply opens", state._replace(gate=Gate.OPEN).with_apply(at="done")
        return
    gate = GATES[me.turn]

    def go(label: str, **changes: object) -> Step:
        return f"apply {label}", state.with_apply(**changes)

    def shut(at: str) -> Step:
        return f"apply shuts the gate: {gate}", state._replace(gate=gate).with_apply(at=at, silent=False)

    match me.at:
        case "start" if rules.gate_then_guards and may_append:
            yield shut("shut")
            if me.turn > 0 and state.gate is not Gate.OPEN:
                # For a moment, or as the next apply does that finds something left to do.
                yield "apply opens between", state._replace(gate=Gate.OPEN).with_apply(silent=False)
            if me.turn == 0:
                yield go(f"gets no answer to its gate: {gate}", at="failed", late=gate)
        case "start" if not rules.gate_then_guards:
            yield go("lists the guards", at="shut", waits=listed(state))
        case "shut" if rules.gate_then_guards:
            yield go("lists the guards", at="drain", waits=listed(state))
        case "shut" if may_append:
            yield shut("drain")
        case "drain":
            waits = still_waited_for(rules, state, gate) if rules.drains else frozenset()
            silent = [number for number in sorted(waits) if number >= 0 and state.writers[number].silent]
            yield from aged(state)
            if rules.death_of_guard and rules.dead_guard and silent and may_append:
                then = state._replace(dead_guards=state.dead_guards | {silent[0]}).with_apply(silent=False)
                yield f"apply records that guard {silent[0]} is dead", then
            if not waits and rules.checked_name and state.name == "elsewhere":
                yield go("finds that the name leads elsewhere", at="stale", waits=frozenset())
            elif not waits and may_append:
                then = buried(rules, state).with_apply(
                    at="send", waits=frozenset(), alive=True, silent=False, blind=state.name == "elsewhere"
                )
                yield f"apply announces a statement under {gate}", then
        case "send" if may_append or not rules.asked_again:
            yield f"apply begins a statement under {gate}", sent(rules, state, gate)
        case "running" if state.running is None and state.elsewhere and rules.settled:
            yield go("reports that it went to another table", at="stale")
        case "running" if state.running is None:
            wrong = "it counts as done" if state.elsewhere else state.wrong
            then = state._replace(elsewhere=False, wrong=wrong)
            yield "apply sees the statement ended", then.with_apply(at="start", turn=me.turn + 1)
        case "stale" if may_append:
            yield "apply opens", state._replace(gate=Gate.OPEN).with_apply(at="done")


def sent(rules: Rules, state: State, gate: Gate) -> State:
    """A statement reaches the engine, which resolves its name then. That of the closed gate rewrites the table."""
    rewrites = gate is Gate.CLOSED
    elsewhere = state.name == "elsewhere" and not (rules.by_location and rewrites)
    wrong = state.wrong
    if elsewhere and rewrites:
        wrong = "it was rewritten"
    elif elsewhere and state.apply.blind:
        wrong = "the name was not looked up"
    return state._replace(running=gate, elsewhere=elsewhere, wrong=wrong).with_apply(at="running")


def renewals(rules: Rules, state: State) -> Iterator[Step]:
    if state.apply.late is not None:
        yield "the late gate lands", state._replace(gate=state.apply.late).with_apply(late=None)
    if rules.wanted_gate and (state.apply.late is not None or state.gate is not Gate.OPEN):
        yield "apply renews, gate open", state._replace(gate=Gate.OPEN).with_apply(late=None)


def steps(rules: Rules, state: State) -> Iterator[Step]:
    for number, writer in enumerate(state.writers):
        yield from deletions(rules, state, number)
        if not writer.crashed and writer.at != "done":
            yield from writer_steps(rules, state, number)
            if writer.at != "start":
                yield f"writer {number} crashes", state.with_writer(number, alive=False, crashed=True, silent=True)
                if not writer.silent:
                    slept = f"writer {number} is paused for too long"
                    yield slept, state.with_writer(number, alive=False, silent=True)
                    yield f"{slept}, its clock stands still", state.with_writer(number, silent=True)
    apply = state.apply
    if not apply.crashed and apply.at != "done":
        yield from apply_steps(rules, state)
        if apply.at != "failed":
            yield "apply crashes", state.with_apply(alive=False, crashed=True, silent=True)
            if not apply.silent:
                yield "apply is paused for too long", state.with_apply(alive=False, silent=True)
                yield "apply is paused for too long, its clock stands still", state.with_apply(silent=True)
    if state.running is not None:
        yield "the engine ends the statement", state._replace(running=None)
    if state.name == "here":
        yield "the name is given to another table", state._replace(name="elsewhere")


def unprotected(state: State) -> bool:
    """Whether a statement commits under a live writer that its gate should have kept away."""
    return state.running is not None and any(
        writer.at == "end" and not writer.silent and writer.mode.waits(state.running) for writer in state.writers
    )


def stuck(rules: Rules, state: State) -> bool:
    """Whether someone who is alive has not come to the end, and can never take a step again."""
    waits = [writer for writer in state.writers if writer.at != "done" and not writer.crashed]
    apply = state.apply
    # One that has lost its lease stops; one that renews for the sake of another table has nothing to do here.
    done = apply.at in {"done", "failed"} or apply.crashed or not apply.alive or state.dead_gate
    return bool(waits or not done) and not any(
        "crashes" not in label and "paused" not in label for label, _ in steps(rules, state)
    )


@dataclass(frozen=True)
class Explored:
    states: int
    trace: tuple[str, ...]
    """The shortest way to what was looked for; empty where there is none."""


def explore(
    rules: Rules, modes: tuple[GuardMode, ...], wrong: Callable[[State], bool] = unprotected, name: str = "fixed"
) -> Explored:
    start = State(Gate.OPEN, Apply(), tuple(Writer(mode) for mode in modes), name=name)
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


_QUICK = {(GuardMode.ANY, GuardMode.APPEND)}
PAIRS = [
    pytest.param(pair, id="-".join(pair), marks=() if pair in _QUICK else pytest.mark.slow)
    for pair in combinations_with_replacement(GuardMode, 2)
]
"""Each has some 200,000 states; the one with the two modes that most writers use is among the quick tests."""


@pytest.mark.parametrize("modes", PAIRS)
def test_in_no_interleaving_a_writer_fails_or_waits_forever(modes: tuple[GuardMode, GuardMode]) -> None:
    """Not for a dead one, and no two for each other."""
    rules = Rules()
    explored = explore(rules, modes, lambda state: unprotected(state) or stuck(rules, state))
    assert explored.trace == ()
    assert explored.states > 10_000


def test_a_writer_may_go_on_before_the_guard_of_its_last_write_is_deleted() -> None:
    rules = Rules(late_deletion=True)
    explored = explore(rules, (GuardMode.REWRITE,), lambda state: unprotected(state) or stuck(rules, state))
    assert explored.trace == ()
    assert explored.states > 2_000


def test_a_late_deletion_must_not_delete_the_next_guard() -> None:
    assert explore(Rules(late_deletion=True, own_id=False), (GuardMode.REWRITE,)).trace


def test_a_lease_that_ran_out_is_found_by_the_log_alone() -> None:
    """The holder's own clock only ends its work earlier."""
    assert explore(Rules(proven_lease=False), (GuardMode.ANY,)).trace == ()
    assert explore(Rules(proven_lease=False), (GuardMode.APPEND,)).trace == ()


SAFETY = (
    "guard_then_gate",
    "gate_then_guards",
    "drains",
    "live_guard",
    "death_of_gate",
    "death_of_guard",
    "announced",
    "asked_again",
)


@pytest.mark.parametrize("rule", SAFETY)
def test_each_rule_of_safety_is_needed(rule: str) -> None:
    found = explore(Rules(**{rule: False}), (GuardMode.REWRITE,))
    assert found.trace, f"without {rule} the exploration finds nothing wrong"


@pytest.mark.parametrize("rule", ["dead_gate", "dead_guard", "wanted_gate"])
def test_each_rule_of_liveness_is_needed(rule: str) -> None:
    rules = Rules(**{rule: False})
    assert explore(rules, (GuardMode.ANY,), lambda state: stuck(rules, state)).trace


def test_a_name_that_is_given_to_another_table_at_any_moment_leads_to_nothing_unsaid() -> None:
    rules = Rules()
    explored = explore(
        rules, (GuardMode.ANY,), lambda state: bool(state.wrong) or unprotected(state) or stuck(rules, state), "here"
    )
    assert explored.trace == ()
    assert explored.states > 1_000


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("checked_name", "the name was not looked up"),
        ("by_location", "it was rewritten"),
        ("settled", "it counts as done"),
    ],
)
def test_each_rule_about_names_is_needed(rule: str, wrong: str) -> None:
    found = explore(Rules(**{rule: False}), (), lambda state: state.wrong == wrong, "here")
    assert found.trace, f"without {rule} the exploration finds nothing wrong"


def test_a_gate_that_is_read_before_the_guard_is_put_misses_the_apply() -> None:
    """The counterexample that the order of the two is there for."""
    assert explore(Rules(guard_then_gate=False), (GuardMode.ANY,)).trace == (
        "writer 0 passes the gate",
        "apply shuts the gate: no-schema",
        "apply lists the guards",
        "writer 0 puts its guard",
        "writer 0 begins to write",
        "apply announces a statement under no-schema",
        "apply begins a statement under no-schema",
    )


def test_guards_that_are_listed_before_the_gate_is_shut_miss_a_writer() -> None:
    assert explore(Rules(gate_then_guards=False), (GuardMode.ANY,)).trace == (
        "apply lists the guards",
        "writer 0 puts its guard",
        "writer 0 passes the gate",
        "writer 0 begins to write",
        "apply shuts the gate: no-schema",
        "apply announces a statement under no-schema",
        "apply begins a statement under no-schema",
    )
