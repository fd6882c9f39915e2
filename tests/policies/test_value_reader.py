"""Single values: one problem each, and the reading goes on."""

from __future__ import annotations

from tablectl.model.errors import Problem
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import ListNode, Scalar, SourceFile

PLACE = SourceFile("f", 1, 2)


def reading() -> ValueReader:
    return ValueReader(Variables({"A": "x"}), "oss", "spark_catalog", [])


def test_a_text_with_its_variables() -> None:
    here = reading()
    assert here.text(Scalar("<${A}>", "str", PLACE), "it", "") == "<x>"
    assert here.problems == []


def test_what_is_not_text() -> None:
    here = reading()
    nodes = (Scalar("", "null", PLACE), Scalar("=", "value", PLACE), ListNode((), PLACE), Scalar("${B}", "str", PLACE))
    assert [here.text(node, "it", "`it: so`") for node in nodes] == [None] * 4
    assert here.problems == [
        Problem("f", 1, 2, "it has no value", "for example `it: so`"),
        Problem("f", 1, 2, "YAML reads = as something else, not as text", 'quote it: "="'),
        Problem("f", 1, 2, "it takes text, not a list", "for example `it: so`"),
        Problem("f", 1, 2, "the variable B is not defined", "give it with --var B=… or in TABLECTL_VAR_B"),
    ]
