"""What a probe of clients makes of their answers, and how it is written down."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tablectl.delta.clients import read_clients
from tools.client_probe import APPENDS, READS
from tools.probe_clients import DATA, ENTRIES, PACKAGES, TABLES, entries, merged, read_outcome, rendered

YES = ("yes", "")


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ([1, 2], "yes"),
        ([1, 2, 3], "wrong rows"),
        ([], "wrong rows"),
        ([None, 2], "wrong rows"),
        ("DeltaError: no", "no"),
    ],
)
def test_rows_that_are_not_those_written_are_wrong_and_an_error_is_a_no(found: Any, outcome: str) -> None:
    assert read_outcome(found, [2, 1])[0] == outcome


def found(base: tuple[str, str]) -> dict[str, Any]:
    reads = {"to_pyarrow_table": ("no", "error"), "QueryBuilder": YES}
    return {
        "base": {"reads": dict.fromkeys(reads, YES), "writes": base},
        "clustering": {"reads": reads, "writes": ("no", "error")},
        "variantType": {"reads": reads, "writes": None},
    }


def test_each_entry_holds_its_own_interfaces() -> None:
    made = entries("deltalake", "1.6.6", "2026-11-22", "4.4.0", found(YES))
    assert set(made) == {"deltalake", "deltalake-querybuilder"}
    assert made["deltalake"]["reads"]["clustering"] == {
        "to_pyarrow_table": ["no", "error"],
        "QueryBuilder": ["yes", ""],
    }
    assert made["deltalake-querybuilder"]["reads"]["clustering"] == {"QueryBuilder": ["yes", ""]}
    assert made["deltalake"]["writes"] == {"clustering": ["no", "error"]}
    assert "base" not in made["deltalake"]["reads"]


def test_a_client_that_cannot_append_to_a_plain_table_says_nothing_of_features() -> None:
    made = entries("deltalake", "1.6.6", "2026-11-22", "4.4.0", found(("no", "broken")))
    assert made["deltalake"]["writes"] == {}


def test_new_probes_replace_those_of_their_entries_alone() -> None:
    data = json.loads(DATA.read_text(encoding="utf-8"))
    probes = entries("daft", "9.9", "2027-01-01", "4.4.0", {"base": {"reads": {"read_deltalake": YES}, "writes": YES}})
    after = merged(data, probes)
    assert [each["name"] for each in after["clients"]] == [each["name"] for each in data["clients"]]
    changed = [new for old, new in zip(data["clients"], after["clients"], strict=True) if old != new]
    assert [each["name"] for each in changed] == ["daft"]
    assert changed[0]["probe"]["version"] == "9.9"


def test_the_file_is_as_the_tool_writes_it_and_reads_back() -> None:
    text = DATA.read_text(encoding="utf-8")
    data = json.loads(text)
    assert rendered(data) == text
    assert len(read_clients(text.encode())) == len(data["clients"])


def test_every_client_has_a_package_interfaces_and_an_entry() -> None:
    assert set(PACKAGES) == set(READS) == set(APPENDS) == {client for client, _ in ENTRIES.values()}
    for client, interfaces in ENTRIES.values():
        assert set(interfaces) <= set(READS[client])
    assert len({table.feature for table in TABLES}) == len(TABLES)
