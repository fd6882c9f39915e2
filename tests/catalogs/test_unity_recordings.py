"""What a real Unity Catalog server 0.6.0 answered: read as it is, and compared with the stand-in."""

from __future__ import annotations

import json
import shutil
import urllib.request
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest

from tablectl.catalogs.registry import Catalogs, SparkCatalog
from tablectl.catalogs.unity import UnityCatalog
from tablectl.catalogs.unity_answers import catalog_entry, managed_table
from tablectl.delta.names import parse_table
from tablectl.log.catalog_managed import CatalogLog
from tablectl.log.reader import ReadRequest, newest_version, read_commits, read_many, read_table
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.errors import LiveError, TablectlError
from tablectl.model.table import CatalogDifference, Depth, LiveTable
from tablectl.storage.log_stores import Stores
from tablectl.storage.object_stores import StoreOptions
from tests.catalogs.unity_server import RECORDINGS, UnityServer, recorded, recording

MAN = parse_table("lake.sales.man")
NO_MORE = Depth(partly=True)
ANSWERS = sorted(path.stem for path in RECORDINGS.glob("*.json"))
READ_ONLY = [name for name in ANSWERS if recording(name)["request"]["method"] == "GET"]


def no_spark() -> Any:
    pytest.fail("Spark was started")


@pytest.fixture
def catalogs(server: UnityServer, unity: Callable[..., UnityCatalog]) -> Catalogs:
    server.add_recorded()
    return Catalogs({"lake": unity()}, SparkCatalog(no_spark))


def stores(catalogs: Catalogs) -> StoreOptions:
    return StoreOptions(access=catalogs)


def read(catalogs: Catalogs, name: str, depth: Depth = NO_MORE) -> LiveTable:
    table = parse_table(name)
    request = ReadRequest(table, catalogs.location(table), lambda _live: depth)
    (found,) = read_many([request], options=stores(catalogs))
    if isinstance(found, TablectlError):
        raise found
    return found


# The state of a table, from its catalog's answer alone


@pytest.fixture
def no_storage(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_self: Stores, location: str) -> Any:
        pytest.fail(f"{location} was read")

    monkeypatch.setattr(Stores, "open", fails)
    monkeypatch.setattr(Stores, "open_object", fails)


@pytest.mark.usefixtures("no_storage")
def test_a_catalog_managed_table_is_read_without_storage(catalogs: Catalogs, server: UnityServer) -> None:
    live = read(catalogs, "lake.sales.man")
    assert (live.version, live.table_id) == (9, "61a11567-310f-4023-ab1a-196f6f0066f5")
    assert live.clustering == (("id",),)  # the answer has the physical name col-b80e2056-…
    assert [(field.name, field.type) for field in live.schema.fields] == [
        ("id", "long"),
        ("d", "date"),
        ("c", "string"),
        ("z", "integer"),
    ]
    assert live.protocol.reader_features == {
        "catalogManaged",
        "columnMapping",
        "deletionVectors",
        "v2Checkpoint",
        "vacuumProtocolCheck",
    }
    assert live.protocol.has("clustering")
    assert live.property("delta.isolationLevel") == "Serializable"
    assert live.property("owner.team") == "rest"
    assert not [key for key in live.properties if key.startswith("delta.feature.") or "lusteringColumns" in key]
    assert live.catalog is not None
    assert (live.catalog.metadata_version, live.catalog.etag) == (9, "etag-1795308612930")
    assert len(server.asked) == 1


@pytest.mark.usefixtures("no_storage")
def test_the_first_answer_serves_once_and_is_then_asked_for_again(catalogs: Catalogs, server: UnityServer) -> None:
    read(catalogs, "lake.sales.man")
    (again,) = read_many(
        [ReadRequest(MAN, recorded("delta-man")["metadata"]["location"], lambda _live: Depth())],
        options=stores(catalogs),
    )
    assert isinstance(again, LiveTable)
    assert len(server.asked) == 2


@pytest.mark.usefixtures("no_storage")
def test_tables_found_by_a_list_are_loaded_one_by_one(catalogs: Catalogs, server: UnityServer) -> None:
    found = catalogs.tables("lake", "sales")
    assert sorted(name.text for name in found) == ["lake.sales.ext", "lake.sales.man"]
    where = found[MAN]
    assert isinstance(where, str)
    (live,) = read_many([ReadRequest(MAN, where, lambda _live: Depth())], options=stores(catalogs))
    assert isinstance(live, LiveTable)
    assert live.clustering == (("id",),)
    assert len(server.asked) == 2


@pytest.mark.parametrize("value", [None, "", "enable", "TRUE", 1, True, [], {}, {"value": ["ENABLE"]}, {"value": None}])
def test_a_setting_in_another_form_says_nothing(value: Any) -> None:
    given = {
        "table_type": value,
        "enable_predictive_optimization": value,
        "effective_predictive_optimization_flag": value,
    }
    assert catalog_entry(given) == CatalogEntry()


