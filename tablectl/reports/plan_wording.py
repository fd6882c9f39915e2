"""Wording of plans: the verdict, how many tables have which weight, and what an apply does to writers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from tablectl.documents.document import Verdict, unread_title
from tablectl.documents.style import plural
from tablectl.model.expected_loss import DAYS, WeekOfLoss, hour_of_week, hour_text, quietest_hour, summed
from tablectl.model.plan import Phase, Plan, Statement, TablePlan
from tablectl.model.streams import StreamState, StreamWriter
from tablectl.model.text import size_text
from tablectl.planning.derive_statements import StreamStop, stops_of
from tablectl.reports.groups import LOCKOUT, Group, Weight, first_rewrites
from tablectl.reports.wording import shown_findings
from tablectl.support.frozen import frozen

if TYPE_CHECKING:  # only runs load it
    from tablectl.model.run_report import StreamRun


@frozen
class Part:
    """One entry of a plan's summary."""

    text: str
    bad: bool = False


def weight_counts(groups: Sequence[Group]) -> list[tuple[Weight, int]]:
    """How many tables have which weight, the most important first; no zeros."""
    counts = [(weight, sum(len(each.tables) for each in groups if each.weight is weight)) for weight in Weight]
    return [(weight, count) for weight, count in counts if count]


def plan_parts(plan: Plan, groups: Sequence[Group]) -> list[Part]:
    """How many tables change, by their worst effect; are refused, cannot be read, and stay unchanged. Nothing where no
    table changes.
    """
    refused = sum(bool(table.refusals) for table in plan.tables)
    parts = []
    if changed := _changed(plan):
        weights = ", ".join(
            f"{count} {weight.word_of(count)}"
            for weight, count in weight_counts(groups)
            if weight is not Weight.REFUSED
        )
        parts.append(Part(f"{plural(len(changed), 'table')} to change ({weights}), {_statements(changed)}"))
    if refused:
        parts.append(Part(f"{refused} refused", bad=True))
    if plan.failures:
        parts.append(Part(f"{len(plan.failures)} not readable", bad=True))
    if plan.unchanged and (plan.tables or plan.failures):
        parts.append(Part(f"{len(plan.unchanged)} unchanged"))
    return parts


def todo_text(plan: Plan) -> str:
    """``3 tables to change, 9 statements``; empty if no table changes."""
    changed = _changed(plan)
    return f"{plural(len(changed), 'table')} to change, {_statements(changed)}" if changed else ""


def all_unchanged(plan: Plan) -> str:
    """``2 tables match their policies``, of a plan without anything else."""
    count = len(plan.unchanged)
    if not count:
        return "no tables"
    return "1 table matches its policy" if count == 1 else f"{count} tables match their policies"


def plan_verdict(plan: Plan, groups: Sequence[Group], refused: str = "") -> Verdict:
    """The verdict of a plan. ``refused`` says why the whole plan may not run."""
    parts = tuple(part.text for part in plan_parts(plan, groups))
    if refused:
        return Verdict("bad", "Refused", (refused, *parts))
    todo = bool(_changed(plan))
    if plan.failures:
        return Verdict("bad", unread_title(plan.tables or plan.unchanged), parts)
    if any(table.refusals for table in plan.tables):
        return Verdict("bad", "Refused in part" if todo else "Refused", parts)
    if todo:
        return Verdict("pending", _title(groups), parts)
    return Verdict("good", "No changes", (all_unchanged(plan),))


TITLES: Mapping[Weight, str] = MappingProxyType(
    {
        Weight.LOCKOUT: "Locks out a client",
        Weight.IRREVERSIBLE: "Cannot be undone in full",
        Weight.BLOCKING: "Concurrent writes fail once",
        Weight.PARTIAL: "Rewrites some data",
        Weight.SAFE: "Safe to apply",
    }
)
"""The verdict of a plan by its worst effect."""


def _title(groups: Sequence[Group]) -> str:
    """What matters most about the changes."""
    worst = min(each.weight for each in groups)
    if worst is not Weight.REWRITE:
        return TITLES[worst]
    count = sum(len(each.tables) for each in groups if each.weight is worst)
    lost = sum(len(each.tables) for each in groups if each.lost)  # a rewrite itself can be undone by another one
    cannot = f"; {plural(lost, 'table')} cannot be restored in full by a rollback" if lost else ""
    return f"Rewrites all data of {plural(count, 'table')}{cannot}"


def forecast(plan: Plan) -> list[str]:
    """What applying a plan does to writers without a guard, and what it rewrites: clauses, none without changes."""
    tables = _changed(plan)
    said = []
    if locked := sum(any(each.code == LOCKOUT for each in shown_findings(table)) for table in tables):
        lock = "locks" if locked == 1 else "lock"
        said.append(f"{plural(locked, 'table')} {lock} out a client that writes there: its writes fail from then on")
    if closed := sum(_conflicts(table, Phase.CLOSED) for table in tables):
        said.append(f"{plural(closed, 'table')}: concurrent writes fail once")
    said += _rewritten(tables)
    if tables and not said:
        said.append("concurrent writes continue")
    guarded = ["writers with a guard (`tablectl.guard`) wait and do not fail"]
    return [*said, *(guarded if any("fail once" in each for each in said) else [])]


