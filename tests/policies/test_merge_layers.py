"""Defaults under a table's own declarations."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.attributes.policy import Policy
from tablectl.policies.declared_tables import Specs
from tablectl.policies.merge_layers import Cancelled, Layer, LayerKind, effective, merge, policy_of
from tablectl.policies.value_reader import GivenValue
from tablectl.policies.yaml_nodes import SourceFile

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

DEFAULTS = """
version: 1
defaults:
  isolation: Serializable
  clustering: [a, b]
  tags: [x, y]
  properties: {delta.appendOnly: true, owner.team: one, keep: me}
tables:
"""


def policy(read: Read, entry: str) -> Policy:
    (spec,) = read(f"{DEFAULTS}  a.b: {{{entry}}}\n").tables
    return spec.policy


def test_attribute_by_attribute(read: Read) -> None:
    found = policy(read, "deletion_vectors: enabled, isolation: default")
    assert (found.isolation, found.deletion_vectors, found.clustering) == ("default", "enabled", ("a", "b"))


def test_lists_replace(read: Read) -> None:
    assert policy(read, "clustering: [c]").clustering == ("c",)
    (spec,) = read(f"{DEFAULTS}  a.b: {{tags: [z]}}\n").tables
    assert spec.tags == ("z",)


def test_properties_merge_by_key_whatever_the_case_of_deltas_own(read: Read) -> None:
    found = policy(read, "properties: {DELTA.APPENDONLY: false, owner.team: null, Keep: too}")
    assert found.properties == {"delta.appendOnly": "false", "owner.team": None, "keep": "me", "Keep": "too"}


def test_sources_name_the_line_that_won(read: Read) -> None:
    (spec,) = read(f"{DEFAULTS}  a.b:\n    properties: {{owner.team: two}}\n").tables
    lines = {key: source.line for key, source in spec.sources.items()}
    assert lines == {
        "isolation": 4,
        "clustering": 5,
        "properties.delta.appendOnly": 7,
        "properties.keep": 7,
        "properties.owner.team": 10,
    }


@pytest.mark.parametrize(
    ("unmanaged", "left"),
    [
        (
            "isolation",
            Policy(
                {
                    "clustering": ("a", "b"),
                    "properties": {"delta.appendOnly": "true", "owner.team": "one", "keep": "me"},
                }
            ),
        ),
        (
            "clustering, delta.AppendOnly, keep",
            Policy({"isolation": "Serializable", "properties": {"owner.team": "one"}}),
        ),
        (
            "properties, clustering, partitioning, delta.checkpointRetentionDuration",
            Policy({"isolation": "Serializable"}),
        ),
    ],
)
def test_unmanaged_cancels(read: Read, unmanaged: str, left: Policy) -> None:
    assert policy(read, f"unmanaged: [{unmanaged}]") == left


@pytest.mark.parametrize(
    ("entry", "fine"),
    [
        ("partitioning: [d]", False),
        ("partitioning: none", True),
        ("partitioning: [d], clustering: none", True),
        ("partitioning: [d], unmanaged: [clustering]", True),
        ("partitioning: [d], clustering: [c]", False),
    ],
)
def test_clustering_and_partitioning_exclude_each_other(read: Read, wrong: Wrong, entry: str, *, fine: bool) -> None:
    text = f"{DEFAULTS}  a.b: {{{entry}}}\n"
    if fine:
        assert len(read(text).tables) == 1
    else:
        (said,) = wrong(text)
        assert said.startswith("policies.yaml:9:")
        assert "exclude each other" in said


def test_where_both_are_defaults_it_is_said_once_and_there(wrong: Wrong) -> None:
    defaults = "version: 1\ndefaults:\n  clustering: [a]\n  partitioning: [b]\n"
    assert wrong(f"{defaults}tables: {{a.b: , a.c: , a.d: {{unmanaged: [clustering]}}}}\n") == [
        (
            "policies.yaml:3:3: `clustering` and `partitioning` exclude each other, and `partitioning` stands at "
            "policies.yaml:4:3\n"
            "  hint: remove one, or declare it `none`; `unmanaged: [partitioning]` cancels an inherited one"
        )
    ]


def test_without_a_property_left_there_are_no_properties() -> None:
    here = SourceFile("f", 1, 1)
    own, defaults = (
        Layer(kind=LayerKind.TABLE, source=here, unmanaged={"properties": Cancelled("properties", here)}),
        Layer(kind=LayerKind.DEFAULTS, source=here, declared={"properties.a": GivenValue("1", here)}),
    )
    assert policy_of(effective(merge([[own], [defaults]]))) == Policy()
