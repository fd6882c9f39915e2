"""One table's trouble costs one table, in every command and whatever function it is in."""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import pytest

from tablectl.commands.command_line import COMMANDS as LISTED
from tablectl.commands.parameters import Place
from tablectl.model.errors import DEBUG
from tests.commands.conftest import Cli, FakeSpark, Repository, Result
from tests.commands.log_lake import Logged, append
from tests.injection import Function, InjectedError, Injector

_BEFORE = "{isolation: default, properties: {owner.team: web, note: null}}"
_AFTER = "{isolation: Serializable, properties: {owner.team: payments, note: new}, deletion_vectors: enabled}"
_TABLES = ("a", "b", "c")


@dataclass
class Lake:
    """Three tables, of which ``b`` has the trouble. ``again`` restores the files."""

    repo: Repository
    cli: Cli

    def __post_init__(self) -> None:
        for name in _TABLES:
            table = self.repo.table(name, properties={"owner.team": "web"})
            append(table, "WRITE", [{"txn": {"appId": "s", "version": 1}}])
        self.repo.policies(dict.fromkeys(_TABLES, _AFTER))
        self.keep()

    def keep(self) -> None:
        shutil.copytree(self.repo.root.parent, self._kept, dirs_exist_ok=True, ignore=shutil.ignore_patterns("kept"))

    @property
    def _kept(self) -> str:
        return f"{self.repo.root.parent}/kept"

    def again(self) -> None:
        for name in ("lake", "repo"):
            for each in (self.repo.root.parent / name).iterdir():
                shutil.rmtree(each) if each.is_dir() else each.unlink()
            shutil.copytree(f"{self._kept}/{name}", self.repo.root.parent / name, dirs_exist_ok=True)

    def spelled_out(self, text: str) -> str:
        """A report whose tables have their folder again, which stands once above them."""
        if f"In {self.repo.lake}/:\n" not in text:
            return text
        return re.sub(r"(?m)(^\S |^  |^|, )([abc])(?=,|  |$)", rf"\1{self.repo.lake}/\2", text)

    def tables(self, text: str) -> frozenset[str]:
        """The tables that a text names."""
        return frozenset(re.findall(rf"{re.escape(str(self.repo.lake))}/(\w)\b", text))


Args = Callable[[Lake], Sequence[str]]
Done = Callable[[Lake, str, Result], bool]


def _shown(lake: Lake, name: str, result: Result) -> bool:
    return f"{lake.repo.lake}/{name}" in lake.spelled_out(result.out)


def _applied(lake: Lake, name: str, _result: Result) -> bool:
    return Logged(lake.repo.lake / name).properties.get("owner.team") == "payments"


def _run(lake: Lake) -> str:
    return Logged(lake.repo.lake / "a").stamps[-1]["run"]


def _undeclared(lake: Lake) -> list[str]:
    (lake.repo.root / "policies" / "lake.yaml").unlink(missing_ok=True)
    return ["import", f"delta.`{lake.repo.lake}/*`"]


def _one_after_another(lake: Lake) -> list[str]:
    """An apply that begins no table before the trouble of another has ended."""
    (lake.repo.root / "tablectl.yaml").write_text("window: {parallel: 1}\n")
    return ["apply", "--yes", "--verbose"]


def _kept_up(lake: Lake) -> list[str]:
    lake.repo.policies(dict.fromkeys(_TABLES, "{upkeep: {optimize: {small_files: 30%}, vacuum: {every: 7 days}}}"))
    return ["upkeep"]


