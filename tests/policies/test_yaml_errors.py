"""The parser's complaints, each with the likely remedy."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.yaml_nodes import Node

Parse = Callable[[str | bytes], tuple[Node | None, list[str]]]


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("a:\n\tb: 1", "f.yaml:2:1", "a tab indents this line"),
        ("`a.b`.c: 1", "f.yaml:1:1", "unquoted text cannot start with `"),
        ("a: @x", "f.yaml:1:4", "text that starts with @ needs quotes around the whole of it"),
        ("*.sales: 1", "f.yaml:1:2", "text that starts with * or & needs quotes"),
        ("a: b: c", "f.yaml:1:5", 'text that holds ": " needs quotes'),
        ("a: 'x\nb: 3\n", "f.yaml:3:1", "a quote is opened and never closed"),
        ("a: [${X}]", "f.yaml:1:6", 'needs quotes: ["${NAME}"]'),
        ("a: {b: ${X}}", "f.yaml:1:9", "close the map with }"),
        ("a: [1\nb: 2", "f.yaml:2:2", "(it began on line 1)"),
        ("a:\n  b: 1\n c: 2", "f.yaml:3:2", "check the indentation"),
        ("a: 1\nb\nc: 2", "f.yaml:3:1", "a key needs a colon"),
        ('a: "\\d"', "f.yaml:1:5", "a backslash starts an escape"),
        ('a: "\\ud800"', "f.yaml:1:7", "write the character itself"),
        ("%YAML 3.0\n---\na: 1", "f.yaml:1:1", "this is not valid YAML"),
    ],
)
def test_the_place_and_the_fix(parse: Parse, text: str, place: str, words: str) -> None:
    tree, problems = parse(text)
    assert tree is None
    assert len(problems) == 1
    assert problems[0].startswith(f"{place}: ")
    assert words in problems[0]
