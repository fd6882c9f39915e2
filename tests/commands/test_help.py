"""``--help`` of every command: what it says, and that its example is a command line."""

from __future__ import annotations

import re
import shlex

import pytest

from tablectl.commands.command_line import COMMANDS, FIRST
from tablectl.commands.output import Output
from tests.commands.conftest import Cli, Repository
from tests.program import PROGRAM, commands

EVERY = dict(commands())


def examples(text: str) -> list[list[str]]:
    """The command lines of a help text, without what a shell would do with their output."""
    found = re.search(r"\n\nExamples?: (.*)\Z", text.strip(), re.DOTALL)
    lines = " ".join(found[1].split()).split("; ") if found else []
    return [shlex.split(line.partition(" > ")[0]) for line in lines]


def test_all_commands_are_looked_at() -> None:
    assert {("plan",), ("window",), ("window", "break"), ("schema",)} <= set(EVERY)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_every_help_has_an_example_that_parses(cli: Cli, path: tuple[str, ...]) -> None:
    result = cli(*path, "--help")
    assert (result.code, result.err) == (0, "")
    found = examples(EVERY[path].help)
    assert found
    assert "Example" in result.out
    for program, *args in found:
        assert program == "tablectl"
        command, inner = PROGRAM, list(args)
        while hasattr(command, "commands"):
            command = command.commands[inner.pop(0)]
        if path and not hasattr(EVERY[path], "commands"):
            assert command is EVERY[path]
        assert command.make_context("tablectl", inner, obj=Output({})).params  # raises for what does not parse


def test_the_list_of_commands_says_what_their_help_says() -> None:
    for path, (_, summary) in COMMANDS.items():
        assert " ".join(EVERY[tuple(path.split())].help.split()).startswith(summary), path


def test_every_option_says_what_it_is(cli: Cli) -> None:
    for path, command in EVERY.items():
        options = (each for each in command.params if each.param_type_name == "option")
        assert all(each.help for each in options), path


@pytest.mark.parametrize("path", [("validate",), ("plan",), ("drift",), ("schema",), ("explain",)], ids=" ".join)
def test_examples_that_need_no_table_run(cli: Cli, repo: Repository, path: tuple[str, ...]) -> None:
    repo.table("orders")
    policy = f"{{location: {repo.lake}/orders, isolation: Serializable}}"
    repo.policies(f"version: 1\ntables:\n  lake.sales.orders: {policy}\n")
    for _, *args in examples(EVERY[path].help):
        if "--table" not in args:  # that asks a catalog
            assert cli(*args).code in {0, 2}


def test_a_number_says_its_bounds_and_its_default(cli: Cli) -> None:
    def about(command: str, option: str) -> tuple[object, object, object]:
        each = next(each for each in EVERY[(command,)].params if option in each.opts)
        return each.min, each.max, each.default

    assert about("advise", "--days") == (1, 365, 30)
    assert about("plan", "--max-tables") == (0, None, None)
    shown = " ".join(cli("advise", "--help").out.split())
    assert "DAYS [1<=x<=365]" in shown
    assert "[default: 30]" in shown


def panels(text: str) -> dict[str, list[str]]:
    """The lines of each panel, by its title."""
    found: dict[str, list[str]] = {}
    for line in text.splitlines():
        if title := re.match(r"╭─ (.*?) ─", line):
            found[title[1]] = lines = []
        elif line.startswith("│"):
            lines.append(line.strip("│ "))
    return found


def test_the_commands_that_most_people_need_come_first(cli: Cli) -> None:
    shown = panels(cli("--help").out)
    first, more = shown["Commands"], shown["More commands"]
    assert list(shown) == ["Options", "Commands", "More commands"]
    assert tuple(line.split()[0] for line in first) == FIRST
    assert {line.split()[0] for line in more} >= {"validate", "explain", "undo"}
    assert "..." not in "".join([*first, *more]), "no summary is cut at 80 characters"


def test_options_stand_in_groups_with_the_command_s_own_first(cli: Cli) -> None:
    for words in (("plan",), ("apply",)):
        assert list(panels(cli(*words, "--help").out)) == [
            "Arguments",
            "Options",
            "Which tables",
            *(["When"] if words == ("apply",) else []),
            "Limits",
            "Where",
            "Reports",
        ]


def test_an_option_has_one_spelling_in_all_commands() -> None:
    spelled: dict[str, set[tuple[str, str]]] = {}
    for path, command in EVERY.items():
        for each in command.params:
            if each.param_type_name == "option" and path != ("window", "break"):
                spelled.setdefault((each.opts or each.secondary_opts)[0], set()).add(
                    (each.name, (each.metavar or "").partition(".")[0])
                )
    assert {name: sorted(found) for name, found in spelled.items() if len(found) > 1} == {}


@pytest.mark.parametrize(
    ("line", "now"),
    [
        (("import", "lake.sales.*", "-o", "a.yaml"), "-o is now --out"),
        (("import", "lake.sales.*", "--output=a.yaml"), "--output is now --out"),
        (("import", "--from-dbt", "manifest.json"), "--from-dbt is now --dbt"),
        (("advise", "--write", "a.yaml"), "--write is now --out"),
        (("status", "--html", "a.html"), "--html is now --report"),
        (("undo", "3f2a9c41d7e0", "--table", "a"), "--table is now --select"),
    ],
)
def test_an_earlier_spelling_is_refused_with_the_present_one(cli: Cli, line: tuple[str, ...], now: str) -> None:
    ran = cli(*line)
    assert (ran.code, ran.err) == (64, f"error: {now}\n")


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        (("plan", "-out=x.json"), "write --out=x.json"),
        (("plan", "-detailed-exitcode"), "write --detailed-exitcode"),
        (("plan", "--dry-run"), "plan changes no table and asks nothing: leave it out"),
        (("plan", "--yes"), "plan changes no table and asks nothing: leave it out"),
        (("plan", "-auto-approve"), "plan changes no table and asks nothing: leave it out"),
        (("plan", "-target=orders"), "write --select=orders"),
        (("plan", "--json"), "--format json prints the result as JSON"),
        (("plan", "-json"), "--format json prints the result as JSON"),
        (("plan", "-destroy"), "no command drops a table; `tablectl undo RUN` takes the changes of a run back"),
        (("plan", "-refresh-only"), "`tablectl drift` shows what differs from the policies"),
        (("apply", "-auto-approve"), "write --yes"),
        (("apply", "--auto-approve"), "write --yes"),
        (("apply", "--dry-run"), "`tablectl plan` shows what apply would do, and changes no table"),
        (("create", "lake.s.t", "--dry-run"), "--show prints the statement and creates nothing"),
        (("upkeep", "--dry-run"), "without --apply, upkeep changes no table"),
    ],
)
def test_an_option_of_another_tool_is_answered_with_ours(cli: Cli, line: tuple[str, ...], hint: str) -> None:
    ran = cli(*line)
    written = line[-1].partition("=")[0]
    assert (ran.code, ran.err) == (64, f"error: {line[0]} has no option {written}\n  hint: {hint}\n")


def test_an_option_that_no_tool_has_is_answered_by_the_usage(cli: Cli) -> None:
    ran = cli("plan", "--unheard-of")
    assert ran.code == 64
    assert "--unheard-of" in ran.err
