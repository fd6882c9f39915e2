"""The command line: build inputs, call the workflow, render, exit."""

from __future__ import annotations

import os
import sys
from types import TracebackType


def main() -> None:
    """The console script: runs one command and exits with its code."""
    from tablectl.cli.app import run_cli  # noqa: PLC0415  # the package must be importable without typer

    sys.excepthook = _tell
    sys.exit(run_cli(sys.argv[1:], os.environ))


def _tell(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback; its last line may contain foreign text."""
    from traceback import format_exception  # noqa: PLC0415  # as above

    from tablectl.model.output_escapes import escape_output  # noqa: PLC0415

    sys.stderr.write(escape_output("".join(format_exception(kind, error, trace))))
