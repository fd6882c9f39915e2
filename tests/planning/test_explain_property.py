"""The explanation of a property."""

from __future__ import annotations

import pytest

from tablectl.attributes.policy import OWNED, OWNED_KEYS
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.properties import known_keys
from tablectl.lint_rules import RULES
from tablectl.lint_rules.rule import LintRule
from tablectl.model.plan import Phase
from tablectl.planning.explain_property import explain_property


def phases(key: str, dialect: str = "oss") -> list[Phase]:
    about = explain_property(key, dialect)
    assert about is not None
    return [verdict.phase for verdict in about.changes.values()]


def test_a_property_in_any_case_and_what_a_change_of_it_does() -> None:
    about = explain_property("DELTA.CheckpointPOLICY", "oss")
    assert about is not None
    assert (about.key, about.feature, about.attribute, about.refused) == (
        "delta.checkpointPolicy",
        "v2Checkpoint",
        "",
        None,
    )
    assert about.description == "Needs one of classic, v2; null unsets it."
    assert phases("delta.checkpointPolicy") == [Phase.FREE, Phase.CLOSED]
    assert phases("delta.appendOnly") == [Phase.CLOSED, Phase.CLOSED]
    assert phases("delta.checkpointPolicy", "databricks") == [Phase.CLOSED, Phase.CLOSED]


def test_one_that_an_attribute_declares() -> None:
    about = explain_property("delta.enabledeletionvectors", "oss")
    assert about is not None
    assert about.key == "delta.enableDeletionVectors"
    assert (about.attribute, about.changes, about.refused) == ("deletion_vectors", {}, None)


def test_one_that_no_policy_can_name() -> None:
    about = explain_property("delta.minReaderVersion", "oss")
    assert about is not None
    assert about.refused is not None
    assert about.changes == {}


def test_one_of_the_other_dialect() -> None:
    about = explain_property("delta.tuneFileSizesForRewrites", "oss")
    assert about is not None
    assert about.dialects == ("databricks",)
    assert about.refused is not None
    assert about.refused[0] == "delta.tuneFileSizesForRewrites exists only in the databricks dialect"


@pytest.mark.parametrize("key", ["delta.nothing", "owner.team", "", "delta."])
def test_what_means_nothing_to_delta(key: str) -> None:
    about = explain_property(key, "oss")
    assert about is None or about.refused is not None
    assert about is None or not about.dialects


def test_keys_of_attributes_are_spelled_as_delta_does() -> None:
    assert sorted(map(str.lower, OWNED_KEYS)) == sorted(OWNED)


@pytest.mark.parametrize("dialect", ["oss", "databricks"])
def test_every_known_key_has_a_page(dialect: str) -> None:
    assert all(explain_property(key, dialect) for key in (*known_keys(dialect), *OWNED))


def test_the_rules_about_a_property_are_named() -> None:
    about = explain_property("delta.appendOnly", "oss")
    assert about is not None
    assert about.codes == ("L011",)


@pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.code)
def test_a_rule_names_the_properties_in_its_text(rule: LintRule) -> None:
    text = f"{rule.breaks} {rule.why} {rule.fix}"
    known = {*OWNED_KEYS, *(key for each in DIALECTS for key in known_keys(each.name))}
    assert set(rule.properties) == {key for key in known if f"`{key}`" in text or f"`{key}:" in text}
