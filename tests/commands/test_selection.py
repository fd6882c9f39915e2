"""Which tables a command is about."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.attributes.policy import Policy
from tablectl.commands import selection as selection_module
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.read_tables import LocatedTable, locate
from tablectl.commands.selection import Selection, selects
from tablectl.delta.names import TableName, parse_table
from tablectl.model.errors import EngineError, UsageError
from tablectl.model.patterns import CatalogPattern, TablePattern, make_path_pattern
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import SourceFile
from tests.commands.log_lake import LogEngine, create

HERE = SourceFile("lake.yaml", 1, 1)


def spec(name: str, tags: tuple[str, ...] = ()) -> TableSpec:
    return TableSpec(parse_table(name), Policy({"isolation": "Serializable"}), None, tags, {}, HERE)


def specs(*given: TableSpec) -> Specs:
    return Specs.of(given)


# Selection

SOME = specs(
    spec("sales.orders", tags=("web", "pay")),
    spec("lake.sales.Returns", tags=("pay",)),
    spec("odd.`a.b`"),
    spec("delta.`s3a://bucket/lake/events[1]`", tags=("web",)),
)


@pytest.mark.parametrize(
    ("globs", "tags", "found"),
    [
        ((), (), "sales.orders lake.sales.Returns odd.`a.b` delta.`s3a://bucket/lake/events[1]`"),
        (("sales.orders",), (), "sales.orders"),
        (("SALES.*",), (), "sales.orders"),
        (("spark_catalog.sales.*",), (), "sales.orders"),
        (("*.sales.returns",), (), "lake.sales.Returns"),
        (("odd.`a.b`",), (), "odd.`a.b`"),
        (("spark_catalog.odd.*",), (), "odd.`a.b`"),
        (("s3a://bucket/*",), (), "delta.`s3a://bucket/lake/events[1]`"),
        (("s3://bucket/lake/events[1]",), (), "delta.`s3a://bucket/lake/events[1]`"),
        (("delta.`s3a://bucket/lake/events[1]`",), (), "delta.`s3a://bucket/lake/events[1]`"),
        ((), ("pay",), "sales.orders lake.sales.Returns"),
        (("*orders",), ("web", "pay"), "sales.orders"),
    ],
)
def test_tables_are_selected(globs: tuple[str, ...], tags: tuple[str, ...], found: str) -> None:
    selected = Selection(globs, tags).of(SOME)
    assert {each.name.text for each in selected} == set(found.split())


@pytest.mark.parametrize(
    ("globs", "tags", "says"),
    [
        (("nix.*",), (), "--select 'nix.*' matches no table"),
        (("sales.*", "nix.*"), (), "'nix.*' matches no table"),
        (("S3://bucket/*",), (), "matches no table"),
        ((), ("wep",), "tags in these policies: pay, web"),
        (("lake.*",), ("web",), "no table is both"),
    ],
)
def test_a_selection_of_nothing_is_wrong_usage(globs: tuple[str, ...], tags: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError) as caught:
        Selection(globs, tags).of(SOME)
    assert says in str(caught.value)


def test_no_policies_select_nothing() -> None:
    assert Selection().of(specs()) == ()
    with pytest.raises(UsageError, match="there are none"):
        Selection(tags=("x",)).of(specs())


SALES = CatalogPattern("lake", "sales", "*")
LAKE = make_path_pattern("s3a://bucket/lake/*")


@pytest.mark.parametrize(
    ("glob", "pattern", "concerns"),
    [
        ("lake.sales.orders", SALES, True),
        ("LAKE.s*", SALES, True),
        ("*orders", SALES, True),
        ("lake.sales2.*", SALES, False),
        ("lake.web.*", SALES, False),
        ("delta.`/lake/*`", SALES, False),
        ("/lake/orders", SALES, False),
        ("sales.*", CatalogPattern("spark_catalog", "sales", "*"), True),
        ("spark_catalog.s*", CatalogPattern("spark_catalog", "sales", "*"), True),
        ("x.sales.*", CatalogPattern("spark_catalog", "?", "*"), True),
        ("s3://bucket/lake/a", LAKE, True),
        ("s3a://bucket/lake/a[1]", LAKE, True),
        ("delta.`s3a://bucket/*", LAKE, True),
        ("s3://bucket/other/*", LAKE, False),
        ("lake.sales.*", LAKE, False),
    ],
)
def test_patterns_that_no_selected_table_can_come_from_are_not_looked_up(
    glob: str, pattern: TablePattern, concerns: bool
) -> None:
    assert Selection((glob,)).concerned([pattern]) == [pattern] * concerns
    assert Selection(("no.such", glob, "no.other")).concerned([pattern]) == [pattern] * concerns
    assert Selection().concerned([pattern]) == [pattern]
    assert Selection(tags=("x",)).concerned([pattern]) == [pattern]


_PART = st.text("abAß*?[]!./-`", min_size=1, max_size=6)
_NAME = st.text("abAßsS1", min_size=1, max_size=6)


@settings(max_examples=500, deadline=None)
@given(st.lists(_PART, max_size=8), _NAME, _NAME)
def test_globs_select_together_what_each_selects_alone(globs: list[str], one: str, other: str) -> None:
    globs += [f"Lake.{one}.{each}" for each in globs] + [f"s3a://x/{each}" for each in globs]
    globs += [f"laKe.{one}.{other}", f"LAKE.{one}.{other}", f"s3://x/{one}/{other}", f"S3://X/{one}/{other}"]
    globs += [other, f"{one}/{other}"]
    names = TableName("laKe", (one, other)), TableName("", (f"s3a://x/{one}/{other}",))
    tables = specs(*(spec(name.text) for name in names))
    for chosen in (*[[each] for each in globs], globs):
        selected = Selection(tuple(chosen)).of(tables, complete=False)
        assert [each.name for each in selected] == [name for name in names if any(selects(g, name) for g in chosen)]
    useless = next((each for each in globs if not any(selects(each, name) for name in names)), None)
    if useless is not None:
        with pytest.raises(UsageError, match=re.escape(repr(useless))):
            Selection(tuple(globs)).of(tables)


def test_a_class_of_characters_that_holds_a_bracket_selects_by_the_last_part_of_a_name() -> None:
    tables = specs(spec("lake.sales.b"), spec("lake.sales.c"))
    assert [each.name.last for each in Selection(("[]b?]",)).of(tables)] == ["b"]


def test_ten_thousand_whole_names_are_not_compared_with_ten_thousand_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many as an undo of all tables plans."""
    compared = 0

    def counted(glob: str, name: TableName) -> bool:
        nonlocal compared
        compared += 1
        return selects(glob, name)

    monkeypatch.setattr(selection_module, "selects", counted)
    names = [f"lake.sales.t{number:05}" for number in range(5_000)]
    names += [f"delta.`/lake/t{number:05}`" for number in range(5_000)]
    tables = specs(*map(spec, names))
    assert len(Selection(tuple(names)).of(tables)) == 10_000
    assert len(Selection(excluded=tuple(names[1:])).of(tables)) == 1
    assert compared < 50_000


