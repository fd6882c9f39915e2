"""Replays the forecast on the sixty tables of ``_forecast_tables``: is the loss of each hour right, and does a quiet
start meet no job? It needs neither Spark nor files.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import log2
from statistics import median

from _forecast_tables import KNOWN, Table, Write, commits, strict, tables
from _forecast_writers import DAY, HOUR
from _report import table

from tablectl.applying.quiet_moment import WaitUntil, decide, judged
from tablectl.applying.waits import GO
from tablectl.conflicts.past_writers import loss_of, past_writers
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import CommittedTransaction, Kind, MetadataChange
from tablectl.model.expected_loss import HOURS, hour_of_week
from tablectl.model.plan import Basis

NOW = datetime(2026, 11, 4, tzinfo=UTC).timestamp()
"""A Wednesday: a week of the calendar is not a week of the log."""
WEEKS = 40
"""Weeks that are simulated to count what is in flight."""
TRIES = 12
"""Applies of a table, at random moments of the next week."""
FLOOR = 0.01
"""Added to both numbers of a ratio: so few failures do not matter."""
SET = (CommittedTransaction(kind=Kind.SET_PROPERTIES, metadata=MetadataChange(sets=(("a", "b"),)), data_change=False),)
_MOST_WRITES = 24
_COMMITS = 2000


@dataclass(frozen=True)
class Replayed:
    """The result of one table."""

    kind: str
    seed: int
    writes_a_day: float
    errors: tuple[float, ...]
    """|log2(predicted / counted)| of each hour of the week."""
    starts: int
    inside: int
    """Quiet starts while a transaction was in flight."""
    waited: float
    """The median wait, in hours; a day for a wait that found nothing."""
    unfound: int


def replay(table: Table, basis: Basis) -> Replayed:
    """One table: its week, and applies that wait for a quiet moment."""
    past = [each for each in table.writes(table.now - KNOWN, table.now, 1) if each.end < table.now]
    known = past_writers(commits(past)[: -_COMMITS - 1 : -1], basis, "oss", table.now)
    assert known is not None
    week = loss_of(known, [SET])
    counted = _counted(table)
    errors = tuple(abs(log2((week[hour].failed + FLOOR) / (counted[hour] + FLOOR))) for hour in range(HOURS))
    chosen = random.Random(table.seed)
    tries = [_apply(table, past, chosen.uniform(0, 6 * DAY), number, basis) for number in range(TRIES)]
    started = [each for each in tries if each is not None]
    waits = sorted(each[0] if each else DAY for each in tries)
    return Replayed(
        table.kind,
        table.seed,
        len(past) / (KNOWN / DAY),
        errors,
        len(started),
        sum(each[1] for each in started),
        waits[len(waits) // 2] / HOUR,
        len(tries) - len(started),
    )


def _counted(table: Table) -> list[float]:
    """The mean number of transactions in flight in each hour of the next week."""
    found = [0.0] * HOURS
    for number in range(WEEKS):
        for write in table.writes(table.now - DAY, table.now + 8 * DAY, 1000 + number):
            start, end = max(write.start, table.now), min(write.end, table.now + 7 * DAY)
            while start < end:
                upto = min((start // HOUR + 1) * HOUR, end)
                found[hour_of_week(start)] += (upto - start) / HOUR / WEEKS
                start = upto
    return found


def _apply(table: Table, past: Sequence[Write], after: float, number: int, basis: Basis) -> tuple[float, bool] | None:
    """How long an apply waits for a quiet moment, and whether a transaction is in flight then; ``None`` if it ends
    without one.
    """
    coming = [each for each in table.writes(table.now, table.now + 9 * DAY, 5000 + number) if each.end >= table.now]
    every = sorted([*past, *coming], key=lambda each: each.end)
    made = commits(every)
    now = began = table.now + after
    until = datetime.fromtimestamp(began + DAY, UTC)
    while now <= began + DAY:
        forecast = judged(past_writers(_known(made, now), basis, "oss", now), [SET], now, frozenset())
        answer = decide([forecast], datetime.fromtimestamp(now, UTC), until, DAY, 0.1, lambda moment: moment)
        if answer == GO:
            return now - began, any(each.start <= now < each.end for each in every)
        if not isinstance(answer, WaitUntil):
            return None
        least = timedelta(seconds=1 if table.gap else 60)
        now = max(answer.moment, datetime.fromtimestamp(now, UTC) + least).timestamp()
    return None


def _known(made: Sequence[Commit], now: float) -> list[Commit]:
    """The commits that an apply reads at a moment, newest first."""
    return [each for each in reversed(made) if each.timestamp <= now * 1000][:_COMMITS]


def strict_report(basis: Basis, tries: int) -> str:
    """Strict timetables: is there a free moment within two gaps, and in no run?"""
    rows, counts = [], [0, 0, 0]
    for each in strict(NOW, seeds=range(1)):
        past = [write for write in each.writes(each.now - KNOWN, each.now, 1) if write.end < each.now]
        chosen = random.Random(each.kind)
        found = [_apply(each, past, chosen.uniform(0, 6 * DAY), number, basis) for number in range(tries)]
        started = [one for one in found if one is not None]
        soon, inside = sum(one[0] <= 2 * each.gap for one in started), sum(one[1] for one in started)
        counts = [counts[0] + tries, counts[1] + soon, counts[2] + inside]
        waits = sorted(one[0] for one in started) or [0.0]
        rows.append((each.kind, str(tries), str(soon), str(inside), f"{median(waits):.0f}", f"{waits[-1]:.0f}"))
    head = ("timetable", "applies", "within two gaps", "in a run", "median wait, s", "longest")
    return table(head, rows) + f"\nwithin two gaps: {counts[1]} of {counts[0]}; inside a run: {counts[2]}\n"


def report(results: Sequence[Replayed]) -> str:
    """The table of all kinds, and the three figures."""
    kinds = dict.fromkeys(each.kind for each in results)
    rows = []
    for kind in kinds:
        own = [each for each in results if each.kind == kind]
        rows.append(
            (
                kind,
                f"{median(each.writes_a_day for each in own):.1f}",
                f"{median(error for each in own for error in each.errors):.2f}",
                f"{max(median(each.errors) for each in own):.2f}",
                str(sum(each.starts for each in own)),
                str(sum(each.inside for each in own)),
                f"{median(each.waited for each in own):.1f}",
                str(sum(each.unfound for each in own)),
            )
        )
    starts, inside = sum(each.starts for each in results), sum(each.inside for each in results)
    seldom = [each for each in results if each.writes_a_day < _MOST_WRITES]
    found = [each for each in seldom if not each.unfound]
    head = ("table", "writes a day", "median log2", "worst", "quiet starts", "in a run", "wait, h", "not found")
    return (
        table(head, rows)
        + f"\n{len(results)} tables, {HOURS} hours each"
        + f"\nmedian |log2(predicted / counted)| over all hours: {median(e for r in results for e in r.errors):.2f}"
        + f"\nquiet starts while a transaction was in flight: {inside} of {starts} ({inside / max(starts, 1):.1%})"
        + f"\nof tables with fewer than {_MOST_WRITES} writes a day, a quiet moment within a day each time: "
        + f"{len(found)} of {len(seldom)} ({len(found) / max(len(seldom), 1):.0%})\n"
    )


def run(basis: Basis) -> list[Replayed]:
    """All tables."""
    return [replay(each, basis) for each in tables(NOW)]
