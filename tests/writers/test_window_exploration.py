"""Every interleaving of an apply whose tables share a window and of jobs that hold a guard of one table inside a guard
of another, by exhaustion (``tablectl/applying/shared_window.py``).

Each action is one step that no other can divide: one record, one listing, one read, the begin or the end of a write or
of a statement. In no state may a job be inside a write of a table while a statement runs there whose gate stops that
write. From each state everything can come to its end without a limit of time, so no job and no table wait for each
other. Each rule is also switched off, to show that the exploration would find what it is for.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import pytest

from tablectl.applying.gate import GATES
from tablectl.applying.shared_window import WindowStep
from tablectl.leases.guards import GuardMode
from tablectl.leases.lease_records import Gate
from tablectl.model.plan import Phase

ANY, REWRITE, APPEND = GuardMode.ANY, GuardMode.REWRITE, GuardMode.APPEND
FREE, DATA, CLOSED = Phase.FREE, Phase.REWRITE, Phase.CLOSED


@dataclass(frozen=True)
class Rules:
    """What the protocol consists of."""

    lets_in: bool = True
    """A gate lets in a job that the window waits for at another table."""
    shuts_twice: bool = True
    """Before its statements, a gate is shut for those jobs, too, and the guards are listed once more."""
    waits_at: bool = True
    """A table that waits for the others with its gate shut lets those jobs in."""


class Record(NamedTuple):
    """The newest record of a table's lease."""

    gate: Gate = Gate.OPEN
    lets_in: bool = False
    runs: bool = False


class Step(NamedTuple):
    """One step of the thread that works on a table."""

    kind: str
    gate: Gate = Gate.OPEN
    lets_in: bool = False
    where: WindowStep = WindowStep.BEGUN


class Table(NamedTuple):
    record: Record = Record()
    at: int = 0
    """The number of its next step."""
    reached: WindowStep = WindowStep.BEGUN
    listed: frozenset[int] = frozenset()
    """The jobs whose guards it waits for."""


class Plan(NamedTuple):
    """A job: a guard of one table and, inside of it, one of another."""

    outer: int
    inner: int
    modes: tuple[GuardMode, GuardMode]
    outer_first: bool = False
    """Whether the outer guard is left first."""


class Job(NamedTuple):
    at: str = "puts outer"
    guards: frozenset[int] = frozenset()
    """The tables in which it has a guard that an apply waits for."""
    inside: frozenset[int] = frozenset()
    """The tables that it writes."""
    kept: bool = False
    """Whether it was let in: then its outer guard stays until the inner one has ended."""


class State(NamedTuple):
    tables: tuple[Table, ...]
    jobs: tuple[Job, ...]


def steps_of(rules: Rules, phases: Sequence[Phase]) -> tuple[Step, ...]:
    """The steps of ``GateKeeper`` and ``run_table`` for statements of these phases."""
    steps: list[Step] = []
    drained = Gate.OPEN

    def shut(gate: Gate, where: WindowStep) -> None:
        steps.extend((Step("shut", gate, rules.lets_in), Step("list", gate), Step("drain", gate)))
        steps.append(Step("meet", where=where))
        if rules.shuts_twice:
            steps.extend((Step("shut", gate), Step("list", gate), Step("drain", gate)))

    for phase in phases:
        gate = GATES[phase]
        if drained is Gate.OPEN:
            drained = Gate.NO_SCHEMA if gate is Gate.CLOSED else gate
            shut(drained, WindowStep.SHUT)
        if gate.strictness > drained.strictness:
            if gate is Gate.CLOSED:
                steps.append(Step("shut", drained, rules.lets_in and rules.waits_at))
                steps.append(Step("meet", where=WindowStep.READY))
            shut(gate, WindowStep.CLOSED if gate is Gate.CLOSED else WindowStep.BEGUN)
            drained = gate
        steps.extend((Step("run", gate), Step("end", gate)))
    if drained is not Gate.OPEN:
        steps.append(Step("shut", drained, rules.lets_in and rules.waits_at))
    return (*steps, Step("meet", where=WindowStep.DONE), Step("open"))


