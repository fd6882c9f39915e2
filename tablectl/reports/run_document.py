"""A run as a document: what needs attention first, tables that went equally well together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import groupby
from typing import Literal

from tablectl.documents.document import (
    Bar,
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    Document,
    Facts,
    Fold,
    Grid,
    Heading,
    Listing,
    Mark,
    Paragraph,
    Picture,
    Row,
    Timeline,
    TimelineEvent,
    Tone,
    overview_of,
)
from tablectl.documents.style import plural
from tablectl.model.expected_loss import ExpectedLoss
from tablectl.model.plan import Change, TablePlan
from tablectl.model.run_report import (
    CanaryRun,
    CanaryTable,
    CommitRun,
    GateRun,
    QuietStart,
    RunOutcome,
    RunReport,
    StatementRun,
    TableRun,
)
from tablectl.model.safe_text import listed, minutes_text, natural_key, read_code, time_text, value_text
from tablectl.reports.plan_document import failure_card
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import failure_groups
from tablectl.reports.wording import (
    GOOD,
    commit_text,
    late_text,
    outcome_text,
    risk_text,
    run_parts,
    run_verdict,
    span_text,
)

_MOST_NAMES = 10
_MARGIN = 0.05
"""The share of the picture that stays empty on either side."""
_NEAR = 5.0
"""Percent of the width below which the labels of two marks would overlap."""
_MARKS = {RunOutcome.APPLIED: "+", RunOutcome.ALREADY: "=", RunOutcome.WAITING: "…"}


def run_document(report: RunReport, context: Context, *, each_table: bool = False) -> Document:
    """The document of a run. With ``each_table``, every table has its own part."""
    failures = failure_groups(report.failures)
    groups = _groups(report.tables, separate=each_table)
    planned = {table.name: table for table in context.plan.tables} if context.plan else {}
    shared = {} if each_table else shared_risks(report.tables)
    unread = (failure_card(each, row=((Cell("not readable", tone="bad"),),)) for each in failures)
    cards = (*unread, *(_card(group, planned, shared) for group in groups))
    return Document(
        subject="Apply",
        verdict=run_verdict(report),
        env=report.env,
        notes=(*_notes(report), *(f"{_some(names)}: {text}" for text, names in shared.items())),
        facts=(
            ("Run", Cell(report.run, code=True)),
            ("Plan", Cell(report.plan[:12], code=True)),
            *((("Took", Cell(span_text(report.took_ms))),) if report.took_ms else ()),
            ("Exit code", Cell(str(int(report.exit_code)))),
        ),
        overview=overview_of(cards, "All tables of the run", ("Tables", "Result")),
        cards=cards,
        summary=tuple(
            Cell(each, tone="pending" if each.endswith("may have failed") else "") for each in run_parts(report)
        ),
    )


def table_run_card(run: TableRun) -> Card:
    """The part of one table."""
    return _card((run,), {})


def _notes(report: RunReport) -> Iterator[str]:
    if report.proceed:
        yield f"Proceeded despite active writers: {report.proceed}"
    if report.override:
        yield f"Override of the calendar: {report.override}"
    if report.canary:
        yield from (note[:1000] for note in canary_texts(report.canary))
    yield from (note[:1000] for note in report.notes[:10])


def _groups(tables: Sequence[TableRun], *, separate: bool) -> list[tuple[TableRun, ...]]:
    """Tables with equal results together: failures first, then by name."""
    found: dict[Hashable, list[TableRun]] = {}
    for index, run in enumerate(sorted(tables, key=lambda each: (each.outcome in GOOD, natural_key(each.name)))):
        found.setdefault(index if separate or _alone(run) else _key(run), []).append(run)
    return [tuple(each) for each in found.values()]


def _alone(run: TableRun) -> bool:
    """Whether there is more to say of a table than what it has in common with others."""
    more = (run.foreign, run.notes, run.later, run.owed, run.streams, run.shut)
    return any(more)


def _key(run: TableRun) -> Hashable:
    """What equal results have in common."""
    message = run.message.replace(run.name, "\0")
    statements = tuple((each.id, each.phase, bool(each.error)) for each in run.statements)
    commits = tuple(each.operation for each in run.commits)
    return run.outcome, message, run.hint, run.changed, run.already, statements, commits, run.possible_failures


def _result(group: Sequence[TableRun]) -> Iterator[Cell]:
    run = group[0]
    if run.message:
        yield Cell(run.message, tone="bad" if run.outcome not in GOOD else "")
    commits = sum(len(each.commits) for each in group)
    if commits:
        yield Cell(plural(commits, "commit"))
    if closed := max(each.window_ms or 0 for each in group):
        yield Cell(f"gate closed for {'at most ' * (len(group) > 1)}{span_text(closed)}")
    if (waited := max(each.drain_ms for each in group)) >= WORTH_TELLING:
        yield Cell(f"waited {'at most ' * (len(group) > 1)}{span_text(waited)} for writers")
    if (paced := max(each.paced_ms for each in group)) >= WORTH_TELLING:
        yield Cell(f"waited {'at most ' * (len(group) > 1)}{span_text(paced)} for `window.max_bytes_per_hour`")


def _at_risk(group: Sequence[TableRun]) -> Iterator[Cell]:
    if writers := list(dict.fromkeys(each.writer for run in group for each in run.possible_failures)):
        yield Cell(f"may have failed: {listed(writers, 3)}", tone="pending")


def _some(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'table')} ({listed(names, _MOST_NAMES)})"


def _card(group: tuple[TableRun, ...], planned: dict[str, TablePlan], shared: Collection[str] = ()) -> Card:
    run, good = group[0], group[0].outcome in GOOD
    risky = bool(run.possible_failures)
    tone: Tone = "bad" if not good else "pending" if risky or run.outcome is RunOutcome.WAITING else "good"
    return Card(
        names=tuple(each.name for each in group),
        state=outcome_text(run),
        tone=tone,
        mark="!" if good and risky else _MARKS.get(run.outcome, "x"),
        brief=tuple(_brief(group, shared)),
        details=(*_changes(run, planned), *(_details(run) if len(group) == 1 else _tables(group))),
        row=((*_result(group), *_at_risk(group)),),
    )


def _brief(group: Sequence[TableRun], shared: Collection[str]) -> Iterator[Block]:
    run = group[0]
    said = [("why", run.message), ("hint", run.hint)]
    facts = [(label, text) for label, text in said if text]
    if len(group) == 1:
        facts += _commits(run)
        facts += [("others", commit_text(each)) for each in run.foreign if each.metadata and not each.run]
        data = sum(not each.metadata and not each.run for each in run.foreign)
        facts += [("others", plural(data, "commit") + " of data")] if data else []
        facts += [(label, text) for label, text in remarks(run) if text not in shared]
    elif times := "; ".join(cell.text for cell in _result(group) if cell.text != run.message):
        facts.append(("commits", times))
    if facts:
        yield Facts(tuple(facts))
    failed = [each for each in run.statements if each.error]
    if failed and len(group) == 1:
        yield _listing(failed[-1])


def _changes(run: TableRun, planned: dict[str, TablePlan]) -> Iterator[Block]:
    if run.name in planned:
        yield Changes(tuple(_change(each, run) for each in planned[run.name].changes))


def _commits(run: TableRun) -> list[tuple[str, str]]:
    if not run.commits:
        return []
    text = ", ".join(str(commit.version) for commit in run.commits)
    made, separate = run.metadata_commits, run.separate_commits
    times = [
        (run.window_ms, "gate closed for {}"),
        (run.exposed_ms, "{} from the first blocking commit to the last"),
        (run.rewrite_ms, "rewrote for {}"),
        (run.drain_ms if run.drain_ms >= WORTH_TELLING else 0, "waited {} for writers"),
    ]
    parts = [text + (f" ({made} of metadata instead of {separate})" if separate > made else "")]
    return [("commits", ", ".join([*parts, *(words.format(span_text(spent)) for spent, words in times if spent)]))]


def _change(change: Change, run: TableRun) -> ChangeRow:
    return ChangeRow(change.id, value_text(change.before), value_text(change.after), result=_made(change.id, run))


def _made(change: str, run: TableRun) -> str:
    """The result of a change of the plan."""
    if change in run.later:
        return "applied, then changed by others"
    if change in run.changed:
        return "applied"
    return "unchanged" if change in run.already else "not applied"


def _details(run: TableRun) -> Iterator[Block]:
    line = timeline(run)
    if line.drawn:
        yield Picture(line, run.name)
    if line.events:
        yield _events(line)
    if run.statements:
        yield Heading(f"SQL: {plural(len(run.statements), 'statement')}", style="sql")
        yield from map(_listing, run.statements)


def _events(line: Timeline) -> Fold:
    rows = (Row(((Cell(each.when),), (Cell(each.kind),), (Cell(each.text),))) for each in line.events)
    grid = Grid("Gate, statements and commits", ("When", "What", "Which"), tuple(rows))
    return Fold(f"{plural(len(line.events), 'event')} in order", (grid,))


def _listing(statement: StatementRun) -> Listing:
    facts = [("phase", f"{statement.phase.word}, {span_text(statement.milliseconds)}")]
    facts += [("failed", statement.error)] if statement.error else []
    return Listing((read_code(statement.sql),), tuple(facts))


def _tables(group: Sequence[TableRun]) -> Iterator[Block]:
    rows = (
        Row(
            (
                (Cell(each.name, code=True),),
                (Cell(", ".join(str(commit.version) for commit in each.commits) or "none"),),
                (Cell(span_text(each.window_ms) if each.window_ms else ""),),
            )
        )
        for each in group
    )
    title = f"All {len(group):,} tables"
    yield Fold(title, (Grid(title, ("Table", "Commits", "Gate closed"), tuple(rows)),))
    if group[0].statements:
        yield Paragraph("The statements for the first table; the other tables got the same.")
        yield from map(_listing, group[0].statements)


@dataclass(frozen=True, slots=True)
class _Scale:
    start: int
    end: int

    def place(self, at: int) -> float:
        """The position in percent; moments outside of the range are placed at the edge."""
        length = max(self.end - self.start, 1)
        share = _MARGIN + (1 - 2 * _MARGIN) * (min(max(at, self.start), self.end) - self.start) / length
        return round(100 * share, 3)


def timeline(run: TableRun) -> Timeline:
    """The known events of a table's run. Other writers' clocks may be wrong: invalid times appear only in the table."""
    commits = sorted(((each, True) for each in run.commits), key=_version_of)
    commits += sorted(((each, False) for each in run.foreign), key=_version_of)
    dated = [(each, ours) for each, ours in commits if time_text(each.at)]
    scale = _scale(run, dated)
    return Timeline(
        start=_clock(scale.start),
        end=_clock(scale.end),
        length=span_text(scale.end - scale.start),
        gates=tuple(_gate_bar(each, scale) for each in run.gates),
        statements=tuple(_statement_bar(each, scale) for each in run.statements if time_text(each.at)),
        marks=_marks(dated, scale),
        events=_timeline_events(run, commits),
    )


def _version_of(entry: tuple[CommitRun, bool]) -> int:
    return entry[0].version


def _scale(run: TableRun, dated: list[tuple[CommitRun, bool]]) -> _Scale:
    """From the first to the last event of this run; if there are none, of all commits."""
    own = [moment for gate in run.gates for moment in (gate.since, gate.until)]
    own += [
        moment for each in run.statements if time_text(each.at) for moment in (each.at, each.at + each.milliseconds)
    ]
    own += [commit.at for commit, ours in dated if ours]
    times = own or [commit.at for commit, _ in dated] or [0]
    return _Scale(min(times), max(times))


def _gate_bar(gate: GateRun, scale: _Scale) -> Bar:
    left, right = scale.place(gate.since), scale.place(gate.until)
    return Bar(left, round(right - left, 3), gate.gate, f"{gate.gate} for {span_text(gate.until - gate.since)}")


def _statement_bar(statement: StatementRun, scale: _Scale) -> Bar:
    left, right = scale.place(statement.at), scale.place(statement.at + statement.milliseconds)
    kind = "failed" if statement.error else str(statement.phase)
    return Bar(left, round(right - left, 3), kind, f"{statement.id}: {span_text(statement.milliseconds)}")


def _marks(dated: list[tuple[CommitRun, bool]], scale: _Scale) -> tuple[Mark, ...]:
    made: list[Mark] = []
    last = {True: -_NEAR, False: -_NEAR}
    for commit, ours in sorted(dated, key=lambda each: (each[0].at, each[0].version)):
        left = scale.place(commit.at)
        free = left - last[ours] >= _NEAR
        if free:
            last[ours] = left
        made.append(Mark(left, ours, str(commit.version) if free else "", _commit_title(commit)))
    return tuple(made)


def _commit_title(commit: CommitRun) -> str:
    inside = ", while the gate was closed" if commit.inside else ""
    kind = "metadata" if commit.metadata else "data"
    return (
        f"version {commit.version}: {commit.operation or 'unknown operation'} ({kind}) by {commit.user}"
        f"{inside}{late_text(commit)}"
    )


def _timeline_events(run: TableRun, commits: list[tuple[CommitRun, bool]]) -> tuple[TimelineEvent, ...]:
    found: list[TimelineEvent] = []
    for gate in run.gates:
        text = f"{gate.gate}, for {span_text(gate.until - gate.since)}"
        found.append(TimelineEvent(gate.since, _clock(gate.since), "gate", text))
    for statement in run.statements:
        ended = (
            f"failed after {span_text(statement.milliseconds)}"
            if statement.error
            else span_text(statement.milliseconds)
        )
        text = f"{statement.id} ({statement.phase.word}), {ended}"
        found.append(TimelineEvent(statement.at, _clock(statement.at), "statement", text))
    for commit, ours in commits:
        kind: Literal["commit of this run", "commit of others"] = "commit of this run" if ours else "commit of others"
        found.append(TimelineEvent(commit.at, _clock(commit.at), kind, _commit_title(commit)))
    return tuple(sorted(found, key=lambda each: each.at))


def _clock(at: int) -> str:
    """``2026-11-21 11:00:00.123 UTC``, for a time from another writer's clock."""
    if not time_text(at):
        return "unknown"
    return f"{datetime.fromtimestamp(at // 1000, UTC):%Y-%m-%d %H:%M:%S}.{at % 1000:03} UTC"


