"""What a command costs: wall time, CPU time and peak memory of its process, as the kernel counts them."""

from __future__ import annotations

import atexit
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLECTL = (sys.executable, "-m", "tablectl")
"""The command line of this checkout; ``run`` puts it on the path."""

# The kernel counts the memory of whoever starts a process to its peak, so something small starts it.
_LAUNCHER = """
import json, os, sys, time
before = time.perf_counter()
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
seconds = time.perf_counter() - before
code = os.waitstatus_to_exitcode(status)
cpu = usage.ru_utime + usage.ru_stime
sys.stderr.write("\\n" + json.dumps([code, seconds, cpu, usage.ru_maxrss * 1024]))
"""


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one process from its start to its end."""

    seconds: float
    cpu: float
    """User and system time of all its threads, in seconds."""
    memory: int
    """The most memory it held at one time (resident set), in bytes."""


def run(
    *command: str, repeat: int = 3, expect: Sequence[int] = (0,), env: Mapping[str, str] | None = None
) -> tuple[Cost, str]:
    """What a command costs, and what its last run wrote to standard output.

    Of some runs the least time and the most memory: whatever else happens on a machine only ever adds time. Exits
    with the output of a command that ends in another code than ``expect``.
    """
    costs, text = [], ""
    for _ in range(repeat):
        cost, text = _once(command, expect, env or {})
        costs.append(cost)
    return Cost(
        min(cost.seconds for cost in costs), min(cost.cpu for cost in costs), max(cost.memory for cost in costs)
    ), text


@cache
def _bytecode() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="tablectl-benchmark-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _once(command: Sequence[str], expect: Sequence[int], env: Mapping[str, str]) -> tuple[Cost, str]:
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    # As pip leaves an installed package: compiled. The first run does it where no one else did.
    paths = {"PYTHONPATH": path, "PYTHONPYCACHEPREFIX": str(_bytecode()), "PYTHONDONTWRITEBYTECODE": ""}
    launcher = [sys.executable, "-I", "-S", "-c", _LAUNCHER, *command]
    with tempfile.TemporaryFile("w+") as out:
        done = subprocess.run(
            launcher,
            stdout=out,
            stderr=subprocess.PIPE,
            text=True,
            check=True,
            env={**os.environ, **paths, **env},
        )
        out.seek(0)
        text = out.read()
    said, _, last = done.stderr.rpartition("\n")
    code, seconds, cpu, memory = json.loads(last)
    if code not in expect:
        sys.exit(f"{' '.join(command)[:300]}\nended with {code}:\n{text[-2000:]}\n{said[-2000:]}")
    return Cost(seconds, cpu, memory), text
