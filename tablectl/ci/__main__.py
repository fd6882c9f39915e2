"""``python -P -m tablectl.ci STEP``: called by `action.yml` and the workflow of `tablectl init`."""

from __future__ import annotations

import os
import sys

from tablectl.ci.job import CiJob
from tablectl.ci.steps import STEPS, run_step
from tablectl.commands.output import print_debug_log
from tablectl.model.errors import ExitCode


def main(args: list[str]) -> int:
    """Run one step and return its exit code."""
    if len(args) != 1 or args[0] not in STEPS:
        sys.stderr.write(f"usage: python -P -m tablectl.ci {'|'.join(STEPS)}\n")
        return ExitCode.USAGE
    print_debug_log(os.environ)
    return run_step(args[0], CiJob(os.environ))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
