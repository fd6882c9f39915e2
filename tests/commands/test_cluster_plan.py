"""``plan --on spark``: what executors get and return, and the same plan as one that is made here."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import tablectl.commands.plan
from tablectl.commands import plan as planning
from tablectl.commands.plan import make_plan, plan_on_cluster, plan_part
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.selection import Selection
from tablectl.engine.interface import RemoteWork
from tablectl.engine.spark import wrap_spark
from tablectl.model.errors import EngineError, UsageError
from tablectl.planning.plan_file import dump_plan
from tablectl.planning.plan_table import plan_table
from tests.commands.log_lake import create


class Cluster:
    """An engine whose executors are this process."""

    dialect = "oss"

    def __init__(self) -> None:
        self.parts: list[str] = []

    def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
        assert (work.module, work.name) == (plan_part.__module__, plan_part.__name__)
        self.parts += parts
        return tuple(plan_part(work.common, part) for part in parts)

    def close(self) -> None:
        pass


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Five tables, of which one cannot be read, with a variable and an environment."""
    for name in ("a", "b", "c", "d"):
        create(tmp_path / "lake" / name)
    (tmp_path / "lake/d/_delta_log/00000000000000000000.json").write_text("{")
    names = [f"delta.`{tmp_path}/lake/{name}`" for name in ("a", "b", "c", "d", "missing")]
    entries = "".join(f"  {name}: {{isolation: '${{LEVEL}}'}}\n" for name in names)
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies/all.yaml").write_text(f"version: 1\ntables:\n{entries}")
    (tmp_path / "tablectl.yaml").write_text("env:\n  prod: {variables: {LEVEL: Serializable}}\n")
    return tmp_path


def opened(repository: Path, engine: object) -> Project:
    source = EngineSource(open=lambda _stamp: engine)  # type: ignore[arg-type, return-value]
    return Project.open(repository, env="prod", source=source)


def test_the_plan_of_all_parts_equals_the_plan_that_is_made_at_once(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planning, "_A_PART", 2)
    cluster = Cluster()
    with opened(repository, cluster) as project:
        here = make_plan(project, project.policies(), Selection())
        there = plan_on_cluster(project, None, Selection())
    assert dump_plan(there) == dump_plan(here)
    assert (len(cluster.parts), len(there.tables), len(there.failures)) == (3, 3, 2)


