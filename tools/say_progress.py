"""Runs a command and says every ten seconds what its output last said; the whole output only if the command fails.

``python tools/say_progress.py "installing Spark" COMMAND ARGUMENT…``: with any Python 3, before anything is installed.
The exit code is that of the command.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from threading import Thread
from time import monotonic

EVERY = 10.0


def main(arguments: Sequence[str], every: float = EVERY, say: Callable[[str], object] = print) -> int:
    """Run ``arguments[1:]``; ``arguments[0]`` says what it does."""
    what, *command = arguments
    began = monotonic()
    said: list[str] = []
    with subprocess.Popen(  # the Makefile's own command
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as process:
        reader = Thread(target=lambda: said.extend(process.stdout or ()), daemon=True)
        reader.start()
        while True:
            reader.join(every)
            if not reader.is_alive():
                break
            last = said[-1].strip()[:100] if said else "no output yet"
            say(f"{what}, {monotonic() - began:.0f} s: {last}")
            sys.stdout.flush()
    if process.returncode:
        print("".join(said), end="", file=sys.stderr)
    else:
        say(f"{what}: done in {monotonic() - began:.0f} s")
    return process.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
