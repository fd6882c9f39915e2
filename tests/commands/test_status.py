"""``tablectl status``: every table of a lake, managed or not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import append, set_property


@pytest.fixture
def lake(repo: Repository, cli: Cli, fake_spark: FakeSpark) -> Repository:
    """A table as declared, one changed by others, one never applied, one that is gone, and one without a policy."""
    for name in ("asdeclared", "changed", "never", "other"):
        repo.table(name)
    repo.policies(dict.fromkeys(("asdeclared", "changed"), "{properties: {owner.team: web}}"))
    assert cli("apply", "--yes").code == 0
    set_property(repo.lake / "changed", "owner.team", "x")
    repo.policies(dict.fromkeys(("never", "gone"), "{isolation: Serializable}"), "more.yaml")
    return repo


def rows(text: str) -> dict[str, dict[str, Any]]:
    return {row["table"].rstrip("`").rsplit("/", 1)[-1]: row for row in json.loads(text)["tables"]}


def test_every_table_has_a_state_and_those_that_need_attention_come_first(cli: Cli, lake: Repository) -> None:
    result = cli("status", f"delta.`{lake.lake}/*`", "--format", "json")
    assert result.code == 1  # one cannot be read
    found = rows(result.out)
    assert {name: row["state"] for name, row in found.items()} == {
        "gone": "not readable",
        "changed": "changed by others",
        "never": "never applied",
        "other": "no policy",
        "asdeclared": "as declared",
    }
    assert list(found)[:2] == ["gone", "changed"]
    changed = found["changed"]
    assert changed["differences"] == ["properties.owner.team: declared web, found x"]
    assert changed["changed_by"] == "unknown user (Delta Spark 4.4.0)"
    assert changed["applied_run"]
    assert changed["policy"] == "policies/lake.yaml:4"
    assert found["other"]["policy"] == ""
    assert "no such directory" in found["gone"]["error"]


def test_a_table_that_a_pattern_names_too_is_one_row(cli: Cli, lake: Repository) -> None:
    found = json.loads(cli("status", f"delta.`{lake.lake}/*`", "--format", "json").out)["tables"]
    assert len(found) == 5


def test_a_table_that_is_asked_for_is_the_only_row(cli: Cli, lake: Repository) -> None:
    """Two hundred rows of the policies stood around the one that was asked for."""
    known = {"never": "never", "other": "other", str(lake.lake / "never"): "never"}
    for asked, name in known.items():
        result = cli("status", asked if "/" in asked else lake.name(asked), "--format", "json")
        assert (result.code, list(rows(result.out))) == (0, [name])  # and the one that cannot be read is not asked for
    result = cli("status", lake.name("gone"), "--format", "json")
    assert (result.code, list(rows(result.out))) == (1, ["gone"])


def test_a_folder_without_policies_asks_for_a_table(cli: Cli, repo: Repository) -> None:
    """It said "not looked up *" and listed no table."""
    result = cli("status")
    assert (result.code, result.out) == (64, "")
    assert "no table is named, and no policy names one" in result.err


def test_a_place_may_be_a_variable(cli: Cli, lake: Repository) -> None:
    result = cli("status", "${LAKE}/never", "--var", f"LAKE={lake.lake}", "--format", "json")
    assert list(rows(result.out)) == ["never"]
    undefined = cli("status", "${LAKE}/never")
    assert undefined.code == 64
    assert "the variable LAKE is not defined" in undefined.err


def test_debt_counts_from_the_whole_log_what_the_checksum_does_not_have(cli: Cli, lake: Repository) -> None:
    before = rows(cli("status", "--format", "json").out)["asdeclared"]
    assert (before["files"], before["bytes"]) == (None, None)
    after = rows(cli("status", "--format", "json", "--debt").out)["asdeclared"]
    assert (after["files"], after["bytes"], after["file_bytes"], after["vectors"]) == (2, 200, 100, 0)


def test_a_declared_client_that_the_protocol_locks_out_is_named(cli: Cli, repo: Repository) -> None:
    repo.table("orders", features=("deletionVectors",))
    repo.policies({"orders": "{clients: {deltalake: 0.15.0}}"})
    (row,) = json.loads(cli("status", "--format", "json").out)["tables"]
    assert len(row["locked_out"]) >= 1
    assert row["locked_out"][0].startswith("deltalake 0.15.0 cannot ")


def test_a_page_of_a_real_table_has_its_numbers(cli: Cli, repo: Repository) -> None:
    place = str(repo.lake / "real")
    write_deltalake(place, pa.table({"id": [1, 2, 3]}))
    repo.policies({"real": "{properties: {owner.team: web}}"})
    result = cli("status", "--report", "lake.html", "--debt")
    assert result.code == 0
    page = Path("lake.html").read_text()
    assert "never applied" in page
    assert "1 file" in page


def test_masked_values_are_in_no_row(cli: Cli, lake: Repository) -> None:
    (lake.root / "tablectl.yaml").write_text("reports: {mask: ['owner.*']}\n")
    append(lake.lake / "changed", "WRITE", [])
    for form in ("text", "json", "markdown", "html"):
        assert "found x" not in cli("status", "--format", form).out


@pytest.mark.parametrize("width", [60, 120])
def test_no_line_of_text_is_wider_than_the_terminal(
    cli: Cli, lake: Repository, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    result = cli("status")
    names = str(lake.lake)  # a name is never cut
    assert [line for line in result.out.splitlines() if len(line) > width and names not in line] == []


def test_tables_that_were_created_past_their_policies_are_listed_with_what_to_do(
    cli: Cli, repo: Repository, fake_spark: FakeSpark
) -> None:
    for name in ("old", "managed"):
        repo.table(name)
    repo.policies({"managed": "{properties: {owner.team: web}}"})
    assert cli("status", repo.name("old"), "--fail-on", "unmanaged").code == 0  # nothing was applied yet
    assert cli("apply", "--yes").code == 0
    for name in ("wild", "against"):
        path = repo.lake / name
        shutil.copytree(repo.lake / "old", path)
        first = path / "_delta_log/00000000000000000000.json"
        first.write_text(first.read_text().replace("1700000000000", "1800000000000"))
    repo.policies({"against": "{properties: {owner.team: web}}"}, "more.yaml")
    asked = map(repo.name, ("old", "wild", "against"))
    result = cli("status", *asked, "--fail-on", "unmanaged", "--format", "json")
    assert result.code == 2
    folder = f"delta.`{repo.lake}/*`"
    assert rows(cli("status", folder, "--fail-on", "unmanaged", "--format", "json").out)["wild"]["slipped"]
    found = rows(result.out)
    assert "slipped" not in found["old"]
    assert found["old"]["created_at"] == 1_700_000_000_000
    assert found["wild"]["slipped"].startswith("tablectl import ")
    assert found["wild"]["created_by"] == "unknown user (Delta Spark 4.4.0)"
    assert found["against"]["slipped"].startswith("tablectl plan --select ")
    text = cli("status", repo.name("wild"), repo.name("against")).flat
    assert "after the last apply" in text
    assert "2 created since the last apply, not as a policy declares" in text


def test_the_first_commit_is_read_beyond_the_look_back(cli: Cli, repo: Repository, fake_spark: FakeSpark) -> None:
    repo.table("managed")
    repo.policies({"managed": "{properties: {owner.team: web}}"})
    assert cli("apply", "--yes").code == 0
    path = repo.table("long")
    for number in range(30):
        append(path, f"WRITE {number}", [])
    found = rows(cli("status", repo.name("long"), "--format", "json").out)
    assert found["long"]["created_at"] == 1_700_000_000_000


def test_a_table_that_cannot_be_located_has_its_policy_all_the_same(cli: Cli, repo: Repository) -> None:
    repo.table("orders")
    (repo.lake / "alias").symlink_to(repo.lake / "orders")
    repo.policies(dict.fromkeys(("orders", "alias"), "{}"))
    result = cli("status")
    assert result.code == 1
    assert "Status: 2 of 2 tables have a policy; 1 not readable" in result.flat
    found = rows(cli("status", "--format", "json").out)["alias"]
    assert (found["state"], found["policy"]) == ("not readable", "policies/lake.yaml:4")
