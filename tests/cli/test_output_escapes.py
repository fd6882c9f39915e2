"""No command prints what a CI system or a terminal would obey, on stdout, on stderr and in reports."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, FakeSpark, Repository, Result
from tests.cli.log_lake import append, create
from tests.cli.test_drift import rewrite
from tests.output_commands import obeyed

EVIL = "##[error]x ##vso[task.x]y\n::error file=a::boo\x9b31m\u202e\x1b[2J ##teamcity[z]"
NAME = "##[error]x ::error file=a::boo \x9b31m\u202e ##vso[t]y"
"""What a path may be called: policies take no control characters of ASCII there."""
KEY = "##[error]k ##vso[t]y"
"""What a property may be called."""
WRAPPED = "a text that is long enough to be wrapped just before it says ::error file=a::boo and then goes on a while"


@pytest.fixture
def hostile(repo: Repository, fake_spark: FakeSpark) -> Repository:
    """Two tables, their policies and their log, with such text wherever text may stand."""
    assert fake_spark is not None
    table = create(
        repo.lake / NAME,
        columns={"id": "long", EVIL: "string"},
        properties={EVIL: EVIL, "owner.x": WRAPPED, "delta.isolationLevel": "WriteSerializable"},
        features=[EVIL],
        client=EVIL,
    )
    rewrite(table, 1, userName=EVIL, job={"jobName": EVIL}, operationParameters={"mode": EVIL, EVIL: EVIL})
    plain = create(repo.lake / "plain", columns={"id": "long", EVIL: "string"}, properties={KEY: EVIL, "owner.x": "y"})
    append(plain, EVIL, [])
    rewrite(plain, 2, userName=EVIL, operationParameters={EVIL: EVIL})
    quoted = json.dumps
    values = f"properties: {{{quoted(KEY)}: {quoted('new' + EVIL)}, owner.x: {quoted('new ' + WRAPPED)}}}"
    policy = f"{{isolation: Serializable, {values}}}"
    good = f"{{clustering: [{quoted('`' + EVIL + '`')}], {values}}}"
    repo.policies(
        "version: 1\ntables:\n"
        + "".join(
            f"  {quoted(f'delta.`{repo.lake}/{name}`')}: {text}\n"
            for name, text in ((NAME.replace("[", "[[]"), policy), ("plain", good))
        )
    )
    return repo


def check(ran: Result) -> Result:
    assert obeyed(ran.out) == []
    assert obeyed(ran.err) == []
    assert ran.out or ran.err
    return ran


COMMANDS = [
    ["validate"],
    ["validate", "--format", "json"],
    ["validate", "--format", "sarif"],
    *(["plan", "--format", form] for form in ("text", "json", "markdown", "sarif", "junit", "html")),
    *(["drift", "--format", form] for form in ("text", "json", "markdown", "sarif", "junit", "html")),
    ["lint"],
    ["lint", "--format", "json"],
    ["lint", "--format", "sarif"],
    ["plan", "--select", EVIL],
    ["plan", EVIL],
    ["plan", f"--{EVIL}"],
    ["plan", "--format", EVIL],
    ["plan", "--env", EVIL],
    ["show", f"{EVIL}.json"],
    ["apply", f"{EVIL}.json"],
    ["explain", EVIL],
    ["explain", EVIL, "--format", "json"],
    ["explain", "delta." + EVIL],
    ["explain", "delta.`/" + EVIL + "`"],
    ["conflicts", "delta.`/" + EVIL + "`"],
    ["window", "show", "delta.`/" + NAME + "`"],
    ["import", "delta.`/" + EVIL + "/*`"],
    [EVIL],
]


@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: " ".join(args)[:40].encode("unicode_escape").decode())
def test_no_command_prints_what_is_obeyed(hostile: Repository, cli: Cli, args: list[str]) -> None:
    check(cli(*args))


@pytest.mark.parametrize("table", [NAME, "plain"])
def test_no_command_about_a_table_does(hostile: Repository, cli: Cli, table: str) -> None:
    name = hostile.name(table)
    for form in ("text", "json"):
        assert check(cli("explain", name, "--format", form)).code == 0
        check(cli("conflicts", name, "--format", form))
        check(cli("import", name, "--format", form))
        check(cli("window", "show", name, "--format", form))
        check(cli("window", "break", name, "--reason", EVIL, "--format", form))
    check(cli("conflicts", name, "--all"))
    check(cli("conflicts", name, "--between", f"DELETE FROM t WHERE x = '{EVIL}'", "OPTIMIZE t"))


def test_a_plan_an_apply_and_their_files_do_not(hostile: Repository, cli: Cli) -> None:
    files = ("r.md", "r.html", "r.sarif", "r.xml", "r.txt")
    reports = [word for file in files for word in ("--report", file)]
    check(cli("plan", "--out", "p.json", *reports))
    for form in ("text", "json", "markdown", "sarif", "junit", "html"):
        check(cli("show", "p.json", "--format", form))
    for file in ("p.json", *files):
        assert obeyed(Path(file).read_text()) == [], file
    for form in ("json", "text"):
        check(cli("apply", "p.json", "--format", form, *reports))
        for file in files:
            assert obeyed(Path(file).read_text()) == [], file
    check(cli("drift", "--adopt", "--yes"))
