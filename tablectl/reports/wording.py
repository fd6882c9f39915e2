"""Wording that all reports share: of phases, statements, expected losses, streams, outcomes, commits and times."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from types import MappingProxyType

from tablectl.delta.databricks_runtimes import RUN_HERE
from tablectl.delta.protocol import Leaves
from tablectl.documents.document import ColourGrid, Shade, Square, Verdict
from tablectl.documents.style import plural
from tablectl.model.errors import ExitCode
from tablectl.model.expected_loss import (
    DAYS,
    WEEKDAYS,
    TableLoss,
    WeekOfLoss,
    failed_text,
    hour_of_week,
    hour_text,
    quietest_hour,
    summed,
)
from tablectl.model.file_layout import ClusteringState
from tablectl.model.plan import (
    Backfill,
    BrokenWriter,
    Change,
    Finding,
    Phase,
    Plan,
    ReaderKind,
    Rewrite,
    Statement,
    TablePlan,
    Value,
)
from tablectl.model.run_report import CommitRun, RunOutcome, RunReport, TableRun
from tablectl.model.safe_text import natural_key, size_text, time_text
from tablectl.model.stream_progress import StreamState, StreamWriter
from tablectl.planning.derive_statements import StreamStop, stops_of

PHASE_EFFECTS: Mapping[Phase, str] = MappingProxyType(
    {
        Phase.FREE: "concurrent writes continue",
        Phase.REWRITE: "concurrent UPDATE/DELETE/MERGE fail once; appends continue",
        Phase.CLOSED: "writes that run then fail once",
    }
)
"""What the statements of a phase do to writers without a guard."""

_OUTCOMES = {
    RunOutcome.APPLIED: "applied and verified",
    RunOutcome.ALREADY: "unchanged, no commit needed",
    RunOutcome.WAITING: "waiting",
    RunOutcome.STALE: "stale, not changed",
    RunOutcome.REFUSED: "refused, not changed",
    RunOutcome.NO_WINDOW: "no window, not changed",
    RunOutcome.HOOK_FAILED: "a hook failed, not changed",
    RunOutcome.FAILED: "failed",
    RunOutcome.UNVERIFIED: "not verified",
    RunOutcome.UNKNOWN: "the result of a statement is unknown",
    RunOutcome.INTERRUPTED: "interrupted",
}

_COUNTED = {RunOutcome.ALREADY: "unchanged", RunOutcome.NO_WINDOW: "without a window"}
"""Outcomes whose own names say too little."""

_LEAVES: Mapping[Leaves, str] = MappingProxyType(
    {
        "never": "can never be dropped",
        "truncating": "can be dropped only by truncating the history",
        "with history": "can be dropped, but that adds checkpointProtection or truncates the history",
        "freely": "can be dropped",
    }
)
LOCKOUT = "P004"
"""The code of the finding that a client which writes the table is locked out."""
_SPEED = 100_000_000
"""Bytes per second for estimates, which name it."""
_LARGE = 10_000_000_000
"""A rewrite of fewer bytes behind the gate needs no estimate."""
GOOD = frozenset({RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING})
"""The successful outcomes."""


def run_parts(report: RunReport) -> list[str]:
    """How many tables had which outcome, and how many commits were made."""
    counts = Counter(table.outcome for table in report.tables)
    parts = [f"{counts[each]} {_COUNTED.get(each, each)}" for each in RunOutcome if counts[each]]
    if report.failures:
        parts.append(f"{len(report.failures)} not readable")
    commits = sum(len(table.commits) for table in report.tables)
    risky = sum(bool(table.possible_failures) for table in report.tables)
    parts = [*(parts or ["nothing to do"]), f"{plural(commits, 'commit')} made"]
    return [*parts, f"on {plural(risky, 'table')} writers may have failed"] if risky else parts


def run_verdict(report: RunReport) -> Verdict:
    """The verdict of a run."""
    parts = tuple(run_parts(report))
    match report.exit_code:
        case ExitCode.DONE if any(table.outcome is RunOutcome.WAITING for table in report.tables):
            return Verdict("pending", "Waiting for history to age", parts)
        case ExitCode.DONE if any(table.possible_failures for table in report.tables):
            return Verdict("pending", "Applied and verified; writers may have failed", parts)
        case ExitCode.DONE:
            return Verdict("good", "Applied and verified" if report.committed else "Nothing to apply", parts)
        case ExitCode.PARTIAL if _only_shut(report):
            return Verdict("bad", "Done, and a gate may still be shut", parts)
        case ExitCode.PARTIAL:
            return Verdict("bad", "Applied in part", parts)
        case ExitCode.WINDOW:
            return Verdict("bad", "The window was not opened", parts)
        case ExitCode.REFUSED:
            return Verdict("bad", "Refused", parts)
        case _:
            return Verdict("bad", "Failed", parts)


def _only_shut(report: RunReport) -> bool:
    """Whether all is done except for gates that may still be shut."""
    good = all(table.outcome in GOOD for table in report.tables) and not report.failures
    return good and any(table.shut for table in report.tables)


def owner_facts(owners: Iterable[str]) -> list[tuple[str, str]]:
    """The owners of some tables, as a fact; none if no policy names one."""
    known = sorted(set(owners) - {""}, key=natural_key)
    if not known:
        return []
    more = f" and {len(known) - _MOST_OWNERS:,} more" if len(known) > _MOST_OWNERS else ""
    return [("owner" if len(known) == 1 else "owners", f"{', '.join(known[:_MOST_OWNERS])}{more}")]


_MOST_OWNERS = 10


def facts_text(table: TablePlan) -> str:
    """Version, number of files and size of a table, as far as known: ``version 12, 12 files, 4.1 MB``."""
    facts = [f"version {table.version}"]
    if table.basis.files is not None:
        facts.append(plural(table.basis.files, "file"))
    if table.basis.bytes is not None:
        facts.append(size_text(table.basis.bytes))
    return ", ".join(facts)


def everything_text(rewrite: Rewrite) -> str:
    """What happens to all data of a table."""
    return "copies all data beside the live table" if rewrite.copies else "rewrites all data"


def copy_text(statement: Statement) -> str:
    """How long a rewrite under other partition columns takes, and what it needs; empty for a small or another one."""
    rewrite = statement.rewrite
    size = rewrite.bytes_at_most if rewrite else None
    if rewrite is None or size is None or statement.repartition is None or not (rewrite.copies or size >= _LARGE):
        return ""
    time = f"at 100 MB/s about {hours_text(size / _SPEED)}"
    if not rewrite.copies:
        return f"{time} behind the closed gate; `rewrite: {{copy: beside}}` shuts it for the last changes alone"
    return (
        f"{time}, while writers go on; the gate shuts for the last changes alone, at most twice `window.cutover`; "
        f"needs {size_text(size)} more storage until VACUUM removes the replaced files"
    )


def hours_text(seconds: float) -> str:
    """A long duration for people: ``40 s``, ``12 min``, ``3.4 h``."""
    if seconds < 100:
        return f"{max(seconds, 1):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


def rewrite_text(rewrite: Rewrite) -> str:
    """The cost of a rewrite."""
    if rewrite.everything:
        files = plural(rewrite.files_at_most, "file") if rewrite.files_at_most is not None else "an unknown number of"
        size = f", {size_text(rewrite.bytes_at_most)}" if rewrite.bytes_at_most is not None else ""
        amount = f"{files}{' files' * (rewrite.files_at_most is None)}{size}"
        return f"{everything_text(rewrite)}: {amount}"
    if rewrite.clusters:
        known = rewrite.files_at_most is not None and rewrite.bytes_at_most is not None
        most = f"at most {plural(rewrite.files_at_most or 0, 'file')}, at most {size_text(rewrite.bytes_at_most or 0)}"
        return f"clusters {most if known else 'an unknown amount of data'}"
    vectors = "an unknown number of deletion vectors"
    if rewrite.vectors is not None:
        vectors = plural(rewrite.vectors, "deletion vector")
    files = f", at most {plural(rewrite.files_at_most, 'file')}" if rewrite.files_at_most is not None else ""
    size = f", at most {size_text(rewrite.bytes_at_most)}" if rewrite.bytes_at_most is not None else ""
    return f"rewrites the files of {vectors}{files}{size}"


def backfill_text(backfill: Backfill) -> str:
    """The cost of a backfill."""
    size = f" ({size_text(backfill.bytes_at_most)})" if backfill.bytes_at_most is not None else ""
    commits = f", in {plural(backfill.commits_at_most, 'commit')}" if backfill.commits_at_most > 1 else ""
    files = plural(backfill.files_at_most, "file")
    return f"commits the log entries of at most {files} again{commits}; the files{size} do not change"


def commits_text(commits: Sequence[str]) -> str:
    """The number of commits and their operations: ``4: UPGRADE PROTOCOL, row tracking backfill ×2, SET
    TBLPROPERTIES``.
    """
    runs = [(kind, len(list(run))) for kind, run in groupby(commits)]
    return f"{len(commits)}: {', '.join(f'{kind} ×{count}' if count > 1 else kind for kind, count in runs)}"


def readers_text(stopped: Collection[ReaderKind]) -> str:
    """What happens to streams that read a table."""
    if "every" in stopped:
        return "every stream that reads the table stops"
    if stopped == {"on Databricks"}:
        return "streams on Databricks that read the table stop once and restart"
    ways = ["with a schemaTrackingLocation"] * ("with schema tracking" in stopped)
    ways += ["on Databricks"] * ("on Databricks" in stopped)
    return f"streams that read the table continue; {' or '.join(ways)} they stop once and must be started again"


def table_readers(table: TablePlan) -> str:
    """What happens to streams that read a table when its statements run; empty if they do not notice."""
    stopped = {reader for statement in table.statements for reader in statement.readers}
    return readers_text(stopped) if stopped else ""


def features_text(table: TablePlan) -> str:
    """Which of the features that a plan adds are permanent, and how to remove the others; empty without any."""
    said = []
    for leaves, words in _LEAVES.items():
        names = [each.name for each in table.features if each.leaves == leaves]
        if names:
            said.append(f"{', '.join(names)} {words}")
    return "; ".join(said)


def shown_findings(table: TablePlan) -> list[Finding]:
    """The findings for people, without ignored ones and those that are already listed as refusals."""
    return [each for each in table.findings if each.severity not in {"ignored", "error"}]


def due_text(statement: Statement) -> str:
    """The earliest time at which a statement can be sent; empty if it can be sent now."""
    if statement.due is None:
        return ""
    if not statement.due:
        return "by a second apply, a day after the first one, which writes the checkpoint: history must age first"
    return f"at {time_text(statement.due)}, when history is old enough; an apply before then skips it"


def unclustered_text(marks: ClusteringState | None, columns: Value) -> str:
    """``63 % of the data (1.2 GB in 9 files)``: the data that is not clustered by these columns; empty if unknown."""
    if marks is None or not isinstance(columns, tuple):
        return ""
    total, unclustered = marks.total(), marks.outside(columns)
    if not total.bytes:
        return ""
    share = 100 * unclustered.bytes / total.bytes
    percent = f"{share:.0f}" if not 0 < share < 1 and not 99 < share < 100 else f"{share:.1f}"
    return f"{percent} % of the data ({size_text(unclustered.bytes)} in {plural(unclustered.files, 'file')})"


def unclustered_of_table(table: TablePlan) -> str:
    """The same for a planned table and the columns that its plan sets."""
    return unclustered_of_changes(table.changes, table.basis.marks)


def unclustered_of_changes(changes: Iterable[Change], marks: ClusteringState | None) -> str:
    """The same for the columns that changes set."""
    change = next((each for each in changes if each.attribute == "clustering"), None)
    return unclustered_text(marks, tuple(fact.column for fact in change.columns) if change else None)


def statement_facts(statement: Statement) -> list[tuple[str, str]]:
    """Label and text of all that a reviewer must know of a statement, besides its SQL and its undo."""
    facts = [
        ("skipped", "if no deletion vectors remain" if statement.only_if else ""),
        ("due", due_text(statement)),
        ("why", statement.reason),
        ("implies", ", ".join(statement.implies)),
        ("impact", statement.fails),
        ("evidence", "" if statement.evidence == RUN_HERE else statement.evidence),
        ("stale handles", statement.stale_handles),
        ("commits", commits_text(statement.commits) if len(statement.commits) > 1 else ""),
        ("cost", rewrite_text(statement.rewrite) if statement.rewrite else ""),
        ("time", copy_text(statement)),
        ("cost", backfill_text(statement.backfill) if statement.backfill else ""),
    ]
    return [(label, text) for label, text in facts if text]


def outcome_text(table: TableRun) -> str:
    """The outcome of a table."""
    if table.outcome is RunOutcome.ALREADY and (table.commits or table.message):  # the message names that run
        return "applied by another run of the same plan"
    words = _OUTCOMES[table.outcome]
    if table.outcome is RunOutcome.APPLIED and table.possible_failures:
        return f"{words}; writers may have failed"
    if table.outcome in GOOD or not table.commits:
        return words
    return "failed, applied in part" if words == "failed" else words.replace("not changed", "applied in part")


def commit_text(commit: CommitRun) -> str:
    """A commit in one line: ``version 13: SET TBLPROPERTIES by ann at 2026-11-21 11:00:00 UTC``."""
    when = time_text(commit.at)
    at = f" at {when}" if when else ""
    return f"version {commit.version}: {commit.operation or 'unknown operation'} by {commit.user}{at}"


def late_text(commit: CommitRun) -> str:
    """Whose commit it is if another apply made it."""
    if not commit.run:
        return ""
    return f", of the apply {commit.run}{', which had lost its lease' if commit.late else ''}"


def overwritten_text(tables: Sequence[TablePlan]) -> str:
    """``overwrites `retention.log`, set by ann on 2026-11-20``: the newest of what others set; empty if nothing."""
    found = sorted((each for table in tables for each in table.overwrites), key=lambda each: -each.at)
    if not found:
        return ""
    first, day = found[0], time_text(found[0].at)[:10]
    when = f" on {day}" if day else ""
    more = f", and {plural(len(found) - 1, 'more value')} of others" if len(found) > 1 else ""
    return f"overwrites `{first.change}`, set by {first.who}{when} in version {first.version}{more}"


_MOST_BROKEN = 2


def broken_text(tables: Iterable[TablePlan]) -> str:
    """``job nightly (delta-rs 1.6.6, last wrote 2026-11-20 11:00:00 UTC)``: the writers that fail on every run after
    the apply, the newest first; empty if none is known.
    """
    found = sorted({each for table in tables for each in table.broken}, key=lambda each: (-each.last, each.client))
    said = [f"{each.who or each.client} ({', '.join(_about(each))})" for each in found[:_MOST_BROKEN]]
    more = f" and {len(found) - _MOST_BROKEN:,} more" if len(found) > _MOST_BROKEN else ""
    return f"{', '.join(said)}{more}"


def _about(writer: BrokenWriter) -> Iterator[str]:
    if writer.who:
        yield writer.client
    yield f"last wrote {time_text(writer.last)}" if writer.last else f"last wrote version {writer.version}"


def risk_text(who: str, reason: str, fails: str) -> str:
    """``nightly load (any) may have failed: no guard was seen. During the window all concurrent writes fail once``."""
    return f"{who} may have failed: {reason}. During the window {fails}; check the last run"


def span_text(milliseconds: int) -> str:
    """A duration for people: ``412 ms``, ``3.0 s``."""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{milliseconds / 1000:.1f} s"


def first_rewrites(statements: Iterable[Statement]) -> list[Rewrite]:
    """The first rewrite of each kind: later ones only rewrite data that was written in between."""
    found = [each.rewrite for each in statements if each.rewrite]
    firsts = (next((each for each in found if each.clusters is kind), None) for kind in (False, True))
    return [each for each in firsts if each]


def forecast(plan: Plan) -> list[str]:
    """What applying a plan does to writers without a guard, and what it rewrites: clauses, none without changes."""
    tables = [table for table in plan.tables if table.applies]
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


_JOBS = 3
_FEW = 10
"""Fewer writes are too few to tell what a statement costs."""
_SAME = 0.05
"""Expected numbers of failed writes that differ by less are not told apart."""
_NO_WRITES = f"no writes in {DAYS} days"
NO_QUIET_HOUR = "the quietest hour is unknown, because the commits cover less than a day"


def statement_loss(table: TablePlan, statement: Statement, now: datetime | None) -> str:
    """What a statement of a planned table is expected to cost; empty if it fails no write, or if nothing was read."""
    if table.loss is None or not statement.fails:
        return ""
    if table.loss.unknown:
        return f"unknown: {table.loss.unknown}"
    return _week_text([table.loss], table.loss.week_of_statement(statement.id), now)


def tables_loss(tables: Sequence[TablePlan], now: datetime | None) -> str:
    """What all statements of some tables are expected to cost; empty if none fails a write, or if nothing was read.

    Of tables some of which have no known writes, the known losses are added up, and the number of the others is said.
    """
    losses = [each.loss for each in tables if each.applies and each.loss is not None]
    known = [each for each in losses if not each.unknown]
    if not known:
        reasons = {each.unknown for each in losses}
        return f"unknown: {reasons.pop() if len(reasons) == 1 else _NO_WRITES}" if reasons else ""
    text = _week_text(known, summed(each.week for each in known), now)
    most = [max((each.failed for each in loss.week), default=0.0) for loss in known]
    if not text.startswith("unknown") and len(known) > 1 and max(most) - min(most) >= _SAME:
        text += f"; at most {failed_text(min(most))} to {failed_text(max(most))} of a table"
    jobs = tuple(dict.fromkeys(job for each in known for job in each.jobs))
    text += f"; usual runs: {'; '.join(jobs[:_JOBS])}" if jobs else ""
    others = len(tables) - len(known)
    return f"{text}; unknown for {others:,} of the {len(tables):,} tables" if others else text


def _week_text(losses: Sequence[TableLoss], week: WeekOfLoss, now: datetime | None) -> str:
    """The one sentence about an expected loss: none by the rules, unknown, or a range with its evidence."""
    writes, since = sum(each.writes for each in losses), min(each.since for each in losses)
    start = f" since {time_text(since)[:10]}" if since else ""
    evidence = f"{plural(writes, 'write')} in the log{start}"
    if not any(each.failed for each in week):
        return f"none: by the rules no writer of the log conflicts ({evidence})"
    if writes < _FEW:
        return f"unknown: too few to tell ({evidence}); a write like {'that' if writes == 1 else 'these'} can fail once"
    hour = None if now is None else hour_of_week(now.timestamp())
    busiest, quiet = max(range(len(week)), key=lambda each: week[each].failed), quietest_hour(week, hour or 0)
    told = f"now ({hour_text(hour)})" if hour is not None else f"busiest: {hour_text(busiest)}"
    said = f"{told}: {week[busiest if hour is None else hour].text(writes)}"
    if any(each.quietest is None for each in losses):
        rest = NO_QUIET_HOUR
    elif hour is not None and week[hour].failed - week[quiet].failed < _SAME:
        rest = "no hour is quieter"
    else:
        rest = f"quietest: {hour_text(quiet)}, {failed_text(week[quiet].failed, writes)}"
    return f"{said}; {rest}; from {evidence}"


_SHADES: Sequence[tuple[float, Shade, str]] = (
    (0.05, "good", "less than 0.1"),
    (0.5, "some", "to 0.5"),
    (3.0, "high", "to 3"),
    (math.inf, "bad", "more"),
)


def week_picture(tables: Sequence[TablePlan]) -> ColourGrid | None:
    """The expected loss of all statements of some tables by hour of the week; ``None`` if it is not known, or the same
    in every hour.
    """
    losses = [each.loss for each in tables if each.applies and each.loss is not None and not each.loss.unknown]
    writes = sum(each.writes for each in losses)
    if writes < _FEW or any(each.quietest is None for each in losses):
        return None
    week = summed(each.week for each in losses)
    shades = [next(shade for limit, shade, _ in _SHADES if each.failed < limit) for each in week]
    if len(set(shades)) < 2:
        return None
    squares = [
        Square(shade, f"{hour_text(hour)}: {loss.text(writes)}")
        for hour, (shade, loss) in enumerate(zip(shades, week, strict=True))
    ]
    return ColourGrid(
        "Expected failed writes by hour of the week (UTC), if the apply runs then",
        "day",
        tuple(f"{hour:02}" for hour in range(24)),
        tuple((day[:3], tuple(squares[24 * index : 24 * index + 24])) for index, day in enumerate(WEEKDAYS)),
        tuple((shade, text) for _, shade, text in _SHADES if shade in shades),
        joined=3,
    )


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
