"""Properties that other engines read, and that tablectl does not know."""

from __future__ import annotations

import pytest

from tablectl.attributes.policy import check_declarable
from tablectl.model.errors import InputError
from tablectl.model.plan import Change
from tablectl.model.table_options import TableOptions
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables


def spec(text: str, *patterns: str) -> TableSpec:
    reading = ValueReader(Variables({}, {}), "oss", "spark_catalog", [], extra_properties=patterns)
    policy = f"version: 1\ntables:\n  lake.s.t:\n    properties: {{{text}}}\n"
    (found,) = read_specs([("p.yaml", policy.encode())], reading).tables
    return found


def test_a_key_with_its_engine_is_taken_and_the_engine_is_kept() -> None:
    found = spec("delta.newThing: {value: 1, engine: fabric}")
    assert found.policy.properties == {"delta.newThing": "1"}
    assert found.options.engine_properties == (("delta.newThing", "fabric"),)


def test_a_pattern_of_the_configuration_admits_a_plain_value() -> None:
    found = spec("delta.parquet.newThing: 1", "delta.parquet.*")
    assert found.options.engine_properties == (("delta.parquet.newThing", "another engine"),)


def test_without_either_the_error_says_how_to_declare_it() -> None:
    with pytest.raises(InputError) as caught:
        spec("delta.zorder.hot.keys: 1", "delta.parquet.*")
    (problem,) = caught.value.problems
    assert "not known to Delta" in problem.message
    assert "write `delta.zorder.hot.keys: {value: …, engine: NAME}`" in problem.hint


@pytest.mark.parametrize(
    "key", ["delta.enableDeletionVectors", "delta.feature.x", "delta.minReaderVersion", "delta.constraints.c"]
)
def test_no_pattern_admits_what_delta_or_an_attribute_sets(key: str) -> None:
    with pytest.raises(InputError):
        spec(f"{key}: 1", "delta.*e*")
    with pytest.raises(InputError):
        spec(f"{key}: {{value: 1, engine: fabric}}")


def test_a_plan_file_holds_such_a_key_only_if_its_policy_declares_it() -> None:
    change = Change(attribute="properties", key="delta.newThing", before=None, after="1")
    check_declarable(change, "oss", TableOptions(engine_properties=(("delta.newThing", "fabric"),)))
    with pytest.raises(ValueError, match="not known to Delta"):
        check_declarable(change, "oss")
    owned = Change(attribute="properties", key="delta.isolationLevel", before=None, after="x")
    with pytest.raises(ValueError, match="attribute of its own"):
        check_declarable(owned, "oss", TableOptions(engine_properties=(("delta.isolationLevel", "fabric"),)))
