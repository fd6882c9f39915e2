"""Upkeep of one table: what is due, by its policy and its log, and the statements of an upkeep run.

Upkeep never changes a plan: it has no change and no plan file. What is due is decided again under the lease.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from math import ceil
from typing import Any

from tablectl.attributes.base import PlannedOperation
from tablectl.attributes.policy import basis_of
from tablectl.delta import keys
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.model.operations import OptimizeData, VacuumFiles
from tablectl.model.plan import Basis, Phase, ProtocolFact, Rewrite, Statement, TablePlan, UpkeepForecast
from tablectl.model.safe_text import listed, size_text, time_text
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.model.upkeep import (
    FEWEST,
    OptimizePolicy,
    UpkeepFacts,
    UpkeepPolicy,
    UpkeepTask,
    believable,
    is_interval,
    kept_seconds,
)
from tablectl.planning.derive_statements import DerivedTable, statement_of
from tablectl.planning.plan_table import table_loss
from tablectl.support.typed_json import Unwritten

OPTIMIZE = "upkeep.optimize"
VACUUM = "upkeep.vacuum"
_MOST = 5
"""How many tables a message names."""
VACUUM_RISKS = (
    "VACUUM cannot see shallow clones outside of the policies and their folders, queries that run for longer than the "
    "retention, and RESTOREs without a guard (docs/upkeep.md)"
)
_NOT_LOGGED = "no VACUUM is in the log: on S3 Delta records none unless it is asked to"


@dataclass(frozen=True, slots=True)
class ShallowClones:
    """The tables that read files of another one, as far as a look at the known tables tells."""

    names: tuple[str, ...] = ()
    """The shallow clones, by name."""
    unread: tuple[str, ...] = ()
    """Tables that could not be looked at, and why: any of them may be a clone."""
    looked: int = 0
    """How many tables were looked at."""


def no_clones() -> ShallowClones:
    """No table is a clone."""
    return ShallowClones()


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepTable(TablePlan):
    """The statements that are due on one table, in the form in which an apply runs tables."""

    upkeep: UpkeepPolicy
    keeps: str | None = None
    """``retention.deleted_files`` of the policy; ``None`` if it declares none."""
    clones: Unwritten[Callable[[], ShallowClones]] = no_clones
    """Looks for the shallow clones of this table, which read its files."""
    made: Unwritten[Mapping[str, tuple[CommittedTransaction, ...]]] = field(default_factory=dict)
    """The commits of each statement that conflict with writers, by its id."""

    @property
    def target(self) -> int:
        """The size of merged files in bytes."""
        return (self.upkeep.optimize or OptimizePolicy()).target_bytes

    @property
    def applies(self) -> bool:
        """Whether a run does anything here."""
        return bool(self.statements) and not self.refusals


def due_tasks(policy: UpkeepPolicy, live: LiveTable, now: int) -> tuple[UpkeepTask, ...]:
    """Each kind that a policy declares, due or not, at a moment in milliseconds since the epoch."""
    facts = live.upkeep or UpkeepFacts()
    return (*_optimize(policy, live, facts, now), *_vacuum(policy, live, facts, now))


_AT_ANY_TIME = 253_402_300_799_000
"""The last millisecond of the year 9999: by then, every file that was removed is old enough."""


def upkeep_forecasts(policy: UpkeepPolicy, live: LiveTable, kept: str) -> tuple[UpkeepForecast, ...]:
    """What the first run of each declared kind would do, from when on. It depends on the log alone: equal logs give
    equal plans. The files of VACUUM are all that were removed since the last one. ``kept`` is the planned retention.
    """
    found = []
    for each in due_tasks(policy, live, _AT_ANY_TIME):
        vacuum = each.kind == "vacuum"
        how = policy.vacuum if vacuum else policy.optimize
        assert how is not None
        known: dict[str, Any] = {"declared": how.text, "since": each.since, "files": each.files, "bytes": each.bytes}
        found.append(UpkeepForecast(kind=each.kind, kept=kept if vacuum else "", **known))
    return tuple(found)


def _optimize(policy: UpkeepPolicy, live: LiveTable, facts: UpkeepFacts, now: int) -> Iterator[UpkeepTask]:
    if policy.optimize is None:
        return
    size, small, count = facts.bytes, facts.small_bytes, facts.small_files
    share = small / size if size and small is not None else 0.0
    merged = 0 if count is None or small is None else count - ceil(small / policy.optimize.target_bytes)
    left = 0 if count is None else count - facts.added_since
    wanted, every, last = policy.optimize.share, policy.every("optimize"), believable(facts.optimized_at, now)
    due, why, since = False, f"{share:.0%} of its bytes are in {count or 0:,} small files", 0
    if count is None:
        why = "the sizes of its files are unknown: it has too many"
    enough = wanted is not None and share >= wanted
    if enough and 0 < merged < FEWEST:
        why += f", of which OPTIMIZE would save fewer than {FEWEST}"
    if enough and merged >= FEWEST:
        due = True
    elif facts.optimized_by_us and left >= FEWEST and merged >= FEWEST:
        due, why = True, f"the last run did not finish: {left:,} of its small files are left"
    elif every is not None and (count is None or merged > 0):
        since = _elapsed(last, facts, every, now)
        due = now >= since
        told = f"the last OPTIMIZE was at {time_text(last)}" if last else ""
        why += f"; {told or f'no OPTIMIZE in the last {facts.commits:,} commits'}"
    files, bytes_ = (live.files, live.bytes) if live.clustering else (count, small)
    yield UpkeepTask(kind="optimize", due=due, why=why, since=since, last=last, files=files, bytes=bytes_)


def _elapsed(last: int, facts: UpkeepFacts, every: float, now: int) -> int:
    """When a time has passed since the last one, or since the table began; 0 if both are unknown."""
    start = last or (0 if facts.cut else believable(facts.oldest, now))
    return start + round(every * 1000) if start else 0


def _vacuum(policy: UpkeepPolicy, live: LiveTable, facts: UpkeepFacts, now: int) -> Iterator[UpkeepTask]:
    every = policy.every("vacuum")
    if policy.vacuum is None or every is None:
        return
    horizon = now - kept_seconds(live.property(keys.DELETED_FILE_RETENTION)) * 1000
    old = [each for each in facts.removed if each[0] <= horizon]
    files, size = sum(each[1] for each in old), sum(each[2] for each in old)
    done = believable(facts.vacuumed_at, now)
    since = _elapsed(done, facts, every, now)
    much = f" ({size_text(size)})" if size else ""
    least = "at least " if facts.unread else ""
    why = f"commits removed {least}{files:,} files{much} that no reader can need any more, by their metrics"
    if facts.unread and not files:
        why = f"how many files no reader can need any more is unknown: {facts.unread}"
    last = f"the last VACUUM was at {time_text(done)}" if done else "no VACUUM was found"
    notes = [_NOT_LOGGED] if not done and live.location.startswith("s3") else []
    notes += [VACUUM_RISKS] if now >= since else []
    yield UpkeepTask(
        kind="vacuum",
        due=now >= since,
        why=f"{why}; {last}",
        since=since,
        last=done,
        files=None if facts.unread else files,
        bytes=None if facts.unread or (files and not size) else size,
        notes=tuple(notes),
    )


def why_no_vacuum(live: LiveTable, declared: str | None) -> str:
    """Why VACUUM would fail, or delete files that ``retention.deleted_files`` of the policy keeps; empty otherwise."""
    text = live.property(keys.DELETED_FILE_RETENTION)
    if text and not is_interval(text):
        return f"{keys.DELETED_FILE_RETENTION} is {text[:60]!r}, which is not an interval: Delta refuses VACUUM for it"
    if declared is None or kept_seconds(text) >= kept_seconds(None if declared == "default" else declared):
        return ""
    stored = text or "the default, 7 days"
    return f"VACUUM would keep files for {stored}, and the policy's `retention.deleted_files` is {declared}"


def why_read_by_clones(clones: ShallowClones) -> tuple[str, str]:
    """Why VACUUM could delete files that shallow clones read, and what helps; empty texts if no clone is known and all
    tables could be looked at.
    """
    if clones.names:
        hint = "make them tables of their own (CREATE OR REPLACE TABLE … AS SELECT), or leave `vacuum` out"
        return f"shallow clones read files of this table: {listed(clones.names, _MOST)}", hint
    if clones.unread:
        why = f"tables that may be shallow clones of this one cannot be read: {listed(clones.unread, _MOST)}"
        return why, "make them readable or take them away; VACUUM deletes files that a clone reads"
    return "", ""


FIX_RETENTION = "declare `retention.deleted_files` and run `tablectl apply` first, which sets the retention"


def upkeep_table(
    policy: UpkeepPolicy, live: LiveTable, tasks: Iterable[UpkeepTask], dialect: str, options: TableOptions
) -> UpkeepTable:
    """The statements of what is due: OPTIMIZE first, because VACUUM can take hours."""
    basis = basis_of(live, options)
    operations = tuple(_operation(each, policy, basis) for each in tasks if each.due)
    statements = tuple(_beside_all(statement_of(each, basis, live.name, dialect)) for each in operations)
    sent, protocol = tuple(each.operation for each in operations), live.protocol
    derived = DerivedTable((), basis, operations, statements, sent, protocol, protocol, dialect)
    return UpkeepTable(
        name=live.name.text,
        location=live.location,
        table_id=live.table_id,
        version=live.version,
        basis=basis,
        changes=(),
        statements=statements,
        protocol_after=ProtocolFact.of(live.protocol),
        upkeep=policy,
        made=derived.commits(),
        loss=table_loss(derived, live, dialect),
    )


def _beside_all(statement: Statement) -> Statement:
    """VACUUM fails no writer, whatever its client: its commits have no actions. Its gate stops a RESTORE alone."""
    if statement.id != VACUUM:
        return statement
    return replace(statement, phase=Phase.FREE, reason="its commits have no actions", fails="")


def _operation(task: UpkeepTask, policy: UpkeepPolicy, basis: Basis) -> PlannedOperation:
    if task.kind == "vacuum":
        return PlannedOperation(VACUUM, VacuumFiles(), id=VACUUM, undo_note="the deleted files, which no version needs")
    full = basis.clustered and policy.clusters == "full" and basis.options.may_rewrite
    cost = Rewrite(clusters=basis.clustered, vectors=None, files_at_most=task.files, bytes_at_most=task.bytes)
    note = "the rewritten files, with the same rows"
    return PlannedOperation(OPTIMIZE, OptimizeData(full), id=OPTIMIZE, rewrite=cost, undo_note=note)
