"""Whether the Java that Spark will start is there and new enough."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tablectl.engine import find_java as module
from tablectl.engine.find_java import find_java, java_problem, parse_version
from tests.unreadable import unreadable

_OPENJDK = 'openjdk version "{}" 2025-04-15\nOpenJDK Runtime Environment (build {})\n'


def _home(tmp_path: Path, script: str) -> dict[str, str]:
    program = tmp_path / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return {"JAVA_HOME": str(tmp_path)}


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (_OPENJDK.format("17.0.15", "17.0.15+6"), 17),
        ('java version "1.8.0_392"\n', 8),
        ('openjdk version "21" 2023-09-19\n', 21),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "25-ea"\n', 25),
        ("bash: java: command not found", None),
        ("", None),
    ],
)
def test_versions(text: str, version: int | None) -> None:
    assert parse_version(text) == version


def test_java_home_comes_before_the_path(tmp_path: Path) -> None:
    home = _home(tmp_path, "")
    program = str(tmp_path / "bin" / "java")
    assert find_java(home) == program
    assert find_java({"PATH": str(tmp_path / "bin")}) == program
    assert find_java({"JAVA_HOME": str(tmp_path / "elsewhere"), "PATH": str(tmp_path / "bin")}) is None
    assert find_java({"JAVA_HOME": "", "PATH": str(tmp_path / "bin")}) == program


@pytest.mark.parametrize("version", ["17.0.15", "21", "25.0.1"])
def test_a_java_that_is_new_enough(tmp_path: Path, version: str) -> None:
    assert java_problem(_home(tmp_path, f"echo 'openjdk version \"{version}\"' >&2")) is None


@pytest.mark.parametrize(
    ("script", "what"),
    [
        ("echo 'openjdk version \"11.0.2\"' >&2", "is Java 11; install a newer JDK or set JAVA_HOME."),
        ("echo 'java version \"1.8.0_392\"' >&2", "is Java 8;"),
        ("echo hello", "does not say its version."),
        ("exit 1", "does not say its version."),
    ],
)
def test_one_clear_sentence_about_a_java_that_will_not_do(tmp_path: Path, script: str, what: str) -> None:
    problem = java_problem(_home(tmp_path, script))
    assert problem is not None
    assert problem.startswith("Spark needs Java 17 or newer, and ")
    assert what in problem
    assert "\n" not in problem


def test_no_java(tmp_path: Path) -> None:
    nowhere = java_problem({"PATH": str(tmp_path)})
    assert nowhere is not None
    assert "no java on the path; install a JDK or set JAVA_HOME." in nowhere
    wrong = java_problem({"JAVA_HOME": str(tmp_path)})
    assert wrong is not None
    assert f"JAVA_HOME={tmp_path} has no bin/java" in wrong


def test_a_java_that_cannot_be_run(tmp_path: Path) -> None:
    home = _home(tmp_path, "")
    (tmp_path / "bin" / "java").chmod(0o644)
    problem = java_problem(home)
    assert problem is not None
    assert "does not run" in problem


def test_it_runs_before_anything_is_installed(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", module.__file__],
        env={"PATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Spark needs Java 17 or newer")


def test_a_java_home_that_may_not_be_read_is_reported(tmp_path: Path) -> None:
    environ = _home(tmp_path / "closed", "true")
    with unreadable(tmp_path / "closed"):
        assert "does not run: [Errno 13] Permission denied" in (java_problem(environ) or "")
