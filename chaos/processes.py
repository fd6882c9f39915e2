"""The harness's processes: the command under test and the writers. Each leads a process group, to be ended whole."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from chaos.server import ROOT
from chaos.writer import KINDS


class Command:
    """A run of the command line, its output in a file."""

    def __init__(
        self, arguments: Sequence[str], folder: Path, log: Path, environ: Mapping[str, str], *, guarded: bool = False
    ) -> None:
        """``guarded``: it is started as a job whose writes are guarded, by ``tablectl-guard run``."""
        self.log = log
        launcher = [sys.executable, "-W", "ignore", "-m", "tablectl_guard", "run", "--"] if guarded else []
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                [*launcher, sys.executable, "-W", "ignore", "-m", "tablectl", *arguments],
                cwd=folder,
                env={**environ, "PYTHONPATH": str(ROOT), "COLUMNS": "160"},
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                start_new_session=True,
            )

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def send(self, sign: signal.Signals) -> None:
        """A signal to it and to all that it started; nothing where it has ended."""
        if not self.runs:
            return
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, sign)

    def wait(self, seconds: float) -> int | None:
        """Its exit code; ``None`` where it runs for longer and was killed."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self._process.wait()
            return None


class Writer:
    """A writer process, which is started again where it has ended or does not rest."""

    def __init__(self, kind: str, number: int, folder: Path, environ: Mapping[str, str]) -> None:
        self.number = number
        self.kind = kind
        self._folder = folder
        self._environ = environ
        self._answers: queue.Queue[str] = queue.Queue()
        self._process: subprocess.Popen[str] | None = None

    def work(self, order: Mapping[str, Any]) -> None:
        """Begin a round."""
        if self._process is None or self._process.poll() is not None:
            self._start()
        self._say({"do": "work", **order})

    def rest(self, seconds: float) -> bool:
        """End the round; False where it did not end its transaction in time and was killed."""
        with suppress(OSError):
            self._say({"do": "rest"})
            try:
                self._answers.get(timeout=seconds)
            except queue.Empty:
                self.close()
                return False
            return True
        self.close()
        return False

    def close(self) -> None:
        """Kill it."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def _start(self) -> None:
        with (self._folder / f"writer-{self.number}.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-W", "ignore", "-m", "chaos.writer", self.kind, str(self.number)],
                cwd=self._folder,
                env={**self._environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        self._answers = queue.Queue()
        threading.Thread(target=_read, args=(self._process, self._answers), daemon=True).start()

    def _say(self, body: Mapping[str, Any]) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(body) + "\n")
        self._process.stdin.flush()


def _read(process: subprocess.Popen[str], answers: queue.Queue[str]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(line)


def writers(folder: Path, environ: Mapping[str, str]) -> list[Writer]:
    """One of each kind, not yet started."""
    return [Writer(kind, number, folder, environ) for number, kind in enumerate(KINDS, start=1)]
