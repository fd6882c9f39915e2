from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from deltalake import write_deltalake
from pyarrow import table as arrow_table

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import Logged, append, set_property


@pytest.fixture
def two(repo: Repository) -> Repository:
    repo.table("a")
    repo.table("b", properties={"debug": "on"})
    repo.policies({"a": "{isolation: Serializable, tags: [web]}", "b": "{properties: {debug: null}, tags: [pay]}"})
    return repo


def test_a_plan_shows_changes_and_sql_and_changes_nothing(cli: Cli, two: Repository) -> None:
    before = {file: file.read_bytes() for file in two.lake.rglob("*") if file.is_file()}
    result = cli("plan", "--verbose")
    assert (result.code, result.err) == (0, "")
    assert "default → Serializable" in result.out
    assert "SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable');" in result.out
    assert result.out.endswith("Plan: 2 tables to change (2 blocking), 2 statements.\n")
    assert {file: file.read_bytes() for file in two.lake.rglob("*") if file.is_file()} == before


def test_a_plan_of_a_table_written_by_delta_rs(cli: Cli, repo: Repository) -> None:
    write_deltalake(repo.lake / "r", arrow_table({"id": [1, 2]}))
    repo.policies({"r": "{isolation: Serializable}"})
    result = cli("plan", "--detailed-exitcode")
    assert result.code == 2
    assert "1 table to change" in result.out


@pytest.mark.parametrize("policy", ["clustering: [id]", "row_tracking: enabled", "deletion_vectors: enabled"])
def test_a_table_that_deltalake_alone_writes_is_not_taken_from_it(cli: Cli, repo: Repository, policy: str) -> None:
    for _ in range(3):
        write_deltalake(repo.lake / "r", arrow_table({"id": [1, 2]}), mode="append")
    repo.policies({"r": f"{{{policy}}}"})
    refused = cli("plan")
    assert refused.code == 3
    assert "the only client that recently wrote the table" in refused.flat
    assert "allow: [lockout]" in refused.flat
    repo.policies({"r": f"{{{policy}, allow: [lockout]}}"})
    allowed = cli("plan")
    assert allowed.code == 0
    assert "P004" in allowed.out


def test_the_json_of_a_plan_is_the_plan_file(cli: Cli, two: Repository) -> None:
    result = cli("plan", "--format", "json", "--out", "plans/a.json")
    assert result.out == (two.root / "plans/a.json").read_text()
    assert [table["name"] for table in json.loads(result.out)["tables"]] == [two.name("a"), two.name("b")]


