"""The risks of a run and other remarks, as labels and prose."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from tablectl.applying.run_report import CanaryRun, CanaryTable, QuietStart, TableRun
from tablectl.model.expected_loss import ExpectedLoss
from tablectl.model.text import minutes_text
from tablectl.reports.stream_text import stream_run_text
from tablectl.reports.style import plural
from tablectl.reports.wording import late_text, risk_text, span_text

Facts = list[tuple[str, str]]
_MOST_CANARIES = 10
_MOST_SHARED = 10
WORTH_TELLING = 1000
"""Waits shorter than this, in milliseconds, are not reported."""


def remarks(run: TableRun) -> Facts:
    """Which writers may have failed, which came back, and what else people must know."""
    facts: Facts = [("driver", run.driver)] if run.driver else []
    facts += [("quiet moment", _quiet_text(run.quiet))] if run.quiet else []
    if run.paced_ms >= WORTH_TELLING:
        facts.append(("pace", f"waited {span_text(run.paced_ms)} for `window.max_bytes_per_hour`"))
    facts += [("risk", each) for each in risks(run)]
    facts += [("stream", stream_run_text(each)) for each in run.streams]
    facts += [("others", f"version {each.version}{late_text(each)}") for each in run.foreign if each.run]
    facts += [("gate", run.shut)] if run.shut else []
    facts += [("note", f"the after-hook {each} has not run yet") for each in run.owed]
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
    return expected + actual + waited
