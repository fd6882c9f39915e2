"""Earlier applies, from the stamps in the tables' logs: the Delta log is the journal (docs/window.md)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablectl.frozen import frozen
from tablectl.model.plan import TableFailure
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.model.table import Commit


@frozen(kw_only=True)
class RunOnTable:
    """The commits of a run on one table."""

    table: str
    commits: tuple[Commit, ...]
    """The oldest first."""


@frozen(kw_only=True)
class PastRun:
    """One apply, as far as its commits tell."""

    stamp: Stamp
    tables: tuple[RunOnTable, ...]
    """By name."""

    @property
    def commits(self) -> tuple[Commit, ...]:
        """The commits on all tables, the oldest first."""
        found = [commit for table in self.tables for commit in table.commits]
        return tuple(sorted(found, key=lambda commit: (commit.timestamp, commit.version)))

    @property
    def began(self) -> int:
        """When the first commit was made, in milliseconds since the epoch; 0 if unknown."""
        return min((commit.timestamp for commit in self.commits if commit.timestamp), default=0)

    @property
    def ended(self) -> int:
        """When the last commit was made, in milliseconds since the epoch; 0 if unknown."""
        return max((commit.timestamp for commit in self.commits), default=0)

    @property
    def users(self) -> tuple[str, ...]:
        """The users of the commits; the clients of commits without a user."""
        return tuple(dict.fromkeys(commit.user or commit.client.text() for commit in self.commits))


@frozen(kw_only=True)
class PastRuns:
    """The runs on some tables."""

    runs: tuple[PastRun, ...]
    """The newest first."""
    failures: tuple[TableFailure, ...] = ()
    """Tables whose history cannot be read."""
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""


def stamped(commits: Iterable[Commit]) -> dict[str, tuple[Stamp, tuple[Commit, ...]]]:
    """The commits of applies by run, each with its stamp, the oldest commit first."""
    found: dict[str, tuple[Stamp, tuple[Commit, ...]]] = {}
    for commit in sorted(commits, key=lambda each: each.version):
        stamp = read_stamp(commit.user_metadata)
        if stamp:
            first, earlier = found.get(stamp.run, (stamp, ()))
            found[stamp.run] = (first, (*earlier, commit))
    return found


def past_runs(commits: Mapping[str, Iterable[Commit]]) -> tuple[PastRun, ...]:
    """The runs in the commits of tables, by name. The newest run first."""
    stamps: dict[str, Stamp] = {}
    tables: dict[str, list[RunOnTable]] = {}
    for name in sorted(commits):
        for run, (stamp, made) in stamped(commits[name]).items():
            stamps.setdefault(run, stamp)
            tables.setdefault(run, []).append(RunOnTable(table=name, commits=made))
    found = (PastRun(stamp=stamps[run], tables=tuple(each)) for run, each in tables.items())
    return tuple(sorted(found, key=lambda each: (each.ended, each.stamp.run), reverse=True))