def test_an_unexpected_error_on_an_executor_costs_only_its_own_table(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = plan_table

    def breaks(policy: Any, live: Any, *more: Any) -> Any:
        if live.location.endswith("/b"):
            raise ZeroDivisionError("a bug")
        return real(policy, live, *more)

    monkeypatch.setattr(tablectl.commands.plan, "plan_table", breaks)
    with opened(repository, Cluster()) as project:
        plan = plan_on_cluster(project, None, Selection())
    assert sorted(table.name[-2] for table in plan.tables) == ["a", "c"]
    assert "unexpected error: ZeroDivisionError: a bug" in {failure.message for failure in plan.failures}


def test_an_executor_with_another_version_says_so(repository: Path) -> None:
    cluster = Cluster()
    with opened(repository, cluster) as project:
        plan_on_cluster(project, None, Selection())
        common = json.dumps({"version": "0.0.1"})
    with pytest.raises(RuntimeError, match=r"this executor has tablectl .*, and the plan is made by 0\.0\.1"):
        plan_part(common, cluster.parts[0])


def test_an_engine_without_executors_is_a_usage_error(repository: Path) -> None:
    class Plain:
        dialect = "oss"

        def close(self) -> None:
            pass

    with opened(repository, Plain()) as project, pytest.raises(UsageError, match="no executors"):
        plan_on_cluster(project, None, Selection())


def test_executors_plan_by_the_configuration_of_the_base_branch(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their machines do not have that file, and the branch's own file must not decide instead."""
    base, branch = repository / "base.yaml", repository / "tablectl.yaml"
    base.write_text("engine: {dialect: oss}\n")
    branch.write_text(f"engine: {{dialect: databricks}}\n{branch.read_text()}")
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(base))

    class Elsewhere(Cluster):
        def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
            base.unlink()
            return super().on_executors(work, parts)

    with opened(repository, Elsewhere()) as project:
        here = make_plan(project, project.policies(), Selection())
        there = plan_on_cluster(project, None, Selection())
    assert dump_plan(there) == dump_plan(here)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("AWS_SECRET_ACCESS_KEY", "hush"),
        ("TABLECTL_ENGINE_REMOTE", "sc://spark:15002/;token=hush"),
        ("TABLECTL_TEST_TOKEN", "hush"),
    ],
)
def test_no_credentials_of_this_process_are_sent(
    repository: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    sent: list[str] = []

    class Listening(Cluster):
        def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
            sent.append(work.common)
            return super().on_executors(work, parts)

    with opened(repository, Listening()) as project:
        plan_on_cluster(project, None, Selection())
    assert "hush" not in sent[0]


def test_executors_get_nothing_of_the_configuration_but_what_planning_needs(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever can read a disk of the cluster would read tokens and commands there."""
    hushed = """
engine: {remote: 'sc://h/;token=hush', conf: {spark.password: hush}, catalog: lake}
notify: [{command: [./post.sh, hush]}]
window: {before: [./pause.sh hush], after: [./resume.sh hush]}
catalogs: {lake: {type: unity, url: 'https://hush.example'}}
"""
    file = repository / "tablectl.yaml"
    nested = "".join(f"    {line}\n" for line in hushed.strip().splitlines())
    file.write_text(
        f"{hushed}env:\n  prod:\n    variables: {{LEVEL: Serializable}}\n    lint: {{P002: warning}}\n{nested}"
    )
    monkeypatch.setenv("TABLECTL_VAR_UNUSED", "hush")
    sent: list[str] = []

    class Listening(Cluster):
        def on_executors(self, work: RemoteWork, parts: Sequence[str]) -> tuple[str, ...]:
            sent.append(work.common)
            return super().on_executors(work, parts)

    with opened(repository, Listening()) as project:
        there = plan_on_cluster(replace(project, given={"OTHER": "hush"}), None, Selection())
        assert dump_plan(there) == dump_plan(make_plan(project, project.policies(), Selection()))
    assert "hush" not in sent[0]


@pytest.mark.spark
@pytest.mark.slow
def test_real_executors_make_the_same_plan_and_say_what_they_lack(spark: Any, repository: Path) -> None:
    engine = wrap_spark(spark)
    try:
        with pytest.raises(
            EngineError, match="cannot import what a plan needs: No module named 'no_tablectl'"
        ) as caught:
            engine.on_executors(RemoteWork("no_tablectl", "plan", ""), ["x"])
        assert "install the same version of tablectl on the executors" in caught.value.hint
        with opened(repository, engine) as project:
            here = make_plan(project, project.policies(), Selection())
            assert dump_plan(plan_on_cluster(project, None, Selection())) == dump_plan(here)
    finally:
        engine.close()


CONNECT = """
import os, sys
from tablectl.commands.plan import plan_on_cluster
from tablectl.planning.plan_file import dump_plan
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.selection import Selection
from tablectl.commands.plan import make_plan
with Project.open(sys.argv[1], env="prod", settings={"remote": sys.argv[2]}) as project:
    here = make_plan(project, project.policies(), Selection())
    there = plan_on_cluster(project, None, Selection())
    print(dump_plan(here) == dump_plan(there), len(there.tables), flush=True)
os._exit(0)
"""


@pytest.mark.spark
@pytest.mark.slow
def test_the_executors_of_a_connect_server_make_the_same_plan(connect_url: str, repository: Path) -> None:
    command = [sys.executable, "-c", CONNECT, str(repository), connect_url]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert answer.stdout.split() == ["True", "3"], answer.stderr