def test_the_same_state_gives_the_same_bytes(
    cli: Cli, two: Repository, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cli("plan", "--out", "one.json")
    for file in (two.lake / "a" / "_delta_log").iterdir():
        os.utime(file, (1, 1))
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    monkeypatch.setenv("USER", "someone-else")
    monkeypatch.chdir(tmp_path)
    cli("plan", "repo/policies/lake.yaml", "--out", tmp_path / "two.json")
    assert (tmp_path / "two.json").read_bytes() == (two.root / "one.json").read_bytes()


def test_saving_says_how_to_go_on_on_standard_error(cli: Cli, two: Repository) -> None:
    result = cli("plan", "--out", "plans/my plan.json")
    how = "to apply exactly this plan, run `tablectl apply 'plans/my plan.json'`"
    assert result.err == f"saved to plans/my plan.json; {how}\n"


def test_a_plan_with_nothing_to_do_does_not_ask_to_be_applied(cli: Cli, repo: Repository) -> None:
    repo.table("a", properties={"delta.isolationLevel": "Serializable"})
    repo.policies({"a": "{isolation: Serializable}"})
    result = cli("plan", "--out", "p.json", "--detailed-exitcode")
    assert (result.code, result.out) == (0, "No changes. 1 table matches its policy.\n")
    assert result.err == "saved to p.json\n"


def test_a_plan_of_refusals_alone_is_not_offered_to_apply(cli: Cli, repo: Repository) -> None:
    repo.table("a")
    repo.policies({"a": "{clustering: [nowhere]}"})
    result = cli("plan", "--out", "p.json")
    assert (result.code, result.err) == (3, "saved to p.json; an apply of it changes nothing\n")


# Selecting


def names(out: str) -> list[str]:
    body = json.loads(out)
    return [Path(table["location"]).name for table in body["tables"]]


@pytest.mark.parametrize(
    ("args", "found"),
    [
        (["--select", "*/a"], ["a"]),
        (["--select", "*/a", "--select", "*/b"], ["a", "b"]),
        (["--tag", "pay"], ["b"]),
        (["--tag", "pay", "--tag", "web"], ["a", "b"]),
        (["--select", "*", "--tag", "web"], ["a"]),
    ],
)
def test_tables_are_selected(cli: Cli, two: Repository, args: list[str], found: list[str]) -> None:
    assert names(cli("plan", "--format", "json", *args).out) == found


def test_an_exact_name_selects_whatever_is_in_it(cli: Cli, repo: Repository) -> None:
    repo.table("odd[1]")
    repo.policies({"odd[[]1]": "{isolation: Serializable}"})
    assert names(cli("plan", "--format", "json", "--select", repo.name("odd[1]")).out) == ["odd[1]"]
    assert names(cli("plan", "--format", "json", "--select", repo.lake / "odd[1]").out) == ["odd[1]"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--select", "*/ordres"], "--select '*/ordres' matches no table"),
        (["--select", "*", "--select", "nix"], "--select 'nix' matches no table"),
        (["--tag", "wbe"], "tags in these policies: pay, web"),
        (["--select", "*/a", "--tag", "pay"], "no table is both in --select and in --tag"),
    ],
)
def test_a_selection_of_nothing_is_a_typo(cli: Cli, two: Repository, args: list[str], says: str) -> None:
    result = cli("plan", *args)
    assert (result.code, result.out) == (64, "")
    assert says in result.err


# Exit codes


def test_pending_changes_are_2_only_if_asked_for(cli: Cli, two: Repository) -> None:
    assert cli("plan").code == 0
    assert cli("plan", "--detailed-exitcode").code == 2


def test_a_refusal_is_3_and_names_the_fix(cli: Cli, two: Repository) -> None:
    two.table("p", partitions=["day"])
    two.policies({"a": "{isolation: Serializable}", "p": "{isolation: Serializable, partitioning: [kind]}"})
    result = cli("plan", "--detailed-exitcode", "--out", "p.json")
    assert result.code == 3
    assert "REFUSED" in result.out
    assert "- fix: " in result.out
    assert "1 table to change (1 blocking), 1 statement; 1 refused." in result.out
    assert (two.root / "p.json").exists()


def test_what_cannot_be_read_is_1_and_the_rest_is_planned_and_saved(cli: Cli, two: Repository) -> None:
    (two.lake / "nothing").mkdir()
    append(two.lake / "future", "CREATE TABLE", [{"protocol": {"minReaderVersion": 9, "minWriterVersion": 9}}])
    every = dict.fromkeys(["a", "missing", "nothing", "future"], "{isolation: Serializable}")
    two.policies(every)
    result = cli("plan", "--out", "p.json")
    assert result.code == 1
    assert "1 table to change" in result.out
    assert "3 not readable" in result.out
    assert "not a Delta table" in result.flat
    body = json.loads((two.root / "p.json").read_text())
    assert [failure["name"] for failure in body["failures"]] == sorted(map(two.name, ["future", "missing", "nothing"]))
    assert names((two.root / "p.json").read_text()) == ["a"]


