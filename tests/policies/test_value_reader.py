"""Single values: their variables."""

from __future__ import annotations

import pytest

from tablectl.model.errors import Problem
from tablectl.policies.value_reader import UnreadableError, ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import Scalar, SourceFile

PLACE = SourceFile("f", 1, 2)


def reading() -> ValueReader:
    return ValueReader(Variables({"A": "x"}), "oss", "spark_catalog", [])


def test_a_text_with_its_variables() -> None:
    here = reading()
    assert here.expanded(Scalar("<${A}>", "str", PLACE)) == "<x>"
    assert here.problems == []


def test_an_undefined_variable() -> None:
    here = reading()
    with pytest.raises(UnreadableError):
        here.expanded(Scalar("${B}", "str", PLACE))
    hint = "give it with --var B=… or in TABLECTL_VAR_B"
    assert here.problems == [Problem("f", 1, 2, "the variable B is not defined", hint)]
