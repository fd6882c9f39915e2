"""How an apply runs the command of a hook."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from tablectl.support.processes import Invocation, ProcessLimits, run_lines


class RunHook(Protocol):
    """Runs a command. Returns why it failed; empty if it succeeded."""

    def __call__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        """``environ`` is added to this process's environment. ``said`` gets each line of output, on a thread of its
        own. The command is ended as soon as ``stopped`` returns true.
        """
        ...


def run_nothing(
    command: Sequence[str],  # noqa: ARG001  # the signature of ``RunHook``
    environ: Mapping[str, str],  # noqa: ARG001
    said: Callable[[str], None],  # noqa: ARG001
    stopped: Callable[[], bool],  # noqa: ARG001
) -> str:
    """The ``RunHook`` of a run without hooks."""
    return "cannot be run here"


def hook_runner(directory: Path, timeout: float, grace: float = 5.0) -> RunHook:
    """Runs commands in a directory, each for at most ``timeout`` seconds. ``grace`` is the time in seconds between
    asking a command to end and killing it.
    """

    def run(
        command: Sequence[str],
        environ: Mapping[str, str],
        said: Callable[[str], None],
        stopped: Callable[[], bool],
    ) -> str:
        limits = ProcessLimits(timeout, "window.hook_timeout", grace, stopped)
        return run_lines(Invocation(command, directory, {**os.environ, **environ}), said, limits)

    return run
