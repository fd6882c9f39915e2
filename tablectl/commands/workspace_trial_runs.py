"""What the trial in a workspace does with whole commands: an apply during guarded appends, one that is killed and
continued, and an undo. Each command is a process of its own, in a folder of its own, with the engine and the catalogs
of the user's configuration and nothing else of it: no hook and no notification of the user runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tablectl
from tablectl.delta.databricks_runtimes import WORKS
from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode
from tablectl.policies.branch import BASE
from tablectl.policies.config_file import ENV, FILE, read_values
from tablectl.support.frozen import frozen
from tablectl.support.json_text import read_json, write_json

_TAKEN = ("engine", "catalogs", "stores")
_TTL = 10
"""The lease of a killed apply is taken over soon."""
_PATIENCE = 900
"""Seconds after which a command of the trial is ended."""
_KILLED = -9
_KILL = """
import os, signal, sys
from pathlib import Path
import tablectl
from tablectl.commands.run_plan import Control

def notify(event):
    if event.step.startswith("after "):
        os.kill(os.getpid(), signal.SIGKILL)

tablectl.apply(Path(sys.argv[1]), control=Control(notify=notify))
"""

Outcome = Callable[[str], str]
"""Runs a statement; ``WORKS``, or the class of the error."""
Command = Callable[[Sequence[str]], tuple[int, str]]
"""Runs a command of Python; its exit code and what it printed."""


@frozen
class Commands:
    """Runs commands in a folder, for one table."""

    folder: Path
    run: Command

    def declare(self, table: TableName, policy: Mapping[str, object]) -> None:
        """The one policy of the folder."""
        text = write_json({"version": 1, "tables": {table.text: dict(policy)}})
        (self.folder / "policies.yaml").write_text(text, "utf-8")

    def tablectl(self, *arguments: str) -> tuple[str, dict[str, Any]]:
        """``WORKS``, else the class of a statement's error or the exit code; and the result as JSON."""
        code, out = self.run(("-m", "tablectl", *arguments))
        try:
            found = read_json(out)
        except ValueError:
            found = {}
        result: dict[str, Any] = found if isinstance(found, dict) else {}
        if code == ExitCode.DONE:
            return WORKS, result
        sent = [each for table in result.get("tables", ()) for each in table.get("statements", ())]
        classes = [str(each["condition"]) for each in sent if each.get("condition")]
        return classes[0] if classes else f"exit code {code}", result


@contextmanager
def commands_in_a_folder(
    directory: Path, env: str, remote: str | None = None, environ: Mapping[str, str] = os.environ
) -> Iterator[Commands]:
    """Commands with the engine and the catalogs of a repository's configuration. ``remote`` replaces the engine's
    server, as ``--remote`` does. Raises ``InputError``.
    """
    with tempfile.TemporaryDirectory(prefix="tablectl-trial-", ignore_cleanup_errors=True) as made:
        folder = Path(made)
        values, _ = read_values(Path(environ.get(BASE) or directory / FILE), [])
        of_env = {name: _taken(section) for name, section in values.get("env", {}).items() if name == env}
        config = {**_taken(values), "env": of_env, "policies": "policies.yaml", "window": {"ttl": _TTL}}
        if remote:
            for section in (config, *of_env.values()):
                section["engine"] = {**_without_server(section.get("engine", {})), "remote": remote}
        (folder / FILE).write_text(write_json(config), "utf-8")
        given = {**environ, ENV: env, "TABLECTL_STATE": str(folder / "records"), "NO_COLOR": "1"}
        if environ.get(BASE):
            given[BASE] = str(folder / FILE)

        def run(arguments: Sequence[str]) -> tuple[int, str]:
            command = [sys.executable, *arguments]
            ended = subprocess.run(  # noqa: S603  # this Python, with arguments of this module
                command, cwd=folder, env=given, capture_output=True, text=True, timeout=_PATIENCE, check=False
            )
            return ended.returncode, ended.stdout

        yield Commands(folder, run)


def _without_server(engine: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in engine.items() if key not in {"remotes", "thrift", "warehouse"}}


def _taken(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in _TAKEN}


def try_runs(commands: Commands, table: TableName, location: str, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """The facts. The table has the property ``stray`` and the column ``id``."""
    policy = {"isolation": "Serializable", "properties": {"owner.team": "web"}}
    commands.declare(table, policy)
    planned, _ = commands.tablectl("plan", "--out", "1.json", "--format", "json")
    with _writer(commands, table, location, outcome) as told:
        applied = planned if planned != WORKS else commands.tablectl("apply", "1.json", "--format", "json")[0]
    yield {"run": "apply during guarded appends", "outcome": applied, "writes": told}
    commands.declare(table, {**policy, "properties": {"owner.team": "data", "stray": None}})
    planned, _ = commands.tablectl("plan", "--out", "2.json", "--format", "json")
    code, _ = commands.run(("-c", _KILL, "2.json"))
    continued, result = commands.tablectl("apply", "2.json", "--format", "json")
    if planned == WORKS and code != _KILLED:
        continued = f"not killed: exit code {code}"
    yield {"run": "an apply killed after its first statement, and continued", "outcome": continued}
    run = str(result.get("run", "none"))
    undone, _ = commands.tablectl("undo", run, "--write", "--yes", "--out", "3.json", "--format", "json")
    if undone == WORKS:
        undone, _ = commands.tablectl("apply", "3.json", "--format", "json")
    yield {"run": "undo of what it continued", "outcome": undone}


@contextmanager
def _writer(commands: Commands, table: TableName, location: str, outcome: Outcome) -> Iterator[dict[str, int]]:
    """Guarded appends, from before the body to after it: how many ended how."""
    told: dict[str, int] = {}
    begun, over = threading.Event(), threading.Event()

    def write() -> None:
        try:
            while not over.is_set():
                with tablectl.guard(None, location, "append", name="trial", state=str(commands.folder / "records")):
                    how = outcome(f"INSERT INTO {table.sql} (id) VALUES (1)")  # noqa: S608  # a quoted name
                told[how] = told.get(how, 0) + 1
                begun.set()
        finally:
            begun.set()

    writer = threading.Thread(target=write, daemon=True)
    writer.start()
    begun.wait(_PATIENCE)
    try:
        yield told
    finally:
        over.set()
        writer.join(_PATIENCE)
