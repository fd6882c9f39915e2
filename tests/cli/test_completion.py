"""What shells complete: asked of the functions, and of real shells where there are any."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tablectl.cli import completion
from tests.cli.conftest import Cli, Repository

CONFIG = "env:\n  dev: {variables: {LAKE: /dev}}\n  prod: {variables: {LAKE: /prod}}\n"
POLICIES = """version: 1
tables:
  lake.sales.orders: {isolation: Serializable, tags: [web, ledger]}
  lake.sales.returns: {isolation: Serializable, tags: [ledger]}
  lake.`odd name`.t: {isolation: Serializable}
  delta.`${LAKE}/x`: {isolation: Serializable}
"""


@pytest.fixture
def one(repo: Repository) -> Repository:
    Path("tablectl.yaml").write_text(CONFIG)
    repo.policies(POLICIES)
    return repo


def line(**params: Any) -> Any:
    return SimpleNamespace(params=params)


def test_names_come_from_the_policies(one: Repository) -> None:
    assert completion.tables(line(), "") == ["lake.sales.orders", "lake.sales.returns"]
    assert completion.tables(line(env="prod"), "lake.sales.r") == ["lake.sales.returns"]
    assert completion.tags(line(), "") == ["ledger", "web"]
    assert completion.environments("") == ["dev", "prod"]
    assert "ConcurrentAppendException" in completion.tables_and_words(line(), "Conc")
    assert completion.operations("merg") == ["merge"]
    assert "kernel" in completion.clients("")


def test_names_that_a_shell_reads_otherwise_are_left_out(one: Repository) -> None:
    one.policies("version: 1\ntables:\n  delta.`/lake/x;rm`: {}\n  a.`b$c`: {}\n  a.b: {}\n")
    assert completion.tables(line(), "") == ["a.b"]


@pytest.mark.parametrize("text", ["version: [", "version: 1\ntables: {a: {}}", "", None])
def test_what_cannot_be_read_completes_nothing_and_says_nothing(
    one: Repository, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    if text is None:
        shutil.rmtree("policies")
    else:
        one.policies(text)
    assert completion.tables(line(), "") == []
    assert completion.tags(line(var=["not a pair"]), "") == []
    Path("tablectl.yaml").write_text("env: [")
    assert completion.environments("") == []
    assert capsys.readouterr() == ("", "")


def test_no_one_waits_for_thousands_of_tables(one: Repository) -> None:
    one.policies("version: 1\ntables:\n" + "".join(f"  lake.sales.t{each}: {{}}\n" for each in range(20_000)))
    assert completion.tables(line(), "") == []


# Real shells


@pytest.fixture
def program(one: Repository, tmp_path: Path, cli: Cli) -> Path:
    """A folder with the program, as an installation would have it, and with the script of each shell."""
    folder = tmp_path / "bin"
    folder.mkdir()
    tool = folder / "tablectl"
    package = Path(completion.__file__).parent.parent.parent
    tool.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(package))} exec {shlex.quote(sys.executable)} -m tablectl "$@"\n'
    )
    tool.chmod(0o755)
    for shell in completion.Shell:
        (folder / f"script.{shell}").write_text(cli("completion", shell).out)
    return folder


def ask(shell: str, program: Path, code: str) -> list[str]:
    path = shutil.which(shell)
    if path is None:
        pytest.skip(f"no {shell} here")
    environ = {**os.environ, "PATH": f"{program}:{os.environ['PATH']}", "HOME": str(program)}
    flags = ["--norc", "--noprofile"] if shell == "bash" else ["-f"] if shell == "zsh" else ["--no-config"]
    done = subprocess.run(
        [path, *flags, "-c", code], env=environ, capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash(program: Path) -> None:
    code = f"""source {shlex.quote(str(program / "script.bash"))}
    try() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _tablectl_completion tablectl; echo "${{COMPREPLY[*]}}"; }}
    try tablectl exp
    try tablectl plan --env dev --format j
    try tablectl plan --tag ''
    try tablectl window show lake.sales.o
    try tablectl apply ''
    complete -p tablectl"""
    assert ask("bash", program, code) == [
        "explain",
        "json junit",
        "ledger web",
        "lake.sales.orders",
        "",  # files, by the shell itself
        "complete -o default -F _tablectl_completion tablectl",
    ]


def test_zsh(program: Path) -> None:
    code = f"""autoload -U compinit; compinit -u -d {shlex.quote(str(program / "dump"))}
    source {shlex.quote(str(program / "script.zsh"))}
    _arguments() {{ print -r -- "$@"; }}
    _files() {{ print files; }}
    try() {{ words=("$@"); CURRENT=$#words; _tablectl_completion; }}
    try tablectl vali
    try tablectl plan --env ''
    try tablectl plan --va
    try tablectl show ''"""
    assert ask("zsh", program, code) == [
        '*: :(("validate":"Check policies without looking at a table."))',
        '*: :(("dev" "prod"))',
        '*: :(("--var":"A value for \\${NAME}; else the variable TABLECTL_VAR_NAME."))',
        "files",
    ]


def test_fish(program: Path) -> None:
    code = f"""source {shlex.quote(str(program / "script.fish"))}
    for each in 'tablectl vali' 'tablectl plan --select ' 'tablectl show '
        complete -C $each
    end"""
    assert ask("fish", program, code) == [
        "validate\tCheck policies without looking at a table.",
        "lake.sales.orders",
        "lake.sales.returns",
        "policies/",
        "tablectl.yaml",
    ]


def test_nothing_heavy_is_loaded(one: Repository) -> None:
    """A few hundredths of a second more than ``--help``, whatever the machine."""
    code = """
import atexit, os, sys
heavy = {"pyspark", "py4j", "obstore", "pydantic", "pyarrow", "sqlglot", "jinja2"}
atexit.register(lambda: print(sorted(heavy & set(sys.modules))))
from tablectl.cli.app import run_cli
run_cli([], os.environ)
"""
    asked = {"_TABLECTL_COMPLETE": "complete_bash", "COMP_WORDS": "tablectl\nplan\n--select\n", "COMP_CWORD": "3"}
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.splitlines()[:2], done.stdout.splitlines()[-1]) == (
        ["lake.sales.orders", "lake.sales.returns"],
        "[]",
    )
