"""Notifications: who gets one, what it says, and that nothing can go wrong because of them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from tablectl.policies.read_config import combined
from tests.commands.conftest import Cli, FakeSpark, Repository
from tests.commands.log_lake import set_property

SECRET = "T000-B000-hunter2"


@pytest.fixture
def one(repo: Repository, monkeypatch: pytest.MonkeyPatch) -> Repository:
    for name in ("GITHUB_EVENT_NAME", "CI_MERGE_REQUEST_IID"):
        monkeypatch.delenv(name, raising=False)
    repo.table("orders")
    repo.policies({"orders": "{isolation: Serializable, properties: {owner.token: hunter2}}"})
    return repo


def configure(repo: Repository, *receivers: str, more: str = "") -> None:
    entries = "".join(f"  - {each}\n" for each in receivers)
    (repo.root / "tablectl.yaml").write_text(f"notify:\n{entries}{more}")


def saving(file: str) -> str:
    """A command that saves its input and its event."""
    code = f"import os, sys; open({file!r}, 'w').write(os.environ['TABLECTL_EVENT'] + sys.stdin.read())"
    return json.dumps([sys.executable, "-c", code])


def test_a_command_gets_the_event_as_json_and_no_shell(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    command = json.loads(saving("event.json"))
    configure(one, f"{{command: {json.dumps([*command, '; touch pwned', '$(touch pwned)'])}}}")
    assert cli("apply", "--yes").code == 0
    event, body = Path("event.json").read_text().split("{", 1)
    told = json.loads("{" + body)
    assert (event, told["event"], told["format"], told["exit_code"]) == ("applied", "applied", 1, 0)
    assert [each["state"] for each in told["tables"]] == ["applied and verified"]
    assert told["table_count"] == 1
    assert not Path("pwned").exists()


def test_the_owner_of_a_table_is_named(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    one.policies({"orders": '{isolation: Serializable, owner: "@acme/pay <!here>"}'})
    command = json.loads(saving("event.json"))
    configure(one, f"{{command: {json.dumps(command)}}}")
    assert cli("apply", "--yes").code == 0
    told = json.loads(Path("event.json").read_text().removeprefix("applied"))
    assert told["tables"][0]["owner"] == "@acme/pay <!here>"


def test_drift_is_reported_with_who_and_without_masked_values(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    configure(one, f"{{events: [drift], command: {saving('event.json')}}}", more="reports: {mask: ['*token*']}\n")
    assert cli("apply", "--yes").code == 0
    assert not Path("event.json").exists()
    assert cli("drift").code == 0
    assert not Path("event.json").exists()  # nothing differs
    set_property(one.lake / "orders", "owner.token", "hunter3")
    assert cli("drift").code == 2
    text = Path("event.json").read_text()
    told = json.loads(text.removeprefix("drift"))
    assert told["tables"][0]["state"] == "changed by others"
    assert told["tables"][0]["message"] == "properties.owner.token"
    assert "hunter" not in text


def test_a_refused_table_is_reported(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    one.policies({"orders": "{isolation: WriteSerializable}"})
    configure(one, f"{{events: [refused], command: {saving('event.json')}}}")
    assert cli("apply", "--yes").code == 3
    told = json.loads(Path("event.json").read_text().removeprefix("refused"))
    assert told["tables"][0]["state"] == "refused, not changed"
    assert told["exit_code"] == 3


def test_an_apply_that_ends_without_a_report_is_reported_as_failed(cli: Cli, one: Repository) -> None:
    configure(
        one, f"{{events: [failed], command: {saving('event.json')}}}", more="engine: {remote: 'sc://127.0.0.1:1'}\n"
    )
    Path("plan.json").write_text("{}")
    assert cli("apply", "--yes", "--max-tables", "0").code == 3
    assert not Path("event.json").exists()  # refused, which this receiver does not want
    configure(one, f"{{command: {saving('event.json')}}}")
    assert cli("apply", "--yes", "--max-tables", "0").code == 3
    assert Path("event.json").read_text().startswith("refused")


def test_nothing_to_do_is_reported_to_no_one(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    assert cli("apply", "--yes").code == 0
    configure(one, f"{{command: {saving('event.json')}}}")
    assert cli("apply", "--yes").code == 0
    assert not Path("event.json").exists()


COMMANDS = {
    "exit code": ("import sys; sys.exit(7)", "it ended with exit code 7"),
    "hangs": ("import time; time.sleep(600)", "it did not end within 1 s"),
    "ignores its input and floods": ("print('x' * 10_000_000)", ""),
}


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_bounded_in_time_and_output(cli: Cli, one: Repository, fake_spark: FakeSpark, name: str) -> None:
    code, said = COMMANDS[name]
    configure(one, f"{{command: {json.dumps([sys.executable, '-c', code])}, timeout: {1 if name == 'hangs' else 120}}}")
    result = cli("apply", "--yes")
    assert result.code == 0
    assert (f"failed: {said}" in result.err) == bool(said)
    assert len(result.err) < 5_000


def test_a_command_that_does_not_exist_changes_no_exit_code(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    configure(one, "{command: [./no-such-command]}")
    result = cli("apply", "--yes")
    assert result.code == 0
    assert "notification 1 (./no-such-command) failed: it cannot be run: No such file or directory" in result.err


def test_the_output_of_a_command_is_not_a_command_of_ci(cli: Cli, one: Repository, fake_spark: FakeSpark) -> None:
    command = [sys.executable, "-c", "print(chr(58) * 2 + 'set-env name=X::y')"]
    configure(one, f"{{command: {json.dumps(command)}}}")
    assert "\n::set-env" not in cli("apply", "--yes").err


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{events: [applied]}", "`notify.1` needs `command`"),
        (f"{{webhook: 'https://hooks.example.com/{SECRET}'}}", "with curl, as in docs/recipes.md"),
        ("{command: [a], events: [done]}", "this is not a value of `notify.1.events.1`"),
        ("{command: [a], timeout: 0}", "needs at least 1"),
    ],
)
def test_a_wrong_entry_is_an_error_that_shows_no_address(cli: Cli, one: Repository, entry: str, says: str) -> None:
    configure(one, entry)
    result = cli("plan")
    assert result.code == 1
    assert says in result.err
    assert SECRET not in result.err


def test_a_branch_cannot_set_who_is_reported() -> None:
    branch = {"notify": [{"command": ["./steal"]}], "env": {"prod": {"notify": [{"command": ["./steal"]}]}}}
    base = {"notify": [{"command": ["./post"]}]}
    values = combined(branch, base)
    assert values["notify"] == [{"command": ["./post"]}]
    assert "notify" not in values["env"]["prod"]
    assert "notify" not in combined(branch, {})


@pytest.mark.parametrize(
    "environ",
    [
        {"GITHUB_EVENT_NAME": "pull_request"},
        {"GITHUB_EVENT_NAME": "pull_request_target"},
        {"GITHUB_EVENT_NAME": "merge_group"},
        {"CI_MERGE_REQUEST_IID": "7"},
        {"CHANGE_ID": "7"},
    ],
)
def test_a_pull_request_without_a_base_runs_none_of_its_commands(
    cli: Cli, one: Repository, monkeypatch: pytest.MonkeyPatch, environ: dict[str, str]
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    configure(one, f"{{command: {saving('event.json')}}}")
    result = cli("drift")
    assert result.code == 64
    assert "`notify` count only once they are merged" in result.err
    assert not Path("event.json").exists()
    base = Path("base.yaml")
    base.write_text(f"notify: [{{command: {saving('base.json')}}}]\n")
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(base))
    assert cli("drift").code == 2
    assert (Path("event.json").exists(), Path("base.json").exists()) == (False, True)
    assert os.environ["TABLECTL_BASE_CONFIG"]
