"""Whoever may write in the folder of one table can put links there. No command is led out of it."""

from __future__ import annotations

import os
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import tablectl
from tablectl.applying.copy_records import CopiedPart, save_part
from tablectl.leases.guards import GuardRecord
from tablectl.storage.records import open_records
from tablectl.writers.guard_traces import leave_trace
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo
from tests.commands.link_watch import Watch
from tests.commands.log_lake import Logged, create
from tests.log.checkpoint_files import UUID, parquet

__all__ = ["cli", "fake_spark", "repo"]

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc what is open")

COMMANDS = (
    "plan",
    "apply --yes",
    "check",
    "check {mine}",
    "status",
    "status {mine}",
    "drift",
    "lint",
    "advise",
    "conflicts {name}",
    "init new {mine}",
    "upkeep",
    "runs",
    "window show {name}",
    "window clean {name}",
    "window break {name} --epoch 9 --reason gone",
    "doctor",
    "guard",
)
POLICY = "properties: {{owner.team: {0}}}, upkeep: {{optimize: {{small_files: 30%}}, vacuum: {{every: 7 days}}}}"


@dataclass
class Lake:
    repo: Repository
    cli: Cli
    saved: Path

    @property
    def mine(self) -> Path:
        return self.repo.lake / "mine"

    @property
    def payroll(self) -> Path:
        return self.repo.lake.parent / "others" / "payroll"

    def restore(self) -> None:
        for name in ("lake", "others"):
            shutil.rmtree(self.repo.lake.parent / name)
            shutil.copytree(self.saved / name, self.repo.lake.parent / name, symlinks=True)
        shutil.rmtree(self.repo.root / "new", ignore_errors=True)

    def run(self, command: str) -> tuple[int, str]:
        """The exit code of a command, and all that it says without line breaks."""
        if command == "guard":
            with tablectl.guard(None, str(self.mine)):
                return 0, ""
        words = [word.format(mine=self.mine, name=self.repo.name("mine")) for word in command.split()]
        ran = self.cli(*words)
        return ran.code, " ".join(f"{ran.out} {ran.err}".split())

    def watch(self) -> Watch:
        return Watch(str(self.mine), str(self.payroll.parent))

    def others(self) -> dict[str, bytes | None]:
        top = self.payroll.parent
        return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(top.rglob("*"))}


@pytest.fixture
def lake(repo: Repository, cli: Cli, fake_spark: FakeSpark, tmp_path: Path) -> Lake:
    """A table with everything that tablectl opens, and another one outside of the lake with the same."""
    for table in (repo.lake / "mine", tmp_path / "others" / "payroll"):
        create(table, properties={"owner.team": "web"}, features=("v2Checkpoint",))
        log, actions = table / "_delta_log", [each for commit in Logged(table).commits for each in commit]
        state = [each for each in actions if "add" not in each and "commitInfo" not in each]
        sidecar = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1}}
        for folder in ("_sidecars", "_staged_commits"):
            (log / folder).mkdir()
        rows = [{"add": {"path": each["add"]["path"], "size": 100}} for each in actions if "add" in each]
        (log / "_sidecars" / "s.parquet").write_bytes(parquet(rows, ("add", "remove")))
        checkpoint = parquet([*state, sidecar], ("metaData", "protocol", "sidecar"))
        (log / f"{1:020d}.checkpoint.{UUID}.parquet").write_bytes(checkpoint)
        (log / "_last_checkpoint").write_text('{"version": 1}')
        (log / f"{1:020d}.crc").write_text("{}")
        (table / "part-0.parquet").write_text("DATA")
        store = open_records(str(table))
        save_part(store, "", CopiedPart("00000000000001-000001", ("key",), ('{"add": {"path": "x"}}',), 1))
        store.create(GuardRecord("ab", 1).name, GuardRecord("ab", 1, "job", waits="here").to_bytes())
        leave_trace(store, "job", "append", date(2026, 11, 1))
    repo.policies({"mine": f"{{{POLICY.format('pay')}}}"})
    assert cli("apply", "--yes").code == 0
    repo.policies({"mine": f"{{{POLICY.format('hr')}}}"})
    saved = tmp_path / "saved"
    for name in ("lake", "others"):
        shutil.copytree(tmp_path / name, saved / name)
    return Lake(repo, cli, saved)


def used_paths(lake: Lake, command: str) -> list[Path]:
    """What a command uses at or below the table, in order."""
    lake.restore()
    watch = lake.watch()
    with watch.watching():
        lake.run(command)
    assert watch.escaped == []
    assert watch.used, "the command uses nothing of the table"
    return [Path(each) for each in watch.used]


def target_of(lake: Lake, path: Path, kind: str) -> str:
    """Where a link in place of a path leads."""
    if kind == "itself":
        return path.name
    if kind == "nothing":
        return str(lake.payroll / "gone")
    if kind == "the same of payroll":
        return str(lake.payroll / path.relative_to(lake.mine))
    return str(lake.payroll / ("part-0.parquet" if path.is_dir() else "_delta_log"))


KINDS = ("the same of payroll", "another kind of payroll", "nothing", "itself")


def replace_by_link(path: Path, target: str) -> None:
    if os.path.lexists(path):
        path.rename(path.with_name(f"aside-{path.name}"))
    path.symlink_to(target)


def few_and_all(commands: Sequence[str], few: Sequence[str]) -> list[Any]:
    """Each command, those that are not of the few among the slow tests."""
    return [pytest.param(each, marks=[] if each in few else [pytest.mark.slow]) for each in commands]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", few_and_all(COMMANDS, ("plan", "apply --yes", "window clean {name}", "guard")))
