"""The command line: build inputs, call the workflow, render, exit."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The console script: runs one command and exits with its code."""
    from tablectl.cli.app import run_cli  # noqa: PLC0415  # the package must be importable without typer

    sys.exit(run_cli(sys.argv[1:], os.environ))
