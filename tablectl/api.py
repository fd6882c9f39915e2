"""The commands as functions. A given Spark session is never changed: statements run in a separate session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from time import time
from typing import Any, TypedDict, Unpack

from tablectl.frozen import frozen
from tablectl.lake_status import StatusDepth, collect_status
from tablectl.log.blame import MOST_COMMITS
from tablectl.model.plan import Plan
from tablectl.planning.drift import Drift
from tablectl.policies.repository import Paths
from tablectl.project import EngineSource, Project
from tablectl.reports.status import LakeStatus
from tablectl.selection import Selection
from tablectl.workflow.drift import find_drift


class _Place(TypedDict, total=False):
    """Where the policies and the tables are."""

    variables: Mapping[str, str] | None
    """Values of ``${NAME}`` in policies."""
    env: str | None
    """One of the environments of ``tablectl.yaml``, by default that of ``TABLECTL_ENV``; an empty text means its top
    level alone."""
    directory: str | Path
    """The directory of ``tablectl.yaml``, by default the current one."""
    cache: bool
    """Whether what is read of tables is kept for the next call, in the directory that ``cache`` in ``tablectl.yaml``
    names or in the user's cache directory; by default yes. ``apply`` never uses it."""
    spark: Any
    """A Spark session, by default a new one. It is used only to list and locate catalog tables, and to apply."""


class _Tables(_Place, total=False):
    """Which tables a function selects: those that match any glob and any tag; all if there are none."""

    select: Sequence[str]
    """Globs of table names."""
    tags: Sequence[str]
    exclude: Sequence[str]
    """Globs of tables to leave out."""


class DriftOptions(_Tables, total=False):
    """The options of ``drift``."""

    look_back: int
    """The maximum number of commits to search per table that differs."""


class StatusOptions(DriftOptions, total=False):
    """The options of ``status``."""

    tables: Sequence[str]
    """Further tables: identifiers and patterns, which need no policy."""
    debt: bool
    """Whether to count files and unclustered data from the whole log. It takes longer."""


@frozen
class _PlaceOptions:
    """``_Place`` with its defaults."""

    variables: Mapping[str, str] | None = None
    env: str | None = None
    directory: str | Path = "."
    cache: bool = True
    spark: Any = None

    def open(self, driver: str | None = None, plan: Plan | None = None) -> Project:
        source = EngineSource(self.spark, driver)
        return Project.open(
            self.directory, env=self.env, variables=self.variables, source=source, plan=plan, cached=self.cache
        )


@frozen
class _TableOptions(_PlaceOptions):
    """``_Tables`` with its defaults."""

    select: Sequence[str] = ()
    tags: Sequence[str] = ()
    exclude: Sequence[str] = ()

    @property
    def selection(self) -> Selection:
        return Selection(_texts(self.select), _texts(self.tags), _texts(self.exclude))


@frozen
class _DriftOptions(_TableOptions):
    look_back: int = MOST_COMMITS


@frozen
class _StatusOptions(_DriftOptions):
    tables: Sequence[str] = ()
    debt: bool = False


def _texts(given: Sequence[str]) -> tuple[str, ...]:
    """A single text counts as one item, not as a sequence of letters."""
    return (given,) if isinstance(given, str) else tuple(given)


def drift(paths: Paths = None, **options: Unpack[DriftOptions]) -> Drift:
    """The differences from the policies, and the commit that caused each. Changes nothing.

    Options and errors as in ``plan``, and ``look_back``: the maximum number of commits to search per table that
    differs.
    """
    given = _DriftOptions(**options)
    with given.open() as project:
        return find_drift(project, project.policies(paths), given.selection, given.look_back)


def status(paths: Paths = None, **options: Unpack[StatusOptions]) -> LakeStatus:
    """The state of every table of the policies, and of further ``tables`` (``tablectl status``). Changes nothing.

    Options and errors as in ``drift``. A table that cannot be read is a row with its error.
    """
    given = _StatusOptions(**options)
    with given.open() as project:
        others = project.requested(_texts(given.tables))
        depth = StatusDepth(look_back=given.look_back, debt=given.debt, now=int(time() * 1000))
        return collect_status(project, project.any_policies(paths), others, given.selection, depth)