def test_a_plan_that_cannot_be_saved_is_an_error(cli: Cli, two: Repository) -> None:
    (two.root / "plans").write_text("")
    (two.root / "dir.json").mkdir()
    for place in ("plans/p.json", "dir.json"):
        result = cli("plan", "--out", place)
        assert (result.code, result.out) == (1, "")
        assert place.split("/")[0] in result.err
        assert "hint" in result.err


# show


def test_show_prints_what_plan_printed(cli: Cli, two: Repository) -> None:
    planned = cli("plan", "--out", "p.json")
    shown = cli("show", "p.json")
    assert (shown.code, shown.out, shown.err) == (0, planned.out, "")
    assert cli("show", "p.json", "--format", "json").out == (two.root / "p.json").read_text()


def test_show_works_after_the_tables_are_gone(cli: Cli, two: Repository) -> None:
    cli("plan", "--out", "p.json")
    two.lake.rename(two.root / "elsewhere")
    assert cli("show", "p.json").code == 0


def edited(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def resigned(path: Path, old: str, new: str) -> None:
    """An edit by someone who knows how the digest is made."""
    from tablectl.planning.plan_file import _canonical, _digest

    edited(path, old, new)
    body = json.loads(path.read_text())
    del body["sha256"]
    path.write_text(json.dumps({**body, "sha256": _digest(_canonical(body))}))


@pytest.mark.parametrize("verb", ["show", "apply"])
@pytest.mark.parametrize("how", ["edited", "truncated", "empty", "binary", "foreign", "newer format"])
def test_a_damaged_plan_is_refused(cli: Cli, two: Repository, fake_spark: FakeSpark, verb: str, how: str) -> None:
    cli("plan", "--out", "p.json")
    path = two.root / "p.json"
    match how:
        case "edited":
            edited(path, "'Serializable'", "'WriteSerializable'")
        case "truncated":
            path.write_bytes(path.read_bytes()[:-40])
        case "empty":
            path.write_bytes(b"")
        case "binary":
            path.write_bytes(b"\xff\xfe\x00")
        case "foreign":
            path.write_text('{"resource_changes": []}')
        case _:
            edited(path, '"format": 2', '"format": 3')
    result = cli(verb, "p.json")
    assert (result.code, result.out) == (3, "")
    assert result.err.startswith("error: p.json: ")
    assert "run `tablectl plan --out FILE` again" in result.err
    assert (fake_spark.engines, len(Logged(two.lake / "a").commits)) == ([], 2)


def test_a_plan_of_another_version_is_shown_and_not_applied(cli: Cli, two: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    resigned(two.root / "p.json", '"tool": "', '"tool": "0.0.')
    assert cli("show", "p.json").code == 0
    result = cli("apply", "p.json")
    assert result.code == 3
    assert "made by tablectl 0.0." in result.err
    assert fake_spark.engines == []


def test_sql_of_someone_elses_making_never_runs(cli: Cli, two: Repository, fake_spark: FakeSpark) -> None:
    cli("plan", "--out", "p.json")
    resigned(two.root / "p.json", "SET TBLPROPERTIES ('delta.isolationLevel'", "SET TBLPROPERTIES ('x'")
    result = cli("apply", "p.json")
    assert (result.code, fake_spark.engines) == (3, [])
    assert "follow" in result.err


def test_a_plan_file_that_is_not_there(cli: Cli) -> None:
    for verb in ("show", "apply"):
        result = cli(verb, "nix.json")
        assert result.code == 1
        assert result.err == (
            "error: nix.json: No such file or directory\n  hint: plans are written by `tablectl plan --out FILE`\n"
        )


# Catalog tables


def test_a_catalog_table_with_a_location_needs_no_engine(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    path = repo.table("orders")
    repo.policies(f"version: 1\ntables:\n  sales.orders: {{isolation: Serializable, location: {path}}}\n")
    assert names(cli("plan", "--format", "json").out) == ["orders"]
    assert fake_spark.engines == []


def test_one_without_is_looked_up(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    fake_spark.catalog["spark_catalog", "sales", "orders"] = repo.table("orders")
    repo.policies("version: 1\ntables:\n  sales.orders: {isolation: Serializable}\n  sales.nix: {isolation: default}\n")
    result = cli("plan", "--format", "json")
    assert (result.code, result.err) == (1, "starting Spark\n")
    assert names(result.out) == ["orders"]
    assert len(fake_spark.engines) == 1
    assert fake_spark.engines[0].closed


def test_two_names_of_one_table_are_an_error_of_both(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    fake_spark.catalog["spark_catalog", "sales", "orders"] = path = repo.table("orders")
    lines = ["sales.orders: {isolation: Serializable}", f"delta.`{path}`: {{isolation: default}}"]
    repo.policies("version: 1\ntables:\n" + "".join(f"  {line}\n" for line in lines))
    result = cli("plan")
    assert result.code == 1
    assert "2 not readable" in result.out
    assert "the policies name this table twice" in result.out


def test_the_token_of_a_remote_is_not_shown(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    remote = "sc://ann:hunter2@host:15002/;token=hunter2;user_id=ann"
    repo.policies("version: 1\ntables:\n  lake.sales.orders: {isolation: default}\n")
    for args in (["plan", "--remote", remote], ["doctor", "--engine", "--remote", remote]):
        ran = cli(*args)
        assert "hunter2" not in ran.out + ran.err
        assert "host:15002" in ran.out + ran.err
    assert fake_spark.options[0].remote == remote


def test_remote_and_configuration_reach_the_engine(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    repo.policies("version: 1\ntables:\n  sales.orders: {isolation: Serializable}\n")
    (repo.root / "tablectl.yaml").write_text("engine: {conf: {spark.x: y}}\n")
    result = cli("plan", "--remote", "sc://host:15002")
    assert "connecting to sc://host:15002" in result.err
    assert (fake_spark.options[0].remote, dict(fake_spark.options[0].conf)) == ("sc://host:15002", {"spark.x": "y"})


# Looks


def test_text_is_plain_in_a_pipe_and_coloured_on_a_terminal(
    cli: Cli, two: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "\x1b[" not in cli("plan").out
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert "\x1b[" not in cli("plan", "--format", "json").out


def test_no_colour_is_obeyed(two: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    import io

    from tablectl.commands.output import Output

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    terminal = Terminal()
    assert Output({}, terminal, terminal).style.colour
    assert not Output({"NO_COLOR": "1"}, terminal, terminal).style.colour
    assert Output({"NO_COLOR": ""}, terminal, terminal).style.colour
    assert not Output({"TERM": "dumb"}, terminal, terminal).style.colour
    assert not Output({}, io.StringIO(), terminal).style.colour


def test_a_plan_fits_80_columns_but_for_its_sql(cli: Cli, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    repo.table("a", properties={"debug": "on"})
    repo.policies(
        {"a": "{isolation: Serializable, deletion_vectors: enabled, clustering: [id, day], properties: {debug: null}}"}
    )
    monkeypatch.setenv("COLUMNS", "80")
    lines = cli("plan").out.splitlines()
    # SQL is never broken, so its lines may be longer.
    assert [line for line in lines if len(line) > 80 and str(repo.lake) not in line and not line.endswith(";")] == []


def test_a_changed_table_is_planned_again(cli: Cli, two: Repository) -> None:
    set_property(two.lake / "a", "delta.isolationLevel", "Serializable")
    assert names(cli("plan", "--format", "json").out) == ["b"]


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--on", "flink"), "'flink' is not one of 'spark'"),
        (("--on", "spark", "--as", "databricks"), "write `--on spark`, without --merge and --as"),
    ],
)
def test_a_plan_runs_on_nothing_but_spark_and_for_its_own_dialect(
    cli: Cli, options: tuple[str, ...], says: str
) -> None:
    ran = cli("plan", *options)
    assert ran.code == 64
    assert says in ran.err