class Model:
    def __init__(self, rules: Rules, phases: Sequence[Sequence[Phase]], plans: Sequence[Plan]) -> None:
        self.rules, self.plans = rules, plans
        self.steps = [steps_of(rules, each) for each in phases]
        self.first = State(tuple(Table() for _ in phases), tuple(Job() for _ in plans))

    def next(self, state: State) -> Iterator[State]:
        for number, table in enumerate(state.tables):
            changed = self._step(state, number, table)
            if changed is not None:
                yield state._replace(tables=_with(state.tables, number, changed))
        for number, job in enumerate(state.jobs):
            moved = self._act(state, self.plans[number], job)
            if moved is not None:
                yield state._replace(jobs=_with(state.jobs, number, moved))

    def over(self, state: State) -> bool:
        return all(job.at == "over" for job in state.jobs) and all(
            table.at == len(steps) for table, steps in zip(state.tables, self.steps, strict=True)
        )

    def unprotected(self, state: State) -> bool:
        return any(
            table.record.runs and number in job.inside and self._mode(plan, number).waits(table.record.gate)
            for number, table in enumerate(state.tables)
            for plan, job in zip(self.plans, state.jobs, strict=True)
        )

    def _mode(self, plan: Plan, number: int) -> GuardMode:
        return plan.modes[0 if number == plan.outer else 1]

    def _step(self, state: State, number: int, table: Table) -> Table | None:
        """One step of a table; ``None`` if it waits, or is done."""
        if table.at == len(self.steps[number]):
            return None
        step = self.steps[number][table.at]
        then = table._replace(at=table.at + 1)
        if step.kind in {"shut", "open"}:
            return then._replace(record=Record(step.gate, step.lets_in))
        if step.kind == "list":
            listed = (
                job
                for job, (plan, each) in enumerate(zip(self.plans, state.jobs, strict=True))
                if number in each.guards and self._mode(plan, number).waits(step.gate)
            )
            return then._replace(listed=frozenset(listed))
        if step.kind == "drain":
            left = {job for job in table.listed if number in state.jobs[job].guards}
            return None if left else then._replace(listed=frozenset())
        if step.kind == "meet":
            if table.reached < step.where:
                return table._replace(reached=step.where)
            behind = any(each.reached < step.where for each in state.tables)
            return None if behind else then
        return then._replace(
            record=Record(step.gate if step.kind == "run" else table.record.gate, False, step.kind == "run")
        )

    def _act(self, state: State, plan: Plan, job: Job) -> Job | None:
        """One step of a job; ``None`` if it waits, or is over."""
        outer, inner = state.tables[plan.outer].record, state.tables[plan.inner].record
        if job.at.endswith("outer"):
            return self._act_outside(plan, job, outer)
        if job.at.startswith("writes"):
            return self._end_write(plan, job)
        stops, holds = plan.modes[1].waits(inner.gate), outer.lets_in and plan.modes[0].waits(outer.gate)
        away = job._replace(at="waits inner", guards=job.guards - {plan.inner})
        both = job.guards | {plan.inner}
        match job.at:
            case "puts inner":
                return job._replace(at="reads inner", guards=both)
            case "reads inner" if stops:
                return job._replace(at="reads outer again") if inner.lets_in else away
            case "reads inner":
                return job._replace(at="writes", inside=both)
            case "reads outer again":
                return job._replace(at="writes", inside=both, kept=True) if holds else away
            case "waits inner":
                return job._replace(at="puts inner") if not stops or (inner.lets_in and holds) else None
        return None

    @staticmethod
    def _act_outside(plan: Plan, job: Job, outer: Record) -> Job | None:
        stops = plan.modes[0].waits(outer.gate)
        if job.at == "puts outer":
            return job._replace(at="reads outer", guards=frozenset({plan.outer}))
        if job.at == "waits outer":
            return None if stops else Job()
        return Job("waits outer") if stops else job._replace(at="puts inner", inside=frozenset({plan.outer}))

    @staticmethod
    def _end_write(plan: Plan, job: Job) -> Job:
        if job.at == "writes on":
            return Job("over")
        first, second = (plan.outer, plan.inner) if plan.outer_first else (plan.inner, plan.outer)
        stays = frozenset({plan.outer}) if job.kept else frozenset()
        return job._replace(at="writes on", inside=frozenset({second}), guards=stays | (job.guards - {first}))


def _with(items: tuple, number: int, item: object) -> tuple:  # type: ignore[type-arg]
    return (*items[:number], item, *items[number + 1 :])


def explore(model: Model) -> tuple[int, bool, bool]:
    """How many states there are, whether a job is unprotected in one, and whether one leads to no end."""
    before: dict[State, list[State]] = defaultdict(list)
    seen, queue = {model.first}, deque([model.first])
    unprotected, ends = False, []
    while queue:
        state = queue.popleft()
        unprotected |= model.unprotected(state)
        if model.over(state):
            ends.append(state)
        for then in model.next(state):
            before[then].append(state)
            if then not in seen:
                seen.add(then)
                queue.append(then)
    home, back = set(ends), deque(ends)
    while back:
        for earlier in before[back.popleft()]:
            if earlier not in home:
                home.add(earlier)
                back.append(earlier)
    return len(seen), unprotected, home != seen


PLANS = ((CLOSED,), (FREE, CLOSED), (DATA, CLOSED), (FREE,), ())
MODES = ((APPEND, APPEND), (REWRITE, ANY), (APPEND, ANY))


@pytest.mark.parametrize("outer_first", [False, True])
@pytest.mark.parametrize("modes", MODES)
def test_a_job_inside_two_tables_of_a_window_is_protected_and_never_waits_for_it(
    modes: tuple[GuardMode, GuardMode], *, outer_first: bool
) -> None:
    total = 0
    for phases in product(PLANS, PLANS):
        states, unprotected, stuck = explore(Model(Rules(), phases, [Plan(0, 1, modes, outer_first)]))
        assert (unprotected, stuck) == (False, False), phases
        total += states
    assert total > 5_000


@pytest.mark.parametrize("outer_first", [False, True])
def test_nor_do_two_jobs_that_hold_the_tables_the_other_way_round(*, outer_first: bool) -> None:
    for phases in (((CLOSED,), (CLOSED,)), ((DATA, CLOSED), (FREE,))):
        for one, other in ((APPEND, APPEND), (REWRITE, ANY)):
            plans = [Plan(0, 1, (one, one), outer_first), Plan(1, 0, (other, other))]
            _, unprotected, stuck = explore(Model(Rules(), phases, plans))
            assert (unprotected, stuck) == (False, False), (phases, plans)


def explored(rules: Rules) -> Iterator[tuple[int, bool, bool]]:
    plans = ((FREE, DATA), *PLANS)
    for phases, modes, outer_first in product(product(plans, plans), MODES, (False, True)):
        yield explore(Model(rules, phases, [Plan(0, 1, modes, outer_first)]))


def test_a_gate_that_shuts_once_lets_a_job_write_while_its_statement_runs() -> None:
    assert any(unprotected for _, unprotected, _ in explored(Rules(shuts_twice=False)))


@pytest.mark.parametrize("rules", [Rules(lets_in=False), Rules(waits_at=False)])
def test_a_gate_that_lets_no_one_in_waits_for_a_job_that_waits_for_it(rules: Rules) -> None:
    assert any(stuck for _, _, stuck in explored(rules))
