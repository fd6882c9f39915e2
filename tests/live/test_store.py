"""Locations on a real file system."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tablectl.live.buckets import StoreOptions
from tablectl.live.reader import read_table
from tablectl.live.store import Stores
from tablectl.model.errors import LiveError
from tablectl.model.names import TableName

SCHEMA = '{"type":"struct","fields":[]}'
FIRST = "\n".join(
    json.dumps(action)
    for action in (
        {"commitInfo": {"operation": "CREATE TABLE"}},
        {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}},
        {"metaData": {"id": "one", "schemaString": SCHEMA, "partitionColumns": [], "configuration": {}}},
    )
)


def make(folder: Path) -> Path:
    log = folder / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text(FIRST)
    return folder


@pytest.mark.parametrize("name", ["a b", "a%20b", "100%", 'it\'s "q"', "ünï", "a#b?c", "a+b&c=d", "日本", "~", "[x]*"])
def test_directories_of_any_name(tmp_path: Path, name: str) -> None:
    location = str(make(tmp_path / name))
    for spelled in (location, f"file:{location}", f"file://{location}", f"{location}/"):
        table = read_table(TableName("", (spelled,)), spelled)
        assert table.table_id == "one"
        assert table.location == location


def test_links_are_followed(tmp_path: Path) -> None:
    make(tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "_delta_log").symlink_to(tmp_path / "real" / "_delta_log")
    for name in ("link", "other"):
        assert read_table(TableName("", (name,)), str(tmp_path / name)).version == 0


def test_each_way_not_to_be_a_table(tmp_path: Path) -> None:
    def message(path: Path) -> str:
        with pytest.raises(LiveError) as caught:
            read_table(TableName("", ("x",)), str(path))
        return caught.value.message

    assert "no such directory" in message(tmp_path / "nope")
    (tmp_path / "file").write_text("")
    assert "no such directory" in message(tmp_path / "file")
    (tmp_path / "plain").mkdir()
    assert "not a Delta table" in message(tmp_path / "plain")
    (tmp_path / "empty" / "_delta_log").mkdir(parents=True)
    assert "is empty" in message(tmp_path / "empty")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "_delta_log").write_text("")
    assert str(tmp_path / "odd") in message(tmp_path / "odd")
    (make(tmp_path / "directory") / "_delta_log" / f"{1:020d}.json").mkdir()
    assert read_table(TableName("", ("x",)), str(tmp_path / "directory")).version == 0


def test_names_that_are_no_text_are_errors(tmp_path: Path) -> None:
    table = make(tmp_path / "t")
    (Path(bytes(table / "_delta_log" / "x").decode()).parent / "\udcff.json").touch()
    with pytest.raises(LiveError, match="_delta_log"):
        read_table(TableName("", ("x",)), str(table))


def test_wrong_options_name_the_store() -> None:
    options = StoreOptions(families={"s3": {"no_such_key": "x"}})
    with pytest.raises(LiveError, match="s3://bucket"):
        Stores(options).open("s3a://bucket/t")


def test_tables_of_a_bucket_share_its_store() -> None:
    stores = Stores(StoreOptions(families={"s3": {"region": "eu-west-1"}}))
    one, two = stores.open("s3a://bucket/a b/%20"), stores.open("s3://bucket/other")
    assert one._bucket is two._bucket
    assert one.file("x") == "s3://bucket/a b/%20/_delta_log/x"
