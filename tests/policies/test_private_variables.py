"""No error repeats the value of a variable from the environment or the command line: it can be a secret."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.ci.conftest import FakeGitHub, Runner, github, runner
from tests.commands.conftest import Cli, FakeSpark, Repository, cli, fake_spark, repo

__all__ = ["FakeGitHub", "Runner", "cli", "fake_spark", "github", "repo", "runner"]

SECRET = "hunter2`pass.word/x"
PARTS = ("hunter2", "HUNTER2", "pass.word", "word/x")
ENTRIES = [
    "isolation: '${TOKEN}'",
    "deletion_vectors: '${TOKEN}'",
    "clustering: ['${TOKEN}']",
    "clustering: [id, '${TOKEN}.${TOKEN}', id]",
    "partitioning: ['a.${TOKEN}']",
    "partitioning: '${TOKEN}'",
    "properties: {delta.checkpointRetentionDuration: 'interval 5 ${TOKEN}'}",
    "properties: {delta.checkpointInterval: '${TOKEN}'}",
    "properties: {delta.dataSkippingNumIndexedCols: '5${TOKEN}'}",
    "retention: {log: 'interval 5 ${TOKEN}'}",
    "data_skipping: [id, '${TOKEN}.${TOKEN}', id]",
    "tags: ['${TOKEN}']",
    "tags: [a, 'x${TOKEN}', 'x${TOKEN}']",
    "rewrite: '${TOKEN}'",
    "max_bytes: '${TOKEN}'",
    "optimize: '${TOKEN}'",
    "truncate_history: '${TOKEN}'",
    "allow: ['${TOKEN}']",
    "clients: {spark: '${TOKEN}'}",
    "allowed_features: ['${TOKEN}']",
    "location: '${TOKEN}'",
    "location: 's3://${TOKEN}@bucket/t'",
    "location: 'https://x/?sig=${TOKEN}'",
]
TABLES = ["'${TOKEN}': {}", "delta.`${TOKEN}`: {}", "'delta.`/lake/[${TOKEN}`': {}"]
TABLES += ["'lake.`${TOKEN}': {}", "'lake.${TOKEN}*.': {}"]


def silent(*texts: str) -> None:
    for text in texts:
        assert not any(part in text for part in PARTS), text


@pytest.fixture
def given(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    assert repo.root.is_dir()
    monkeypatch.setenv("TABLECTL_VAR_TOKEN", SECRET)


def write(repo: Repository, entry: str) -> None:
    tables = entry if entry in TABLES else f"lake.orders: {{{entry}}}"
    repo.policies(f"version: 1\ntables:\n  {tables}\n")


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize("entry", [*ENTRIES, *TABLES])
def test_an_error_names_the_variable_in_place_of_its_value(repo: Repository, cli: Cli, entry: str) -> None:
    write(repo, entry)
    for form in ("text", "json", "sarif"):
        ran = cli("validate", "--format", form)
        silent(ran.out, ran.err)
        assert ran.code == 0 or "${TOKEN}" in ran.out + ran.err
    ran = cli("validate", "--var", f"TOKEN={SECRET}-2")
    silent(ran.out, ran.err)


@pytest.mark.usefixtures("given")
@pytest.mark.parametrize(
    "command",
    [
        ["validate", "--format", "junit"],
        ["plan"],
        ["plan", "--format", "html"],
        ["plan", "--format", "junit"],
        ["drift"],
        ["drift", "--adopt", "--yes"],
        ["lint"],
        ["import", "lake.orders"],
        ["explain", "lake.orders"],
        ["apply", "--yes"],
    ],
)
@pytest.mark.parametrize("entry", ["properties: {delta.checkpointInterval: '${TOKEN}'}", "isolation: '${TOKEN}'"])
def test_no_command_prints_the_value_of_a_private_variable(
    repo: Repository, cli: Cli, fake_spark: FakeSpark, command: Sequence[str], entry: str
) -> None:
    write(repo, entry)
    ran = cli(*command)
    silent(ran.out, ran.err)
    assert ran.code != 0


@pytest.mark.usefixtures("given")
def test_no_ci_step_prints_the_value_of_a_private_variable(
    repo: Repository, runner: Runner, github: FakeGitHub
) -> None:
    write(repo, "isolation: '${TOKEN}'")
    runner.event()
    code, outputs = runner.step("plan")
    silent(runner.log, runner.summary, *(file.read_text() for file in Path(outputs["folder"]).iterdir()))
    assert "${TOKEN}" in runner.summary
    assert code == 1
    runner.step("drift")
    silent(runner.log, runner.summary)


@pytest.mark.usefixtures("given")
def test_patterns_that_contradict_each_other_name_it(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies(
        "version: 1\ntables:\n"
        f"  delta.`{repo.lake}/order?`: {{properties: {{a: '${{TOKEN}}'}}}}\n"
        f"  delta.`{repo.lake}/?rders`: {{properties: {{a: b}}}}\n"
    )
    ran = cli("plan")
    silent(ran.out, ran.err)
    assert "${TOKEN}" in ran.err
    assert ran.code == 1


def test_a_value_of_tablectl_yaml_is_in_the_repository_and_is_shown(repo: Repository, cli: Cli) -> None:
    (repo.root / "tablectl.yaml").write_text("variables: {LEVEL: Serialisable}\n")
    write(repo, "isolation: '${LEVEL}'")
    assert '"Serialisable" is not a value of `isolation`' in cli("validate").err


@pytest.mark.usefixtures("given")
def test_another_entry_says_all_of_its_own_trouble(repo: Repository, cli: Cli) -> None:
    write(repo, "isolation: Serialisable, properties: {a: '${TOKEN}', delta.checkpointInterval: ten}")
    err = cli("validate").err
    assert '"Serialisable" is not a value' in err
    assert '"ten" is not a value' in err
    silent(err)