def _rewritten(tables: Sequence[TablePlan]) -> Iterator[str]:
    """The tables that are rewritten in full, then those that are rewritten in part."""
    rewrites = {table.name: first_rewrites(table.statements) for table in tables}
    for everything, what, most in ((True, "all data", ""), (False, "some data", " or less")):
        found = [each for each in tables if rewrites[each.name] and _everything(each) is everything]
        if not found:
            continue
        sizes = [part.bytes_at_most for each in found for part in rewrites[each.name]]
        known = [size for size in sizes if size is not None]
        size = f" ({size_text(sum(known))}{most})" if len(known) == len(sizes) else ""
        fails = any(_conflicts(table, Phase.REWRITE) for table in found)
        verb = "rewrites" if len(found) == 1 else "rewrite"
        also = ", and concurrent UPDATE/DELETE/MERGE fail once" * fails
        yield f"{plural(len(found), 'table')} {verb} {what}{size}{also}"


def _everything(table: TablePlan) -> bool:
    return any(each.rewrite and each.rewrite.everything for each in table.statements)


def _conflicts(table: TablePlan, phase: Phase) -> bool:
    return any(statement.phase is phase and statement.fails for statement in table.statements)


def _changed(plan: Plan) -> list[TablePlan]:
    return [table for table in plan.tables if table.applies]


def _statements(tables: Sequence[TablePlan]) -> str:
    return plural(sum(len(table.statements) for table in tables), "statement")


_JOBS = 3
_FEW = 30
"""With fewer writes, a plan says how many it knows."""
_NOTHING = 0.05
"""Fewer failed writes are written as 0.0."""
_NO_WRITES = f"no writes in {DAYS} days"


def statement_loss(table: TablePlan, statement: Statement, now: datetime | None) -> str:
    """What a statement of a planned table is expected to cost; empty if it fails no write, or if nothing was read."""
    if table.loss is None or not statement.fails:
        return ""
    if table.loss.unknown:
        return f"unknown: {table.loss.unknown}"
    return _week_text(table.loss.week_of_statement(statement.id), now, observed=table.loss.quietest is not None)


def tables_loss(tables: Sequence[TablePlan], now: datetime | None) -> str:
    """What all statements of some tables are expected to cost; empty if none fails a write, or if nothing was read.

    Of tables some of which have no known writes, the known losses are added up, and the number of the others is said.
    """
    losses = [each.loss for each in tables if each.applies and each.loss is not None]
    known = [each for each in losses if not each.unknown]
    if not known:
        reasons = {each.unknown for each in losses}
        return f"unknown: {reasons.pop() if len(reasons) == 1 else _NO_WRITES}" if reasons else ""
    observed = all(each.quietest is not None for each in known)
    text = _week_text(summed(each.week for each in known), now, observed=observed)
    writes = sum(each.writes for each in known)
    text += f", from {plural(writes, 'write')} in the log" if writes < _FEW else ""
    most = [max((each.failed for each in loss.week), default=0.0) for loss in known]
    if len(known) > 1 and max(most) - min(most) >= _NOTHING:
        text += f"; at most {min(most):.1f} to {max(most):.1f} of a table"
    jobs = tuple(dict.fromkeys(job for each in known for job in each.jobs))
    text += f"; usual runs: {'; '.join(jobs[:_JOBS])}" if jobs else ""
    others = len(tables) - len(known)
    return f"{text}; unknown for {others:,} of the {len(tables):,} tables" if others else text


NO_QUIET_HOUR = "the quietest hour is unknown, because the commits cover less than a day"


def _week_text(week: WeekOfLoss, now: datetime | None, *, observed: bool) -> str:
    if not week:
        return ""
    if not any(each.failed for each in week):
        return "0.0 failed writes: none of the writers in the log fails"
    hour = None if now is None else hour_of_week(now.timestamp())
    said = [f"now ({hour_text(hour)}): {week[hour].text()}"] if hour is not None else []
    if not observed:
        worst = max(week, key=lambda each: each.failed)
        said = said or [f"up to {worst.text()}"]
        return f"{said[0]}; {NO_QUIET_HOUR}"
    quiet = quietest_hour(week, hour or 0)
    if hour is not None and week[hour].failed - week[quiet].failed < _NOTHING:
        return f"{said[0]}; no hour is quieter"
    if hour is None:
        busiest = max(range(len(week)), key=lambda each: week[each].failed)
        said = [f"busiest: {hour_text(busiest)}, {week[busiest].text()}"]
    return f"{said[0]}; quietest: {hour_text(quiet)}, {week[quiet].failed:,.1f}"


_WRITES = "it writes the table and does not read it"


def stream_lines(table: TablePlan, states: Iterable[StreamState], dialect: str) -> tuple[str, ...]:
    """One line for each stream."""
    stops = stops_of(table, dialect)
    effect = _effect(stops) if table.statements else "no statement concerns it"
    return tuple(f"{each.name} {each.text}; {_WRITES if isinstance(each, StreamWriter) else effect}" for each in states)


def _effect(stops: Sequence[StreamStop]) -> str:
    if not stops:
        return "it goes on; with a schemaTrackingLocation, or on Databricks, it may stop once and restart"
    worst = max(stops, key=lambda each: each.stop.effect.rank)
    fix = f"; {worst.stop.fix}" if worst.stop.fix else ""
    return f"{worst.statement.verb} stops it, because {worst.stop.reason}: {worst.stop.effect.value}{fix}"


def stream_run_text(stream: StreamRun) -> str:
    """What became of a stream in a run."""
    return f"{stream.name} {stream.note}"
