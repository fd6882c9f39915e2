"""Every command in every format that it has."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

import pytest

from tests.commands.conftest import Cli, FakeSpark, Repository

SIX = ("text", "json", "markdown", "sarif", "junit", "html")
FORMATS = {
    "plan": SIX,
    "show": SIX,
    "apply": SIX,
    "drift": SIX,
    "lint": tuple(each for each in SIX if each != "junit"),
    "conflicts": ("text", "markdown", "html", "json"),
    "status": ("text", "markdown", "html", "json"),
}
HAS = [(command, form) for command, forms in FORMATS.items() for form in forms]
HAS_NOT = [(command, form) for command, forms in FORMATS.items() for form in SIX if form not in forms]


def arguments(command: str, repo: Repository, cli: Cli) -> list[str]:
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable}"})
    if command == "show":
        assert cli("plan", "--out", "plan.json").code == 0
    more = {"show": ["plan.json"], "apply": ["--yes"], "conflicts": [repo.name("orders")]}
    return [command, *more.get(command, [])]


def checked(text: str, form: str) -> None:
    """Whether a text has the form; each parser refuses the others' texts."""
    match form:
        case "json":
            assert isinstance(json.loads(text), dict)
        case "sarif":
            assert json.loads(text)["version"] == "2.1.0"
        case "junit":
            assert ET.fromstring(text.encode()).tag == "testsuites"
        case "html":
            assert text.lstrip().lower().startswith("<!doctype html>")
        case "markdown":
            assert text.startswith("**")
            assert "<!-- tablectl" in text
        case "text":
            assert not text.startswith(("{", "<", "**"))


@pytest.mark.parametrize(("command", "form"), HAS)
def test_a_command_has_the_format(command: str, form: str, repo: Repository, cli: Cli, fake_spark: FakeSpark) -> None:
    result = cli(*arguments(command, repo, cli), "--format", form)
    assert result.code in {0, 2}, result.err
    checked(result.out, form)
    silent = (command, form) == ("lint", "text") or (form == "sarif" and command != "drift")  # nothing is found
    assert ("orders" in result.out) != silent


@pytest.mark.parametrize(("command", "form"), HAS_NOT)
def test_a_format_that_a_command_does_not_have_is_wrong_usage(
    command: str, form: str, repo: Repository, cli: Cli
) -> None:
    result = cli(*arguments(command, repo, cli), "--format", form)
    assert result.code == 64
    assert f"'{form}' is not one of" in result.err or f"has no format {form}" in result.err