_MOST_CANARIES = 10
_MOST_SHARED = 10
WORTH_TELLING = 1000
"""Waits shorter than this, in milliseconds, are not reported."""


def remarks(run: TableRun) -> list[tuple[str, str]]:
    """Which writers may have failed, which came back, and what else people must know."""
    facts = [("quiet moment", _quiet_text(run.quiet))] if run.quiet else []
    if run.paced_ms >= WORTH_TELLING:
        facts.append(("pace", f"waited {span_text(run.paced_ms)} for `window.max_bytes_per_hour`"))
    facts += [("risk", each) for each in risks(run)]
    facts += [("stream", f"{each.name} {each.note}") for each in run.streams]
    facts += [("others", f"version {each.version}{late_text(each)}") for each in run.foreign if each.run]
    facts += [("gate", run.shut)] if run.shut else []
    facts += [
        ("note", f"the after-hook {each} is still owed: the next apply of this table runs it") for each in run.owed
    ]
    facts += [("note", note) for note in run.notes]
    facts += [("note", f"{each} was applied and verified, then changed by others") for each in run.later]
    return facts


def risks(run: TableRun) -> Iterator[str]:
    """Which writers may have failed: one sentence for each reason."""
    for (reason, fails), group in groupby(run.possible_failures, key=lambda each: (each.reason, each.fails)):
        yield risk_text(", ".join(each.writer for each in group), reason, fails)


