"""No command prints what a CI system or a terminal would obey, on stdout, on stderr and in reports."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

import tablectl
from tablectl.leases.lease_records import dump_record, record_name
from tablectl.leases.owner import Owner
from tablectl.model.errors import EngineError
from tests.commands.conftest import Cli, FakeSpark, Repository, Result
from tests.commands.log_lake import Logged, append, create
from tests.commands.test_drift import rewrite
from tests.leases.test_lease_records import record
from tests.output_commands import obeyed

EVIL = "##[error]x ##vso[task.x]y\n::error file=a::boo\x9b31m\u202e\x1b[2J ##teamcity[z]"
NAME = "##[error]x ::error file=a::boo \u202e ##vso[t]y"
"""What a path or a column may be called: policies take no control characters there."""
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
    columns = {"id": "long", EVIL: "string", NAME: "string"}
    plain = create(repo.lake / "plain", columns=columns, properties={KEY: EVIL, "owner.x": "y"})
    append(plain, EVIL, [])
    rewrite(plain, 2, userName=EVIL, operationParameters={EVIL: EVIL})
    quoted = json.dumps
    values = f"properties: {{{quoted(KEY)}: {quoted('new' + EVIL)}, owner.x: {quoted('new ' + WRAPPED)}}}"
    policy = f"{{isolation: Serializable, {values}}}"
    good = f"{{clustering: [{quoted('`' + NAME + '`')}], {values}}}"
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
    *(["status", "--debt", "--format", form] for form in ("text", "json", "markdown", "html")),
    *(["advise", "--list-files", "--format", form] for form in ("text", "json", "markdown", "html")),
    ["advise", EVIL],
    ["advise", "--out", EVIL],
    ["status", EVIL],
    ["status", "delta.`/" + NAME + "/*`"],
    ["runs", "--select", EVIL],
    ["runs", "--tag", EVIL],
    ["undo", EVIL],
    ["undo", EVIL, "--format", "json"],
    ["doctor"],
    ["doctor", "--format", "json"],
    ["lock", EVIL],
    ["init", EVIL],
    [EVIL],
]


@pytest.mark.parametrize("args", COMMANDS, ids=lambda args: " ".join(args)[:40].encode("unicode_escape").decode())
def test_no_command_prints_a_workflow_command_or_a_control_character(
    hostile: Repository, cli: Cli, args: list[str]
) -> None:
    check(cli(*args))


@pytest.mark.parametrize("table", [NAME, "plain"])
def test_no_command_about_one_table_prints_a_workflow_command(hostile: Repository, cli: Cli, table: str) -> None:
    name = hostile.name(table)
    for form in ("text", "json"):
        assert check(cli("explain", name, "--format", form)).code == 0
        check(cli("conflicts", name, "--format", form))
        check(cli("import", name, "--format", form))
        check(cli("window", "show", name, "--format", form))
        check(cli("window", "break", name, "--reason", EVIL, "--format", form))
    check(cli("conflicts", name, "--all"))
    check(cli("conflicts", name, "--between", f"DELETE FROM t WHERE x = '{EVIL}'", "OPTIMIZE t"))


def test_plan_apply_and_their_files_hold_no_workflow_command(hostile: Repository, cli: Cli) -> None:
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


CARRIAGE = f"{EVIL}\r::error::x\n  ::set-output name=x::y\n\t##vso[task.complete]\r\n::warning::z"
"""What starts lines for readers that ignore a carriage return or blanks."""


def test_runs_and_undo_print_no_workflow_command(hostile: Repository, cli: Cli) -> None:
    check(cli("apply", "--yes"))
    run = Logged(hostile.lake / "plain").stamps[-1]["run"]
    rewrite(hostile.lake / "plain", 4, userName=EVIL, operation=CARRIAGE)
    for form in ("text", "json"):
        check(cli("runs", "--verbose", "--format", form))
        assert check(cli("undo", run, "--format", form)).code == 0
    assert check(cli("undo", run, "--write", "--yes", "--out", "u.json")).code == 0
    check(cli("show", "u.json", "--verbose"))
    check(cli("status"))


def test_an_error_message_of_spark_prints_no_workflow_command(
    hostile: Repository, cli: Cli, fake_spark: FakeSpark
) -> None:
    def fail(_sql: str) -> None:
        raise EngineError(CARRIAGE, CARRIAGE, CARRIAGE)

    fake_spark.after = fail
    files = [word for end in ("md", "html", "sarif", "xml", "txt", "json") for word in ("--report", f"r.{end}")]
    ran = check(cli("apply", "--yes", *files))
    assert "set-output" in ran.out
    for file in files[1::2]:
        assert obeyed(Path(file).read_text()) == [], file


def test_results_in_python_hold_no_workflow_command(hostile: Repository, fake_spark: FakeSpark) -> None:
    def fail(_sql: str) -> None:
        raise EngineError(CARRIAGE, CARRIAGE, CARRIAGE)

    fake_spark.after = fail
    plan = tablectl.plan()
    for result in (plan, tablectl.drift(), tablectl.status(), tablectl.apply(plan)):
        for text in (result._repr_html_(), result.to_html(), result.to_markdown(), repr(result)):
            assert obeyed(text) == [], type(result)


@pytest.mark.parametrize("form", ["text", "json"])
def test_the_owner_of_a_lease_record_adds_no_line_and_no_workflow_command(
    hostile: Repository, cli: Cli, form: str
) -> None:
    owner = Owner(who=f"ann\nfree; {CARRIAGE}", host=EVIL, pid=1, ci=CARRIAGE, tool=EVIL)
    for seq, kind in ((3, "renew"), (4, "break")):
        held = replace(record(seq), kind=kind, owner=owner, reason=CARRIAGE, run=EVIL)
        place = hostile.lake / "plain" / "_tablectl" / record_name(seq)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(dump_record(held))
        ran = check(cli("window", "show", hostile.name("plain"), "--format", form))
        assert ran.code == 0
        if form == "text":
            assert len(ran.out.splitlines()) == 1
        if kind == "renew":
            check(cli("window", "break", hostile.name("plain"), "--reason", EVIL, "--format", form))
            check(cli("apply", "--yes", "--lock-timeout", "0", "--format", form))
