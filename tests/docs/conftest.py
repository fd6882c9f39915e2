"""The lake that the pages speak of: a few tables of the catalog ``lake``, as real logs without Spark."""

from __future__ import annotations

import io
import os
import re
import shlex
from collections.abc import Callable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path

import pytest

from tablectl.commands.command_line import run_cli
from tests.commands.conftest import FakeSpark, fake_spark
from tests.commands.log_lake import LogEngine, create

__all__ = ["FakeSpark", "fake_spark"]

_ORDERS = {
    "order_id": "long",
    "customer_id": "long",
    "order_date": "date",
    "amount": "double",
}
_RETURNS = {"return_id": "long", "month": "integer"}
_EVENTS = {"event_id": "long", "event_date": "date"}
_RISKY = {"delta.deletedFileRetentionDuration": "interval 1 hours"}
CONFIG = "engine: {catalog: lake}\n"


@dataclass
class Place:
    """A repository of policies, the current folder, next to the lake."""

    lake: Path
    spark: FakeSpark
    code: int = 0

    def run(self, command: str) -> str:
        """A command line of a page; what a reader would see first: the result, else what is said of it."""
        words = shlex.split(command, comments=True)
        words = [each.replace("$PWD", str(Path.cwd())).replace("`/lake/", f"`{self.lake}/") for each in words]
        words = [str(self.lake) if each == "/lake" else each for each in words]
        match words[0]:
            case "cat":
                return self._told(Path(words[1]).read_text(encoding="utf-8"))
            case "cd":
                os.chdir(words[1])  # the fixture goes back
                return ""
            case "echo" if words[1] == "$?":
                return f"{self.code}\n"
            case "tablectl":
                out, err = io.StringIO(), io.StringIO()
                with redirect_stdout(out), redirect_stderr(err):
                    self.code = int(run_cli(words[1:], os.environ))
                return self._told(out.getvalue() or err.getvalue())
        raise AssertionError(f"{command} is nothing that the tests can run")

    def sql(self, statement: str) -> None:
        """What someone else runs."""
        for each in filter(None, (part.strip() for part in re.sub(r"(?m)--.*$", "", statement).split(";"))):
            quoted = re.sub(r"\b(lake)\.(\w+)\.(\w+)", r"`\1`.`\2`.`\3`", " ".join(each.split()))
            LogEngine(catalog=self.spark.catalog).execute(quoted)

    def _told(self, text: str) -> str:
        return text.replace(str(self.lake), "/lake")


@pytest.fixture
def place(tmp_path: Path, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> Callable[[], Place]:
    """Makes a new repository and a new lake, and goes there."""
    for name in [each for each in os.environ if each.startswith("TABLECTL_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("NO_COLOR", "1")
    count = iter(range(100))

    def make() -> Place:
        root = tmp_path / str(next(count))
        lake = root / "lake"
        tables: Mapping[str, Path] = {
            "orders": create(lake / "sales" / "orders", columns=_ORDERS, properties={"owner.team": "web"}),
            "returns": create(lake / "sales" / "returns", columns=_RETURNS, partitions=["month"]),
            "ledger": create(lake / "finance" / "ledger", columns={"entry_id": "long", "booked": "date"}),
            "payments": create(lake / "finance" / "payments", columns={"payment_id": "long"}),
        }
        create(lake / "events", columns=_EVENTS, partitions=["event_date"])
        create(lake / "web" / "clicks", columns=_EVENTS, properties=_RISKY)
        fake_spark.catalog = {("lake", path.parent.name, name): path for name, path in tables.items()}
        repository = root / "repository"
        repository.mkdir()
        monkeypatch.chdir(repository)
        monkeypatch.setenv("TABLECTL_VAR_LAKE", str(lake))
        Path("tablectl.yaml").write_text(CONFIG, encoding="utf-8")
        return Place(lake, fake_spark)

    return make
