"""Bytes to a tree: what is read, what is refused, and that nothing ends in a traceback."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.policies import parse_yaml as document
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile

Parse = Callable[[str | bytes], tuple[Node | None, list[str]]]


@pytest.fixture(params=["libyaml", "pure"], autouse=True)
def each_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure":
        monkeypatch.setattr(document, "_Loader", yaml.SafeLoader)


def test_every_node_knows_its_place(parse: Parse) -> None:
    tree, problems = parse("a:\n  é: [x, 1]\n")
    assert problems == []
    assert isinstance(tree, MapNode)
    inner = tree.entries["a"][1]
    assert isinstance(inner, MapNode)
    ((key, (source, node)),) = inner.entries.items()
    assert (key, source) == ("é", SourceFile("f.yaml", 2, 3))
    x, one = Scalar("x", "str", SourceFile("f.yaml", 2, 7)), Scalar("1", "int", SourceFile("f.yaml", 2, 10))
    assert node == ListNode((x, one), SourceFile("f.yaml", 2, 6))


@pytest.mark.parametrize("data", [b"", b"\xef\xbb\xbf", b"# only a comment\n"])
def test_an_empty_file_is_neither_a_tree_nor_a_problem(parse: Parse, data: bytes) -> None:
    assert parse(data) == (None, [])


def test_a_byte_order_mark_is_passed_over(parse: Parse) -> None:
    tree, problems = parse(b"\xef\xbb\xbfa: 1")
    assert problems == []
    assert isinstance(tree, MapNode)
    assert tree.entries["a"][0] == SourceFile("f.yaml", 1, 1)


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"a: 1\nb: \xff", "f.yaml:2:4: the file is not UTF-8 text\n  hint: save it as UTF-8"),
        ("a: 1".encode("utf-16"), "f.yaml:1:1: the file is not UTF-8 text\n  hint: save it as UTF-8"),
        (
            b"a: \x07",
            (
                "f.yaml:1:4: the control character U+0007 is not allowed in YAML\n"
                '  hint: inside double quotes, "\\xNN" writes it'
            ),
        ),
        (b"a: 1\n---\nb: 2", "f.yaml:2:1: a second document starts here\n  hint: keep one document in a file"),
        (
            b"x" * 10_000_000,
            "f.yaml: the file is larger than 1 MB\n  hint: split it, if it is a policy file",
        ),
    ],
    ids=["latin1", "utf16", "bell", "two documents", "10 MB"],
)
def test_what_is_not_a_policy_file(parse: Parse, data: bytes, problem: str) -> None:
    assert parse(data) == (None, [problem])


@pytest.mark.parametrize("text", ["[" * 900_000, "{a: " * 200_000, "- " * 400_000, "? " * 400_000])
def test_deep_nesting_is_one_clear_error(parse: Parse, text: str) -> None:
    tree, problems = parse(text)
    assert tree is None
    assert len(problems) == 1
    assert "nested more than 32 levels deep" in problems[0]


@settings(deadline=None)
@given(data=st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_no_bytes_end_in_a_traceback(parse: Parse, data: bytes) -> None:
    tree, problems = parse(data)
    assert all(problem.startswith("f.yaml") for problem in problems)
    assert tree is None or tree.source.line >= 1


@settings(deadline=None)
@given(text=st.text(alphabet="ab:{}[]-?&*!|>'\"%@`#,<~ \t\n0.", max_size=60))
def test_nor_do_texts_made_of_what_means_something(parse: Parse, text: str) -> None:
    parse(text)
