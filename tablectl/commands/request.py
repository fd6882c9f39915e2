"""The options of a command line, before any file is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tablectl.commands.output import Output
from tablectl.model.errors import UsageError
from tablectl.policies.variables import is_variable
from tablectl.support.frozen import frozen

if TYPE_CHECKING:  # they load what only plans need, and what reads YAML: `--help` does without
    from tablectl.commands.project import Project
    from tablectl.model.plan import Plan


@frozen
class CommandRequest:
    """The options that several commands share."""

    paths: tuple[Path, ...]
    select: tuple[str, ...]
    tags: tuple[str, ...]
    variables: Mapping[str, str]
    remote: str | None
    env: str | None = None
    """The environment of ``tablectl.yaml``; ``None`` leaves it to ``TABLECTL_ENV``."""
    excluded: tuple[str, ...] = ()
    max_tables: int | None = None
    """The maximum size of a plan; ``None``: no limit."""
    max_bytes: int | None = None
    shown_as: str = ""
    """The dialect of ``plan --as``; empty for that of the configuration."""
    shard: str = ""
    """The part of the tables to plan, such as ``2/8``; empty for all of them."""
    on_cluster: bool = False
    """Whether tables are read on the executors of the engine."""
    verbose: bool = False
    """Whether text shows each table in full, instead of groups of equal changes."""
    changed_since: str = ""
    """A commit: only tables whose policy differs from it. Empty for all tables."""
    no_cache: bool = False
    """Whether tables are read from their logs alone. An apply does so always."""

    def open(self, out: Output, plan: Plan | None = None, directory: Path = Path()) -> Project:
        """The repository in a directory, in the environment of a saved plan if there is one. Raises as
        ``Project.open``.
        """
        from tablectl.commands.project import EngineSource, Project  # noqa: PLC0415  # see above

        source = EngineSource(on_start=out.note)
        cached = not self.no_cache
        settings = {"remote": self.remote} if self.remote else {}
        return Project.open(
            directory,
            env=self.env,
            variables=self.variables,
            source=source,
            plan=plan,
            cached=cached,
            settings=settings,
        )


@frozen
class BreakOptions:
    """The options of ``window break``."""

    epoch: int | None
    reason: str


def environment(given: str | None) -> str | None:
    """``--env NAME``. Raises ``UsageError`` for an empty name, which comes from a script whose variable is not set."""
    if given == "":
        raise UsageError("--env is empty", "name an environment of tablectl.yaml, or leave it out")
    return given


def variables(pairs: Sequence[str] | None) -> dict[str, str]:
    """``--var NAME=VALUE`` as a map. Raises ``UsageError`` for an argument that is not a pair, and for a duplicate
    name.
    """
    found: dict[str, str] = {}
    for pair in pairs or []:
        name, equals, value = pair.partition("=")
        if not equals or not is_variable(name):
            raise UsageError(f"--var {pair!r} is not NAME=VALUE", "for example --var LAKE=/data/lake")
        if name in found:
            raise UsageError(f"--var {name} is given twice")
        found[name] = value
    return found
