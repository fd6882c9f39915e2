"""The program with all its commands loaded, for tests that look at each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tablectl.commands.command_line import load_command, program


def whole_program(group: Any = None, above: str = "") -> Any:
    group = group or program()
    for name, each in group.commands.items():
        path = f"{above} {name}".strip()
        group.commands[name] = whole_program(each, path) if hasattr(each, "commands") else load_command(path)
    return group


PROGRAM = whole_program()


def commands(path: tuple[str, ...] = (), command: Any = PROGRAM) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The words that lead to every command and group, and the command."""
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands((*path, name), inner)
