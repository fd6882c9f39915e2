"""Advice on jobs that conflict: partitioning, explicit conditions, isolation, deletion vectors, blind appends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from tablectl.delta.dialects import dialect_of
from tablectl.delta.schema import Field
from tablectl.insight.advice.advice_records import LEAST_WRITES, Advice, Declared, TableFacts, confidence_of, enough
from tablectl.insight.advice.conflict_loss import ConflictLoss, Layout, conflict_loss
from tablectl.insight.advice.jobs import Job, Jobs
from tablectl.insight.conflict_context import LEVEL, VECTORS, ConflictContext
from tablectl.model.commit_contents import Kind
from tablectl.model.safe_text import size_text

_MOST_PARTITIONS = 1000
_FEW_PARTITIONS = 100
"""So many directories do no harm, however small they are."""
_MOST_COLUMNS = 3
"""Columns whose statistics are read."""
_MOST_UPDATES = 20
"""UPDATE commits that are searched for a change of the column."""
_MOST = 0.9
_BUSY = 0.2
"""The share of the time that rewriting jobs run, from which on failed writes are to be expected."""
_WEEK = 7 * 86_400.0
_PAIRS = 3
_NOT_HIGH = 299
"""Observations without a listing: the confidence is medium at most."""
_SMALL_PARTITION = 128_000_000
_COMPUTED = (
    "past writes replayed against each other by the conflict rules; arrivals by the hour x durations; "
    "the same again as advised"
)
_TYPES = frozenset({"boolean", "byte", "date", "integer", "long", "short", "string"})
"""Types of partition columns."""


Check = Callable[[Advice], Advice | str]
"""Returns the advice with its price; or why it is impossible, empty if the policy declares it already."""


@dataclass(frozen=True, slots=True)
class _Found:
    """The conflicts of a table, as it is or after some advice."""

    facts: TableFacts
    jobs: Jobs
    layout: Layout
    context: ConflictContext
    base: ConflictLoss
    factor: float
    """By how much the files without a commit correct the computed loss."""
    taken: tuple[str, ...] = ()
    """The codes of the advice that it follows."""

    def after(
        self, *, layout: Layout | None = None, context: ConflictContext | None = None, jobs: Jobs | None = None
    ) -> _Found:
        """The conflicts that another layout, other settings or other jobs would leave."""
        next_ = replace(self, jobs=jobs or self.jobs, layout=layout or self.layout, context=context or self.context)
        return replace(next_, base=conflict_loss(next_.jobs, next_.layout, next_.context).times(self.factor))

    def saved(self, after: _Found) -> float:
        """The seconds a week that this saves."""
        return self.base.seconds - after.base.seconds

    def advice(
        self,
        code: str,
        title: str,
        after: _Found | None = None,
        *,
        declare: tuple[Declared, ...] = (),
        do: str = "",
        cost: tuple[str, ...] = (),
    ) -> tuple[Advice, _Found]:
        """An advice with the conflicts after it; without ``after``, none are left."""
        saved = self.saved(after) if after else self.base.seconds
        measured = self.facts.past.unnamed is not None
        observed = sum(len(job.writes) for job in self.jobs.jobs if job.rewrites)
        advice = Advice(
            code=code,
            title=title,
            declare=declare,
            do=do,
            evidence=tuple(_evidence(self)),
            benefit="writer-seconds a week",
            amount=saved,
            leaves=max(self.base.seconds - saved, 0.0),
            cost=cost,
            observations=observed,
            confidence=confidence_of(observed if measured else min(observed, _NOT_HIGH), self.jobs.period.seconds),
            computed=_COMPUTED
            + ("; corrected by the files that no commit names" if measured else "")
            + (f"; what {' and '.join(self.taken)} saves is not counted again" if self.taken else ""),
        )
        return advice, after or self


_Option = tuple[Advice, _Found]


def conflict_advice(facts: TableFacts, check: Check) -> tuple[list[Advice], list[str]]:
    """The advice on conflicts, and what is unknown.

    The best is taken first. Each further one counts only what it saves besides: savings add up to at most what the jobs
    lose.
    """
    if facts.jobs is None or not facts.jobs.jobs or facts.jobs.weeks <= 0:
        return [], []
    jobs, layout = facts.jobs, Layout.of(facts.live, facts.jobs)
    model = conflict_loss(jobs, layout, facts.context)
    factor = _factor(facts, jobs, model)
    found = _Found(facts, jobs, layout, facts.context, model.times(factor), factor)
    rewrites = sum(len(job.writes) for job in jobs.jobs if job.rewrites)
    if rewrites < LEAST_WRITES:
        return [], []
    if not enough(found.base.seconds, jobs):
        return [], _untold(facts, jobs, model)
    given: list[Advice] = []
    tried: dict[str, str] = {}
    impossible: list[str] = []
    refused: set[str] = set()
    while True:
        partitions, unknown = _partition(found)
        impossible += unknown if not found.taken else []
        options = [*partitions, *(each for make in (_explicit, _isolation, _row_level, _blind) for each in make(found))]
        options = [each for each in options if each[0].code not in {*refused, *found.taken}]
        tried |= {advice.code: f"{advice.title} saves {advice.amount:,.0f}" for advice, _ in options}
        advice, after = max(options, key=lambda each: each[0].amount, default=(None, found))
        if advice is None or not enough(advice.amount, jobs):
            break
        checked = check(advice)
        if isinstance(checked, str) and checked:
            impossible.append(checked)
            refused.add(advice.code)
            continue
        given += [] if isinstance(checked, str) else [checked]
        found = replace(after, taken=(*found.taken, advice.code))
    if given or found.taken:
        return given, impossible
    told = [text for code, text in tried.items() if code not in refused]
    return [_apart(found, [*impossible, *told])], []


def _untold(facts: TableFacts, jobs: Jobs, model: ConflictLoss) -> list[str]:
    """A log in which all writes succeed looks calm, also where most of them fail."""
    busy = sum(job.seconds for job in jobs.jobs if job.rewrites) / max(jobs.period.seconds, 1.0)
    if facts.past.unnamed is not None or not model.conflicting or busy < _BUSY:
        return []
    why = "jobs of this table conflict if they run at the same time, and failed writes leave no commit"
    return [f"{why}: how many failed is unknown without --list-files"]


def failed_attempts(facts: TableFacts, jobs: Jobs) -> float | None:
    """The number of failed writes a week by the files that no commit names; ``None`` if the table was not listed."""
    unnamed = facts.past.unnamed
    if unnamed is None or unnamed.seconds <= 0:
        return None
    written = [write.files.added_files for job in jobs.jobs if job.rewrites for write in job.writes]
    usual = sum(written) / len(written) if written else 1.0
    return unnamed.files / max(usual, 1.0) * _WEEK / unnamed.seconds


def _factor(facts: TableFacts, jobs: Jobs, model: ConflictLoss) -> float:
    measured = failed_attempts(facts, jobs)
    return 1.0 if measured is None or model.failed <= 0 else measured / model.failed


def _evidence(found: _Found) -> Iterator[str]:
    jobs, unnamed = found.jobs, found.facts.past.unnamed
    for name in list(dict.fromkeys(pair.failing for pair in found.base.pairs))[:_PAIRS]:
        pairs = [pair for pair in found.base.pairs if pair.failing == name]
        others = ["itself" if pair.committing == name else pair.committing for pair in pairs]
        more = f" and {len(others) - _PAIRS} more" if len(others) > _PAIRS else ""
        failed, seconds = sum(pair.failed for pair in pairs), sum(pair.seconds for pair in pairs)
        yield (
            f"{name}: {failed:,.1f} failed writes a week, {seconds:,.0f} s of work, "
            f"because of {'; '.join(others[:_PAIRS])}{more}"
        )
    days = jobs.period.seconds / 86_400
    yield f"{jobs.writes:,} writes by {len(jobs.jobs)} job{'s' * (len(jobs.jobs) != 1)} in {days:.1f} days"
    if unnamed is not None:
        yield f"{unnamed.files:,} data files that no commit names, {size_text(unnamed.bytes)}"
    else:
        yield "computed from writes that succeeded: --list-files also counts what failed writes left behind"


def _apart(found: _Found, tried: Sequence[str]) -> Advice:
    """What is left if no setting of the table ends the conflicts."""
    often = {job.name: job for job in found.jobs.jobs if len(job.writes) > 1}
    names = dict.fromkeys(name for pair in found.base.pairs for name in (pair.failing, pair.committing))
    jobs = [often[name] for name in names if name in often][: 2 * _PAIRS]
    streams = "; ".join(job.name for job in jobs if job.writes[0].commit.transactions)
    batch = "; ".join(job.name for job in jobs if not job.writes[0].commit.transactions)
    do = [f"schedule apart, or in one workflow: {batch}"] if batch else []
    if streams:
        do.append(f"{streams} never ends: start it with Trigger.AvailableNow when the others do not run")
    weak = found.saved(found.after(context=found.context.with_property(LEVEL, "WriteSerializable")))
    if found.context.level == "Serializable" and enough(weak, found.jobs):
        do.append(
            f"WriteSerializable would save {weak:,.0f} of these seconds: Delta Spark obeys it if another client sets it"
        )
    advice, _ = found.advice(
        "A01",
        "run these jobs one after the other: no setting is known to end their conflicts here",
        do="; ".join(do),
        cost=("each waits for the others",),
    )
    return replace(
        advice, evidence=(*advice.evidence, f"tried: {'; '.join(tried) or 'no setting of a policy applies'}")
    )


def _partition(found: _Found) -> tuple[list[_Option], list[str]]:
    """Partitions by the column that most conflicting jobs restrict to literals, if the table has none; and why not."""
    live = found.facts.live
    if found.layout.columns:
        return [], []
    names = {name for pair in found.base.pairs for name in (pair.failing, pair.committing)}
    rewriting = [job for job in found.jobs.jobs if job.rewrites and job.name in names]
    candidates: list[tuple[float, str, Field, _Found]] = []
    for column in dict.fromkeys(column for job in rewriting for column in job.columns):
        field = found.facts.field(column)
        restricting = (
            sum(bool(each.values(column)) for each in job.writes) >= _MOST * len(job.writes) for job in rewriting
        )
        if field is None or field.type not in _TYPES or not any(restricting):
            continue
        layout = replace(Layout.assumed_by(column, found.jobs), files=live.files or 0)
        after = found.after(layout=layout)
        if len(layout.known) > 1 and enough(saved := found.saved(after), found.jobs):
            candidates.append((saved, column, field, after))
    untold: list[str] = []
    for saved, column, field, after in sorted(candidates, key=lambda each: (-each[0], each[1]))[:_MOST_COLUMNS]:
        known = found.facts.values(field, _updates(rewriting, column))
        why_not = _too_many(field.name, known.most, live.bytes or 0)
        if known.changed:
            why_not = f"jobs change {field.name}: rows would move between partitions, and conflict there"
        if known.most is not None and not why_not:
            return [_partitioned(found, after, field.name, known.most)], untold
        untold.append(f"partitions by {field.name} would save {saved:,.0f} writer-seconds a week, but {why_not}")
    return [], untold


def _updates(jobs: Sequence[Job], column: str) -> dict[int, frozenset[str]]:
    """The literals of the newest UPDATE commits, by version."""
    writes = (write for job in jobs if job.kind is Kind.UPDATE for write in job.writes if write.values(column))
    newest = sorted(writes, key=lambda each: -each.commit.version)[:_MOST_UPDATES]
    return {each.commit.version: each.values(column) for each in newest}


def _too_many(column: str, most: int | None, size: int) -> str:
    """Why a column has too many values for partitions, as far as known; empty if it has not."""
    ask = f"each value is a directory: ask for count(DISTINCT {column})"
    if most is None:
        return f"how many values {column} has is unknown, because not all files have statistics of it, and {ask}"
    if most > _MOST_PARTITIONS:
        return f"the statistics of the files allow more than {_MOST_PARTITIONS:,} values of {column}, and {ask}"
    if most > _FEW_PARTITIONS and size // most < _SMALL_PARTITION:
        return f"with up to {most:,} values the partitions would have about {size_text(size // most)}: small files"
    return ""


def _partitioned(found: _Found, after: _Found, name: str, most: int) -> _Option:
    least = found.saved(found.after(layout=replace(after.layout, moving=True)))
    moved = f"saves {max(least, 0.0):,.0f} a week if one does; what an UPDATE or MERGE sets is not in the log"
    cost = [
        f"only if no job sets {name}, because its rows would move between partitions: {moved}",
        f"up to {most:,} partitions by the statistics: readers that search by other columns open more files",
    ]
    if found.facts.live.clustering:
        cost.append("ends liquid clustering: a table has either")
    return found.advice(
        "A02",
        f"partition by {name}: the conditions of these jobs restrict it to different values",
        after,
        declare=(("rewrite", "", "allowed"), ("partitioning", "", (name,))),
        cost=tuple(cost),
    )


def _explicit(found: _Found) -> Iterator[_Option]:
    """Jobs that touch few partitions, but whose conditions do not say so."""
    layout = found.layout
    if not layout.columns or layout.assumed or len(layout.known) < 2:
        return
    wide = [
        job for job in found.jobs.jobs if job.rewrites and all(layout.admitted(each) is None for each in job.writes)
    ]
    if wide:
        columns, names = ", ".join(layout.columns), "; ".join(job.name for job in wide[:_PAIRS])
        after = found.after(layout=replace(layout, explicit=frozenset(job.name for job in wide)))
        yield found.advice(
            "A03",
            f"name the partitions in the conditions of {names}",
            after,
            do=f"add a condition on {columns} with literals to these statements: Delta then knows the partitions that "
            "they read (docs/partitioning.md)",
            cost=("a change of these jobs",),
        )


def _isolation(found: _Found) -> Iterator[_Option]:
    context = found.context
    settable = dialect_of(found.facts.dialect).settable_levels
    if "WriteSerializable" not in settable or context.level != "Serializable" or context.stored_level is None:
        return
    after = found.after(context=context.with_property(LEVEL, "WriteSerializable"))
    yield found.advice(
        "A04",
        "WriteSerializable, if no reader needs the history in the order of commits",
        after,
        declare=(("isolation", "", "WriteSerializable"),),
        cost=("the history may show an order of writes that never was; keep Serializable for ledgers",),
    )


def _row_level(found: _Found) -> Iterator[_Option]:
    context = found.context
    if dialect_of(found.facts.dialect).runtime is None or found.layout.columns or context.vectors:
        return
    after = found.after(context=context.with_property(VECTORS, "true"))
    yield found.advice(
        "A05",
        "deletion vectors, so that Databricks resolves conflicts row by row",
        after,
        declare=(("deletion_vectors", "", "enabled"),),
        cost=("readers need deletion vectors; Databricks Runtime 14.3 or newer is needed for the writers",),
    )


def _blind(found: _Found) -> Iterator[_Option]:
    """Appends whose commits do not say that they read nothing."""
    appends = [
        job
        for job in found.jobs.jobs
        if job.kind in {Kind.APPEND, Kind.READING_INSERT} and job.writes[0].commit.blind_append is False
    ]
    if not appends:
        return
    names = {job.name for job in appends}
    jobs = replace(found.jobs, jobs=tuple(_as_blind(job) if job.name in names else job for job in found.jobs.jobs))
    after = found.after(jobs=jobs)
    yield found.advice(
        "A06",
        f"append without reading the table: {'; '.join(sorted(names)[:_PAIRS])}",
        after,
        do="write what was computed elsewhere, with a client that records blind appends (Delta Spark), so that "
        "concurrent writes do not count these appends as reads of the table",
        cost=("a change of these jobs",),
    )


def _as_blind(job: Job) -> Job:
    writes = tuple(
        replace(
            each,
            kind=Kind.APPEND,
            files=replace(each.files, commit=replace(each.files.commit, blind_append=True)),
        )
        for each in job.writes
    )
    return replace(job, kind=Kind.APPEND, writes=writes)
