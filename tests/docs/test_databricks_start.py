"""docs/databricks-start.md is complete: every key of its files is one that is read, and they fit together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from databricks.sdk.config import Config as Login

from tablectl.commands.command_line import load_command, run_cli
from tablectl.policies.read_config import load_config
from tablectl.policies.repository import load_specs
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs" / "databricks-start.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file.endswith((".yaml", ".yml"))}
ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
JOBS: dict[str, Any] = yaml.safe_load(FILES[".github/workflows/tablectl.yml"])["jobs"]


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("tablectl.yaml", "policies/sales.yaml"):
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(FILES[name], encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def _leaves(value: Any, *above: str) -> Iterator[tuple[tuple[str, ...], Any]]:
    for key, inner in value.items():
        yield from _leaves(inner, *above, str(key)) if isinstance(inner, dict) else [((*above, str(key)), inner)]


def test_every_key_of_the_configuration_is_read(repository: Path) -> None:
    config = load_config(repository, {})
    for keys, value in _leaves(yaml.safe_load(FILES["tablectl.yaml"])):
        found: Any = config
        for key in keys:
            found = found[key] if isinstance(found, dict) or hasattr(found, "keys") else getattr(found, key)
        if not isinstance(value, list):
            assert str(getattr(found, "text", found)) == str(value), keys
    assert len(config.window.allow) == 1


def test_every_key_of_the_policies_is_valid_for_databricks(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["validate"], {}) == 0, capsys.readouterr().err
    config = load_config(repository, {})
    specs = load_specs([repository / "policies"], variables={}, environ={}, catalog=config.engine.catalog)
    assert {each.name.text for each in specs.tables} == {"main.sales.orders", "main.sales.ledger"}
    assert [each.text for each in specs.patterns] == ["main.sales.*"]


@pytest.mark.parametrize("name", JOBS)
def test_a_job_uses_inputs_of_the_action_and_variables_of_the_login(name: str) -> None:
    job, workflow = JOBS[name], yaml.safe_load(FILES[".github/workflows/tablectl.yml"])
    (step,) = (each for each in job["steps"] if each["uses"].startswith("OWNER/tablectl@"))
    assert set(step["with"]) <= set(ACTION["inputs"])
    assert (step["with"]["mode"], step["with"]["extras"]) == (name, "databricks")
    assert job["permissions"]["id-token"] == "write"
    read = {each.env for each in Login.attributes()}
    assert {**workflow["env"], **job["env"]}.keys() <= read
    flags = {flag for each in load_command("apply").params for flag in each.opts}
    assert set(re.findall(r"--[a-z-]+", step["with"].get("arguments", ""))) <= flags


def test_the_jobs_that_write_name_the_state_of_the_apply() -> None:
    state = yaml.safe_load(FILES["tablectl.yaml"])["state"]
    (job,) = (block.text for block in blocks(PAGE) if block.language == "python")
    assert f"TABLECTL_STATE={state}" in job
