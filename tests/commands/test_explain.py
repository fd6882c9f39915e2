"""``tablectl explain``: what holds, which line says so, what it overrides."""

from __future__ import annotations

import json

import pytest

import tablectl
from tests.commands.conftest import Cli, Repository

POLICIES = """version: 1
defaults:
  isolation: default
  properties: {owner.team: no one, delta.appendOnly: false}
tables:
  "lake.sales.*":
    isolation: Serializable
    properties: {owner.team: sales}
  lake.sales.orders:
    clustering: [customer_id]
    location: ${LAKE}/orders
    unmanaged: [delta.appendOnly]
"""


@pytest.fixture
def sales(repo: Repository) -> Repository:
    repo.policies(POLICIES, "sales.yaml")
    return repo


def test_each_value_has_its_line_and_what_it_overrides(cli: Cli, sales: Repository) -> None:
    result = cli("explain", "lake.sales.orders", "--var", "LAKE=/lake")
    assert result.code == 0
    assert (
        result.out
        == """\
lake.sales.orders
  declared             at policies/sales.yaml:9
  matches lake.sales.* at policies/sales.yaml:6

  Setting                      Value          Declared
  isolation                    Serializable   policies/sales.yaml:7
                                              (lake.sales.*)
                               default        over policies/sales.yaml:3
                                              (defaults)
  clustering                   [customer_id]  policies/sales.yaml:10
  properties.delta.appendOnly  not managed    policies/sales.yaml:12 (unmanaged)
                               false          over policies/sales.yaml:4
                                              (defaults)
  properties.owner.team        sales          policies/sales.yaml:8
                                              (lake.sales.*)
                               no one         over policies/sales.yaml:4
                                              (defaults)
  location                     /lake/orders   policies/sales.yaml:11

  not managed deletion_vectors, partitioning, row_tracking, column_mapping,
              uniform, constraints, features, data_skipping, retention: no
              policy names them
"""
    )


def test_a_table_that_only_a_pattern_matches_needs_no_catalog(cli: Cli, sales: Repository) -> None:
    result = cli("explain", "lake.sales.returns", "policies/sales.yaml", "--var", "LAKE=/lake", "--format", "json")
    found = json.loads(result.out)
    assert found["table"] == "lake.sales.returns"
    assert found["declarations"] == [{"key": "lake.sales.*", "file": "policies/sales.yaml", "line": 6, "column": 3}]
    (isolation, *_) = found["values"]
    assert isolation == {
        "name": "isolation",
        "managed": True,
        "value": "Serializable",
        "by": "lake.sales.*",
        "file": "policies/sales.yaml",
        "line": 7,
        "column": 5,
        "over": [
            {
                "managed": True,
                "value": "default",
                "by": "defaults",
                "file": "policies/sales.yaml",
                "line": 3,
                "column": 3,
            }
        ],
    }
    assert found["not_named"] == [
        "deletion_vectors",
        "clustering",
        "partitioning",
        "row_tracking",
        "column_mapping",
        "uniform",
        "constraints",
        "features",
        "data_skipping",
        "retention",
    ]


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("lake.sale.orders", "no policy declares lake.sale.orders\n  hint: did you mean lake.sales.orders?"),
        ("delta.`/lake/orders`", "declared as lake.sales.orders"),
        ("other.place.entirely", "hint: what no policy names is not managed"),
        ("gatee", '"gatee" is not a known term, and no table'),
        ("lake.sales.*", "hint: name one table that it matches"),
        ("delta.appendOnl", "is not a property known to Delta\n  hint: did you mean delta.appendOnly?"),
        ("delta.x", "is not a property known to Delta\n  hint: keys of your own have no meaning to Delta"),
    ],
)
def test_what_is_not_declared_is_wrong_usage(cli: Cli, sales: Repository, table: str, says: str) -> None:
    result = cli("explain", table, "--var", "LAKE=/lake")
    assert (result.code, result.out) == (64, "")
    assert says in result.err


def test_a_property(cli: Cli, repo: Repository) -> None:
    result = cli("explain", "delta.EnableExpiredLogCleanup")
    assert result.code == 0
    assert result.out.startswith("delta.enableExpiredLogCleanup\n  Declared under `properties:`. Needs true or false")
    assert "to set   it is a blocking commit: changing " in result.out
    assert "Findings about it: L016" in result.out
    found = json.loads(cli("explain", "delta.isolationLevel", "--format", "json").out)
    assert (found["key"], found["attribute"], found["changes"]) == ("delta.isolationLevel", "isolation", {})


def test_a_contradiction_is_explained_as_such(cli: Cli, repo: Repository) -> None:
    repo.policies("version: 1\ntables:\n  a.b*.x: {isolation: default}\n  a.*c.x: {isolation: Serializable}\n")
    result = cli("explain", "a.bc.x")
    assert result.code == 1
    assert "neither outweighs the other" in result.err


def test_as_a_function(cli: Cli, sales: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TABLECTL_VAR_LAKE", "/lake")
    found = tablectl.explain("lake.sales.orders")
    assert {each.key: each.source.line for each in found.resolved if each.given} == {
        "isolation": 7,
        "clustering": 10,
        "properties.owner.team": 8,
        "location": 11,
    }
