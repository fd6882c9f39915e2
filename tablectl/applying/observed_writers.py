"""The writers that a table's history knows, by what their commits tell of them. Pure.

Which of them use a guard the history does not tell: a guard leaves no trace in a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablectl.applying.run_report import WriterRun
from tablectl.applying.stamp import read_stamp
from tablectl.model.table import Commit

LOOK_BACK = 20
"""Commits before a run in which writers are looked for."""
_LONGEST = 60


def name_of(commit: Commit) -> str:
    """What tells a writer from others: the application that it records, else the operation, the user and the client."""
    if commit.transactions:
        return f"{_cut(commit.operation)} of {_cut(commit.transactions[0].app_id)}"
    return f"{_cut(commit.operation) or 'commits'} by {_cut(commit.user) or commit.client.text()}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_writer(commit: Commit) -> bool:
    """Whether a commit is of a writer of data, and not of an apply or of whoever created the table."""
    return commit.changes_data and commit.version > 0 and read_stamp(commit.user_metadata) is None


def writers_seen(before: Iterable[Commit], after: Iterable[Commit]) -> tuple[WriterRun, ...]:
    """The writers of some commits, by name, and whether they committed again after the window."""
    back = {name_of(commit) for commit in after if is_writer(commit)}
    times: dict[str, list[int]] = {}
    for commit in before:
        if is_writer(commit):
            times.setdefault(name_of(commit), []).append(commit.timestamp)
    return tuple(
        WriterRun(name=name, commits=len(found), last=max(found), back=name in back)
        for name, found in sorted(times.items())
    )


NEAR = 10 * 60 * 1000
"""Milliseconds within which a commit counts as near a window, however seldom its writer writes."""
_SILENT = 3
"""How many of its usual intervals a writer may be silent before it counts as one that writes no more."""


def active_near(commits: Iterable[Commit], since: int, until: int) -> frozenset[str]:
    """The names of the writers that were likely at work between two moments, in milliseconds since the epoch.

    By their commits: one within ten minutes of that time. And by their rhythm: who has written in even intervals, and
    not fallen silent since, is at work when its next commit is due, give or take a quarter of the interval.
    """
    times: dict[str, list[int]] = {}
    for commit in commits:
        if is_writer(commit):
            times.setdefault(name_of(commit), []).append(commit.timestamp)
    return frozenset(name for name, found in times.items() if _is_near(sorted(found), since, until))


def _is_near(times: Sequence[int], since: int, until: int) -> bool:
    if any(since - NEAR <= time <= until + NEAR for time in times):
        return True
    before = [time for time in times if time < since]
    if len(before) < 2:  # one commit has no rhythm
        return False
    interval = max((before[-1] - before[0]) // (len(before) - 1), 1)
    silent = since - before[-1]
    if silent > _SILENT * interval:
        return False
    due = before[-1] + -(-silent // interval) * interval
    slack = max(interval // 4, NEAR)
    return due - slack <= until or due - interval + slack >= since


def expected(writers: Sequence[WriterRun]) -> tuple[WriterRun, ...]:
    """Those that may be expected to come again: who wrote once may never do it again."""
    return tuple(writer for writer in writers if writer.commits > 1)
