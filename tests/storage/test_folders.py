"""Directories that are opened without following a link."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.storage.folders import BY_DESCRIPTOR, Folder, LinkError
from tablectl.storage.records import DiskRecords, RecordStore, open_records

WAYS = pytest.mark.parametrize("by_descriptor", [False, *([True] if BY_DESCRIPTOR else [])])


@WAYS
@pytest.mark.parametrize("end", ["", "/", "/.", "/../link"])
def test_a_folder_that_is_a_link_is_refused_however_it_is_written(
    tmp_path: Path, by_descriptor: bool, end: str
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link").symlink_to("other")
    with pytest.raises(LinkError, match="it is a link to other") as caught:
        Folder.at(f"{tmp_path}/link{end}", by_descriptor=by_descriptor)
    assert caught.value.filename == f"{tmp_path}/link"


@WAYS
def test_a_folder_reads_lists_and_changes_what_is_in_it(tmp_path: Path, by_descriptor: bool) -> None:
    top = Folder.at(str(tmp_path), by_descriptor=by_descriptor)
    top.make("a")
    folder = top.below("a")
    with folder.create("one") as file:
        file.write(b"1")
    folder.link("one", "two")
    folder.unlink("one")
    with folder.entries() as entries:
        assert [entry.name for entry in entries] == ["two"]
    assert (folder.read("two", 10), folder.open("two").read(), folder.stat("two").st_size) == (b"1", b"1", 1)
    assert folder.may_change()
    folder.sync()
    folder.unlink("two")
    top.rmdir("a")
    assert list(tmp_path.iterdir()) == []


@WAYS
@pytest.mark.parametrize("target", ["../other", "../other/file", "gone", "link"])
def test_a_link_in_a_folder_is_refused_by_each_call(tmp_path: Path, by_descriptor: bool, target: str) -> None:
    for name in ("a", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "other" / "file").write_bytes(b"1")
    (tmp_path / "a" / "link").symlink_to(target)
    folder = Folder.at(f"{tmp_path}/a", by_descriptor=by_descriptor)
    for act in (lambda: folder.below("link"), lambda: folder.read("link", 10), lambda: folder.open("link")):
        with pytest.raises(LinkError, match="it is a link to"):
            act()
    with pytest.raises((FileExistsError, LinkError)):
        folder.create("link")
    assert (tmp_path / "other" / "file").read_bytes() == b"1"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "/etc"])
def test_a_name_is_one_step(tmp_path: Path, name: str) -> None:
    folder = Folder.at(str(tmp_path))
    for act in (lambda: folder.below(name), lambda: folder.read(name, 10), lambda: folder.unlink(name)):
        with pytest.raises(ValueError, match="is not the name of a file"):
            act()


def test_a_folder_that_was_moved_away_is_the_same_and_its_link_is_not(tmp_path: Path) -> None:
    """Which is what happens between a check and a use."""
    for name in ("a", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text(name)
    folder = Folder.at(f"{tmp_path}/a")
    (tmp_path / "a").rename(tmp_path / "moved")
    (tmp_path / "a").symlink_to("other")
    assert folder.read("file", 10) == b"a"
    folder.unlink("file")
    assert (tmp_path / "other" / "file").read_text() == "other"


def test_a_long_target_with_control_characters_is_cut_and_escaped(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("\x1b[31m\n" + "x" * 1000)
    with pytest.raises(LinkError) as caught:
        Folder.at(f"{tmp_path}/link")
    assert str(caught.value.strerror).startswith(r"it is a link to \x1b[31m\n" + "xxx")
    assert len(str(caught.value.strerror)) < 300


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="asks /proc what is open")
def test_folders_close_what_they_opened(tmp_path: Path) -> None:
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(20):
        open_records(str(tmp_path)).create("lease/1.json", b"")
        open_records(str(tmp_path)).names("lease/")
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.fixture(params=["disk", "memory"])
def records(request: pytest.FixtureRequest, tmp_path: Path) -> RecordStore:
    return open_records(str(tmp_path) if request.param == "disk" else f"memory://{tmp_path.name}/links")


@pytest.mark.parametrize("name", ["lease", "/lease/1.json", "../1.json", "lease/../1.json", "lease/a/1.json", "a b/1"])
def test_a_key_that_cannot_be_a_records_is_never_deleted(records: RecordStore, name: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a record"):
        records.delete(name)


def test_keys_of_others_are_not_listed(tmp_path: Path) -> None:
    store = open_records(f"memory://{tmp_path.name}/keys")
    store.create("copy/1.json", b"")
    assert not isinstance(store, DiskRecords)
    for key in ("copy/sub/1.json", "copy/.hidden", "copy/a b", "copy/1.json/2.json"):
        store._store.put(f"_tablectl/{key}", b"")  # type: ignore[attr-defined]
    assert store.names("copy/") == ("copy/1.json",)


def test_a_hard_link_in_place_of_a_record_loses_its_name_and_keeps_its_content(tmp_path: Path) -> None:
    """It looks like any file. Nothing is written into a file that is there, so what it shares with others stays."""
    other = tmp_path / "payroll.json"
    other.write_bytes(b"{}")
    records = open_records(f"{tmp_path}/t")
    records.create("lease/1.json", b"one")
    os.link(other, tmp_path / "t" / "_tablectl" / "lease" / "2.json")
    assert not records.create("lease/2.json", b"two")
    records.delete("lease/2.json")
    assert other.read_bytes() == b"{}"
    assert records.names("lease/") == ("lease/1.json",)


def test_state_itself_may_be_a_link_and_what_is_in_it_may_not(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "state").symlink_to("disk")
    assert open_records("hdfs://nn/t", f"{tmp_path}/state", "key").create("lease/1.json", b"")
    (tmp_path / "disk" / "other").symlink_to("key")
    with pytest.raises(Exception, match="it is a link to key"):
        open_records("hdfs://nn/u", f"{tmp_path}/state", "other").names("lease/")
