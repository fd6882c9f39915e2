"""The commands: a module has the name of its command, and the others hold what commands share."""

from __future__ import annotations

import gc
import os
import sys


def main() -> None:
    """The console script: runs one command and exits with its code."""
    # A command makes records that stay until it ends. By default, Python looks at them again for every 700 new ones.
    gc.set_threshold(100_000)
    from tablectl.commands.command_line import run_cli  # noqa: PLC0415  # the package must be importable without click
    from tablectl.commands.output import print_debug_log  # noqa: PLC0415  # as above

    print_debug_log(os.environ)
    sys.exit(run_cli(sys.argv[1:], os.environ))
