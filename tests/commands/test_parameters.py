"""Functions for Python have the parameters of their commands, checked alike; shells complete commands and values."""

from __future__ import annotations

import os
from inspect import signature

import pytest

import tablectl
from tablectl.commands.command_line import load_command, run_cli
from tablectl.model.errors import UsageError
from tests.commands.conftest import Cli, Repository

OF = {
    "import_tables": "import",
    "conflict_report": "conflicts",
    "set_defaults": "defaults",
    "run_upkeep": "upkeep",
}
"""The commands of functions with another name."""
ONLY_PYTHON = {"directory", "spark", "cache", "remote", "driver", "control", "policies", "paths", "schema"}
"""Where the caller stands, and what it has at hand: a session, an open run, a schema. A few commands leave two out."""


@pytest.mark.parametrize(
    "name",
    [*["check", "plan", "apply", "drift", "status", "lint", "advise", "explain", "create", "upkeep"], *OF],
)
def test_a_function_has_parameters_of_its_command_with_their_defaults(name: str) -> None:
    command = {each.name: each for each in load_command(OF.get(name, name)).params}
    for each in signature(getattr(tablectl, name)).parameters.values():
        if each.name in ONLY_PYTHON and each.name not in command:
            continue
        if each.default is not each.empty:
            assert (command[each.name].default or None) == (each.default or None), each.name


@pytest.mark.parametrize(
    ("name", "given", "message"),
    [
        ("apply", {"wait": -1}, "`wait` needs a number from 0 to 1000000, not -1"),
        ("apply", {"canary": 1.5}, "`canary` needs a whole number of at least 0, not 1.5"),
        ("apply", {"when": "later"}, "`when` needs 'quiet', not 'later'"),
        ("apply", {"within": "6 parsecs"}, "`within` "),
        ("apply", {"max_bytes": "0.1kB"}, "`max_bytes` '0.1kB' is not a size; for example 20GB"),
        ("apply", {"proceed": "\x1b[2J"}, "`proceed` needs a reason"),
        ("plan", {"cache": "no"}, "`cache` needs true or false, not 'no'"),
        ("plan", {"remote": "spark://x"}, "`remote` needs the address of a Spark Connect server"),
        ("plan", {"exclude": 3}, "exclude=3: it takes a text or a list of texts"),
    ],
)
def test_a_wrong_value_is_refused_by_its_name(
    repo: Repository, name: str, given: dict[str, object], message: str
) -> None:
    repo.policies({"orders": "{}"})
    with pytest.raises(UsageError) as error:
        getattr(tablectl, name)(**given)
    assert error.value.message.startswith(message)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (("apply", "--wait", "-1"), "'--wait': needs at least 0"),
        (("apply", "--soak", "nan"), "'--soak'"),
        (("apply", "--canary", "1.5"), "'--canary'"),
        (("apply", "--when", "later"), "'--when': 'later' is not one of 'quiet'"),
        (("apply", "--within", "6 parsecs"), "'--within': "),
        (("plan", "--remote", "spark://x"), "'--remote': needs the address of a Spark Connect server"),
        (("plan", "--as", "fabric"), "'--as': 'fabric' is not one of databricks, oss."),
        (("plan", "--env", ""), "--env is empty"),
        (("status", "--fail-on", "all"), "'--fail-on': 'all' is not one of 'unmanaged'"),
        (("init", "--ci", "jenkins"), "'--ci': 'jenkins' is not one of"),
    ],
)
def test_a_wrong_value_of_an_option_names_it_and_what_it_takes(cli: Cli, args: tuple[str, ...], says: str) -> None:
    ran = cli(*args)
    assert (ran.code, ran.out) == (64, "")
    assert says in ran.err
    assert "Value error" not in ran.err


def completed(words: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What a shell would offer for a line that is typed so far."""
    monkeypatch.setenv("COMP_WORDS", f"tablectl {words}")
    monkeypatch.setenv("COMP_CWORD", str(len(f"tablectl {words}".split(" ")) - 1))
    assert run_cli([], {**os.environ, "_TABLECTL_COMPLETE": "complete_bash"}) == 0
    return capsys.readouterr().out.split()


def test_a_shell_completes_commands_options_words_and_tables(
    repo: Repository, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repo.policies("version: 1\ntables: {lake.sales.orders: {}, lake.sales.returns: {}}\n")
    for typed, offered in [
        ("val", ["validate"]),
        ("window ", ["show", "break", "clean"]),
        ("plan --changed", ["--changed-since"]),
        ("validate --format ", ["text", "json", "sarif"]),
        ("apply --when ", ["quiet"]),
        ("plan --select ", ["orders", "returns"]),
        ("conflicts or", ["orders"]),
    ]:
        assert completed(typed, monkeypatch, capsys) == offered, typed


@pytest.mark.parametrize("instruction", ["bash_source", "source_bash", "zsh_source", "fish_source"])
def test_both_spellings_of_a_shell_s_profile_print_the_script(
    instruction: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli([], {"_TABLECTL_COMPLETE": instruction}) == 0
    assert "_TABLECTL_COMPLETE=complete_" in capsys.readouterr().out
