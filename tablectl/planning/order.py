"""Turns actions into the statements of a table: merged into as few commits as Delta allows, sorted by dependency and
phase.

Delta commits all keys of one SET at once, and never shares a commit between SET and UNSET (delta-1.0). A key that does
not fail concurrent writes keeps a SET of its own: any other key in it would fail them (delta-1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from tablectl.attributes.base import Action, Step
from tablectl.conflicts.stale_handles import stale_handles
from tablectl.conflicts.statement_phases import phase_of
from tablectl.conflicts.streaming_readers import stopped_readers
from tablectl.delta.databricks_runtimes import for_form
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.commits import CommittedTransaction, Kind
from tablectl.model.operations import Operation, SetProperties, UnsetProperties, render
from tablectl.model.plan import Basis, Phase, Statement, strictest
from tablectl.model.statement_forms import UNVERIFIED, form_of
from tablectl.model.text import LONGEST_VALUE, is_cut


@frozen
class _Unit:
    """A step with its phase and the change it serves."""

    step: Step
    change: str
    phase: Phase


def order(actions: Sequence[Action], basis: Basis, table: TableName, dialect: str) -> tuple[Statement, ...]:
    """The statements of one table, in run order."""
    units = _settle(_units(actions, basis, dialect))
    statements = []
    for phase in Phase:
        here = [unit for unit in units if unit.phase is phase]
        statements += [_statement(group, phase, basis, table, dialect) for group in _groups(here)]
    return tuple(statements)


def commits_by_statement(
    actions: Sequence[Action], basis: Basis, dialect: str
) -> Mapping[str, tuple[CommittedTransaction, ...]]:
    """The commits of each statement of ``order``, by the id of the statement."""
    units = _settle(_units(actions, basis, dialect))
    found: dict[str, tuple[CommittedTransaction, ...]] = {}
    for phase in Phase:
        for group in _groups([unit for unit in units if unit.phase is phase]):
            operation = _merged([unit.step.operation for unit in group])
            found[_id(group, phase, operation)] = operation.commits(basis)
    return found


def undo_order(actions: Sequence[Action], table: TableName) -> tuple[str, ...]:
    """The SQL that undoes actions, in the order in which it must run. This is not the reverse order of the statements.

    If an action enabled a setting that excludes another one, it must be disabled before the other one returns.
    Therefore UNSET runs first (deletion vectors and symlink manifests, delta-1.3). Columns need their statistics before
    they cluster again.
    """
    steps = (step for action in actions for step in action.steps)
    undos = [undo for step in steps if (undo := _printable(step)) is not None]
    kinds: tuple[type[Operation], ...] = (UnsetProperties, SetProperties)
    merged = [_merged(same) for kind in kinds if (same := [each for each in undos if isinstance(each, kind)])]
    rest = [each for each in reversed(undos) if not isinstance(each, kinds)]
    return tuple(render(each, table) for each in [*merged, *rest])


def _units(actions: Sequence[Action], basis: Basis, dialect: str) -> list[_Unit]:
    return [
        _Unit(step, action.change.id, phase_of(step.operation.commits(basis), basis, dialect).phase)
        for action in actions
        for step in action.steps
    ]


def _settle(units: list[_Unit]) -> list[_Unit]:
    """Dependencies take precedence over phases: a step never runs before what it needs, so it moves to the
    later phase.
    """
    while True:
        settled = [replace(unit, phase=strictest(unit.phase, *_needed_phases(unit, units))) for unit in units]
        if settled == units:
            return units
        units = settled


def _needed_phases(unit: _Unit, units: list[_Unit]) -> list[Phase]:
    return [other.phase for other in units if _needs(unit, other)]


def _needs(unit: _Unit, other: _Unit) -> bool:
    wanted = {key.lower() for key in unit.step.needs}
    return other is not unit and any(each.lower() in wanted for each in other.step.operation.provides)


def _groups(units: list[_Unit]) -> Iterable[list[_Unit]]:
    """Groups the units of a phase into statements, in run order: properties, operations that depend on them, dropped
    features.
    """
    sets = [unit for unit in units if isinstance(unit.step.operation, SetProperties)]
    unsets = [unit for unit in units if isinstance(unit.step.operation, UnsetProperties)]
    rest = [unit for unit in units if not isinstance(unit.step.operation, SetProperties | UnsetProperties)]
    rest.sort(key=lambda unit: unit.step.operation.turn)
    unset_first = any(_needs(unit, other) for unit in sets for other in unsets)
    yield from (group for group in ((unsets, sets) if unset_first else (sets, unsets)) if group)
    yield from ([unit] for unit in rest)


def _statement(group: list[_Unit], phase: Phase, basis: Basis, table: TableName, dialect: str) -> Statement:
    operation = _merged([unit.step.operation for unit in group])
    commits = operation.commits(basis)
    verdict = phase_of(commits, basis, dialect)
    backfill = operation.backfill(basis)
    batches = {Kind.BACKFILL: backfill.commits_at_most} if backfill else {}
    first = group[0].step
    later = "" if verdict.phase is phase else "; runs in this phase because it depends on an earlier statement"
    return Statement(
        id=_id(group, phase, operation),
        verb=operation.verb,
        sql=render(operation, table),
        phase=phase,
        reason=verdict.reason + later,
        evidence=_evidence(operation, table, dialect),
        only_if="vectors remain" if first.only_if_vectors else "",
        due=first.due,
        serves=tuple(dict.fromkeys(name for unit in group for name in (unit.change, *unit.step.also))),
        effect=operation.effect(basis),
        fails=verdict.fails if commits else _documented(operation, table) or verdict.fails,
        commits=tuple(commit.kind for commit in commits for _ in range(batches.get(commit.kind, 1))),
        readers=stopped_readers(commits),
        implies=operation.implied(basis),
        stale_handles=stale_handles(commits),
        rewrite=first.rewrite or operation.rewrite(basis),
        backfill=backfill,
        repartition=operation.partition_columns,
        undo=tuple(render(undo, table) for undo in _undo(group)),
        undo_note="; ".join(dict.fromkeys(note for unit in group for note in _notes(unit.step))),
    )


def _evidence(operation: Operation, table: TableName, dialect: str) -> Literal["", "documented, not verified here"]:
    """Whether tests of tablectl run such a statement. A DataFrame write has no form."""
    if operation.partition_columns is not None:
        return "" if dialect_of(dialect).rewrite_measured else UNVERIFIED
    return form_of(render(operation, table)).evidence(dialect)


def _documented(operation: Operation, table: TableName) -> str:
    """Who fails by the documentation of a statement that makes no commit; empty if the table of runtimes has it not."""
    return "; ".join(each.fails for each in for_form(form_of(render(operation, table)).id))


def _id(group: list[_Unit], phase: Phase, operation: Operation) -> str:
    return group[0].step.id or f"{phase}-{operation.word}"


def _merged(operations: list[Operation]) -> Operation:
    sets = {key: value for each in operations if isinstance(each, SetProperties) for key, value in each.values}
    if sets:
        return SetProperties(tuple(sorted(sets.items())))
    keys = {key for each in operations if isinstance(each, UnsetProperties) for key in each.keys}
    return UnsetProperties(tuple(sorted(keys))) if keys else operations[0]


def _printable(step: Step) -> Operation | None:
    """The operation that undoes a step; ``None`` if it would set a value of which only a digest is known."""
    return None if _lost(step) else step.undo


def _lost(step: Step) -> list[str]:
    """The properties whose old values are too long for a plan."""
    values = step.undo.values if isinstance(step.undo, SetProperties) else ()
    return [key for key, value in values if is_cut(value)]


def _notes(step: Step) -> Iterator[str]:
    if step.undo_note:
        yield step.undo_note
    for key in _lost(step):
        yield f"the loss of the value of {key}: it has more than {LONGEST_VALUE:,} characters, so no undo is printed"


def _undo(group: list[_Unit]) -> list[Operation]:
    undos = [undo for unit in group if (undo := _printable(unit.step)) is not None]
    sets: list[Operation] = [undo for undo in undos if isinstance(undo, SetProperties)]
    unsets: list[Operation] = [undo for undo in undos if isinstance(undo, UnsetProperties)]
    rest = [undo for undo in undos if not isinstance(undo, SetProperties | UnsetProperties)]
    return [_merged(each) for each in (unsets, sets) if each] + rest
