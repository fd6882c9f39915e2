"""Catalog patterns and names, against a catalog that counts what it is asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

import pytest

from tablectl.delta.names import TableName, parse_table
from tablectl.log.find_tables import find_tables, locate_tables
from tablectl.model import patterns as patterns_module
from tablectl.model.errors import EngineError, LiveError, TablectlError
from tablectl.model.patterns import CatalogPattern

VIEW = LiveError("a view")
BROKEN = EngineError("no right to look")


@dataclass
class FakeCatalog:
    """Schemas of one catalog, ``lake``; a location for each Delta table."""

    holds: Mapping[str, Mapping[str, str | TablectlError]]
    asked: list[str] = field(default_factory=list)

    def location(self, table: TableName) -> str:
        self.asked.append(f"location {table.text}")
        where = self.holds.get(table.parts[0], {}).get(table.parts[1], LiveError(f"{table.text} does not exist"))
        if isinstance(where, TablectlError):
            raise where
        return where

    def schemas(self, catalog: str) -> tuple[str, ...]:
        self.asked.append(f"schemas {catalog}")
        if catalog != "lake":
            raise LiveError(f"the engine has no catalog {catalog}")
        return tuple(self.holds)

    def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
        self.asked.append(f"tables {schema} {like}")
        if schema == "locked":
            raise BROKEN
        if schema not in self.holds:
            raise LiveError(f"the schema {catalog}.{schema} does not exist")
        return {
            TableName(catalog, (schema, name)): where
            for name, where in self.holds[schema].items()
            if any(fnmatchcase(name.lower(), glob.lower()) for glob in like.split("|"))
        }


LAKE: Mapping[str, Mapping[str, str | TablectlError]] = {
    "sales": {"orders": "/w/orders", "Returns": "/w/returns", "seen": VIEW},
    "web": {"orders": "/w/web", "odd name": "/w/odd", "odder name": "/w/odder"},
    "locked": {},
}


def found(*patterns: tuple[str, str], catalog: FakeCatalog | None = None) -> dict[str, str]:
    result = find_tables([CatalogPattern("lake", *each) for each in patterns], catalog or FakeCatalog(LAKE))
    assert result.failures == ()
    return {name.text: where for name, where in result.tables.items()}


def test_a_pattern_finds_the_delta_tables_that_match() -> None:
    assert found(("sales", "*")) == {"lake.sales.orders": "/w/orders", "lake.sales.Returns": "/w/returns"}
    assert found(("sales", "r*")) == {"lake.sales.Returns": "/w/returns"}
    assert found(("[sw]*", "o?ders")) == {"lake.sales.orders": "/w/orders", "lake.web.orders": "/w/web"}
    assert found(("sales", "nix*")) == {}


def test_what_is_not_a_delta_table_is_named_if_a_pattern_matches_it() -> None:
    catalog = FakeCatalog(LAKE)
    assert find_tables([CatalogPattern("lake", "sales", "*")], catalog).others == ("a view",)
    assert find_tables([CatalogPattern("lake", "sales", "o*")], catalog).others == ()


@pytest.mark.parametrize(
    ("patterns", "asked"),
    [
        ([("sales", "*")], ["tables sales *"]),
        ([("sales", "ord*"), ("sales", "Ret*s")], ["tables sales ord*|Ret*s"]),
        ([("sales", "o?ders"), ("sales", "Ret*s")], ["tables sales *"]),
        ([("w*", "orders"), ("we?", "o*")], ["schemas lake", "tables web orders|o*"]),
        ([("web", "odd*name")], ["tables web odd*name"]),
        ([("web", "odd name*")], ["tables web *"]),
    ],
)
def test_one_statement_a_schema_however_many_patterns_and_tables(
    patterns: list[tuple[str, str]], asked: list[str]
) -> None:
    catalog = FakeCatalog(LAKE)
    found(*patterns, catalog=catalog)
    assert catalog.asked == asked


def test_what_cannot_be_listed_is_a_failure_of_each_pattern_for_it_and_stops_no_other() -> None:
    patterns = [
        CatalogPattern("lake", "*", "orders"),
        CatalogPattern("lake", "nix", "*"),
        CatalogPattern("other", "*", "*"),
    ]
    result = find_tables(patterns, FakeCatalog(LAKE))
    assert set(result.tables.values()) == {"/w/orders", "/w/web"}
    assert {name: error.message for name, error in result.failures} == {
        "lake.*.orders": "no right to look",
        "lake.nix.*": "the schema lake.nix does not exist",
        "other.*.*": "the engine has no catalog other",
    }


def test_a_table_that_the_engine_cannot_describe_is_a_failure_of_its_own() -> None:
    catalog = FakeCatalog({"sales": {"a": "/w/a", "b": BROKEN, "c": BROKEN}})
    result = find_tables([CatalogPattern("lake", "sales", "[ab]")], catalog)
    assert list(result.tables.values()) == ["/w/a"]
    assert [name for name, _ in result.failures] == ["lake.sales.b"]


# Names


def located(catalog: FakeCatalog, *names: str) -> dict[str, str]:
    looked = locate_tables([parse_table(name) for name in names], catalog)
    return {name.text: where if isinstance(where, str) else f"! {where.message}" for name, where in looked.items()}


def test_one_name_is_asked_for_by_itself() -> None:
    catalog = FakeCatalog(LAKE)
    assert located(catalog, "lake.sales.orders") == {"lake.sales.orders": "/w/orders"}
    assert catalog.asked == ["location lake.sales.orders"]


def test_names_of_one_schema_share_a_statement_and_only_what_it_lacks_is_asked_for_again() -> None:
    catalog = FakeCatalog(LAKE)
    names = ("lake.sales.ORDERS", "lake.sales.Returns", "lake.sales.seen", "lake.sales.gone", "lake.web.orders")
    assert located(catalog, *names) == {
        "lake.sales.ORDERS": "/w/orders",
        "lake.sales.Returns": "/w/returns",
        "lake.sales.seen": "! a view",
        "lake.sales.gone": "! lake.sales.gone does not exist",
        "lake.web.orders": "/w/web",
    }
    assert sorted(catalog.asked) == [
        "location lake.sales.gone",
        "location lake.web.orders",
        "tables sales ORDERS|Returns|seen|gone",
    ]


def test_a_schema_that_cannot_be_listed_costs_one_statement() -> None:
    catalog = FakeCatalog(LAKE)
    assert set(located(catalog, *(f"lake.nix.t{number}" for number in range(5))).values()) == {
        "! the schema lake.nix does not exist"
    }
    assert set(located(catalog, "lake.locked.a", "lake.locked.b").values()) == {"! no right to look"}
    assert len(catalog.asked) == 2


def test_names_that_like_would_misread_are_asked_for_by_themselves() -> None:
    catalog = FakeCatalog(LAKE)
    looked = located(catalog, "lake.web.`odd name`", "lake.web.`odder name`", "lake.web.orders")
    assert list(looked.values()) == ["/w/odd", "/w/odder", "/w/web"]
    assert all(asked.startswith("location") for asked in catalog.asked)


def test_many_names_take_several_statements() -> None:
    catalog = FakeCatalog({"sales": {f"t{number}": f"/w/{number}" for number in range(250)}})
    looked = located(catalog, *(f"lake.sales.t{number}" for number in range(250)))
    assert looked["lake.sales.t249"] == "/w/249"
    assert [asked.count("|") for asked in sorted(catalog.asked)] == [99, 99, 49]


def test_ten_thousand_patterns_and_tables_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = FakeCatalog({"shop": {f"t{number:05}_x": f"s3://lake/{number}" for number in range(10_000)}})
    patterns = [CatalogPattern("lake", "shop", f"t{number:05}*") for number in range(10_000)]
    compared = counted(monkeypatch)
    found = find_tables(patterns, catalog)
    assert len(found.tables) == 10_000
    assert catalog.asked == ["tables shop *"]
    assert compared() < 50_000


def test_ten_thousand_patterns_and_schemas_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    catalog = FakeCatalog({f"s{number:05}_x": {"t": f"s3://lake/{number}"} for number in range(10_000)})
    patterns = [CatalogPattern("lake", f"s{number:05}*", "*") for number in range(10_000)]
    compared = counted(monkeypatch)
    assert len(find_tables(patterns, catalog).tables) == 10_000
    assert compared() < 100_000


def test_schemas_that_cannot_be_listed_do_not_multiply_failures() -> None:
    class Locked(FakeCatalog):
        def tables(self, catalog: str, schema: str, like: str = "*") -> Mapping[TableName, str | TablectlError]:
            raise BROKEN

    catalog = Locked({f"s{number}": {} for number in range(1_000)})
    patterns = [CatalogPattern("lake", "*", f"t{number}*") for number in range(1_000)]
    failures = find_tables(patterns, catalog).failures
    assert {name for name, _ in failures} == {each.text for each in patterns}
    assert len(failures) == 1_999


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Counts the comparisons of a text with a glob."""
    calls = 0

    def compare(text: str, glob: str) -> bool:
        nonlocal calls
        calls += 1
        return fnmatchcase(text, glob)

    monkeypatch.setattr(patterns_module, "fnmatchcase", compare)
    return lambda: calls
