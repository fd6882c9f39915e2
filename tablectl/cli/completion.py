"""Shell completion of table names, tags, environments and other names from the policies and ``tablectl.yaml``.

Whoever presses the tab key waits: only files of the repository are read, and none where they are many. Nothing is said
where they cannot be: a shell in the middle of a line has no place for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from tablectl.model.errors import TablectlError

if TYPE_CHECKING:  # every command line defines completions, but few request any
    from tablectl.policies.spec import Specs

ASKED = "_TABLECTL_COMPLETE"
"""The variable with which a shell's script requests completions."""
_MOST_BYTES = 150_000
"""Maximum bytes of policy files to read: about 1,500 tables, a third of a second."""
_PLAIN = re.compile(r"\w[\w.-]*\Z", re.ASCII)
"""Names that every shell takes as a plain word. In most shells, the backticks of a path would run a command."""


class Shell(StrEnum):
    """The shells with completion."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def script(shell: Shell) -> str:
    """The script that a shell must load once to complete our command lines."""
    from typer._completion_shared import get_completion_script  # noqa: PLC0415  # slow to load, as below

    return f"{get_completion_script(prog_name='tablectl', complete_var=ASKED, shell=shell)}\n"


def answer(app: typer.Typer) -> NoReturn:
    """Print the completions that such a script requests to standard output. Ends the process."""
    from typer._completion_classes import completion_init  # noqa: PLC0415

    completion_init()
    app(args=[], prog_name="tablectl")
    raise SystemExit(0)


def environments(incomplete: str) -> list[str]:
    """For ``--env``."""

    def known() -> Iterable[str]:
        from tablectl.policies.config import load_config  # noqa: PLC0415

        return load_config(Path(), {}, "").env

    return _starting(incomplete, known)


def tables(ctx: typer.Context, incomplete: str) -> list[str]:
    """For identifiers and globs of tables."""
    return _starting(incomplete, lambda: (spec.name.text for spec in _policies(ctx).tables))


def tags(ctx: typer.Context, incomplete: str) -> list[str]:
    """For ``--tag``."""

    def known() -> Iterable[str]:
        specs = _policies(ctx)
        given = (each.layer().declared.get("tags") for each in specs.declarations.patterns)
        of_patterns = (tag for each in given if each for tag in each.value or ())
        return (*(tag for spec in specs.tables for tag in spec.tags), *of_patterns)

    return _starting(incomplete, known)


def tables_and_words(ctx: typer.Context, incomplete: str) -> list[str]:
    """For the argument of ``explain``."""

    def words() -> Sequence[str]:
        from tablectl.conflicts.glossary import term_names  # noqa: PLC0415

        return term_names()

    return [*tables(ctx, incomplete), *_starting(incomplete, words)]


def operations(incomplete: str) -> list[str]:
    """For ``conflicts --operation``."""

    def keys() -> Iterable[str]:
        from tablectl.conflicts.operations import OPERATIONS  # noqa: PLC0415

        return (each.key for each in OPERATIONS)

    return _starting(incomplete, keys)


def clients(incomplete: str) -> list[str]:
    """For ``conflicts --client``; versions are not completed."""

    def known() -> Iterable[str]:
        from tablectl.delta.client_families import FAMILIES  # noqa: PLC0415

        return (each.name for each in FAMILIES)

    return _starting(incomplete, known)


def _starting(incomplete: str, names: Callable[[], Iterable[str]]) -> list[str]:
    try:
        found = names()
    except Exception:  # noqa: BLE001  # no place for a message; a traceback would end up in the command line
        return []
    return sorted({name for name in found if name.startswith(incomplete) and _PLAIN.match(name)})


def _policies(ctx: typer.Context) -> Specs:
    """The policies for the command line so far; without an environment in it, those of the first one.

    Raises ``TablectlError`` if they are invalid or too many.
    """
    from tablectl.cli.request import variables  # noqa: PLC0415
    from tablectl.policies.find_files import find_files  # noqa: PLC0415
    from tablectl.policies.repository import policy_paths  # noqa: PLC0415
    from tablectl.project import Project  # noqa: PLC0415

    given = variables(ctx.params.get("var"))
    project = Project.open(env=ctx.params.get("env"), variables=given)
    if project.config.env and not project.config.environment:
        project = Project.open(env=next(iter(project.config.env)), variables=given)
    files = find_files(policy_paths(None, project.config, "."), [])
    if sum(file.stat().st_size for file in files) > _MOST_BYTES:
        raise TablectlError("too many policies to read during completion")
    return project.policies()
