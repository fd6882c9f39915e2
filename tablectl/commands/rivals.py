"""Who alters a table, for the commands that say so."""

from __future__ import annotations

from collections.abc import Sequence

from tablectl.attributes.policy import basis_of
from tablectl.commands.project import Project
from tablectl.insight.altering_jobs import altering_jobs, kind_of_change
from tablectl.log.recent_commits import read_past_commits
from tablectl.model.altering_job import AlteringJob
from tablectl.model.commit import Commit
from tablectl.model.errors import LiveError
from tablectl.model.expected_loss import DAYS
from tablectl.model.table import LiveTable
from tablectl.storage.log_stores import Stores

_FEW = 2
"""So many such commits among the newest ones are worth a look at those of a month."""


def rivals_in(project: Project, live: LiveTable, commits: Sequence[Commit]) -> tuple[AlteringJob, ...]:
    """Who alters a table, by its commits of the last days, newest first."""
    return altering_jobs(commits, basis_of(live), project.dialect)


def rivals_of(project: Project, live: LiveTable, stores: Stores | None = None) -> tuple[AlteringJob, ...]:
    """The same, from the log. Where the newest commits show no such series, no more are read. A log that cannot be read
    shows none.
    """
    if sum(kind_of_change(each) is not None for each in live.history) < _FEW and live.history:
        return ()
    if stores is None:
        with Stores(project.stores) as opened:
            return rivals_of(project, live, opened)
    try:
        past = read_past_commits(stores, live.location, DAYS, list_files=False)
    except LiveError:
        return ()
    return rivals_in(project, live, [each.commit for each in past.commits])
