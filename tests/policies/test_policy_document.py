"""Whole files: the example of the design, the shape of a file, and everything wrong at once."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import TableName
from tablectl.model.errors import InputError
from tablectl.policies.declared_tables import Specs
from tablectl.policies.repository import load_specs

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

EXAMPLE = """
version: 1
defaults:                      # forevery table of this file
  isolation: Serializable
tables:
  lake.sales.orders:           # an identifier as Spark SQL takes it; quoted parts with backticks
    deletion_vectors: enabled
    clustering: [customer_id, order_date]
    properties:
      delta.checkpointRetentionDuration: interval 60 days
      owner.team: payments
      delta.autoOptimize.autoCompact: null        # unset it
  delta.`${LAKE}/events`:      # a table known by its path or URI
    partitioning: [event_date]
    tags: [streaming]
"""


def test_the_example_of_the_design(read: Read) -> None:
    events, orders = read(EXAMPLE, variables={"LAKE": "/lake"}).tables
    assert orders.name == TableName("lake", ("sales", "orders"))
    assert orders.policy.declared == {
        "isolation": "Serializable",
        "deletion_vectors": "enabled",
        "clustering": ("customer_id", "order_date"),
        "properties": {
            "delta.autoOptimize.autoCompact": None,
            "delta.checkpointRetentionDuration": "interval 60 days",
            "owner.team": "payments",
        },
    }
    assert events.name == TableName("", ("/lake/events",))
    assert (events.tags, events.location) == (("streaming",), None)
    assert str(events.declared) == "policies.yaml:13:3"
    assert {key: str(source) for key, source in events.sources.items()} == {
        "isolation": "policies.yaml:4:3",
        "partitioning": "policies.yaml:14:5",
    }


def test_two_parts_lie_in_the_configured_catalog(read: Read) -> None:
    (spec,) = read("version: 1\ntables:\n  a.b:\n", catalog="lake").tables
    assert spec.name == TableName("lake", ("a", "b"))


def test_a_catalog_from_a_variable_is_one_part(read: Read) -> None:
    (spec,) = read("version: 1\ntables:\n  ${C}.a.b:\n", environ={"TABLECTL_VAR_C": "x.y`z"}).tables
    assert spec.name == TableName("x.y`z", ("a", "b"))


@pytest.mark.parametrize("text", ["version: 1", "version: 1\ntables: {}", "version: 1\ndefaults: {isolation: default}"])
def test_a_file_without_tables_is_fine(read: Read, text: str) -> None:
    assert read(text).tables == ()


START = "start it with `version: 1`, and declare `tables:`"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", f"1:1: the file is empty\n  hint: {START}"),
        ("[a]", f"1:1: a policy file is a map, and here is a list\n  hint: {START}"),
        ("tables: {}", "1:1: `version` is missing\n  hint: start the file with `version: 1`"),
        ("version: 2\nwhatever: 1", '1:10: version "2" is not supported\n  hint: this tablectl reads version 1'),
        ("version: 1.0", '1:10: version "1.0" is not supported\n  hint: this tablectl reads version 1'),
        ('version: "1"', "1:10: `version` takes a number\n  hint: write `version: 1`, without quotes"),
        ("version: [1]", "1:10: `version` takes a number\n  hint: write `version: 1`"),
        ("version: 1\ntable: {}", '2:1: unknown key "table"\n  hint: did you mean `tables`?'),
        (
            "version: 1\nenv: {}",
            (
                '2:1: "env" is not allowed here\n'
                "  hint: environments stand in tablectl.yaml, and give values for `${NAME}` here"
            ),
        ),
        (
            "version: 1\ntables: [a.b]",
            (
                "2:9: `tables` takes a map of tables, not a list\n"
                "  hint: for example `tables: {lake.sales.orders: {isolation: Serializable}}`"
            ),
        ),
        (
            "version: 1\ntables: {orders: }",
            ("2:10: 'orders' has 1 part: a table is schema.table, catalog.schema.table, or delta.`/path`"),
        ),
        (
            'version: 1\ntables: {"${X}.a": }',
            ("2:10: the variable X is not defined\n  hint: give it with --var X=… or in TABLECTL_VAR_X"),
        ),
        (
            "version: 1\ntables:\n  delta.`/x`: {location: /y}",
            ("3:16: a table known by its path takes no `location`\n  hint: remove it"),
        ),
    ],
)
def test_the_shape_of_a_file(wrong: Wrong, text: str, problem: str) -> None:
    assert wrong(text) == [f"policies.yaml:{problem}"]


def test_everything_wrong_in_all_files_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("policies")
    folder.mkdir()
    (folder / "a.yaml").write_text("version: 1\ntables:\n  a.b: {isolation: x, clusterin: [a]}\n")
    (folder / "b.yaml").write_text("version: 1\ntables: [\n")
    (folder / "c.yaml").write_text("version: 1\ntables:\n  A.b: {partitioning: [x.y]}\n")
    with pytest.raises(InputError) as caught:
        load_specs([folder, Path("none.yaml")], variables={}, environ={})
    assert [str(problem).split(": ")[0] for problem in caught.value.problems] == [
        "none.yaml",
        "policies/a.yaml:3:20",
        "policies/a.yaml:3:23",
        "policies/b.yaml:3:1",
        "policies/c.yaml:3:3",
        "policies/c.yaml:3:24",
    ]


@settings(deadline=None)
@given(data=st.binary(max_size=120) | st.text(max_size=120).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_bytes_are_specs_or_an_input_error(read: Read, data: bytes) -> None:
    for text in (data, b"version: 1\n" + data, b"version: 1\ntables:\n  a.b:\n    " + data):
        with suppress(InputError):
            read(text)


_WORDS = st.sampled_from(
    [
        "version",
        "1",
        "defaults",
        "tables",
        "a.b",
        "delta.`/x`",
        "isolation",
        "default",
        "clustering",
        "partitioning",
        "none",
        "properties",
        "delta.appendOnly",
        "true",
        "null",
        "no",
        "tags",
        "unmanaged",
        "location",
        "/x",
        "${A}",
        "&a",
        "*a",
        "<<",
        "`",
        '"',
        "'",
        "|",
        "!!str",
        "?",
        "-",
        "1.5",
        "\\",
        "\t",
    ]
)
_NODES = st.recursive(
    _WORDS,
    lambda inner: (
        st.lists(inner, max_size=4).map(lambda items: f"[{', '.join(items)}]")
        | st.lists(st.tuples(_WORDS, inner), max_size=4).map(
            lambda items: "{" + ", ".join(f"{k}: {v}" for k, v in items) + "}"
        )
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(defaults=_NODES, table=_NODES)
def test_and_so_are_arbitrary_arrangements_of_known_words(read: Read, defaults: str, table: str) -> None:
    for text in (f"version: 1\ndefaults: {defaults}\ntables: {{a.b: {table}}}", f"version: 1\ntables: {table}", table):
        with suppress(InputError):
            read(text, variables={"A": "isolation"})


def test_a_thousand_tables_without_spark_or_arrow(tmp_path: Path) -> None:
    table = "    clustering: [a, b]\n    properties: {owner.team: x, delta.appendOnly: false}\n"
    (tmp_path / "all.yaml").write_text(
        "version: 1\ntables:\n" + "".join(f"  lake.s.t{n}:\n{table}" for n in range(1000))
    )
    for n in range(50):
        (tmp_path / f"one{n}.yaml").write_text(f"version: 1\ntables:\n  lake.o.t{n}:\n{table}")
    code = (
        "import sys, pathlib; from tablectl.policies.repository import load_specs;"
        f"print(len(load_specs([pathlib.Path({str(tmp_path)!r})], variables={{}}, environ={{}}).tables));"
        "print([name for name in ('pyspark', 'pyarrow', 'obstore') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "1050\n[]\n"
