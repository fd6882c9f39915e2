"""What follows from a table's changes and its basis: operations, statements, protocol. The only way to SQL: for new
plans, for loaded plans, and under the lease.

Operations become as few commits as Delta allows, sorted by dependency and phase. Delta commits all keys of one SET at
once, and never shares a commit between SET and UNSET (delta-1.0). A key that does not fail concurrent writes keeps a
SET of its own: any other key in it would fail them (delta-1.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tablectl.attributes.base import ChangeTarget, PlannedOperation
from tablectl.attributes.policy import attribute, basis_of
from tablectl.attributes.retention import with_other_key
from tablectl.conflicts.statement_phases import phase_of
from tablectl.conflicts.streaming_readers import ReaderEffect, ReaderStop, stale_handles, stopped_readers, stream_reader
from tablectl.delta.databricks_runtimes import replaces_partitions
from tablectl.delta.names import TableName
from tablectl.delta.protocol import Protocol
from tablectl.model.commit_contents import CommittedTransaction, Kind
from tablectl.model.operations import (
    ClusterBy,
    Operation,
    Repartition,
    ReplacePartitions,
    SetProperties,
    UnsetProperties,
)
from tablectl.model.plan import Basis, Change, Phase, Refusal, Statement, TablePlan, strictest
from tablectl.model.safe_text import LONGEST_VALUE, is_cut
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions


def operations_for(changes: Sequence[Change], basis: Basis) -> tuple[PlannedOperation, ...]:
    """The operations of the changes, in their order. They depend only on the changes and the basis."""
    made = tuple(each for change in changes for each in attribute(change.attribute).act(change, basis))
    made = with_other_key(made, basis)
    return _in_place(made) if basis.partitioned and replaces_partitions(basis.runtime) else made


def _in_place(operations: tuple[PlannedOperation, ...]) -> tuple[PlannedOperation, ...]:
    """One statement instead of a rewrite and a CLUSTER BY: the runtime turns partition columns into clustering columns
    without a rewrite.
    """
    rewrite = next((each for each in operations if each.operation == Repartition(())), None)
    cluster = next((each for each in operations if _clusters(each)), None)
    if rewrite is None or cluster is None:
        return operations
    assert isinstance(cluster.operation, ClusterBy)
    undo = "the removal of the partitions: only a rewrite of the whole table brings them back"
    made = PlannedOperation(
        cluster.change,
        ReplacePartitions(cluster.operation.columns, cluster.operation.automatic),
        needs=tuple(each for each in cluster.needs if each not in rewrite.operation.provides),
        undo_note="; ".join(filter(None, (undo, cluster.undo_note))),
        also=(rewrite.change,),
    )
    return tuple(made if each is cluster else each for each in operations if each is not rewrite)


def _clusters(planned: PlannedOperation) -> bool:
    operation = planned.operation
    return isinstance(operation, ClusterBy) and bool(operation.columns or operation.automatic)


def refusals_for(
    changes: Sequence[Change],
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    basis: Basis | None = None,
    operations: Sequence[PlannedOperation] | None = None,
) -> tuple[Refusal, ...]:
    """The changes that this table cannot take. Each change is checked together with all the others. ``basis`` is that
    of the table, and ``operations`` are those of the changes, if they are known already.
    """
    if live.unknown:
        # No statement is planned for a table of which only the settings are known
        names = ", ".join(live.unknown)
        reason = f"the table asks for the reader feature{'s' * (len(live.unknown) > 1)} {names}, unknown to tablectl"
        fix = "a newer tablectl may know it; until then, change the table yourself or drop the feature"
        return tuple(Refusal(change=change.id, reason=reason, fix=fix) for change in changes)
    basis = basis or basis_of(live, options)
    planned = operations_for(changes, basis) if operations is None else operations
    ids = frozenset(change.id for change in changes)
    target = ChangeTarget(dialect, _properties_after(planned), options, ids, tuple(each.operation for each in planned))
    found: list[Refusal] = []
    for change in changes:
        found += [each.about(change.id) for each in attribute(change.attribute).refusals(change, live, target)]
        consent = _rewrite_refusal([each for each in planned if each.change == change.id], basis)
        found += [consent] if consent else []
    return tuple(dict.fromkeys(found))


def _properties_after(planned: Sequence[PlannedOperation]) -> Mapping[str, str | None]:
    return MappingProxyType(
        {key.lower(): value for each in planned for key, value in each.operation.properties.items()}
    )


def _rewrite_refusal(planned: Sequence[PlannedOperation], basis: Basis) -> Refusal | None:
    """Refuses a change that rewrites all data of the table without the policy's consent, or more than its
    ``max_bytes``.
    """
    limit = basis.options.max_bytes
    for each in planned:
        cost = each.rewrite or each.operation.rewrite(basis)
        if cost is None:
            continue
        if cost.everything and not basis.options.may_rewrite:
            return Refusal(
                change=each.change,
                reason="it rewrites all data of the table",
                fix="consent with `rewrite: allowed`, and limit it with `max_bytes`",
            )
        size = cost.bytes_at_most
        if limit is not None and (size is None or size > limit):
            amount = "an unknown number of" if size is None else f"at most {size:,}"
            reason = f"it rewrites {amount} bytes, and `max_bytes` allows {limit:,}"
            return Refusal(change=each.change, reason=reason, fix="raise `max_bytes`")
    return None


@dataclass(frozen=True, slots=True)
class DerivedTable:
    """Each part is computed once per table and passed on."""

    changes: tuple[Change, ...]
    basis: Basis
    operations: tuple[PlannedOperation, ...]
    """The operations of the changes."""
    statements: tuple[Statement, ...]
    """In run order; none if the table is refused."""
    sent: tuple[Operation, ...]
    """The operation of each statement."""
    before: Protocol
    """The protocol of the basis."""
    after: Protocol
    """The protocol after all statements."""
    dialect: str
    """The dialect of the statements, which decides what an undo can set."""

    def refused(self) -> DerivedTable:
        """The same table without statements."""
        return replace(self, statements=(), sent=(), after=self.before)

    def commits(self) -> Mapping[str, tuple[CommittedTransaction, ...]]:
        """The commits of each statement, by its id."""
        sent = zip(self.statements, self.sent, strict=True)
        return {statement.id: operation.commits(self.basis) for statement, operation in sent}

    def undo(self, table: TableName) -> tuple[str, ...]:
        """The SQL that undoes the changes as far as possible, in run order."""
        return _undo_all(self.operations, table, self.dialect) if self.statements else ()


def derive_table(
    changes: Sequence[Change],
    basis: Basis,
    table: TableName,
    dialect: str,
    operations: tuple[PlannedOperation, ...] | None = None,
) -> DerivedTable:
    """What follows from the changes of a table. ``operations`` are theirs, if they are known already."""
    operations = operations_for(changes, basis) if operations is None else operations
    sent = tuple(_order(operations, basis, table, dialect))
    statements = tuple(statement for statement, _ in sent)
    before = basis.protocol.protocol()
    after = before
    for statement in statements:  # their order matters: a numbered protocol implies more than it names
        after = after.raised(frozenset(statement.effect.features)).lowered(frozenset(statement.effect.drops))
    made = tuple(operation for _, operation in sent)
    return DerivedTable(tuple(changes), basis, operations, statements, made, before, after, dialect)


def refused_table(
    changes: Sequence[Change], basis: Basis, operations: tuple[PlannedOperation, ...], dialect: str
) -> DerivedTable:
    """A table whose changes cannot be made: it has no statements."""
    protocol = basis.protocol.protocol()
    return DerivedTable(tuple(changes), basis, operations, (), (), protocol, protocol, dialect)


def _order(
    operations: Sequence[PlannedOperation], basis: Basis, table: TableName, dialect: str
) -> Iterator[tuple[Statement, Operation]]:
    """The statements of one table in run order, each with its operation."""
    phases = (phase_of(each.operation.commits(basis), basis, dialect).phase for each in operations)
    planned = _settle([_in_phase(each, phase) for each, phase in zip(operations, phases, strict=True)])
    for phase in Phase:
        for group in _groups([each for each in planned if each.phase is phase], basis):
            operation = _merged([each.operation for each in group])
            yield _statement(group, operation, basis, table, dialect), operation


def _undo_all(operations: Sequence[PlannedOperation], table: TableName, dialect: str) -> tuple[str, ...]:
    """The SQL that undoes operations, in the order in which it must run. This is not the reverse order of the
    statements.

    If an operation enabled a setting that excludes another one, it must be disabled before the other one returns.
    Therefore UNSET runs first (deletion vectors and symlink manifests, delta-1.3). Columns need their statistics before
    they cluster again.
    """
    undos = [undo for each in operations if (undo := _printable(each, dialect)) is not None]
    kinds: tuple[type[Operation], ...] = (UnsetProperties, SetProperties)
    merged = [_merged(same) for kind in kinds if (same := [each for each in undos if isinstance(each, kind)])]
    rest = [each for each in reversed(undos) if not isinstance(each, kinds)]
    return tuple(each.sql(table) for each in [*merged, *rest])


def _settle(operations: list[PlannedOperation]) -> list[PlannedOperation]:
    """Dependencies take precedence over phases: an operation never runs before what it needs, so it moves to the later
    phase.
    """
    while True:
        settled = [
            _in_phase(each, strictest(each.phase, *(other.phase for other in operations if _needs(each, other))))
            for each in operations
        ]
        if settled == operations:
            return operations
        operations = settled


def _in_phase(planned: PlannedOperation, phase: Phase) -> PlannedOperation:
    return planned if planned.phase is phase else replace(planned, phase=phase)


def _needs(one: PlannedOperation, other: PlannedOperation) -> bool:
    wanted = {key.lower() for key in one.needs}
    return other is not one and any(each.lower() in wanted for each in other.operation.provides)


def _groups(operations: list[PlannedOperation], basis: Basis) -> Iterable[list[PlannedOperation]]:
    """Groups the operations of a phase into statements, in run order: properties, a backfill, operations that depend on
    them, dropped features. A backfill commits every file again: only changes that need it wait for it.

    A copy beside the table comes first, if it needs none of the others: it is made before the gate shuts, and it would
    start again if properties changed meanwhile.
    """
    alone = [each for each in operations if each.operation.backfill(basis)]
    both = [each for each in operations if isinstance(each.operation, SetProperties) and each not in alone]
    late = [each for each in both if any(_needs(each, other) for other in alone)]
    sets = [each for each in both if each not in late]
    unsets = [each for each in operations if isinstance(each.operation, UnsetProperties)]
    rest = [each for each in operations if not isinstance(each.operation, SetProperties | UnsetProperties)]
    rest.sort(key=lambda each: each.operation.turn)
    copies = [each for each in rest if _copies(each, basis) and not any(_needs(each, other) for other in operations)]
    rest = [each for each in rest if each not in copies]
    yield from ([each] for each in copies)
    unset_first = any(_needs(one, other) for one in sets for other in unsets)
    yield from (group for group in ((unsets, sets) if unset_first else (sets, unsets)) if group)
    yield from ([replace(each, id=f"{each.phase}-backfill")] for each in alone)
    if late:
        yield [replace(each, id=f"{each.phase}-set-after") for each in late]
    yield from ([each] for each in rest)


def _copies(planned: PlannedOperation, basis: Basis) -> bool:
    rewrite = planned.operation.rewrite(basis)
    return rewrite is not None and rewrite.copies


def statement_of(planned: PlannedOperation, basis: Basis, table: TableName, dialect: str) -> Statement:
    """The statement of one operation that belongs to no change, in the phase that its commits ask for."""
    phase = phase_of(planned.operation.commits(basis), basis, dialect).phase
    return _statement([replace(planned, phase=phase)], planned.operation, basis, table, dialect)


def _statement(
    group: list[PlannedOperation], operation: Operation, basis: Basis, table: TableName, dialect: str
) -> Statement:
    commits = operation.commits(basis)
    verdict = phase_of(commits, basis, dialect)
    backfill = operation.backfill(basis)
    batches = {Kind.BACKFILL: backfill.commits_at_most} if backfill else {}
    first = group[0]
    later = "" if verdict.phase is first.phase else "; runs in this phase because it depends on an earlier statement"
    return Statement(
        id=first.id or f"{first.phase}-{operation.word}",
        verb=operation.verb,
        sql=operation.sql(table),
        phase=first.phase,
        reason=verdict.reason + later,
        evidence=operation.evidence(dialect),
        only_if="vectors remain" if first.only_if_vectors else "",
        due=first.due,
        serves=tuple(dict.fromkeys(name for each in group for name in (each.change, *each.also))),
        effect=operation.effect(basis),
        fails=verdict.fails if commits else _documented(operation) or verdict.fails,
        commits=tuple(commit.kind for commit in commits for _ in range(batches.get(commit.kind, 1))),
        readers=stopped_readers(commits, dialect),
        implies=operation.implied(basis),
        stale_handles=stale_handles(commits),
        rewrite=first.rewrite or operation.rewrite(basis),
        backfill=backfill,
        repartition=operation.partition_columns,
        undo=tuple(undo.sql(table) for undo in _undo(group, dialect)),
        undo_note="; ".join(dict.fromkeys(note for each in group for note in _notes(each, dialect))),
        lost=tuple(each.change for each in group if each.loses or any(_losses(each, dialect))),
    )


def _documented(operation: Operation) -> str:
    """Who fails by the documentation of a statement that makes no commit; empty if none says."""
    capability = operation.form and operation.form.capability
    return capability.fails if capability else ""


def _merged(operations: list[Operation]) -> Operation:
    sets = {key: value for each in operations if isinstance(each, SetProperties) for key, value in each.values}
    if sets:
        return SetProperties(tuple(sorted(sets.items())))
    keys = {key for each in operations if isinstance(each, UnsetProperties) for key in each.keys}
    return UnsetProperties(tuple(sorted(keys))) if keys else operations[0]


def _printable(planned: PlannedOperation, dialect: str) -> Operation | None:
    """The operation that undoes one; ``None`` if none can."""
    return None if any(_losses(planned, dialect)) else planned.undo


def _losses(planned: PlannedOperation, dialect: str) -> Iterator[str]:
    """What the undo cannot bring back, although it should."""
    if planned.undo and (why := planned.undo.refused_by(dialect)):
        yield f"the new value: {why} again"
    values = planned.undo.values if isinstance(planned.undo, SetProperties) else ()
    for key in (key for key, value in values if is_cut(value)):
        yield f"the loss of the value of {key}: it has more than {LONGEST_VALUE:,} characters, so no undo is printed"


def _notes(planned: PlannedOperation, dialect: str) -> Iterator[str]:
    if planned.undo_note:
        yield planned.undo_note
    yield from _losses(planned, dialect)


def _undo(group: list[PlannedOperation], dialect: str) -> list[Operation]:
    undos = [undo for each in group if (undo := _printable(each, dialect)) is not None]
    sets: list[Operation] = [undo for undo in undos if isinstance(undo, SetProperties)]
    unsets: list[Operation] = [undo for undo in undos if isinstance(undo, UnsetProperties)]
    rest = [undo for undo in undos if not isinstance(undo, SetProperties | UnsetProperties)]
    return [_merged(each) for each in (unsets, sets) if each] + rest


@dataclass(frozen=True, slots=True)
class StreamStop:
    """A statement that stops every query that reads the table."""

    statement: Statement
    stop: ReaderStop


def stops_of(table: TablePlan, dialect: str) -> tuple[StreamStop, ...]:
    """The statements that stop a query without schema tracking, in the order of the plan."""
    made = derive_table(table.changes, table.basis, table.table, dialect).commits()
    stops = ((each, stream_reader(made[each.id], dialect)) for each in table.statements if each.id in made)
    return tuple(StreamStop(each, stop) for each, stop in stops if stop.effect is not ReaderEffect.GOES_ON)


def stopped_streams(table: TablePlan, dialect: str) -> tuple[str, ...]:
    """The names of the declared streams that the statements stop."""
    names = table.basis.options.stream_names
    return names if names and stops_of(table, dialect) else ()
