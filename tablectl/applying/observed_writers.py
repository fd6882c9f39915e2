"""The writers found in a table's history, and which of them a run may have failed. Pure.

The history does not show which of them use a guard: a guard leaves no trace in a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablectl.model.commit import Commit
from tablectl.model.run_report import CommitRun, PossibleFailure, StatementRun, WriterRun
from tablectl.model.stamp import read_stamp

_LONGEST = 60


def name_of(commit: Commit) -> str:
    """The name of a commit's writer: the application that the commit records, else the operation with the job, the
    notebook, the user, the cluster or the client. Runs of one job have one name.
    """
    if commit.transactions:
        return f"{_cut(commit.operation)} of {_cut(commit.transactions[0].app_id)}"
    return f"{_cut(commit.operation) or 'commits'} by {_cut(commit.source) or commit.client.text()}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def is_writer(commit: Commit) -> bool:
    """Whether a commit was made by a writer of data, and not by an apply or by the creation of the table."""
    return commit.changes_data and commit.version > 0 and read_stamp(commit.user_metadata) is None


def writers_seen(before: Iterable[Commit]) -> tuple[WriterRun, ...]:
    """The writers of some commits, by name."""
    times: dict[str, list[int]] = {}
    for commit in before:
        if is_writer(commit):
            times.setdefault(name_of(commit), []).append(commit.timestamp)
    return tuple(WriterRun(name=name, commits=len(found), last=max(found)) for name, found in sorted(times.items()))


_NEAR = 60 * 1000
"""Milliseconds within which a commit counts as near a window, however rarely its writer writes."""
_SILENT = 3
"""A writer counts as inactive after this many of its usual intervals without a commit."""


def active_near(commits: Iterable[Commit], since: int, until: int) -> frozenset[str]:
    """The names of the writers that were probably active between two moments, in milliseconds since the epoch.

    A writer was active if one of its commits is within a minute of that time. A writer that commits at regular
    intervals, and is not inactive, was also active if its next commit was due then, give or take a quarter of the
    interval.
    """
    times: dict[str, list[int]] = {}
    for commit in commits:
        if is_writer(commit):
            times.setdefault(name_of(commit), []).append(commit.timestamp)
    return frozenset(name for name, found in times.items() if _is_near(sorted(found), since, until))


def _is_near(times: Sequence[int], since: int, until: int) -> bool:
    if any(since - _NEAR <= time <= until + _NEAR for time in times):
        return True
    before = [time for time in times if time < since]
    if len(before) < 2:  # one commit has no interval
        return False
    interval = max((before[-1] - before[0]) // (len(before) - 1), 1)
    silent = since - before[-1]
    if silent > _SILENT * interval:
        return False
    due = before[-1] + -(-silent // interval) * interval
    slack = max(interval // 4, _NEAR)
    return due - slack <= until or due - interval + slack >= since


def possible_failures(
    sent: Sequence[StatementRun],
    others: Iterable[CommitRun],
    commits: Iterable[Commit] | None,
    known: Iterable[WriterRun],
    now: int,
) -> tuple[PossibleFailure, ...]:
    """Writers that the statements of a run may have failed: those that committed while the gate was closed, and, on a
    table without guards, those that were probably active then. An idle table has none.

    ``commits`` are those shortly before the run and since; ``None`` if guards were seen. ``known`` are the writers
    before the run, ``now`` is in milliseconds since the epoch.
    """
    fails = next((each.fails for each in reversed(sent) if each.fails and not each.error), "")
    if not fails:
        return ()
    inside = dict.fromkeys(each.writer for each in others if each.inside and not each.run)
    found = [PossibleFailure(writer=name, reason="wrote while the gate was closed", fails=fails) for name in inside]
    if commits is not None:
        commits = tuple(commits)
        # The gate was open between two statements if a copy beside the table was made there.
        spans = [(each.at, now if each.error else each.at + each.milliseconds) for each in sent if each.fails]
        near = frozenset(name for since, until in spans for name in active_near(commits, since, until))
        names = sorted(near & {each.name for each in known} - set(inside))
        found += [PossibleFailure(writer=name, reason="no guard was seen", fails=fails) for name in names]
    return tuple(found)