# Places

CATALOG = "spark_catalog"


def read(tables: str) -> Specs:
    text = f"version: 1\ntables:\n{tables}"
    return read_specs([("lake.yaml", text.encode())], ValueReader(Variables(), "oss", CATALOG, []))


def never() -> LogEngine:
    raise AssertionError("no engine is needed")


def placed(tables: str, engine: Callable[[], LogEngine] = never, *globs: str) -> LocatedTable:
    project = Project(Config(), source=EngineSource(open=lambda _stamp: engine()))
    return locate(project, read(tables), Selection(globs))


def where(found: LocatedTable) -> dict[str, str]:
    return {spec.name.text: location for spec, location in found.tables}


def failures(found: LocatedTable) -> dict[str, str]:
    return {failure.name: failure.message for failure in found.failures}


def engine(**tables: str) -> Callable[[], LogEngine]:
    """An engine whose catalog has tables of the schema ``sales``."""
    return lambda: LogEngine(catalog={(CATALOG, "sales", name): Path(path) for name, path in tables.items()})


def test_tables_come_from_names_listings_and_directories(tmp_path: Path) -> None:
    lake = create(tmp_path / "raw" / "a").parent
    found = placed(
        f"  sales.*: {{tags: [s]}}\n  sales.b: {{location: /declared}}\n  sales.c:\n  delta.`{lake}/*`:\n",
        engine(b="/w/b", c="/w/c", d="/w/d"),
    )
    assert where(found) == {
        f"delta.`{lake}/a`": f"{lake}/a",
        "sales.b": "/declared",
        "sales.c": "/w/c",
        "sales.d": "/w/d",
    }
    assert (found.failures, found.unmatched) == ((), ())


def test_directories_need_no_engine(tmp_path: Path) -> None:
    create(tmp_path / "a")
    assert list(where(placed(f"  delta.`{tmp_path}/*`:\n"))) == [f"delta.`{tmp_path}/a`"]


def test_a_pattern_that_matches_nothing_is_a_failure_unless_its_policy_says_that_it_may(tmp_path: Path) -> None:
    empty = "{may_be_empty: true}"
    tables = f"  sales.x*:\n  sales.*:\n  sales.b:\n  sales.y*: {empty}\n  delta.`{tmp_path}/*`:\n"
    found = placed(tables, engine(b="/w/b"))
    assert {name: message.partition(" (")[0] for name, message in failures(found).items()} == {
        f"delta.`{tmp_path}/*`": "matches no table",
        "sales.x*": "matches no table",
    }
    assert all("may_be_empty: true" in each.hint for each in found.failures)
    assert found.unmatched == ("sales.y*",)
    assert list(where(found)) == ["sales.b"]


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{}", ""),
        ("{min_tables: 2}", ""),
        ("{min_tables: 3}", "matches 2 tables, and `min_tables` is 3"),
        ("{min_tables: 3, may_be_empty: true}", "matches 2 tables, and `min_tables` is 3"),
    ],
)
def test_a_login_that_sees_fewer_tables_than_the_policy_counts_is_a_failure(entry: str, message: str) -> None:
    found = placed(f"  sales.*: {entry}\n", engine(b="/w/b", c="/w/c"))
    assert [each.message.partition(" (")[0] for each in found.failures] == ([message] if message else [])
    assert list(where(found)) == ["sales.b", "sales.c"]  # those that it sees are looked at all the same