COMMANDS: dict[str, tuple[Args, Done]] = {
    "plan": (lambda _: ["plan", "--verbose", "--no-cache"], _shown),
    "drift": (lambda _: ["drift", "--verbose", "--no-cache"], _shown),
    "lint": (lambda _: ["lint"], lambda *_: True),
    "lint json": (lambda _: ["lint", "--format", "json"], _shown),
    "status": (lambda _: ["status", "--debt"], _shown),
    "advise": (lambda _: ["advise"], lambda *_: True),
    "advise json": (lambda _: ["advise", "--format", "json"], _shown),
    "check": (lambda _: ["check"], lambda *_: True),
    "check json": (lambda _: ["check", "--format", "json"], _shown),
    "import": (_undeclared, _shown),
    "import json": (lambda lake: [*_undeclared(lake), "--format", "json"], _shown),
    "apply": (_one_after_another, _applied),
    "runs": (lambda _: ["runs", "--verbose"], _shown),
    "undo": (lambda lake: ["undo", _run(lake)], _shown),
    "upkeep": (_kept_up, _shown),
    "upkeep json": (lambda lake: [*_kept_up(lake), "--format", "json"], _shown),
    "conflicts": (lambda lake: ["conflicts", lake.repo.name("b")], lambda *_: True),
}
_ABOUT_NO_TABLE = {
    "validate": "reads policies",
    "show": "renders a plan as `plan` does",
    "rename": "edits policies",
    "explain": "explains one policy or one word",
    "init": "imports, as `import`",
    "doctor": "checks the installation",
    "lock": "writes a list of packages",
    "schema": "prints a schema",
    "create": "is about one table",
    "defaults": "reads policies",
    "demo": "makes tables of its own",
}
_APPLIED_BEFORE = {"runs", "undo"}


def test_every_command_that_handles_tables_is_tested() -> None:
    names = {path for path in LISTED if " " not in path}
    assert names == {each.split()[0] for each in COMMANDS} | set(_ABOUT_NO_TABLE)


