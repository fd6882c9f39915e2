"""Path patterns on a disk and in an object store."""

from __future__ import annotations

import os
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import obstore
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from obstore.store import MemoryStore

from tablectl.log import find_tables
from tablectl.log.find_tables import PatternMatches, find_paths
from tablectl.model import patterns as patterns_module
from tablectl.model.errors import LiveError
from tablectl.model.patterns import ANY_DEPTH, PathPattern, make_path_pattern
from tablectl.storage.object_stores import StoreOptions
from tests.s3 import S3Server
from tests.unreadable import unreadable

Make = Callable[..., None]
Find = Callable[..., PatternMatches]


class Lake:
    """A lake on a disk or in memory; ``root`` is its location."""

    def __init__(self, root: str, options: StoreOptions, put: Callable[[str], None]) -> None:
        self.root = root
        self.options = options
        self._put = put

    def add(self, *tables: str) -> None:
        for table in tables:
            self.add_file(f"{table}/_delta_log/{0:020d}.json")

    def add_file(self, name: str) -> None:
        self._put(name)

    def found(self, *globs: str) -> list[str]:
        found = find_paths([pattern(f"{self.root}/{glob}") for glob in globs], self.options)
        assert found.failures == ()
        assert all(name.parts == (where,) for name, where in found.tables.items())
        return sorted(name.parts[0].removeprefix(f"{self.root}/") for name in found.tables)


def pattern(glob: str) -> PathPattern:
    made = make_path_pattern(glob)
    assert isinstance(made, PathPattern)
    return made


@pytest.fixture(params=["disk", "store"])
def lake(request: pytest.FixtureRequest, tmp_path: Path, store: MemoryStore) -> Lake:
    def on_disk(name: str) -> None:
        path = tmp_path / "lake" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")

    if request.param == "disk":
        (tmp_path / "lake").mkdir()
        return Lake(f"{tmp_path}/lake", StoreOptions(), on_disk)
    return Lake("memory:///lake", StoreOptions(memory=store), lambda name: _put(store, f"lake/{name}"))


def _put(store: MemoryStore, name: str) -> None:
    obstore.put(store, name, b"")


def test_directories_with_a_log_are_tables(lake: Lake) -> None:
    lake.add("orders", "returns")
    lake.add_file("plain/part-0.parquet")
    lake.add_file("notes.txt")
    lake.add_file("orders2/_delta_log_old/x")
    assert lake.found("*") == ["orders", "returns"]
    assert lake.found("*s") == ["orders", "returns"]
    assert lake.found("[a-o]*", "ret?rns") == ["orders", "returns"]
    assert lake.found("nix*") == []


def test_steps_go_down_one_directory_each(lake: Lake) -> None:
    lake.add("sales/raw/a", "sales/clean/a", "web/raw/a", "web/raw/b", "web/raw/deep/c", "top")
    assert lake.found("*/raw/*") == ["sales/raw/a", "web/raw/a", "web/raw/b"]
    assert lake.found("*/*/a") == ["sales/clean/a", "sales/raw/a", "web/raw/a"]
    assert lake.found("*/raw/b") == ["web/raw/b"]
    assert lake.found("web/raw/*/*") == ["web/raw/deep/c"]
    assert lake.found("*") == ["top"]


def test_a_tables_own_directories_are_not_entered(lake: Lake) -> None:
    lake.add("t", "t/day=1", "t/nested/inner", "u/x")
    assert lake.found("*/*") == ["u/x"]
    assert lake.found("t/*") == []
    assert lake.found("*/day=1") == []
    assert lake.found("*/nested/*") == []


def test_hidden_directories_only_by_name(lake: Lake) -> None:
    lake.add("_tmp", ".old", "a/_staging", "a/b")
    assert lake.found("*", "*/*") == ["a/b"]
    assert lake.found("_*", ".o*", "a/_s*", "[_]t*/") == [".old", "_tmp", "a/_staging"]


