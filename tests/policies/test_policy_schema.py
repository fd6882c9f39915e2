"""The schema for editors: it takes what the reader takes, and refuses the usual mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest
import yaml

from tablectl.attributes.policy import VALUE_TYPES, declarable_keys
from tablectl.policies.declared_tables import Specs
from tablectl.policies.schemas import policy_schema

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

EXAMPLE = """
version: 1
defaults:
  isolation: Serializable
  tags: [nightly]
tables:
  lake.sales.orders:
    deletion_vectors: enabled
    clustering: [customer_id, order_date]
    properties:
      delta.checkpointRetentionDuration: interval 60 days
      delta.checkpointInterval: 20
      delta.APPENDONLY: false
      owner.team: payments
      delta.autoOptimize.autoCompact: null
  lake.sales.lines:
    isolation: ${LEVEL}
    location: ${LAKE}/lines
    clustering: none
    unmanaged: [delta.appendOnly]
  delta.`${LAKE}/events`:
    partitioning: [event_date]
    tags: [streaming, "team/${TEAM}"]
  lake.sales.empty:
"""


def accepts(text: str) -> bool:
    return bool(jsonschema.Draft202012Validator(policy_schema()).is_valid(yaml.safe_load(text)))


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(policy_schema())


def test_it_takes_what_the_reader_takes(read: Read) -> None:
    assert len(read(EXAMPLE, variables={"LEVEL": "default", "LAKE": "/lake", "TEAM": "x"}).tables) == 4
    assert accepts(EXAMPLE)


@pytest.mark.parametrize(
    "text",
    [
        "tables: {}",
        "version: 2",
        "{version: 1, table: {}}",
        "{version: 1, tables: []}",
        "{version: 1, defaults: {location: /x}}",
        "{version: 1, defaults: {isolation: null}}",
        "{version: 1, tables: {a.b: {clusterin: [a]}}}",
        "{version: 1, tables: {a.b: {isolation: serializable}}}",
        "{version: 1, tables: {a.b: {deletion_vectors: off}}}",
        "{version: 1, tables: {a.b: {clustering: id}}}",
        "{version: 1, tables: {a.b: {clustering: []}}}",
        "{version: 1, tables: {a.b: {clustering: [a, b, c, d, e]}}}",
        "{version: 1, tables: {a.b: {clustering: [a, a]}}}",
        "{version: 1, tables: {a.b: {clustering: [a], partitioning: [b]}}}",
        "{version: 1, tables: {a.b: {properties: {a: [b]}}}}",
        "{version: 1, tables: {a.b: {properties: {a: 1.5}}}}",
        "{version: 1, tables: {a.b: {properties: null}}}",
        "{version: 1, tables: {a.b: {tags: [a b]}}}",
        "{version: 1, tables: {a.b: {tags: x}}}",
        "{version: 1, tables: {a.b: {location: lake/x}}}",
        "{version: 1, tables: {a.b: {rewrite: alowed}}}",
        "{version: 1, tables: {'a.*': {min_tables: 0}}}",
    ],
)
def test_it_refuses_the_usual_mistakes_as_the_reader_does(wrong: Wrong, text: str) -> None:
    assert not accepts(text)
    assert wrong(text)


def test_it_describes_every_attribute_and_lists_the_known_keys() -> None:
    definitions: dict[str, Any] = policy_schema()["$defs"]
    assert all(definitions[name]["description"] for name in VALUE_TYPES)
    keys = definitions["properties"]["properties"]
    assert set(keys) == {*declarable_keys("oss"), *declarable_keys("databricks")}
    assert keys["delta.appendOnly"]["description"] == "Needs true or false; null unsets it."
    only = keys["delta.tuneFileSizesForRewrites"]["description"]
    assert only == "Needs true or false; null unsets it. Only in the databricks dialect."