def shared_risks(runs: Iterable[TableRun]) -> dict[str, list[str]]:
    """The sentences that most tables have in common, each with the names of its tables; none of a single table."""
    found: dict[str, list[str]] = {}
    for run in runs:
        for text in risks(run):
            found.setdefault(text, []).append(run.name)
    most = sorted(found.items(), key=lambda each: -len(each[1]))[:_MOST_SHARED]
    return {text: names for text, names in most if len(names) > 1}


def canary_texts(canary: CanaryRun) -> Iterator[str]:
    """What was seen of the tables that were changed first, one sentence for each, and what was decided."""
    yield from canary.notes
    if canary.watched_ms:
        watched, soak = minutes_text(canary.watched_ms / 1000), minutes_text(canary.soak_ms / 1000)
        yield f"{plural(len(canary.tables), 'table')} changed first and watched for {watched} of {soak}"
    yield from (f"{each.table}: {_canary_text(each)}" for each in canary.tables[:_MOST_CANARIES])
    if len(canary.tables) > _MOST_CANARIES:
        yield f"and {plural(len(canary.tables) - _MOST_CANARIES, 'more table')} changed first: see `--format json`"
    if canary.reason:
        names = ", ".join(canary.not_started[:_MOST_CANARIES])
        more = len(canary.not_started) - _MOST_CANARIES
        left = f"{names}{f' and {more:,} more' if more > 0 else ''}"
        yield f"{plural(len(canary.not_started), 'table')} not started ({left}): {canary.reason}"


