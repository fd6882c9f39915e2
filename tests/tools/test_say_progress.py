"""What `make demo` and `make test` say while they install."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tools.say_progress import main


def test_a_command_that_succeeds_says_only_how_long_it_took(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["installing", sys.executable, "-c", "print('Collecting pyspark')"]) == 0
    assert capfd.readouterr().out.startswith("installing: done in ")


def test_a_command_that_fails_shows_what_it_said_and_its_code(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["installing", sys.executable, "-c", "print('no such package'); raise SystemExit(3)"]) == 3
    assert capfd.readouterr() == ("", "no such package\n")


def test_a_command_that_runs_is_said_to_run_with_its_last_line(tmp_path: Path) -> None:
    """It runs until that was said."""
    fifo = tmp_path / "said"
    os.mkfifo(fifo)
    told: list[str] = []

    def say(text: str) -> None:
        told.append(text)
        if "Collecting pyspark" in text:
            fifo.write_text("go on")

    script = f"print('Collecting pyspark', flush=True); open({str(fifo)!r}).read()"
    assert main(["installing", sys.executable, "-c", script], 0.01, say) == 0
    assert any(re.fullmatch(r"installing, \d+ s: Collecting pyspark", each) for each in told)
    assert told[-1].startswith("installing: done in ")
