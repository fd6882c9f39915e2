"""Runs tests/databricks_connect with databricks-connect, against a Spark Connect server that this repository starts.

``python -m tools.databricks_connect --python python3.12``: one environment per ``tests/databricks_connect/*.lock``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from chaos.server import ROOT, Server

_LOCKS = ROOT / "tests" / "databricks_connect"
_VENVS = ROOT / ".venv-databricks"
_NEEDED = (3, 12)


def main() -> int:
    """0 if the tests pass with every version, or if there is no Python for them, which is said."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--python", default="python3.12", help="Python 3.12, for which databricks-connect exists")
    parser.add_argument(
        "--venv", action="append", default=[], help="an environment that is ready, instead of the locks"
    )
    given = parser.parse_args()
    environments = [Path(each) for each in given.venv]
    if not environments:
        python = shutil.which(given.python)
        if python is None or _version(python) != _NEEDED:
            wanted = ".".join(map(str, _NEEDED))
            print(
                f"databricks-connect needs Python {wanted}, and {given.python} is none: nothing was tested. Name one "
                f"with `make test-databricks-connect PYTHON312=…`."
            )
            return 0
        environments = [_environment(python, lock) for lock in sorted(_LOCKS.glob("*.lock"))]
    with tempfile.TemporaryDirectory(prefix="tablectl-connect-") as folder:
        server = Server(Path(folder), dict(os.environ))
        server.start()
        try:
            results = [_tested(each, server.url) for each in environments]
        finally:
            server.kill()
    return max(results, default=1)


def _version(python: str) -> tuple[int, ...]:
    show = "import sys; print(*sys.version_info[:2])"
    told = subprocess.run([python, "-c", show], capture_output=True, text=True, check=False)
    return tuple(map(int, told.stdout.split()))


def _environment(python: str, lock: Path) -> Path:
    """The environment of a lock file, made again if the lock is newer."""
    place = _VENVS / lock.stem
    done = place / "installed"
    if not done.exists() or done.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([python, "-m", "venv", "--clear", str(place)], check=True)
        install = [str(place / "bin/python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, "--require-hashes", "-r", str(lock)], check=True)
        done.touch()
    return place


def _tested(place: Path, url: str) -> int:
    python = str(place / "bin/python")
    show = "from importlib.metadata import version as v; print('databricks-connect', v('databricks-connect'))"
    subprocess.run([python, "-c", show], check=True)
    environ = {**os.environ, "PYTHONPATH": str(ROOT), "TABLECTL_TEST_CONNECT_URL": url}
    tests = ["tests/databricks_connect", "tests/catalogs/test_databricks_sdk.py"]
    command = [python, "-m", "pytest", "-p", "no:cacheprovider", "-q", "-rs", *tests]
    return subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
