"""A command line loads its own command alone."""

from __future__ import annotations

import os
import subprocess
import sys

from tablectl.commands.command_line import COMMANDS
from tests.commands.conftest import Cli


def test_only_the_command_of_the_line_is_loaded() -> None:
    code = (
        "import sys; from tablectl.commands.command_line import run_cli; run_cli(sys.argv[1:], {}); print(*sys.modules)"
    )
    for args, loaded in ([["--help"], set()], [["validate", "--help"], {"validate"}]):
        done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, check=True)
        modules = {module for module, _ in COMMANDS.values()}
        assert {each for each in modules if f"tablectl.commands.{each}" in done.stdout.split()} == loaded


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
