from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from tablectl.applying.events import RunEvent
from tablectl.commands.output import Output
from tablectl.commands.project import Engines
from tablectl.commands.user_files import write_file
from tablectl.model.errors import EngineError, TablectlError
from tablectl.version import __version__
from tests.commands.conftest import Cli, Repository


@pytest.mark.parametrize(
    ("args", "says"),
    [
        ([], "Usage"),
        (["window"], "Usage"),
        (["frobnicate"], "No such command"),
        (["plan", "--frobnicate"], "No such option"),
        (["plan", "--format", "xml"], "'xml' is not one of"),
        (["plan", "--out"], "requires an argument"),
        (["plan", "--out", "today.plan"], "ends in .json"),
        (["show"], "Missing argument"),
        (["show", "a.json", "b.json"], "unexpected extra argument"),
        (["window", "show"], "Missing argument"),
        (["window", "show", "one_part"], "has 1 part"),
        (["window", "show", "delta.`rel/ative`"], "is relative"),
        (["window", "break", "delta.`/x`"], "--reason"),
        (["window", "break", "delta.`/x`", "--reason", "r", "--epoch", "two"], "--epoch"),
        (["apply", "policies", "--without-policies"], "is for a ready plan alone"),
        (["apply", "plan.json", "policies", "--without-policies"], "is for a ready plan alone"),
        (["apply", "a.json", "b.json"], "a ready plan is applied as it is"),
        (["apply", "plan.json", "--select", "*"], "a ready plan is applied as it is"),
        (["apply", "plan.json", "--tag", "x"], "a ready plan is applied as it is"),
        (["plan", "--var", "LAKE"], "is not NAME=VALUE"),
        (["plan", "--var", "1A=x"], "is not NAME=VALUE"),
        (["plan", "--var", "A=1", "--var", "A=2"], "given twice"),
    ],
)
def test_wrong_usage_is_64(cli: Cli, args: list[str], says: str) -> None:
    result = cli(*args)
    assert (result.code, result.out) == (64, "")
    assert says in result.err
    assert "Traceback" not in result.err


@pytest.mark.parametrize("args", [["--help"], ["-h"], ["plan", "-h"], ["window", "break", "--help"]])
def test_help_is_a_result(cli: Cli, args: list[str]) -> None:
    result = cli(*args)
    assert (result.code, result.err) == (0, "")
    assert result.out.strip().startswith("Usage: tablectl")


def test_the_version(cli: Cli) -> None:
    assert cli("--version").out == f"tablectl {__version__}\n"


def test_the_schema_is_a_json_schema_that_takes_policies(cli: Cli) -> None:
    result = cli("schema")
    schema = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    assert validator(schema).is_valid({"version": 1, "tables": {"lake.a.b": {"isolation": "Serializable"}}})
    assert not validator(schema).is_valid({"version": 1, "tables": {"lake.a.b": {"isolaton": "Serializable"}}})


# validate


def test_validate_counts_the_tables(cli: Cli, repo: Repository) -> None:
    repo.policies({"a": "{isolation: Serializable}", "b": "{deletion_vectors: enabled}"})
    assert cli("validate").out == "2 tables: every policy is valid.\n"
    found = json.loads(cli("validate", "--format", "json").out)
    assert found == {"valid": True, "tables": [repo.name("a"), repo.name("b")], "patterns": [], "findings": []}


def test_validate_says_everything_that_is_wrong(cli: Cli, repo: Repository) -> None:
    repo.policies({"a": "{isolaton: Serializable}", "b": "{clustering: id}"})
    result = cli("validate")
    assert (result.code, result.out) == (1, "")
    assert "policies/lake.yaml:3:" in result.err
    assert "policies/lake.yaml:4:" in result.err
    assert "isolation" in result.err
    found = cli("validate", "--format", "json")
    assert found.code == 1
    body = json.loads(found.out)
    assert body["valid"] is False
    assert [problem["line"] for problem in body["problems"]] == [3, 4]
    assert set(body["problems"][0]) == {"file", "line", "column", "message", "hint"}


