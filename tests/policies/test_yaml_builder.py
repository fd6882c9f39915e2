"""Keys, tags, anchors and aliases."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.yaml_nodes import MapNode, Node

Parse = Callable[[str | bytes], tuple[Node | None, list[str]]]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: 1\nb: 2\na: 3", 'f.yaml:3:1: the key "a" occurs twice: first on line 1\n  hint: keep one of them'),
        ("no: 1", 'f.yaml:1:1: a key must be text, and "no" is not to YAML\n  hint: quote it: "no"'),
        ("12: 1", 'f.yaml:1:1: a key must be text, and "12" is not to YAML\n  hint: quote it: "12"'),
        ("~: 1", 'f.yaml:1:1: a key must be text, and "~" is not to YAML\n  hint: quote it: "~"'),
        ("? [a]\n: 1", 'f.yaml:1:3: a key must be text\n  hint: quote a key that starts with [, {, * or &: "[…"'),
        (
            "x: &x {a: 1}\ny: {<<: *x}",
            ("f.yaml:2:5: merge keys (<<) are not supported\n  hint: write the keys out, or put them under `defaults`"),
        ),
        (
            "a: !!python/object:os.system ls",
            (
                'f.yaml:1:4: the tag "!!python/object:os.system" is not supported\n'
                "  hint: remove it; quotes make text of a value"
            ),
        ),
        (
            "a: !mine [x]",
            ('f.yaml:1:4: the tag "!mine" is not supported\n  hint: remove it; quotes make text of a value'),
        ),
        (
            "a: *b",
            ('f.yaml:1:4: the alias *b has no anchor &b before it\n  hint: text that starts with * needs quotes: "*b"'),
        ),
        ("a: &a [*a]", "f.yaml:1:8: the alias *a is inside its own anchor\n  hint: write it out"),
    ],
)
def test_what_is_refused(parse: Parse, text: str, problem: str) -> None:
    assert parse(text)[1] == [problem]


def test_an_alias_stands_for_its_anchor(parse: Parse) -> None:
    tree, problems = parse("a: &x {k: v}\nb: *x\nc: &x 1\nd: *x")
    assert problems == []
    assert isinstance(tree, MapNode)
    a, b, c, d = (node for _, node in tree.entries.values())
    assert (a, c) == (b, d)


def test_quotes_and_the_text_tag_make_text(parse: Parse) -> None:
    tree, problems = parse("{\"no\": 'no', b: !!str no, c: no}")
    assert problems == []
    assert isinstance(tree, MapNode)
    assert [getattr(node, "tag", None) for _, node in tree.entries.values()] == ["str", "str", "bool"]


def test_an_alias_bomb_is_an_error_at_once(parse: Parse) -> None:
    layers = ["l0: &l0 [x, x, x, x, x, x, x, x, x]"]
    layers += [f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 20)]
    tree, problems = parse("\n".join(layers))
    assert tree is None
    assert problems == ["f.yaml:6:10: aliases stand for more than 100,000 nodes\n  hint: write them out"]


def test_aliases_do_not_get_around_the_limit_of_depth(parse: Parse) -> None:
    _, problems = parse("\n".join(["l0: &l0 [x]", *(f"l{n}: &l{n} [*l{n - 1}]" for n in range(1, 100))]))
    assert len(problems) == 1
    assert "nested more than 32 levels deep" in problems[0]


def test_every_problem_of_a_file_is_found(parse: Parse) -> None:
    _, problems = parse("no: 1\na: 1\na: !x 2\n")
    assert len(problems) == 3
