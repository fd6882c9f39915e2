"""The options of a command line, before any file is read."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tablectl.commands.output import Output
from tablectl.delta.client_families import find_family
from tablectl.delta.protocol import Client
from tablectl.frozen import frozen
from tablectl.model.errors import UsageError
from tablectl.policies.variables import is_variable

if TYPE_CHECKING:  # they load what only plans need, and what reads YAML: `--help` does without
    from tablectl.model.plan import Plan
    from tablectl.project import Project


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
        from tablectl.project import EngineSource, Project  # noqa: PLC0415  # see above

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
class DriftCommandOptions:
    """The options of ``drift``."""

    look_back: int
    adopt: bool = False
    yes: bool = False


@frozen
class RunsOptions:
    """The options of ``runs``."""

    look_back: int
    days: int | None = None
    verbose: bool = False


@frozen
class UndoOptions:
    """The options of ``undo``."""

    run: str
    """The run's id, or its beginning."""
    look_back: int
    write: bool = False
    yes: bool = False
    save: Path | None = None
    """The plan file to write."""


@frozen
class ImportOptions:
    """The options of ``import``."""

    tables: tuple[str, ...]
    everything: bool = False
    output: Path | None = None
    """``None`` is standard output."""
    force: bool = False


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


@frozen
class ConflictOptions:
    """The options of ``conflicts``."""

    clients: tuple[str, ...] = ()
    operation: str = ""
    everything: bool = False
    between: tuple[str, str] | None = None
    """Two statements to compare, instead of the matrix."""
    auto_compact: bool | None = None
    """The sessions' ``spark.databricks.delta.autoCompact.enabled``; ``None`` if they do not set it."""


_CLIENT = re.compile(r"([a-z-]{1,60})(?:[ /:-]{0,4}(\d{1,4}(?:\.\d{1,4}){0,2})(?:\.x)?)?(?:[ -]+(photon))?\Z")


def client(text: str) -> tuple[Client, bool | None]:
    """``delta-spark 4.0``, ``databricks 14.2 photon``, ``kernel``: a client, and whether it has Photon, if it says so.

    Raises ``UsageError`` for an unknown client.
    """
    match = _CLIENT.match(text.strip().lower())
    family = find_family(match.group(1).rstrip("-")) if match else None
    if match is None or family is None or (match.group(3) and not family.photon):
        raise UsageError(
            f"--client {text!r} is not a client",
            "for example --client 'delta-spark 4.0', --client 'databricks 14.2 photon', --client kernel, "
            "--client delta-rs",
        )
    version = tuple(map(int, match.group(2).split("."))) if match.group(2) else ()
    photon = None
    if family.photon and version:
        photon = bool(match.group(3))
    return Client(family.name, version), photon
