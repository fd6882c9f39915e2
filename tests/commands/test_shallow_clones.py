"""VACUUM by ``upkeep`` deletes no file that a shallow clone reads, as far as the logs of the known tables tell."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands import shallow_clones
from tablectl.commands.shallow_clones import CloneFinder
from tablectl.log.foreign_files import foreign_folders
from tablectl.model.errors import LiveError
from tablectl.planning.plan_upkeep import ShallowClones
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import _add, append, create
from tests.log.checkpoint_files import METADATA, PROTOCOL, UUID, checkpoint, parquet

VACUUM = "{upkeep: {vacuum: {every: 7 days}}}"


@pytest.fixture
def lake(repo: Repository) -> Repository:
    """A table whose VACUUM is due, with a name that Delta encodes."""
    repo.table("s%41 rc")
    repo.policies({"s%41 rc": VACUUM})
    return repo


def clone(place: Path, *paths: str, **facts: Any) -> Path:
    """A table that names files of others by absolute paths, and no more of them by its own."""
    create(place, **facts)
    append(place, "CLONE", [_add(each) for each in paths])
    return place


def state(cli: Cli) -> tuple[str, str]:
    """What the list says, and what the run does."""
    (row,) = json.loads(cli("upkeep", "--format", "json").out)["tables"]
    (table,) = json.loads(cli("upkeep", "--apply", "--format", "json").out)["tables"]
    return row["state"], f"{table['outcome']} {table['message']}"


SPELLINGS: dict[str, Callable[[Repository], str]] = {
    "one slash": lambda lake: f"file:{lake.lake}/s%2541%20rc/part-0.parquet",
    "three slashes": lambda lake: f"file://{lake.lake}/s%2541%20rc/part-0.parquet",
    "no scheme": lambda lake: f"{lake.lake}/s%2541%20rc/part-0.parquet",
    "a partition": lambda lake: f"file:{lake.lake}/s%2541%20rc/day=2026-01-01%2010%253A00/part-0.parquet",
    "a link": lambda lake: f"file:{lake.lake}/link/part-0.parquet",
    "a link to the lake": lambda lake: f"file:{lake.root}/data/s%2541%20rc/part-0.parquet",
}


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("declared", [True, False])
def test_a_clone_is_seen_by_the_paths_of_its_files(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, spelling: str, *, declared: bool
) -> None:
    (lake.lake / "link").symlink_to(lake.lake / "s%41 rc")
    (lake.root / "data").symlink_to(lake.lake)
    clone(lake.lake / "clone", SPELLINGS[spelling](lake))
    if declared:
        lake.policies({"clone": "{}"}, "more.yaml")
    listed, ran = state(cli)
    assert listed == "refused"
    assert ran == f"refused shallow clones read files of this table: {lake.name('clone')}"
    assert not fake_spark.sent


def test_the_source_is_declared_through_a_link(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    (lake.root / "data").symlink_to(lake.lake)
    clone(lake.lake / "clone", f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    body = f"version: 1\ntables:\n  delta.`{lake.root}/data/s%41 rc`: {VACUUM}\n  delta.`{lake.lake}/clone`: {{}}\n"
    lake.policies(body)
    assert state(cli) == ("refused", f"refused shallow clones read files of this table: {lake.name('clone')}")


def test_a_table_with_relative_paths_is_not_a_clone(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    clone(lake.lake / "other", "day=10%3A00/part-0.parquet", "ab/part-1.parquet")
    assert state(cli)[0] == "due"
    assert fake_spark.sent == [f"VACUUM `delta`.`{lake.lake}/s%41 rc`"]


def test_a_clone_of_a_neighbour_with_a_longer_name_is_none_of_this_table(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    clone(lake.lake / "clone", f"file:{lake.lake}/s%2541%20rc2/part-0.parquet")
    assert state(cli)[0] == "due"


def test_a_table_that_names_its_own_files_by_absolute_paths_is_none(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    append(lake.lake / "s%41 rc", "WRITE", [_add(f"file:{lake.lake}/s%2541%20rc/part-9.parquet")])
    assert state(cli)[0] == "due"


def test_a_clone_over_an_existing_table_is_seen(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    """CREATE OR REPLACE TABLE … SHALLOW CLONE: the first commit says nothing of it."""
    create(lake.lake / "was")
    append(lake.lake / "was", "CLONE", [_add(f"file:{lake.lake}/s%2541%20rc/part-0.parquet")])
    assert state(cli)[0] == "refused"


def test_the_tombstones_of_a_clone_count_because_its_older_versions_read_them(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    path = f"file:{lake.lake}/s%2541%20rc/part-0.parquet"
    clone(lake.lake / "clone", path)
    append(lake.lake / "clone", "DELETE", [{"remove": {"path": path, "dataChange": True, "deletionTimestamp": 1}}])
    assert state(cli)[0] == "refused"


def test_the_deletion_vector_of_a_clone_of_a_clone_lies_in_the_clone(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    """It reads files of the first table and vectors of the second, which has a policy here."""
    vector = {
        "storageType": "p",
        "pathOrInlineDv": f"file:{lake.lake}/s%2541%20rc/deletion_vector_1.bin",
        "offset": 1,
        "sizeInBytes": 36,
        "cardinality": 2,
    }
    add = _add("file:/elsewhere/part-0.parquet")
    add["add"]["deletionVector"] = vector
    create(lake.lake / "clone")
    append(lake.lake / "clone", "CLONE", [add])
    assert state(cli)[0] == "refused"


def _in_a_checkpoint(log: Path, kind: str, action: dict[str, Any]) -> None:
    rows = [PROTOCOL, METADATA]
    if kind == "classic":
        (log / checkpoint(1)).write_bytes(parquet([*rows, action]))
        return
    (log / "_sidecars").mkdir()
    (log / "_sidecars" / "s.parquet").write_bytes(parquet([action], ("add", "remove")))
    sidecar = {"sidecar": {"path": "s.parquet", "sizeInBytes": 1}}
    name = f"{1:020d}.checkpoint.{UUID}"
    if kind == "v2 parquet":
        (log / f"{name}.parquet").write_bytes(parquet([*rows, sidecar]))
    else:
        lines = [{"checkpointMetadata": {"version": 1}}, *rows, sidecar]
        (log / f"{name}.json").write_text("".join(json.dumps(each) + "\n" for each in lines))


@pytest.mark.parametrize("kind", ["classic", "v2 parquet", "v2 json"])
@pytest.mark.parametrize("action", ["add", "remove"])
def test_a_clone_whose_first_commits_were_cleaned_up_is_seen(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, kind: str, action: str
) -> None:
    place = clone(lake.lake / "clone", f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    log = place / "_delta_log"
    path = f"file:{lake.lake}/s%2541%20rc/part-0.parquet"
    _in_a_checkpoint(log, kind, {action: {"path": path} | ({"size": 1} if action == "add" else {})})
    for old in (0, 1):
        (log / f"{old:020d}.json").unlink()
    (log / f"{2:020d}.json").write_text(json.dumps({"commitInfo": {"operation": "WRITE", "timestamp": 1}}) + "\n")
    assert foreign_folders(Stores(StoreOptions()), str(place)) == {f"{lake.lake}/s%41 rc"}
    assert state(cli)[0] == "refused"


def test_a_clone_of_which_only_its_own_checkout_knows_is_not_seen(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, tmp_path: Path
) -> None:
    """The limit that the report and docs/upkeep.md name: clones in other places, without a policy."""
    clone(tmp_path / "elsewhere" / "clone", f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    listed, ran = state(cli)
    assert (listed, ran) == ("due", "applied ")


def test_the_tables_below_the_place_of_a_pattern_count(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, tmp_path: Path
) -> None:
    place = tmp_path / "dev"
    clone(place / "team" / "scratch", f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    create(place / "team" / "orders")
    lake.policies(f"version: 1\ntables:\n  delta.`{place}/*/ord*`: {{}}\n", "dev.yaml")
    assert state(cli)[0] == "refused"


# What cannot be looked at


def test_a_table_that_cannot_be_read_stops_the_vacuum_of_those_that_it_may_be_a_clone_of(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    log = create(lake.lake / "broken") / "_delta_log" / f"{1:020d}.json"
    log.write_text("{")
    listed, ran = state(cli)
    assert listed == "refused"
    assert ran.startswith("refused tables that may be shallow clones of this one cannot be read: ")
    assert "broken" in ran
    assert not fake_spark.sent


def test_a_declared_table_that_does_not_exist_yet_stops_nothing(
    cli: Cli, lake: Repository, fake_spark: FakeSpark
) -> None:
    lake.policies({"not made yet": "{}"}, "more.yaml")
    assert state(cli)[0] == "due"


def test_one_unreadable_table_costs_no_optimize(cli: Cli, lake: Repository, fake_spark: FakeSpark) -> None:
    append(lake.lake / "s%41 rc", "WRITE", [_add(f"small-{number}.parquet") for number in range(40)])
    lake.policies({"s%41 rc": "{upkeep: {optimize: {small_files: 30%}, vacuum: {every: 7 days}}}"})
    (create(lake.lake / "broken") / "_delta_log" / f"{1:020d}.json").write_text("{")
    cli("upkeep", "--apply")
    assert [sql.split()[0] for sql in fake_spark.sent] == ["OPTIMIZE"]


def test_a_look_that_fails_as_a_whole_stops_every_vacuum(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise LiveError("the store does not answer")

    monkeypatch.setattr(CloneFinder, "_look", fails)
    assert state(cli)[1].endswith("cannot be read: the store does not answer")


def test_other_policies_of_the_repository_count_although_only_some_are_given(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere" / "clone"
    clone(place, f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    lake.policies(f"version: 1\ntables:\n  delta.`{place}`: {{}}\n", "more.yaml")
    ran = json.loads(cli("upkeep", "--apply", "--format", "json", "policies/lake.yaml").out)
    assert [each["outcome"] for each in ran["tables"]] == ["refused"]


def test_a_selection_does_not_hide_a_clone_from_the_run(
    cli: Cli, lake: Repository, fake_spark: FakeSpark, tmp_path: Path
) -> None:
    place = tmp_path / "elsewhere" / "clone"
    clone(place, f"file:{lake.lake}/s%2541%20rc/part-0.parquet")
    lake.policies(f"version: 1\ntables:\n  delta.`{place}`: {{}}\n", "more.yaml")
    ran = json.loads(cli("upkeep", "--apply", "--format", "json", "--select", "*rc*").out)
    assert [each["outcome"] for each in ran["tables"]] == ["refused"]


def test_the_report_says_what_vacuum_cannot_see(cli: Cli, lake: Repository) -> None:
    (row,) = json.loads(cli("upkeep", "--format", "json").out)["tables"]
    assert any("VACUUM cannot see shallow clones outside of the policies" in each for each in row["tasks"][0]["notes"])


# How places are compared


@pytest.mark.parametrize(
    ("file", "table"),
    [
        ("s3a://bucket/lake/orders/part-0.parquet", "s3://bucket/lake/orders"),
        ("s3n://bucket/lake/orders/part-0.parquet", "s3a://bucket/lake/orders/"),
        ("abfss://c@a.dfs.core.windows.net/lake/orders/x", "abfs://c@a.dfs.core.windows.net/lake/orders"),
        ("wasbs://c@a.blob.core.windows.net/lake/orders/x", "abfss://c@a.dfs.core.windows.net/lake/orders"),
        ("gs://bucket/lake/orders/part-0.parquet", "gs://bucket/lake/orders"),
        ("file:/lake/orders/part-0.parquet", "file:///lake/orders"),
    ],
)
def test_two_spellings_of_one_place_are_one(file: str, table: str) -> None:
    from tablectl.delta.locations import canonical_location

    roots = {each: {table} for each in shallow_clones._spellings(canonical_location(table))}
    folder = canonical_location(file).rpartition("/")[0]
    assert set(shallow_clones._above(folder, roots)) == {table}


def test_one_look_serves_the_tables_of_a_minute(lake: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    looks, now = list[int](), [0.0]

    class Located:
        location = "/lake/a"

    def look(_self: CloneFinder) -> dict[str, Any]:
        looks.append(1)
        return {"/lake/a": ShallowClones()}

    monkeypatch.setattr(CloneFinder, "_look", look)
    finder = CloneFinder(None, None, [Located()], lambda: now[0])  # type: ignore[arg-type,list-item]
    for moment, count in ((0.0, 1), (59.0, 1), (61.0, 2), (61.5, 2)):
        now[0] = moment
        finder.of("/lake/a")
        assert len(looks) == count
