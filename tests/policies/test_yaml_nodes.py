"""Which plain texts can stand for themselves."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile, is_text, kind_of

Parse = Callable[[str | bytes], tuple[Node | None, list[str]]]


@pytest.mark.parametrize(
    "text", ["text", "true", "false", "0", "42", "-7", '"no"', "'0x1F'", "1e3", "5s", "interval 7 days"]
)
def test_text_and_what_is_taken_for_it(parse: Parse, text: str) -> None:
    scalar, _ = parse(text)
    assert isinstance(scalar, Scalar)
    assert is_text(scalar)
    assert scalar.text == text.strip("\"'")


@pytest.mark.parametrize(
    "text",
    [
        "no",
        "yes",
        "on",
        "off",
        "True",
        "FALSE",
        "12:30",
        "0x1F",
        "010",
        "-010",
        "0b1",
        "1_000",
        "+1",
        "1.5",
        ".inf",
        ".nan",
        "1.0e+3",
        "2024-01-31",
        "2024-01-31 10:00:00",
        "=",
        "null",
        "~",
        "Null",
    ],
)
def test_what_yaml_reads_in_a_way_of_its_own(parse: Parse, text: str) -> None:
    scalar, _ = parse(text)
    assert isinstance(scalar, Scalar)
    assert not is_text(scalar)
    assert scalar.is_null == (text.lower() in {"null", "~"})


def test_what_a_node_is_called() -> None:
    source = SourceFile("f", 1, 1)
    nodes: list[Node] = [
        Scalar("x", "str", source),
        Scalar("", "null", source),
        ListNode((), source),
        MapNode({}, source),
    ]
    assert [kind_of(node) for node in nodes] == ["text", "nothing", "a list", "a map"]
