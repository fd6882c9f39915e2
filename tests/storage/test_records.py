from __future__ import annotations

import os
import stat
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tablectl.model.errors import WindowError
from tablectl.storage import records as records_module
from tablectl.storage.records import LARGEST, ObjectRecords, RecordStore, _memory, is_new, key_folder, open_records


@pytest.fixture(params=["disk", "memory"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    return open_records(str(tmp_path) if request.param == "disk" else f"memory://{tmp_path.name}")


def test_a_name_is_taken_once(records: RecordStore) -> None:
    assert records.create("lease/1.json", b"one")
    assert not records.create("lease/1.json", b"two")
    assert records.read("lease/1.json") == b"one"


def test_what_is_not_there_reads_as_none_and_may_be_deleted(records: RecordStore) -> None:
    assert records.read("lease/1.json") is None
    records.delete("lease/1.json")
    assert records.names("lease/") == ()


def test_a_deleted_name_is_free_again(records: RecordStore) -> None:
    records.create("lease/1.json", b"one")
    records.delete("lease/1.json")
    assert records.create("lease/1.json", b"two")


def test_names_are_sorted_and_begin_with_the_prefix(records: RecordStore) -> None:
    for name in ("lease/2.json", "lease/1.json", "guards/a.1.json", "guards/ab.1.json"):
        records.create(name, b"")
    assert records.names("lease/") == ("lease/1.json", "lease/2.json")
    assert records.names("guards/a") == ("guards/a.1.json", "guards/ab.1.json")
    assert records.names("guards/a.") == ("guards/a.1.json",)
    assert len(records.names("")) == 4


def test_the_records_lie_inside_the_table(tmp_path: Path) -> None:
    open_records(str(tmp_path)).create("lease/1.json", b"one")
    assert (tmp_path / "_tablectl" / "lease" / "1.json").read_bytes() == b"one"


def test_records_under_state_have_one_folder_per_table(tmp_path: Path) -> None:
    open_records("hdfs://nn/lake/orders", str(tmp_path), "c0ffee-01").create("lease/1.json", b"one")
    assert (tmp_path / "c0ffee-01" / "lease" / "1.json").read_bytes() == b"one"


# Listings


def test_a_listing_names_what_can_be_read(records: RecordStore) -> None:
    for name in ("lease/2.json", "lease/1.json", "guards/1.json"):
        records.create(name, name.encode())
    listed = records.listed("lease/")
    assert [record.name for record in listed] == ["lease/1.json", "lease/2.json"]
    assert [records.read_listed(record) for record in listed] == [b"lease/1.json", b"lease/2.json"]


def test_a_listed_record_that_is_gone_reads_as_none(records: RecordStore) -> None:
    records.create("lease/1.json", b"one")
    (listed,) = records.listed("lease/")
    records.delete("lease/1.json")
    assert records.read_listed(listed) is None


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[RecordStore, list[str]]:
    """Records on an object store, and the names that are requested from it."""
    records, requested = open_records(f"memory://{tmp_path.name}"), list[str]()
    real = ObjectRecords.read

    def read(store: ObjectRecords, name: str) -> bytes | None:
        requested.append(name)
        return real(store, name)

    monkeypatch.setattr(ObjectRecords, "read", read)
    return records, requested


def read_newest(records: RecordStore) -> bytes | None:
    return records.read_listed(records.listed("lease/")[-1])


def test_the_newest_record_is_requested_once(bucket: tuple[RecordStore, list[str]]) -> None:
    records, requested = bucket
    for number in (1, 2):
        records.create(f"lease/{number}.json", b"%d" % number)
        assert [read_newest(records), read_newest(records)] == [b"%d" % number] * 2
    assert requested == ["lease/1.json", "lease/2.json"]


def test_a_record_that_came_back_under_its_name_with_other_content_is_requested(
    bucket: tuple[RecordStore, list[str]],
) -> None:
    records, _ = bucket
    for content in (b"one", b"two"):
        records.create("lease/1.json", content)
        assert read_newest(records) == content
        records.delete("lease/1.json")


def test_where_a_store_does_not_tell_versions_each_read_is_a_request(
    bucket: tuple[RecordStore, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    records, requested = bucket
    monkeypatch.setattr(records_module, "_version", lambda _entry: "")
    records.create("lease/1.json", b"one")
    assert [read_newest(records), read_newest(records)] == [b"one", b"one"]
    assert len(requested) == 2


def test_what_a_process_remembers_is_bounded(
    bucket: tuple[RecordStore, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    records, requested = bucket
    monkeypatch.setattr(records_module, "_MOST_REMEMBERED", 2)
    tables = [f"{name}/1.json" for name in "abc"]
    for name in tables:
        records.create(name, b"one")
    for listed in records.listed("") * 2:
        records.read_listed(listed)
    assert requested == tables * 2


def test_a_key_that_is_not_a_plain_name_becomes_one() -> None:
    assert key_folder("hdfs://nn/lake/Sales Orders") == "hdfs-nn-lake-sales-orders-7117d56ae3d685ff"
    assert key_folder("/lake/a") != key_folder("/lake/A") != key_folder("/lake-a")
    assert "/" not in key_folder("/lake/a/lease")


def test_state_wants_a_key(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="key"):
        open_records("/lake/orders", str(tmp_path))


def test_looking_makes_no_directory(tmp_path: Path) -> None:
    records = open_records(str(tmp_path / "none"))
    assert (records.read("lease/1.json"), records.names("lease/")) == (None, ())
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("name", ["a b", "100%25", "größe 表", 'it\'s "q"', "a#b?c*d", "back\\slash", "x=1&y", "~"])
def test_any_directory_name_is_taken_as_it_is(tmp_path: Path, name: str) -> None:
    records = open_records(f"{tmp_path}/{name}")
    assert records.create("lease/1.json", b"one")
    assert records.names("lease/") == ("lease/1.json",)
    assert (tmp_path / name / "_tablectl" / "lease" / "1.json").is_file()


@pytest.mark.parametrize("form", ["{}", "{}/", "file:{}", "file://{}"])
def test_all_spellings_of_a_local_path_are_one_place(tmp_path: Path, form: str) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    open_records(f"{tmp_path}/t").create("lease/1.json", b"one")
    assert open_records(form.format(f"{tmp_path}/t")).names("") == ("lease/1.json",)
    assert open_records(form.format(f"{tmp_path}/link/t")).names("") == ("lease/1.json",)


def test_what_a_kill_left_half_written_is_not_a_record(tmp_path: Path) -> None:
    records = open_records(str(tmp_path))
    records.create("lease/1.json", b"one")
    (tmp_path / "_tablectl" / "lease" / ".0123").write_bytes(b"half")
    assert records.names("") == ("lease/1.json",)


def test_a_place_that_cannot_be_listed_is_an_error_and_not_empty(tmp_path: Path) -> None:
    (tmp_path / "_tablectl").symlink_to("_tablectl")
    with pytest.raises(WindowError, match="cannot list"):
        open_records(str(tmp_path)).names("lease/")


_FORKS = """
import os, sys
from tablectl.storage.records import open_records
records = open_records(sys.argv[1])
assert all(records.create(f"lease/{n}.json", b"") for n in range(20))
child = os.fork()
if child == 0:
    assert all(records.create(f"lease/{n}.json", b"") for n in range(20, 40)), "taken"
    assert len(records.names("lease/")) == 40
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_forked_process_goes_on(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", _FORKS, str(tmp_path)], check=True, timeout=60, cwd=Path(__file__).parents[2])


_FORKS_WITH_A_BUCKET = """
import os
from tablectl.model.errors import WindowError
from tablectl.storage.records import open_records
open_records("s3://bucket/t")
child = os.fork()
if child == 0:
    try:
        open_records("s3://bucket/t")
    except WindowError as error:
        os._exit(0 if "forked" in error.message else 2)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


def test_a_bucket_of_a_forked_process_is_an_error_and_no_hang() -> None:
    subprocess.run([sys.executable, "-c", _FORKS_WITH_A_BUCKET], check=True, timeout=60, cwd=Path(__file__).parents[2])


def test_a_location_is_new_until_a_log_or_a_record_lies_there(tmp_path: Path) -> None:
    assert is_new(str(tmp_path))
    assert is_new(str(tmp_path / "none"))
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    assert not is_new(str(tmp_path / "t"))
    open_records(str(tmp_path / "u")).create("lease/1.json", b"one")
    assert not is_new(str(tmp_path / "u"))
    assert is_new("memory://nothing/t")
    for name in ("_last_checkpoint", "00000000000000000000.json", "00000000000000000042.json"):
        place = f"memory://bucket/{name}/t"
        _memory(place).store.put(f"_delta_log/{name}", b"{}")
        assert not is_new(place)


def test_memory_is_shared_inside_the_process() -> None:
    open_records("memory://shared/t").create("lease/1.json", b"one")
    assert open_records("memory://shared/t").read("lease/1.json") == b"one"
    assert open_records("memory://shared/u").read("lease/1.json") is None


@pytest.mark.parametrize(
    ("location", "place"),
    [
        ("s3://bucket/a b/x%20y", "s3://bucket/a b/x%20y/_tablectl"),
        ("s3a://bucket/t/", "s3://bucket/t/_tablectl"),
        ("gs://bucket", "gs://bucket/_tablectl"),
        ("abfss://c@acc.dfs.core.windows.net/t", "abfss://c@acc.dfs.core.windows.net/t/_tablectl"),
    ],
)
def test_buckets_are_opened_without_a_request(location: str, place: str) -> None:
    assert str(open_records(location)) == place


def test_azure_without_an_account_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(WindowError, match=r"az://c: .*Account must be specified"):
        open_records("az://c/t")


@pytest.mark.parametrize("location", ["hdfs://nn/t", "dbfs:/t", "wasbs://c@a/t", "https://x/t", "lake/t", ""])
def test_places_out_of_reach_need_state(location: str) -> None:
    with pytest.raises(WindowError) as caught:
        open_records(location)
    assert "set `state:` in tablectl.yaml" in caught.value.hint


def test_a_failure_names_the_place_and_the_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    records = open_records(str(tmp_path / "file" / "t"))
    for act in (lambda: records.create("a/1", b""), lambda: records.read("a/1"), lambda: records.names("a/")):
        with pytest.raises(WindowError, match=r"file/t/_tablectl/a.*Not a directory") as caught:
            act()
        assert "set `state:` in tablectl.yaml" in caught.value.hint


_RACER = """
import sys
from tablectl.storage.records import open_records
records = open_records(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
won = [n for n in range(400) if records.create(f"lease/{n:020d}.json", sys.argv[2].encode() * 500)]
print(*won)
"""


def test_processes_that_race_for_names_never_win_one_twice(tmp_path: Path) -> None:
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", _RACER, str(tmp_path), me],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[2],
        )
        for me in "abcd"
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = {me: racer.communicate(timeout=600)[0].split() for me, racer in zip("abcd", racers, strict=True)}
    assert Counter(name for names in won.values() for name in names) == Counter(map(str, range(400)))
    records = open_records(str(tmp_path))
    for me, names in won.items():
        assert all(records.read(f"lease/{int(name):020d}.json") == me.encode() * 500 for name in names)


# What is durable, and what is read of a hostile directory


def synced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was made durable, as ``file`` or ``folder``, in order; the links between them."""
    done: list[str] = []
    fsync, link = os.fsync, os.link

    def sync(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def links(target: str, path: str, **at: Any) -> None:
        done.append("link")
        link(target, path, **at)

    monkeypatch.setattr(os, "fsync", sync)
    monkeypatch.setattr(os, "link", links)
    return done


def test_a_lease_record_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a power cut there is the whole record or none."""
    store = open_records(str(tmp_path))
    store.create("lease/00000000000000000001.json", b"{}")
    done = synced(monkeypatch)
    assert store.create("lease/00000000000000000002.json", b"{}")
    assert done == ["file", "link", "folder"]


def test_the_directories_that_are_made_for_it_are_durable_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done = synced(monkeypatch)
    open_records(str(tmp_path)).create("lease/00000000000000000001.json", b"{}")
    assert done == ["folder", "folder", "file", "link", "folder"]  # lease/ in _tablectl, _tablectl in the table


def test_a_guard_costs_no_sync(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut ends the writer with its guard."""
    done = synced(monkeypatch)
    open_records(str(tmp_path)).create("guards/0123abcd.0.json", b"{}")
    assert done == ["link"]


@pytest.mark.parametrize("place", ["disk", "memory"])
def test_a_record_that_is_too_long_is_none_of_ours(tmp_path: Path, place: str) -> None:
    store = open_records(str(tmp_path) if place == "disk" else f"memory://{tmp_path.name}/orders")
    store.create("lease/00000000000000000001.json", b"x" * LARGEST)
    store.create("lease/00000000000000000002.json", b"x" * (LARGEST + 1))
    assert len(store.read("lease/00000000000000000001.json") or b"") == LARGEST
    assert store.read("lease/00000000000000000002.json") == b""