def _canary_text(table: CanaryTable) -> str:
    parts = [plural(table.writes, "write") + " since"] if table.writes else []
    parts += [f"{plural(table.orphans, 'data file')} that no commit names"] if table.orphans else []
    parts += [f"{each} is silent for more than twice its usual gap" for each in table.silent]
    parts += [f"{each} has stopped" for each in table.stopped]
    parts += [f"unknown, {each}" for each in table.unknown]
    if table.writes and not (table.suspicious or table.unknown):
        parts.append("no failure seen")
    return "; ".join([*parts, *table.notes]) or "not watched"


def _quiet_text(start: QuietStart) -> str:
    """``expected 0.0 failed writes, 0 s of work; actual: none; waited 132 min``."""
    if start.failed is None or start.seconds is None:
        expected = f"unknown: {start.unknown}; it started because nothing was written for ten minutes"
    else:
        expected = f"expected {ExpectedLoss(start.failed, start.seconds).text()}"
    actual = ""
    if start.actual is not None:
        hit = plural(start.actual, "failed write")
        actual = f"; actual: at most {hit}" if start.actual else "; actual: no failed write"
    waited = f"; waited {start.waited_ms / 60_000:.0f} min" if start.waited_ms >= 60_000 else ""
    free = f"free {start.free}; " if start.free else ""
    return free + expected + actual + waited