@pytest.mark.parametrize(
    "name", ["a b", "100%", "a%20b", "a#b", "x?y", "[z]", "日本", "it's", "a`b", "day=1", "UPPER", "a+b&c", "~", "*"]
)
def test_directories_of_any_name(lake: Lake, name: str) -> None:
    lake.add(name, f"under/{name}/t")
    assert lake.found("*") == [name]
    assert lake.found("under/*/t") == [f"under/{name}/t"]


def test_a_table_that_two_patterns_find_is_one(lake: Lake) -> None:
    lake.add("a")
    assert lake.found("*", "?", "[a]*") == ["a"]


def test_a_pattern_that_leads_to_too_many_directories_is_a_failure(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(find_tables, "MOST", 2)
    lake.add("a", "b", "c")
    found = find_paths([pattern(f"{lake.root}/*")], lake.options)
    ((name, error),) = found.failures
    assert (found.tables, name) == ({}, f"delta.`{lake.root}/*`")
    assert "more than 2 directories" in str(error)


# Only on a disk


def make(path: Path) -> Path:
    (path / "_delta_log").mkdir(parents=True)
    return path


def test_a_base_that_does_not_exist_is_a_failure(tmp_path: Path) -> None:
    ((name, error),) = find_paths([pattern(f"{tmp_path}/nix/*")]).failures
    assert name == f"delta.`{tmp_path}/nix/*`"
    assert "no such directory" in str(error)


@pytest.mark.parametrize("globs", ["*", "*/*", "*/t", "[os]*/t"])
def test_a_directory_that_cannot_be_listed_stops_no_other(tmp_path: Path, globs: str) -> None:
    for name in ("open", "shut"):
        make(tmp_path / name if globs == "*" else tmp_path / name / "t")
    with unreadable(tmp_path / "shut"):
        found = find_paths([pattern(f"{tmp_path}/{globs}")])
    assert f"{tmp_path}/open{'' if globs == '*' else '/t'}" in [name.parts[0] for name in found.tables]
    told = [error.message for _, error in found.failures]
    assert len(told) == 1
    assert told[0].startswith(f"{tmp_path}/shut")
    assert "ermission denied" in told[0]


def test_links_that_lead_to_themselves_or_into_a_closed_directory_stop_no_other(tmp_path: Path) -> None:
    make(tmp_path / "lake" / "t")
    make(tmp_path / "closed" / "t")
    (tmp_path / "lake" / "one").symlink_to("two")
    (tmp_path / "lake" / "two").symlink_to("one")
    (tmp_path / "lake" / "into").symlink_to(tmp_path / "closed" / "t")
    with unreadable(tmp_path / "closed"):
        found = find_paths([pattern(f"{tmp_path}/lake/*"), pattern(f"{tmp_path}/lake/*/*")])
    assert [name.parts[0] for name in found.tables] == [f"{tmp_path}/lake/t"]
    assert {error.message.partition(":")[0] for _, error in found.failures} == {f"{tmp_path}/lake/into"}


def test_links_are_followed_and_broken_ones_and_loops_are_not(tmp_path: Path) -> None:
    make(tmp_path / "lake" / "t")
    (tmp_path / "lake" / "link").symlink_to(tmp_path / "lake" / "t")
    (tmp_path / "lake" / "broken").symlink_to(tmp_path / "nowhere")
    (tmp_path / "lake" / "loop").symlink_to(tmp_path / "lake")
    found = find_paths([pattern(f"{tmp_path}/lake/*"), pattern(f"{tmp_path}/lake/*/*/link")])
    assert [name.parts[0] for name in found.tables] == [f"{tmp_path}/lake/t"]
    assert "lake/loop/loop/link: left out: it is a link to" in found.failures[0][1].message


@pytest.mark.parametrize("name", [b"a\nb", b"\xff\xfe", b"a\x1bb"])
def test_a_table_whose_name_no_plan_can_hold_is_a_failure(tmp_path: Path, name: bytes) -> None:
    make(tmp_path / "fine")
    os.makedirs(os.path.join(os.fsencode(tmp_path), name, b"_delta_log"))  # noqa: PTH103, PTH118  # bytes
    found = find_paths([pattern(f"{tmp_path}/*")])
    assert list(found.tables.values()) == [f"{tmp_path}/fine"]
    assert "whose name cannot be written" in str(found.failures[0][1])


def test_an_empty_log_directory_is_a_table_of_which_the_reader_says_what_is_wrong(tmp_path: Path) -> None:
    make(tmp_path / "t")
    assert list(find_paths([pattern(f"file://{tmp_path}/*")]).tables.values()) == [f"file://{tmp_path}/t"]


# On S3


def test_a_prefix_costs_a_listing_and_a_table_one_more_however_many_files_it_has(s3: S3Server, bucket: str) -> None:
    for number in range(1200):
        s3.put(bucket, f"lake/t/_delta_log/{number:020d}.json", b"")
        s3.put(bucket, f"lake/t/part-{number}.parquet", b"")
    s3.put(bucket, "lake/a b%20ü/_delta_log/0.json", b"")
    s3.put(bucket, "lake/plain/part-0.parquet", b"")
    with s3.faulty() as faults:
        found = find_paths([pattern(f"s3a{bucket[2:]}/lake/*")])
    assert sorted(found.tables.values()) == [f"s3a{bucket[2:]}/lake/a b%20ü", f"s3a{bucket[2:]}/lake/t"]
    assert len(faults.seen) == 1 + 1 + 3  # is the base a table, what lies below it, is each of these a table
    deeper = find_paths([pattern(f"{bucket}/*/t"), pattern(f"{bucket}/*/*/*")])
    assert list(deeper.tables) == [pattern(f"{bucket}/*/t").table(("lake", "t"))]


def test_a_bucket_that_does_not_answer_is_a_failure(s3: S3Server, bucket: str) -> None:
    for where, words in ((f"{bucket}x", "bucket"), (bucket, "Access Denied")):
        with s3.faulty(denied=() if where != bucket else (bucket[5:],)):
            ((name, error),) = find_paths([pattern(f"{where}/lake/*")]).failures
        assert name == f"delta.`{where}/lake/*`"
        assert words in str(error)


def linked_lake(tmp_path: Path) -> Path:
    for table in ("teams/a/orders", "teams/b/returns", "finance/ledger"):
        (tmp_path / table / "_delta_log").mkdir(parents=True)
    return tmp_path


def paths_of(found: PatternMatches, folder: Path) -> list[str]:
    return sorted(name.parts[0].removeprefix(f"{folder}/") for name in found.tables)


def test_a_link_out_of_the_folder_is_reported_and_left_out(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/a/x").symlink_to(folder / "finance/ledger")
    found = find_paths([pattern(f"{folder}/teams/a/*")])
    assert paths_of(found, folder) == ["teams/a/orders"]
    [(_, error)] = found.failures
    assert f"{folder}/teams/a/x: left out: it is a link to {folder}/finance/ledger" in error.message
    assert "declare the table under the path that the link leads to" in error.hint


def test_a_log_that_is_a_link_is_reported_and_left_out(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/a/x").mkdir()
    (folder / "teams/a/x/_delta_log").symlink_to(folder / "finance/ledger/_delta_log")
    found = find_paths([pattern(f"{folder}/teams/a/*")])
    assert paths_of(found, folder) == ["teams/a/orders"]
    assert f"a link to {folder}/finance/ledger" in found.failures[0][1].message


def test_a_log_that_is_a_link_to_nothing_does_not_leave_its_pattern_without_a_word(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/a/x").mkdir()
    (folder / "teams/a/x/_delta_log").symlink_to("gone")
    found = find_paths([pattern(f"{folder}/teams/a/*")])
    assert paths_of(found, folder) == ["teams/a/orders"]
    assert f"{folder}/teams/a/x/_delta_log: left out: it is a link to" in found.failures[0][1].message


def test_a_folder_on_the_way_that_is_a_link_out_is_reported(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/c").symlink_to(folder / "finance")
    found = find_paths([pattern(f"{folder}/teams/*/*")])
    assert paths_of(found, folder) == ["teams/a/orders", "teams/b/returns"]
    assert f"{folder}/teams/c/ledger: left out" in found.failures[0][1].message


def test_a_link_inside_the_folder_is_the_table_that_it_leads_to(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/a/x").symlink_to(folder / "teams/b/returns")
    found = find_paths([pattern(f"{folder}/teams/*/*")])
    assert paths_of(found, folder) == ["teams/a/orders", "teams/b/returns"]
    assert found.failures == ()


def test_a_link_to_a_table_that_the_pattern_does_not_match_is_left_out(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "teams/a/orders_new").symlink_to(folder / "teams/b/returns")
    found = find_paths([pattern(f"{folder}/teams/*/orders*")])
    assert paths_of(found, folder) == ["teams/a/orders"]
    assert f"a link to {folder}/teams/b/returns, which the pattern does not match" in found.failures[0][1].message


def test_the_folder_of_a_pattern_may_be_a_link_itself(tmp_path: Path) -> None:
    folder = linked_lake(tmp_path)
    (folder / "lake").symlink_to(folder / "teams")
    (folder / "teams/a/x").symlink_to(folder / "teams/b/returns")
    found = find_paths([pattern(f"{folder}/lake/*/*")])
    assert paths_of(found, folder) == ["lake/a/orders", "lake/b/returns"]
    assert found.failures == ()


@pytest.mark.parametrize("glob", ["t{:05}*", "t{:05}*/part", "*{:05}x/*"])
def test_ten_thousand_patterns_list_each_directory_once(monkeypatch: pytest.MonkeyPatch, glob: str) -> None:
    listed: list[str] = []
    compared = 0

    class Place:
        """A lake of 10,000 tables, each also two levels deep."""

        def linked(self, _base: str, _location: str) -> None:
            return None

        def begun(self, location: str) -> bool:
            return location.endswith("/part") or (glob.endswith("*") and "/*" not in glob and location != "/lake")

        def folders(self, location: str) -> list[str]:
            listed.append(location)
            return [f"t{number:05}x" for number in range(10_000)] if location == "/lake" else ["part"]

    def compare(text: str, pattern: str) -> bool:
        nonlocal compared
        compared += 1
        return fnmatchcase(text, pattern)

    monkeypatch.setattr(find_tables, "_Disk", Place)
    monkeypatch.setattr(patterns_module, "fnmatchcase", compare)
    found = find_paths([pattern(f"/lake/{glob.format(number)}") for number in range(10_000)])
    assert (len(found.tables), found.failures) == (10_000, ())
    assert len(listed) == len(set(listed)) <= 10_001
    assert compared < 50_000


def test_directories_that_cannot_be_listed_do_not_multiply_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    class Locked:
        def begun(self, _location: str) -> bool:
            return False

        def folders(self, location: str) -> list[str]:
            if location != "/lake":
                raise LiveError(f"{location}: cannot be listed")
            return [f"d{number}" for number in range(1_000)]

    monkeypatch.setattr(find_tables, "_Disk", Locked)
    patterns = [pattern(f"/lake/*/t{number}*") for number in range(1_000)]
    failures = find_paths(patterns).failures
    assert {name for name, _ in failures} == {each.text for each in patterns}
    assert len(failures) < 12_000


# At any depth, as a place on the command line is searched


def below(root: str) -> PathPattern:
    return PathPattern(root, (ANY_DEPTH,))


def deep(lake: Lake, **bounds: Any) -> tuple[list[str], list[str]]:
    """The tables below the lake, and what failed."""
    found = find_paths([below(lake.root)], lake.options, **bounds)
    return sorted(name.parts[0].removeprefix(f"{lake.root}/") for name in found.tables), [
        error.message.replace(lake.root, "LAKE") for _, error in found.failures
    ]


def test_tables_of_any_depth_are_found_and_no_table_is_entered(lake: Lake) -> None:
    deepest = "/".join("abcdefghijklmnopqrstuvwxyz")
    lake.add("orders", "prod/sales/orders", "prod/emea/sales/orders_deep", deepest, "a[x]/b?*/t")
    lake.add("orders/day=1/inner", "_hidden/t", "prod/.tmp/t")
    lake.add_file("prod/plain/year=2026/part-0.parquet")
    assert deep(lake) == (
        sorted(["orders", "prod/sales/orders", "prod/emea/sales/orders_deep", deepest, "a[x]/b?*/t"]),
        [],
    )


FOLDERS = st.lists(st.sampled_from(["a", "b", "c[1]", "d*", "_h", ".tmp", "x=1"]), min_size=1, max_size=7)


@given(tables=st.lists(FOLDERS, max_size=12), others=st.lists(FOLDERS, max_size=5))
@settings(max_examples=150, deadline=None)
def test_any_tree_is_searched_to_its_end(tables: list[list[str]], others: list[list[str]]) -> None:
    """Expected: the tables in no table and in no hidden folder, by the paths alone."""
    store = MemoryStore()
    for steps in tables:
        obstore.put(store, "/".join(("lake", *steps, "_delta_log", f"{0:020d}.json")), b"")
    for steps in others:
        obstore.put(store, "/".join(("lake", *steps, "part-0.parquet")), b"")
    all_tables = {tuple(steps) for steps in tables}
    visible = {each for each in all_tables if not any(step[0] in "_." for step in each)}
    expected = {each for each in visible if not any(each[:end] in all_tables for end in range(1, len(each)))}
    found = find_paths([below("memory:///lake")], StoreOptions(memory=store))
    assert {name.parts[0] for name in found.tables} == {"memory:///lake/" + "/".join(each) for each in expected}
    assert found.failures == ()


def test_a_search_that_stops_names_what_it_did_not_enter(tmp_path: Path) -> None:
    for table in ("a/t", "b/t", "c/deep/t", "d/deep/t", "e/t", "f"):
        (tmp_path / table / "_delta_log").mkdir(parents=True)

    def search(folders: int) -> tuple[list[str], list[str]]:
        found = find_paths([below(str(tmp_path))], folders=folders)
        return paths_of(found, tmp_path), [error.message.replace(str(tmp_path), "LAKE") for _, error in found.failures]

    stopped = "the search stopped before its end: not entered: "
    assert search(3) == (["a/t", "b/t", "f"], [f"{stopped}LAKE/c, LAKE/d, LAKE/e"])
    assert search(1) == (["f"], [f"{stopped}LAKE/a, LAKE/b, LAKE/c and 2 more"])
    assert search(8) == (["a/t", "b/t", "c/deep/t", "d/deep/t", "e/t", "f"], [])


def test_a_search_ends_when_its_time_is_over(lake: Lake) -> None:
    lake.add("a/t", "b/t")
    times = iter([0.0, 1.0, 9.0, 11.0])
    found = find_paths(
        [below(lake.root)], StoreOptions(memory=lake.options.memory), seconds=10, clock=lambda: next(times)
    )
    assert len(found.tables) == 1
    assert [error.message[:35] for _, error in found.failures] == ["the search stopped before its end: "]


def test_a_search_follows_no_link_in_a_circle_and_says_where_one_leads_out(tmp_path: Path) -> None:
    lake = linked_lake(tmp_path)
    (lake / "teams/a/up").symlink_to(lake / "teams")
    (lake / "teams/a/itself").symlink_to(lake / "teams/a/itself")
    (lake / "teams/other").symlink_to(lake / "teams/b")
    found = find_paths([below(str(lake))])
    assert paths_of(found, lake) == ["finance/ledger", "teams/a/orders", "teams/b/returns"]
    assert found.failures == ()
    found = find_paths([below(f"{lake}/finance")])
    (lake / "finance/out").symlink_to(lake / "teams")
    found = find_paths([below(f"{lake}/finance")])
    assert paths_of(found, lake) == ["finance/ledger"]
    ((_, error),) = found.failures
    assert error.message == f"{lake}/finance/out: left out: it is a link to {lake}/teams"


def test_a_search_in_a_store_asks_a_table_once_and_another_folder_twice(s3: S3Server, bucket: str) -> None:
    for table in ("lake/a/t1", "lake/a/t2", "lake/b/c/t3"):
        s3.put(bucket, f"{table}/_delta_log/0.json", b"")
    with s3.faulty() as faults:
        found = find_paths([below(f"{bucket}/lake")])
    assert len(found.tables) == 3
    assert len(faults.seen) == 3 + 2 * 4
