"""The writers that a table's history knows, by what their commits tell of them. Pure.

Which of them use a guard the history does not tell: a guard leaves no trace in a commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tablectl.model.live import Commit
from tablectl.window.report import WriterRun
from tablectl.window.stamp import read_stamp

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


def expected(writers: Sequence[WriterRun]) -> tuple[WriterRun, ...]:
    """Those that may be expected to come again: who wrote once may never do it again."""
    return tuple(writer for writer in writers if writer.commits > 1)