def test_validate_without_policies_says_what_is_missing(cli: Cli) -> None:
    result = cli("validate")
    assert result.code == 1
    assert result.err.startswith(
        "error: policies: no such file or directory\n  hint: to start here: `tablectl init`, or `tablectl import "
    )


def test_variables_come_from_flags_and_the_environment(
    cli: Cli, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.policies("version: 1\ntables:\n  delta.`${LAKE}/a`: {isolation: Serializable}\n")
    missing = cli("validate")
    assert missing.code == 1
    assert "LAKE" in missing.err
    assert cli("validate", "--var", "LAKE=/data").code == 0
    monkeypatch.setenv("TABLECTL_VAR_LAKE", "/data")
    assert cli("validate").code == 0


def test_a_broken_configuration_is_an_error_with_its_place(cli: Cli, repo: Repository) -> None:
    (repo.root / "tablectl.yaml").write_text("engin: {dialect: oss}\n")
    result = cli("validate")
    assert result.code == 1
    assert "tablectl.yaml:1:1" in result.err
    assert "engine" in result.err


# Streams


def test_progress_that_no_one_reads_breaks_nothing(repo: Repository) -> None:
    class Broken:
        encoding = "utf-8"

        def isatty(self) -> bool:
            return False

        def write(self, _text: str) -> int:
            raise BrokenPipeError

    out = Output({}, sys.stdout, Broken())  # type: ignore[arg-type]
    out.note("starting Spark")
    with out.display() as notify:
        notify(RunEvent("t", "before closed-set", "closed: SET"))
    out.error(TablectlError("no"))


def test_streams_that_were_closed_by_the_caller_are_not_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    out = Output({})
    out.result("x")
    out.note("x")
    assert out.interactive is False


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_file(tmp_path / "new" / "a.json", b"1")
    assert (tmp_path / "new" / "a.json").read_bytes() == b"1"
    with pytest.raises(TablectlError, match="this is not a file"):
        write_file(tmp_path / "new", b"1")
    with pytest.raises(TablectlError, match="choose a place"):
        write_file(tmp_path / "new" / "a.json" / "b.json", b"1")
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["a.json"]


@pytest.mark.parametrize(
    "args",
    [
        ["plan", "--out", "{missing}/plan.json"],
        ["plan", "--report", "{missing}/plan.md"],
        ["drift", "--report", "{missing}/drift.md"],
        ["status", "--report", "{missing}/lake.html"],
        ["advise", "--out", "{missing}/advised.yaml"],
        ["import", "lake.sales.*", "--out", "{missing}/sales.yaml"],
    ],
    ids=" ".join,
)
def test_a_missing_folder_elsewhere_is_named_and_not_created(
    cli: Cli, repo: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    """A typing mistake, or a disk that is not mounted."""
    here = tmp_path / "here"
    (here / "policies").mkdir(parents=True)
    (here / "policies" / "one.yaml").write_text("version: 1\ntables: {}\n")
    monkeypatch.chdir(here)
    missing = tmp_path / "missing"
    ran = cli(*(each.format(missing=missing) for each in args))
    assert ran.code != 0
    assert f"error: the folder {missing} does not exist\n  hint: create it first" in ran.err
    assert not missing.exists()


def test_a_missing_folder_below_the_current_one_is_created(
    cli: Cli, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    repo.table("orders")
    repo.policies({"orders": "{}"})
    monkeypatch.chdir(repo.root)
    assert cli("plan", "--out", "plans/june/today.json").code == 0
    assert Path("plans/june/today.json").is_file()


# Whole processes


def tablectl(*args: str, cwd: Path, code: str = "", **more: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-c", code] if code else [sys.executable, "-m", "tablectl"]
    env = {key: value for key, value in os.environ.items() if not key.startswith("TABLECTL_")}
    return subprocess.run([*command, *args], cwd=cwd, env={**env, **more}, capture_output=True, check=False, timeout=60)


NO_SPARK = """
import os, sys
from tablectl.commands.command_line import run_cli
code = run_cli(sys.argv[1:], os.environ)
loaded = sorted({"pyspark", "pyarrow", "delta", "py4j", "grpc"} & set(sys.modules))
print(loaded, file=sys.stderr)
sys.exit(code)
"""


def test_a_thousand_tables_are_validated_without_spark(repo: Repository) -> None:
    repo.policies({f"t{number}": "{isolation: Serializable, clustering: [id]}" for number in range(1000)})
    done = tablectl("validate", cwd=repo.root, code=NO_SPARK)
    assert (done.returncode, done.stdout) == (0, b"1000 tables: every policy is valid.\n")
    assert done.stderr == b"[]\n"


def test_path_tables_are_planned_without_spark(repo: Repository) -> None:
    repo.table("a")
    repo.policies({"a": "{isolation: Serializable}"})
    done = tablectl("plan", "--detailed-exitcode", cwd=repo.root, code=NO_SPARK)
    assert (done.returncode, done.stderr) == (2, b"[]\n")


def test_a_closed_pipe_ends_quietly(repo: Repository) -> None:
    repo.policies({f"t{number}": "{isolation: Serializable}" for number in range(2000)})
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "tablectl", "validate", "--format", "json"]
    done = subprocess.run(command, cwd=repo.root, stdout=write, stderr=subprocess.PIPE, check=False, timeout=60)
    os.close(write)
    assert (done.returncode, done.stderr) == (1, b"")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
def test_a_full_disk_is_one_sentence(repo: Repository) -> None:
    with Path("/dev/full").open("wb") as full:
        command = [sys.executable, "-m", "tablectl", "schema"]
        done = subprocess.run(command, cwd=repo.root, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (1, b"error: the result cannot be written: No space left on device\n")


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o007, 0o660)])
def test_a_new_file_obeys_the_umask_and_an_old_one_keeps_its_rights(tmp_path: Path, umask: int, mode: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "new.json", b"1")
        write_file(tmp_path / "private.json", b"1", private=True)
        (tmp_path / "old.json").touch(mode=0o600)
        (tmp_path / "old.json").chmod(0o640)
        write_file(tmp_path / "old.json", b"2")
        assert mode_of(tmp_path / "old.json") == 0o640
        write_file(tmp_path / "old.json", b"3", private=True)
    finally:
        os.umask(before)
    names = ("new.json", "private.json", "old.json")
    assert [mode_of(tmp_path / name) for name in names] == [mode, 0o600, 0o600]


def test_a_plan_with_masked_values_is_for_its_owner_alone(repo: Repository, cli: Cli) -> None:
    repo.table("orders")
    repo.policies({"orders": "{properties: {api.token: abcdef}}"})
    before = os.umask(0o022)
    try:
        Path("tablectl.yaml").write_text("reports: {mask: []}\n")
        assert cli("plan", "--out", "open.json").code == 0
        Path("tablectl.yaml").write_text("reports: {mask: ['*token*']}\n")
        assert cli("plan", "--out", "p.json", "--report", "r.json").code == 0
    finally:
        os.umask(before)
    assert [mode_of(Path(name)) for name in ("open.json", "p.json", "r.json")] == [0o644, 0o600, 0o644]
    assert "abcdef" not in Path("r.json").read_text()


def test_a_demo_without_spark_leaves_nothing_behind(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: object, **_given: object) -> object:
        raise EngineError("this command needs Spark, which is not installed", "pip install pyspark")

    monkeypatch.setattr(Engines, "start", missing)
    for _ in range(2):
        assert "needs Spark" in cli("demo", "lake").err
        assert not Path("lake").exists()


@pytest.mark.parametrize(("args", "told"), [(["plan", "--as", "nix"], "--as"), (["show"], "PLAN")])
def test_wrong_usage_is_json_for_programs(cli: Cli, args: list[str], told: str) -> None:
    result = cli(*args, "--format", "json")
    found = json.loads(result.out)
    assert (result.code, found["exit_code"], found["problems"]) == (64, 64, [])
    assert told in found["error"]
    assert result.err.startswith(f"Usage: tablectl {args[0]}")