@pytest.mark.parametrize(
    ("given", "filtered"),
    [
        ({"columns": [{"name": "id"}]}, False),
        ({"columns": [{"name": "id", "mask": None}], "row_filter": None}, False),
        ({"columns": [{"name": "id", "mask": {"function_name": "main.f.hide"}}]}, True),
        ({"columns": [{"name": "id"}], "row_filter": {"function_name": "main.f.mine"}}, True),
        ({"columns": []}, None),
        ({"columns": ["id"]}, None),
        ({}, None),
    ],
)
def test_filters_and_masks_of_a_table_are_in_its_entry(given: dict[str, Any], filtered: bool | None) -> None:
    assert catalog_entry(given).filtered is filtered


def test_both_spellings_of_clustering_columns_are_read() -> None:
    answer = recorded("delta-man")
    properties = answer["metadata"]["properties"]
    properties["delta.clusteringColumns"] = properties.pop("clusteringColumns")
    assert managed_table(answer, "t").clustering == (("col-b80e2056-961f-4a04-aa92-f5b5c709df84",),)


def test_types_in_the_spelling_of_the_delta_api_are_read() -> None:
    answer = recorded("delta-man")
    element = {"type": "struct", "fields": [{"name": "a", "type": "long", "nullable": True, "metadata": {"x-y": 1}}]}
    answer["metadata"]["columns"]["fields"].append(
        {
            "name": "items",
            "type": {
                "type": "map",
                "key-type": "string",
                "value-type": {"type": "array", "element-type": element, "contains-null": True},
                "value-contains-null": True,
            },
            "nullable": True,
            "metadata": {},
        }
    )
    schema = json.loads(managed_table(answer, "t").schema)
    kind = schema["fields"][-1]["type"]
    assert kind.keys() == {"type", "keyType", "valueType", "valueContainsNull"}
    assert kind["valueType"]["elementType"]["fields"][0]["metadata"] == {"x-y": 1}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda body: body.pop("latest-table-version") and body.update(commits=[]), "newest version"),
        (lambda body: body.update({"latest-table-version": 8}), "contradicts itself"),
        (lambda body: body.update({"latest-table-version": 12}), "contradicts itself"),
        (lambda body: body["metadata"].pop("last-commit-version"), "newest version"),
        (lambda body: body["commits"][0].update({"file-name": "../../9.json"}), "file name"),
        (lambda body: body["commits"][0].update({"version": 8}), "file name"),
        (lambda body: body["metadata"]["properties"].update({"delta.minReaderVersion": "x"}), "version"),
        (lambda body: body["metadata"]["properties"].update({"clusteringColumns": "[5]"}), "clustering"),
        (lambda body: body["metadata"]["properties"].update({"a": 1}), "property 'a'"),
        (lambda body: body["metadata"].update({"columns": []}), "columns"),
    ],
)
def test_an_answer_that_cannot_be_true_is_refused(change: Callable[[Any], Any], message: str) -> None:
    body = recorded("delta-man")
    change(body)
    with pytest.raises(LiveError, match=message):
        managed_table(body, "lake.sales.man")


# The log, with the commits that only the catalog knows


@pytest.fixture
def lake(tmp_path: Path, server: UnityServer, catalogs: Catalogs) -> Path:
    """The recorded log at a place of this machine, which the stand-in names as the table's location."""
    body = recorded("delta-man")
    body["metadata"]["location"] = f"file://{tmp_path}/man"
    server.loads["sales.man"] = body
    server.tables["sales.man"]["storage_location"] = body["metadata"]["location"]
    (tmp_path / "man").mkdir()
    shutil.copytree(RECORDINGS / "man_delta_log", tmp_path / "man" / "_delta_log")
    return tmp_path / "man"


def test_a_catalog_that_disagrees_with_the_log_is_found(lake: Path, catalogs: Catalogs) -> None:
    live = read(catalogs, "lake.sales.man", Depth(look_back=20))
    assert live.catalog is not None
    assert live.catalog.differences == (CatalogDifference("property owner.team", "rest", None),)
    assert live.table_id == "61a11567-310f-4023-ab1a-196f6f0066f5"
    assert [commit.version for commit in live.history] == [9, 8, 7, 6, 5, 4, 3, 2, 1, 0]
    assert (live.files, live.vectors) == (2, 0)


def unpublished(lake: Path, server: UnityServer, first: int) -> None:
    """Takes the published commits from a version on away, and lists their staged files as the catalog would."""
    log = lake / "_delta_log"
    names = sorted((RECORDINGS / "man_delta_log").rglob("*"))
    shutil.rmtree(log)
    (log / "_staged_commits").mkdir(parents=True)
    commits = []
    for path in (each for each in names if each.is_file()):
        version, staged = int(path.name[:20]), path.parent.name == "_staged_commits"
        if staged and version >= first:
            commits.append(
                {
                    "version": version,
                    "timestamp": 1,
                    "file-name": path.name,
                    "file-size": 1,
                    "file-modification-timestamp": 1,
                }
            )
        if staged or version < first:
            (log / path.relative_to(RECORDINGS / "man_delta_log")).write_bytes(path.read_bytes())
    server.loads["sales.man"]["commits"] = sorted(commits, key=lambda each: -each["version"])