def test_a_link_in_place_of_anything_that_a_command_uses_is_refused_by_name(
    lake: Lake, fake_spark: FakeSpark, caplog: pytest.LogCaptureFixture, command: str, kind: str
) -> None:
    paths = dict.fromkeys(used_paths(lake, command))
    lake.restore()
    others = lake.others()
    for path in [each for each in paths if os.path.lexists(each)]:
        if command == "guard" and path == lake.mine:
            continue  # it guards the table that the link leads to
        replace_by_link(path, target_of(lake, path, kind))
        watch = lake.watch()
        sent = len(fake_spark.sent)
        caplog.clear()
        with watch.watching():
            code, said = lake.run(command)
        said += " ".join(each.getMessage() for each in caplog.records)
        assert f"{path}: " in said, path
        # A place that a person types may be a link, to a folder of tables.
        assert "a link" in said or (path == lake.mine and "{mine}" in command), path
        assert (code != 0) == (command != "guard"), path
        assert watch.escaped == [], path
        assert lake.others() == others, path
        assert fake_spark.sent[sent:] == [], path
        lake.restore()


@pytest.mark.parametrize("use", ["first", pytest.param("last", marks=pytest.mark.slow)])
@pytest.mark.parametrize("command", few_and_all(COMMANDS, ("plan", "apply --yes", "window clean {name}", "guard")))
def test_a_link_that_is_put_in_place_right_before_the_use_is_not_followed(lake: Lake, command: str, use: str) -> None:
    """The check comes before, whatever it is: only a call that follows no link can refuse this one."""
    uses = Counter(used_paths(lake, command))
    lake.restore()
    others = lake.others()
    for path, count in uses.items():
        if (command == "guard" and path == lake.mine) or (use == "first" and not os.path.lexists(path)):
            continue  # a guard is of the table that a link leads to; a new record whose name is taken is tried again
        watch, moment = lake.watch(), 1 if use == "first" else count

        def swap(used: str, path: Path = path, watch: Watch = watch, moment: int = moment) -> None:
            if used == str(path) and watch.used.count(used) == moment and path.parent.is_dir():
                replace_by_link(path, target_of(lake, path, KINDS[0]))

        watch.before = swap
        with watch.watching():
            lake.run(command)
        assert watch.escaped == [], path
        assert lake.others() == others, path
        lake.restore()


def test_an_apply_puts_no_record_into_the_log_of_another_table(lake: Lake, fake_spark: FakeSpark) -> None:
    """Records are named as commits are: they would be commits there, and old commits would be pruned."""
    for number in range(2, 60):
        (lake.payroll / "_delta_log" / f"{number:020d}.json").write_text("{}")
    others, sent = lake.others(), len(fake_spark.sent)
    lease = lake.mine / "_tablectl" / "lease"
    replace_by_link(lease, str(lake.payroll / "_delta_log"))
    code, said = lake.run("apply --yes")
    assert code != 0
    assert f"{lease}: it is a link to {lake.payroll}/_delta_log" in said
    assert "remove it" in said
    assert (lake.others(), len(fake_spark.sent)) == (others, sent)


@pytest.mark.parametrize("folder", ["_tablectl/copy", "_tablectl"])
def test_window_clean_empties_no_home_directory(lake: Lake, tmp_path: Path, folder: str) -> None:
    for name in ("id_rsa", "copy/id_rsa", "copy/00000000000001-000001.0.1.json"):
        (tmp_path / "home" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "home" / name).write_text("KEY")
    before = sorted((tmp_path / "home").rglob("*"))
    replace_by_link(lake.mine / folder, str(tmp_path / "home"))
    code, said = lake.run("window clean {name}")
    assert code != 0
    assert f"{lake.mine / folder}: it is a link to {tmp_path}/home" in said
    assert sorted((tmp_path / "home").rglob("*")) == before


def test_a_guard_of_a_link_protects_the_table_that_it_leads_to(lake: Lake) -> None:
    """The write follows the link, so the apply of that table has to wait for it."""
    link = lake.repo.lake / "link"
    link.symlink_to(lake.mine)
    with tablectl.guard(None, str(link)):
        assert [each for each in open_records(str(lake.mine)).names("guards/") if ".0.json" in each]


def test_links_above_the_lake_are_the_operators(lake: Lake) -> None:
    """``/tmp`` is one on macOS."""
    above = lake.repo.lake.parent / "above"
    above.symlink_to(lake.repo.lake)
    assert lake.cli("status", f"{above}/mine").code == 0
    assert lake.cli("window", "show", f"delta.`{above}/mine`").code == 0
    lake.repo.policies(f"version: 1\ntables: {{'delta.`{above}/mine`': {{properties: {{owner.team: hr}}}}}}\n")
    assert lake.cli("apply", "--yes").code == 0
    assert Logged(lake.mine).properties["owner.team"] == "hr"


def test_window_clean_deletes_the_records_of_parts_and_nothing_else(lake: Lake) -> None:
    lake.restore()
    folder = lake.mine / "_tablectl" / "copy"
    (folder / "sub").mkdir()
    others = ("notes.txt", "00000000000001-000001.0.1.json.bak", "sub/00000000000001-000001.0.1.json", ".hidden")
    for name in others:
        (folder / name).write_text("kept")
    before = set(lake.mine.rglob("*"))
    assert lake.run("window clean {name}")[0] == 0
    assert before - set(lake.mine.rglob("*")) == {folder / "00000000000001-000001.0.1.json"}
