"""A repository of policies next to a lake of real logs, and the command line run in this process."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.command_line import run_cli
from tablectl.engine import spark
from tests.commands.log_lake import LogEngine, create


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str

    @property
    def flat(self) -> str:
        """The output without line breaks, which fall elsewhere with each length of a path."""
        return " ".join(self.out.split())


@dataclass
class FakeSpark:
    """Stands in for ``open_spark``; keeps the engines that were opened."""

    engines: list[LogEngine] = field(default_factory=list)
    catalog: dict[tuple[str, ...], Path] = field(default_factory=dict)
    after: Callable[[str], None] = lambda _sql: None
    options: list[Any] = field(default_factory=list)

    def __call__(self, options: Any, stamp: str = "") -> LogEngine:
        self.options.append(options)
        engine = LogEngine(stamp, options.dialect, self.catalog, self.after)
        self.engines.append(engine)
        return engine

    @property
    def sent(self) -> list[str]:
        return [sql for engine in self.engines for sql in engine.sent]


class AnsweringTerminal:
    """A terminal as standard input, with one line typed at it."""

    def __init__(self, answer: str) -> None:
        self.answer = answer

    def isatty(self) -> bool:
        return True

    def readline(self) -> str:
        return self.answer


@pytest.fixture
def fake_spark(monkeypatch: pytest.MonkeyPatch) -> FakeSpark:
    fake = FakeSpark()
    monkeypatch.setattr(spark, "open_spark", fake)
    return fake


@dataclass
class Repository:
    """The user's folder, which is the current one, and the lake."""

    root: Path
    lake: Path

    def policies(self, tables: Mapping[str, str] | str, name: str = "lake.yaml") -> None:
        """Each table's policy in YAML's flow style, by its name in the lake; or a whole file."""
        body = tables
        if not isinstance(tables, str):
            lines = [f"  delta.`{self.lake}/{table}`: {policy}\n" for table, policy in tables.items()]
            body = f"version: 1\ntables:\n{''.join(lines)}"
        assert isinstance(body, str)
        (self.root / "policies").mkdir(exist_ok=True)
        (self.root / "policies" / name).write_text(body)

    def table(self, name: str, **facts: Any) -> Path:
        return create(self.lake / name, **facts)

    def name(self, table: str) -> str:
        return f"delta.`{self.lake}/{table}`"


@pytest.fixture
def repo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in list(os.environ):
        if name.startswith("TABLECTL_") or name in {"NO_COLOR", "COLUMNS"}:
            monkeypatch.delenv(name)
    root, lake = tmp_path / "repo", tmp_path / "lake"
    root.mkdir()
    lake.mkdir()
    monkeypatch.chdir(root)
    return Repository(root, lake)


Cli = Callable[..., Result]


@pytest.fixture
def cli(repo: Repository, capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*args: object) -> Result:
        capsys.readouterr()
        code = run_cli([str(arg) for arg in args], os.environ)
        said = capsys.readouterr()
        return Result(int(code), said.out, said.err)

    return run