def test_unpublished_commits_are_part_of_the_log(lake: Path, catalogs: Catalogs, server: UnityServer) -> None:
    whole = read(catalogs, "lake.sales.man", Depth(look_back=20))
    unpublished(lake, server, 6)
    assert [path.name[:20] for path in sorted((lake / "_delta_log").glob("*.json"))][-1] == f"{5:020d}"
    live = read(catalogs, "lake.sales.man", Depth(look_back=20))
    assert live.history == whole.history
    assert live.catalog == whole.catalog
    where = str(lake)
    assert newest_version(where, options=stores(catalogs)) == 9
    assert [each.version for each in read_commits(where, after=7, options=stores(catalogs))] == [9, 8]
    assert read_table(MAN, where, version=3, options=stores(catalogs)).version == 3


def test_a_staged_commit_that_the_catalog_does_not_list_is_not_a_commit(
    lake: Path, catalogs: Catalogs, server: UnityServer
) -> None:
    unpublished(lake, server, 6)
    lost = lake / "_delta_log" / "_staged_commits" / f"{10:020d}.00000000-0000-4000-8000-000000000000.json"
    lost.write_text('{"commitInfo": {"operation": "DELETE"}}\n')
    assert read(catalogs, "lake.sales.man", Depth(look_back=20)).history[0].version == 9


def test_a_staged_commit_that_was_published_and_cleaned_up_is_read_where_it_is_now(
    lake: Path, catalogs: Catalogs, server: UnityServer
) -> None:
    unpublished(lake, server, 9)
    log = lake / "_delta_log"
    staged = next((log / "_staged_commits").glob(f"{9:020d}.*"))
    staged.rename(log / f"{9:020d}.json")
    assert read(catalogs, "lake.sales.man", Depth(look_back=20)).history[0].operation == "UNSET TBLPROPERTIES"


def test_a_log_that_cannot_be_read_costs_the_history_and_not_the_table(catalogs: Catalogs) -> None:
    live = read(catalogs, "lake.sales.man", Depth(look_back=20))
    assert live.history == ()
    assert live.catalog is not None
    assert live.catalog.unread
    assert live.clustering == (("id",),)


def test_a_location_alone_does_not_reach_the_table(lake: Path) -> None:
    with pytest.raises(LiveError, match="managed by its catalog") as caught:
        read_table(parse_table(f"delta.`{lake}`"), str(lake))
    assert "catalogs" in caught.value.hint


def test_only_commit_names_lead_to_staged_files(lake: Path) -> None:
    managed = managed_table(recorded("delta-man"), "t")
    with Stores(StoreOptions()) as opened:
        log = CatalogLog(opened.open(str(lake)), replace(managed, location=str(lake)))
        assert "00000000000000000009.crc" in log.names()
        assert log._stored("00000000000000000009.json").startswith("_staged_commits/")
        for name in ("00000000000000000009.crc", "_last_checkpoint", "9.checkpoint.json", "00000000000000000008.json"):
            assert log._stored(name) == name


# The stand-in answers as the real server did


def ask(server: UnityServer, request: Any) -> tuple[int, Any]:
    query = f"?{urlencode(request['params'])}" if request["params"] else ""
    try:
        with urllib.request.urlopen(f"{server.url}{request['path']}{query}", timeout=10) as answer:
            return answer.status, json.load(answer)
    except HTTPError as error:
        with error:
            return error.code, json.load(error)


def shape(value: Any) -> Any:
    """The keys and types of an answer. An absent value has every type."""
    match value:
        case dict():
            return {key: shape(each) for key, each in value.items()}
        case list():
            return [shape(each) for each in value[:1]]
        case None:
            return "null"
        case _:
            return type(value).__name__


@pytest.mark.parametrize(
    "name", [name for name in READ_ONLY if name not in {"config", "delta-list", "tables-fleet-page1"}]
)
def test_the_stand_in_answers_as_the_real_server(server: UnityServer, name: str) -> None:
    server.add_recorded()
    server.add_external("fleet.t0", "file:///lake/fleet/t0")
    request, response = recording(name)["request"], recording(name)["response"]
    status, body = ask(server, request)
    assert status == response["status"]
    if name in {"catalogs", "schemas"}:
        assert shape(body) == shape(response["body"])
    else:
        assert body == response["body"]


def test_the_stand_in_pages_as_the_real_server(server: UnityServer) -> None:
    for entry in recorded("tables-fleet-page1")["tables"]:
        server.tables[f"fleet.{entry['name']}"] = entry
    server.tables["fleet.t11"] = {**server.tables["fleet.t10"], "name": "t11"}
    status, body = ask(server, recording("tables-fleet-page1")["request"])
    assert (status, body) == (200, recorded("tables-fleet-page1"))


def test_the_recordings_hold_no_secret() -> None:
    for path in RECORDINGS.rglob("*"):
        if path.is_file():
            text = path.read_text().lower()
            assert not [
                word for word in ("authorization", "bearer", "password", "secret", "session-token") if word in text
            ], path
