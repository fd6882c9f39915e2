"""The program as the command-line library runs it: the parameters of those commands alone that a line can mean.

The library builds all parameters of a command from its annotations, two milliseconds each. A line runs one command,
and the list of all commands shows their names and first sentences.
"""

from __future__ import annotations

from collections.abc import Collection
from copy import copy
from typing import Any

import typer


def program_for(app: typer.Typer, words: Collection[str]) -> Any:
    """The commands of ``app`` for a line of some words. A command that is not among them has no parameters."""
    return typer.main.get_command(_reduced(app, words))


def _reduced(app: typer.Typer, words: Collection[str]) -> typer.Typer:
    reduced = copy(app)
    reduced.registered_commands = [
        each if _name(each) in words else _without_parameters(each) for each in app.registered_commands
    ]
    reduced.registered_groups = [copy(each) for each in app.registered_groups]
    for group in reduced.registered_groups:
        assert group.typer_instance is not None
        group.typer_instance = _reduced(group.typer_instance, words)
    return reduced


def _name(command: Any) -> str:
    return command.name or typer.main.get_command_name(command.callback.__name__)


def _without_parameters(command: Any) -> Any:
    """The same command with a function that has only the name and the documentation."""

    def function() -> None:
        """Replaced below."""

    function.__name__, function.__doc__ = command.callback.__name__, command.callback.__doc__
    reduced = copy(command)
    reduced.callback = function
    return reduced
