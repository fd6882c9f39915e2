"""A command line builds the parameters of its own command alone, and everything looks as if it built all of them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
import typer

from tablectl.commands.app import app
from tablectl.commands.program import program_for
from tests.commands.conftest import Cli

WHOLE: Any = typer.main.get_command(app)
PATHS = [(), *((name,) for name in WHOLE.commands), ("window", "show"), ("window", "break")]


def shown(program: Any, path: tuple[str, ...]) -> str:
    """The help of a command."""
    context = program.make_context("tablectl", [], resilient_parsing=True)
    for name in path:
        program = program.commands[name]
        context = program.make_context(name, [], parent=context, resilient_parsing=True)
    return str(program.get_help(context))


@pytest.mark.parametrize("path", PATHS, ids=" ".join)
def test_its_help_is_that_of_the_whole_program(path: tuple[str, ...]) -> None:
    assert shown(program_for(app, [*path, "--help"]), path) == shown(WHOLE, path)


def test_only_the_command_of_the_line_has_parameters() -> None:
    reduced = program_for(app, ["plan", "policies"])
    assert [name for name, each in reduced.commands.items() if each.params] == ["plan"]
    assert WHOLE.commands["apply"].params


def test_an_option_before_the_command_is_read(cli: Cli) -> None:
    assert cli("--version", "plan").out.startswith("tablectl ")


def test_a_mistyped_command_gets_a_suggestion(cli: Cli) -> None:
    assert "Did you mean 'plan'" in cli("plam").err
    assert "Did you mean 'break'" in cli("window", "brek").err


def test_a_shell_completes_commands_and_options() -> None:
    def completed(*words: str) -> list[str]:
        asked = {"COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        environ = {**os.environ, "_TABLECTL_COMPLETE": "complete_bash", **asked}
        command = [sys.executable, "-m", "tablectl"]
        done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True, timeout=60)
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("tablectl", "exp") == ["explain"]
    assert completed("tablectl", "plan", "--merge", "--detailed") == ["--detailed-exitcode"]
    assert completed("tablectl", "plan", "--format", "j") == ["json", "junit"]
