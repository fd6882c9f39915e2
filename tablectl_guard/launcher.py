"""``tablectl-guard run -- COMMAND``: runs a job whose Spark sessions are guarded, with no change of the job.

The job's Python finds a ``sitecustomize`` of ours first, which waits for ``pyspark`` to be imported and then wraps its
methods (``tablectl/writers/session.py``).
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tablectl.leases.guards import TTL
from tablectl.model.errors import ExitCode
from tablectl.version import __version__
from tablectl.writers.options import guard_options
from tablectl.writers.session import NOT_COVERED

_INJECT = str(Path(__file__).parent / "inject")


def main() -> None:
    """The command ``tablectl-guard``. Does not return if the job starts."""
    sys.exit(run(sys.argv[1:], os.environ))


def run(arguments: Sequence[str], environ: Mapping[str, str]) -> int:  # noqa: RET503  # exec does not return
    """Become the command, with the guards in its environment. Returns an exit code if that is impossible."""
    options = _parser().parse_args(arguments)
    command = options.command[1:] if options.command[:1] == ["--"] else options.command
    if not command:
        _say("name the command of the job: tablectl-guard run -- spark-submit job.py")
        return ExitCode.USAGE
    try:
        guard_options(
            "/checked", "any", name=options.name, timeout=options.timeout, state=options.state, ttl=options.ttl
        )
    except (ValueError, TypeError) as error:
        _say(str(error))
        return ExitCode.USAGE
    program = shutil.which(command[0], path=environ.get("PATH"))
    if program is None:
        _say(f"there is no command {command[0]}")
        return 127  # as a shell
    uncovered = not_covered(command)
    _say(f"{uncovered}: this job runs without guards" if uncovered else f"writes are guarded; {NOT_COVERED}")
    sys.stderr.flush()
    environment = guarded_environment(environ, options.name, options.timeout, options.state, options.ttl)
    os.execve(program, list(command), environment)  # noqa: S606  # the command of the user


def guarded_environment(
    environ: Mapping[str, str], name: str = "", timeout: float | None = None, state: str | None = None, ttl: float = TTL
) -> dict[str, str]:
    """The environment of the job."""
    path = os.pathsep.join([_INJECT, *(each for each in [environ.get("PYTHONPATH", "")] if each)])
    settings = {"TABLECTL_GUARD_RUN": "1", "PYTHONPATH": path, "TABLECTL_GUARD_NAME": name}
    settings["TABLECTL_GUARD_TTL"] = repr(ttl)
    settings.update({"TABLECTL_GUARD_TIMEOUT": repr(timeout)} if timeout is not None else {})
    settings.update({"TABLECTL_STATE": state} if state is not None else {})
    return {**environ, **settings}


def not_covered(command: Sequence[str]) -> str:
    """Why a job cannot be covered, as far as its command shows it; empty if it can."""
    if not Path(command[0]).name.startswith("spark-"):
        return ""
    if Path(command[0]).name.startswith("spark-sql"):
        return "spark-sql runs in the JVM"
    pairs = [*zip(command, command[1:]), *(tuple(each.split("=", 1)) for each in command if "=" in each)]
    if ("--deploy-mode", "cluster") in pairs or ("spark.submit.deployMode", "cluster") in pairs:
        return "with --deploy-mode cluster the driver starts elsewhere: call tablectl_guard.guard_session in the job"
    if "--class" in command or _program(command).endswith(".jar"):
        return "a job of the JVM has no Python to guard"
    return ""


def _program(command: Sequence[str]) -> str:
    """The file that ``spark-submit`` runs: its first word that is neither an option nor the value of one."""
    flags = {"--verbose", "-v", "--supervise"}
    before = ("", *command)
    words = (
        word
        for last, word in zip(before[1:], command[1:])
        if not word.startswith("-") and not (last.startswith("-") and last not in flags and "=" not in last)
    )
    return next(words, "")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tablectl-guard", description="Guard the writes of a job.")
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(dest="verb", required=True)
    job = commands.add_parser("run", help="Run a job; every write of its Spark sessions is guarded.")
    job.add_argument("--name", default="", help="The job's name, for whoever waits for it.")
    job.add_argument("--timeout", type=float, help="Seconds to wait at a gate. Default: while the apply is alive.")
    job.add_argument(
        "--ttl", type=float, default=TTL, help="Seconds after which an apply takes a silent write for dead."
    )
    job.add_argument("--state", help="Where the records are, as `state:` in tablectl.yaml. Default: TABLECTL_STATE.")
    job.add_argument("command", nargs=argparse.REMAINDER, help="-- python job.py | -- spark-submit job.py")
    return parser


def _say(text: str) -> None:
    print(f"tablectl-guard: {text}", file=sys.stderr)  # noqa: T201  # a command