@pytest.fixture
def lake(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> Lake:
    return Lake(repo, cli)


def _same(one: Result, other: Result) -> bool:
    def plain(text: str) -> str:
        return re.sub(r"[0-9a-f]{12}|[0-9.,]+ (?:ms|s)\b|\d+", "0", text)

    return (one.code, plain(one.out), plain(one.err)) == (other.code, plain(other.out), plain(other.err))


def _wrong(lake: Lake, command: str, target: Function, quiet: Result, records: list[logging.LogRecord]) -> str:
    """What is wrong after an exception in a function; empty if nothing is."""
    args, done = COMMANDS[command]
    lake.again()
    words = args(lake)
    injector = Injector(lake.tables, "b", target)
    records.clear()
    with injector.watching():
        try:
            result = lake.cli(*words)
        except InjectedError:
            return "ended with a traceback"
    if not injector.fired or _same(result, quiet):
        return ""
    problems = []
    # A place that cannot be searched may hold a shallow clone of any table: then every VACUUM is refused.
    known = {1, 3, 5} if command.startswith("upkeep") else {1, 5}
    if result.code not in known:
        problems.append(f"exit code {result.code}")
    if f"{lake.repo.lake}/b" not in lake.spelled_out(result.out) + result.err:
        problems.append("the table is not named")
    problems += [f"{name} is not done" for name in ("a", "c") if not done(lake, name, result)]
    if "Traceback" in result.err:
        problems.append("a traceback is printed")
    logged = [each for each in records if each.exc_info and isinstance(each.exc_info[1], InjectedError)]
    if not any(each.levelno == logging.DEBUG for each in logged):
        problems.append("no traceback in the debug log")
    return ", ".join(problems)


@pytest.mark.parametrize("command", COMMANDS)
def test_an_exception_costs_one_table(lake: Lake, command: str, caplog: pytest.LogCaptureFixture) -> None:
    inject(lake, command, caplog, lambda function: crc32(repr(function).encode()) % 24 == 0)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_an_exception_in_every_function_costs_one_table(
    lake: Lake, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    inject(lake, command, caplog, lambda _function: True)


def inject(lake: Lake, command: str, caplog: pytest.LogCaptureFixture, chosen: Callable[[Function], bool]) -> None:
    if command in _APPLIED_BEFORE:
        assert lake.cli("apply", "--yes").code == 0
        lake.keep()
    caplog.set_level(logging.DEBUG, "tablectl")
    finder = Injector(lake.tables, "b")
    with finder.watching():
        quiet = lake.cli(*COMMANDS[command][0](lake))
    wrong = {
        f"{file}: {name}": problem
        for file, name in finder.seen
        if chosen((file, name)) and (problem := _wrong(lake, command, (file, name), quiet, caplog.records))
    }
    assert len(finder.seen) > 20
    assert not wrong, "\n".join(f"{where}: {what}" for where, what in wrong.items())


_IN_PROCESSES = """
import os, sys
from importlib import import_module
from tablectl.commands import main
from tablectl.log import worker_processes
function, bad, *words = sys.argv[1:]
worker_processes._MANY = 1
parent = os.getpid()
command = import_module(f"tablectl.commands.{words[0]}")
original = getattr(command, function)
def with_a_bug(*args, **options):
    if os.getpid() == parent:
        print("made by the parent", file=sys.stderr)
    if bad in repr(args):
        raise ZeroDivisionError("a bug")
    return original(*args, **options)
setattr(command, function, with_a_bug)
sys.argv = ["tablectl", *words]
main()
"""


@pytest.mark.parametrize(
    ("words", "function"),
    [
        ("plan --no-cache", "plan_table"),
        ("drift --no-cache", "table_drift"),
        ("check --format json", "find_risks"),
        ("advise --format json", "advise_table"),
    ],
)
@pytest.mark.parametrize("debug", ["", "1"])
def test_in_worker_processes_too(lake: Lake, words: str, function: str, debug: str) -> None:
    (lake.repo.root / "tablectl.yaml").write_text("stores: {processes: 2}\n")
    ran = subprocess.run(
        [sys.executable, "-c", _IN_PROCESSES, function, f"{lake.repo.lake}/b", *words.split()],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, DEBUG: debug},
    )
    assert ran.returncode == 1
    assert "unexpected error: ZeroDivisionError: a bug" in ran.stdout
    assert all(f"{lake.repo.lake}/{name}" in lake.spelled_out(ran.stdout) for name in _TABLES)
    assert ("Traceback" in ran.stderr) is bool(debug)
    assert "made by the parent" not in ran.stderr, "the results of the others were sent"


@pytest.mark.parametrize("command", ["check", "advise", "drift"])
def test_many_tables_are_the_same_in_one_process_and_in_several(lake: Lake, command: str) -> None:
    names = [f"t{number}" for number in range(200)]
    for name in names:
        shutil.copytree(lake.repo.lake / "a", lake.repo.lake / name)
    lake.repo.policies(dict.fromkeys((*_TABLES, *names), _AFTER))
    lines = []
    for count in (1, 2):
        (lake.repo.root / "tablectl.yaml").write_text(f"stores: {{processes: {count}}}\n")
        script = "from tablectl.commands import main; main()"
        words = [sys.executable, "-c", script, command, "--format", "json"]
        ran = subprocess.run(words, capture_output=True, text=True, check=False)
        assert ran.stderr == ""
        lines.append(ran.stdout)
    assert lines[0] == lines[1]
    assert len(json.loads(lines[0])["tables"]) == 203


class PanicException(BaseException):
    """As Rust's libraries raise it."""

    __module__ = "pyo3_runtime"


@pytest.mark.parametrize("error", [ZeroDivisionError, PanicException])
def test_what_concerns_no_table_is_a_line_without_a_traceback(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error("a bug")

    monkeypatch.setattr(Place, "open", broken)
    done = lake.cli("plan")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"error: unexpected error: {error.__name__}: a bug\n")


def test_an_exit_ends_the_command(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Place, "open", lambda *_, **__: sys.exit(7))
    with pytest.raises(SystemExit, match="7"):
        lake.cli("plan")
