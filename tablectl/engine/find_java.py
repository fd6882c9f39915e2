"""Whether this machine has a Java that Spark starts with. Standard library only: the Makefile runs it first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

LEAST = 17
"""The oldest Java that Spark 4 starts with."""


def find_java(environ: Mapping[str, str]) -> str | None:
    """The ``java`` that Spark starts: the one in ``JAVA_HOME``, else the first on the path."""
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        return str(java) if _may_exist(java) else None
    return shutil.which("java", path=environ.get("PATH"))


def _may_exist(java: Path) -> bool:
    try:
        return java.is_file()
    except OSError:  # no permission: running it says so
        return True


def parse_version(text: str) -> int | None:
    """The major version in the output of ``java -version``: ``17.0.15`` is 17, ``1.8.0_392`` is 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def java_problem(environ: Mapping[str, str]) -> str | None:
    """What is wrong with the Java of this machine, and the fix, in one sentence; ``None`` if it suits Spark."""
    java = find_java(environ)
    if java is None:
        where = (
            f"JAVA_HOME={environ['JAVA_HOME']} has no bin/java" if environ.get("JAVA_HOME") else "no java on the path"
        )
        return f"Spark needs Java {LEAST} or newer, and there is none: {where}; install a JDK or set JAVA_HOME."
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"Spark needs Java {LEAST} or newer, and {java} does not run: {error}."
    version = parse_version(answer.stderr + answer.stdout)
    if version is None:
        return f"Spark needs Java {LEAST} or newer, and {java} does not say its version."
    if version < LEAST:
        return f"Spark needs Java {LEAST} or newer, and {java} is Java {version}; install a newer JDK or set JAVA_HOME."
    return None


if __name__ == "__main__":
    sys.exit(java_problem(os.environ))
