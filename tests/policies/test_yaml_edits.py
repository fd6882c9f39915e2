"""One value into the text of a file; all else stays, to the last space."""

from __future__ import annotations

import pytest

from tablectl.policies.write_yaml import SpliceError, Value, put


def spliced(text: str, keys: str, value: Value) -> str:
    return put(text, [(key, lambda found, key=key: found == key) for key in keys.split("/")], value)  # type: ignore[misc]


@pytest.mark.parametrize(
    ("before", "keys", "value", "after"),
    [
        ("a: x  # why\nb: 1\n", "a", "y", "a: y  # why\nb: 1\n"),
        ("a: 'x'\n", "a", "on", 'a: "on"\n'),
        ("a:   # nothing\n", "a", "y", "a: y   # nothing\n"),
        ("a: {b: x, c: 1}  # why\n", "a/b", "y, z", 'a: {b: "y, z", c: 1}  # why\n'),
        ("a: |\n  long\n  text\n# end\nb: 1\n", "a", "y", "a: y\n# end\nb: 1\n"),
        ("a: two\n  lines # c\nb: 1", "a", "y", "a: y # c\nb: 1"),
        ("é: 1\na😀: x # ü\n", "a😀", "ß", 'é: 1\na😀: "ß" # ü\n'),
        ("a: x\r\nb: 1\r\n", "a", "y", "a: y\r\nb: 1\r\n"),
        ("a: x", "a", None, "a: null"),
    ],
)
def test_a_value_takes_the_place_of_another(before: str, keys: str, value: Value, after: str) -> None:
    assert spliced(before, keys, value) == after


@pytest.mark.parametrize(
    ("before", "keys", "value", "after"),
    [
        ("a: [x, y] # c\n", "a", ("x", "z"), "a: [x, z] # c\n"),
        ("a: [x]\n", "a", ("x", "y", "z"), "a: [x, y, z]\n"),
        ("a: [ x, y , z ]\n", "a", ("y",), "a: [ y ]\n"),
        ("a: [\n  x, # one\n  y, # two\n]\n", "a", ("x", "z"), "a: [\n  x, # one\n  z, # two\n]\n"),
        ("a:\n- x # one\n- y # two\n# end\n", "a", ("x", "z"), "a:\n- x # one\n- z # two\n# end\n"),
        ("a:\n- x # one\nb: 1\n", "a", ("x", "y"), "a:\n- x # one\n- y\nb: 1\n"),
        ("a:\n  - x\n  - y # two\nb: 1\n", "a", ("x",), "a:\n  - x\nb: 1\n"),
        ("a: # cols\n  - x\n  - y\nb: 1\n", "a", "none", "a: none # cols\nb: 1\n"),
        ("a: [x, y] # c\n", "a", "none", "a: none # c\n"),
        ("a: none # c\n", "a", ("x", "`y.z`"), 'a: [x, "`y.z`"] # c\n'),
        ("a:\r\n- x\r\nb: 1\r\n", "a", ("x", "y"), "a:\r\n- x\r\n- y\r\nb: 1\r\n"),
    ],
)
def test_lists(before: str, keys: str, value: Value, after: str) -> None:
    assert spliced(before, keys, value) == after


@pytest.mark.parametrize(
    ("before", "keys", "value", "after"),
    [
        (
            "t:\n  a: # one\n    x: 1 # x\n\n  b: 2\n",
            "t/a/y",
            "2",
            "t:\n  a: # one\n    x: 1 # x\n    y: 2\n\n  b: 2\n",
        ),
        ("t:\n  a: {x: 1}\n", "t/a/y", "2", "t:\n  a: {x: 1, y: 2}\n"),
        ("t:\n  a: {}\n", "t/a/y", "2", "t:\n  a: {y: 2}\n"),
        ("t:\n  a: # later\n  b: 2\n", "t/a/y", "2", "t:\n  a: # later\n    y: 2\n  b: 2\n"),
        ("t:\n  a: ~ # later\n", "t/a/y", "2", "t:\n  a: {y: 2} # later\n"),
        ("t: {a: , b: 2}\n", "t/a/y", "2", "t: {a: {y: 2}, b: 2}\n"),
        ("t:\n    a:\n        x: 1", "t/a/p/k", "v", "t:\n    a:\n        x: 1\n        p:\n            k: v"),
        (
            "t:\n  a:\n    p:\n      k: v\n    x: 1\n",
            "t/a/p/l",
            "w",
            "t:\n  a:\n    p:\n      k: v\n      l: w\n    x: 1\n",
        ),
        ("t:\n  a: {x: 1}\n", "t/a/p/k", ("v",), "t:\n  a: {x: 1, p: {k: [v]}}\n"),
        ("t:\n  a: 1 # one\n# end\n", "t/b/c", "2", "t:\n  a: 1 # one\n  b:\n    c: 2\n# end\n"),
        ("t: {\n  a: 1, # one\n}\n", "t/b", "2", "t: {\n  a: 1, b: 2, # one\n}\n"),
        ("t:\n  a:\n    k:\n", "t/b", "2", "t:\n  a:\n    k:\n  b: 2\n"),
        ("t:\n  a: |\n    text\n\n\nu: 1\n", "t/b", "2", "t:\n  a: |\n    text\n  b: 2\n\n\nu: 1\n"),
    ],
)
def test_a_key_is_added_where_it_is_missing(before: str, keys: str, value: Value, after: str) -> None:
    assert spliced(before, keys, value) == after


@pytest.mark.parametrize(
    ("text", "keys", "why"),
    [
        ("a: ${X}\n", "a", "it holds a variable: ${X}"),
        ("a: [x, '${X}']\n", "a", "it holds a variable"),
        ("a: &x 1\nb: *x\n", "a", "anchor"),
        ("a: &x 1\nb: *x\n", "b", "alias"),
        ("t: &x\n  a: 1\nu: *x\n", "t/a", "anchor"),
        ("t: &x\n  a: 1\nu: *x\n", "u/b", "alias"),
        ("a: [&x b]\nc: *x\n", "a", "anchor"),
    ],
)
def test_what_others_share_is_left_alone(text: str, keys: str, why: str) -> None:
    with pytest.raises(SpliceError, match=why.replace("$", r"\$").replace("{", r"\{")):
        spliced(text, keys, ("y",) if "[" in text else "y")


def test_a_literal_dollar_is_not_a_variable() -> None:
    assert spliced("a: $${X}\n", "a", "y") == "a: y\n"