def test_names_that_differ_in_case_alone_are_both_named_and_none_is_dropped() -> None:
    """Server 0.6.0 of Unity Catalog holds ``UPPER`` and ``upper``. A policy takes them for one table."""
    found = placed("  sales.*:\n", engine(UPPER="/w/1", upper="/w/2", other="/w/3"))
    assert where(found) == {"sales.other": "/w/3"}
    assert failures(found) == {
        "sales.UPPER": "its name differs from sales.upper in letter case alone",
        "sales.upper": "its name differs from sales.UPPER in letter case alone",
    }


def test_two_spellings_of_one_directory_are_not_names_that_differ_in_case(tmp_path: Path) -> None:
    create(tmp_path / "a")
    found = placed(f"  delta.`{tmp_path}/*`:\n  delta.`file://{tmp_path}/?`:\n")
    assert (len(found.tables), found.failures) == (1, ())


def test_the_number_of_tables_of_a_pattern_outweighs_no_value_of_another_one() -> None:
    """Two patterns of equal rank may count differently: the count says nothing about a table."""
    found = placed("  sales.?b: {min_tables: 1}\n  sales.a?: {may_be_empty: true}\n", engine(ab="/w/ab"))
    assert (list(where(found)), found.failures) == (["sales.ab"], ())


def test_a_schema_that_does_not_exist_is_a_failure_and_stops_no_other(tmp_path: Path) -> None:
    create(tmp_path / "a")
    found = placed(f"  nix.*:\n  sales.*:\n  delta.`{tmp_path}/*`:\n  delta.`{tmp_path}/nix/*`:\n", engine(b="/w/b"))
    assert list(where(found)) == [f"delta.`{tmp_path}/a`", "sales.b"]
    assert failures(found) == {
        "nix.*": "the schema spark_catalog.nix does not exist",
        f"delta.`{tmp_path}/nix/*`": f"{tmp_path}/nix: no such directory",
    }
    assert found.unmatched == ()


def test_an_engine_that_does_not_start_fails_what_needs_it(tmp_path: Path) -> None:
    def broken() -> LogEngine:
        raise EngineError("no Spark")

    create(tmp_path / "a")
    found = placed(f"  sales.*:\n  web.orders:\n  delta.`{tmp_path}/*`:\n", broken)
    assert list(where(found)) == [f"delta.`{tmp_path}/a`"]
    assert failures(found) == {"sales.*": "no Spark", "web.orders": "no Spark"}


def test_a_selection_is_made_among_the_tables_found(tmp_path: Path) -> None:
    create(tmp_path / "a")
    create(tmp_path / "b")
    tables = f"  sales.*:\n  delta.`{tmp_path}/*`:\n"
    assert list(where(placed(tables, never, f"{tmp_path}/a*", f"{tmp_path}/b"))) == [
        f"delta.`{tmp_path}/{name}`" for name in "ab"
    ]
    assert list(where(placed(tables, engine(x="/w/x", y="/w/y"), "sales.x"))) == ["sales.x"]
    with pytest.raises(UsageError, match="matches no table"):
        placed(tables, engine(x="/w/x"), "sales.nix")


def test_a_glob_is_not_a_typo_while_a_pattern_could_not_be_looked_up() -> None:
    found = placed("  nix.*:\n", engine(), "nix.a")
    assert (found.tables, failures(found)) == ((), {"nix.*": "the schema spark_catalog.nix does not exist"})


def test_two_keys_that_lead_to_one_table_are_failures_of_both(tmp_path: Path) -> None:
    path = create(tmp_path / "a")
    found = placed(f"  sales.*:\n  delta.`{tmp_path}/*`:\n", engine(t=str(path), u="/w/u"))
    assert list(where(found)) == ["sales.u"]
    assert list(failures(found)) == [f"delta.`{path}`", "sales.t"]


def test_a_table_that_is_a_link_stops_no_other(tmp_path: Path) -> None:
    """Nor the one that it leads to: whoever can make a link must not stop the policy of another table."""
    create(tmp_path / "good")
    (tmp_path / "link").symlink_to(tmp_path / "good")
    found = placed(f"  delta.`{tmp_path}/link`:\n  delta.`{tmp_path}/good`:\n")
    assert list(where(found).values()) == [f"{tmp_path}/good"]
    message = f"{tmp_path}/link: left out: it is a link to {tmp_path}/good"
    assert failures(found) == {f"delta.`{tmp_path}/link`": message}


def test_a_link_to_itself_stops_no_other_table(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    create(tmp_path / "good")
    found = placed(f"  delta.`{tmp_path}/loop`:\n  delta.`{tmp_path}/good`:\n")
    assert list(where(found).values()) == [f"{tmp_path}/good"]
    assert list(failures(found)) == [f"delta.`{tmp_path}/loop`"]
