"""No command prints the value of a property that ``reports.mask`` hides."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tablectl
from tablectl.attributes.policy import SECRET_KEYS, MaskedKeys
from tablectl.delta.dialects import EVERY_DIALECT
from tablectl.delta.properties import known_keys
from tests.commands.conftest import Cli, FakeSpark, Repository, Result
from tests.commands.log_lake import Logged, append, set_property
from tests.commands.test_drift import rewrite
from tests.credential_corpus import SECRETS

SECRET = "hunter2-old"
NEW = "hunter2-new"
LEVEL = "delta.isolationLevel"


@pytest.fixture
def masked(repo: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch) -> Repository:
    assert fake_spark is not None
    (repo.root / "tablectl.yaml").write_text("reports: {mask: ['*token*', 'DELTA.isolation*']}\n")
    table = repo.table("orders", properties={"app.token": SECRET, LEVEL: "WriteSerializable", "owner.team": "web"})
    set_property(table, "app.token", f"{SECRET}-2")
    rewrite(table, 2, operationParameters={"properties": json.dumps({"app.token": SECRET}), "conf": f"token={SECRET}"})
    repo.policies(
        "version: 1\n"
        "defaults: {properties: {app.token: " + NEW + "-default}}\n"
        "tables:\n"
        f"  delta.`{repo.lake}/orders`:\n"
        "    isolation: Serializable\n"
        "    properties:\n"
        "      app.token: ${TOKEN}\n"
        "      owner.team: data\n"
    )
    monkeypatch.setenv("TABLECTL_VAR_TOKEN", NEW)
    return repo


def check(ran: Result) -> Result:
    for text in (ran.out, ran.err):
        assert "hunter2" not in text
        assert "WriteSerializable" not in text
        assert ": Serializable" not in text
        assert '"Serializable"' not in text
    assert ran.out or ran.err
    return ran


FORMS = ("text", "json", "markdown", "sarif", "junit", "html")


@pytest.mark.parametrize("form", FORMS)
def test_no_format_of_plan_drift_show_or_apply_prints_a_masked_value(masked: Repository, cli: Cli, form: str) -> None:
    assert check(cli("plan", "--format", form)).code == 0
    assert check(cli("drift", "--format", form)).code == 2
    assert check(cli("plan", "--out", "p.json")).code == 0
    check(cli("show", "p.json", "--format", form))
    assert check(cli("apply", "p.json", "--format", form)).code == 0


@pytest.mark.parametrize("form", ["text", "json"])
def test_explain_prints_the_place_of_a_masked_value_only(masked: Repository, cli: Cli, form: str) -> None:
    ran = check(cli("explain", masked.name("orders"), "--format", form))
    assert ran.code == 0
    assert "app.token" in ran.out
    assert "lake.yaml" in ran.out
    assert "data" in ran.out


@pytest.mark.parametrize("form", ["text", "json"])
def test_lint_and_import_print_no_masked_value(masked: Repository, cli: Cli, form: str) -> None:
    check(cli("lint", "--format", form))
    (masked.root / "policies" / "lake.yaml").unlink()
    check(cli("import", masked.name("orders"), "--format", form))


@pytest.mark.parametrize("form", ["text", "json"])
def test_drift_adopt_prints_and_writes_no_masked_value(masked: Repository, cli: Cli, form: str) -> None:
    ran = check(cli("drift", "--adopt", "--yes", "--format", form))
    assert "owner.team" in ran.out
    text = (masked.root / "policies" / "lake.yaml").read_text()
    assert "${TOKEN}" in text
    assert "isolation: Serializable" in text
    assert "owner.team: web" in text


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
@pytest.mark.parametrize(
    "entry",
    [
        "{isolation: '${TOKEN}'}",
        "{isolation: ['${TOKEN}']}",
        "{properties: {delta.tokenRetention: '${TOKEN}', delta.checkpointRetentionDuration: '${TOKEN}'}}",
        "{properties: {app.token: {a: '${TOKEN}'}}}",
        "{isolation: hunter2}",
    ],
)
def test_validate_does_not_repeat_a_value_that_it_refuses(masked: Repository, cli: Cli, entry: str, form: str) -> None:
    (masked.root / "tablectl.yaml").write_text("reports: {mask: ['*token*', 'delta.isolation*', 'delta.log*']}\n")
    masked.policies({"orders": entry})
    ran = check(cli("validate", "--format", form))
    assert ran.code == 1
    assert "lake.yaml" in ran.out + ran.err


def test_contradictory_patterns_are_reported_without_the_masked_value(masked: Repository, cli: Cli) -> None:
    masked.policies(
        "version: 1\ntables:\n"
        f"  delta.`{masked.lake}/order?`: {{isolation: Serializable, properties: {{app.token: hunter2-a}}}}\n"
        f"  delta.`{masked.lake}/?rders`: {{isolation: WriteSerializable, properties: {{app.token: hunter2-b}}}}\n"
    )
    assert check(cli("plan")).code == 1


def test_drift_hides_commit_parameters_that_may_hold_a_masked_value(masked: Repository, cli: Cli) -> None:
    append(masked.lake / "orders", "SET TBLPROPERTIES", [])
    body = json.loads(check(cli("drift", "--format", "json")).out)
    differences = body["tables"][0]["differences"]
    since = [each["origin"]["commit"] for each in differences if each["change"]["key"] == "app.token"]
    assert since[0]["parameters"] == {"properties": '{"app.token": "••••••"}', "conf": "••••••"}


RETENTION = "delta.logRetentionDuration"


@pytest.fixture
def applied(masked: Repository, cli: Cli) -> str:
    """The run that set masked values: properties, and attributes whose keys are masked. Then others change them."""
    (masked.root / "tablectl.yaml").write_text("reports: {mask: ['*token*', 'DELTA.isolation*', 'delta.log*']}\n")
    masked.policies(
        {
            "orders": "{isolation: Serializable, retention: {log: interval 77 days}, "
            "properties: {app.token: hunter2-new, 'x: token': hunter2-x}}"
        }
    )
    assert hides(cli("apply", "--yes")).code == 0
    return Logged(masked.lake / "orders").stamps[-1]["run"]


def hides(ran: Result) -> Result:
    for text in (ran.out, ran.err):
        hides_text(text)
    return check(ran)


def hides_text(text: str) -> None:
    assert "hunter2" not in text
    assert "77 days" not in text
    assert "66 days" not in text
    assert "Serializable" not in text


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_status_shows_no_hidden_value_of_a_difference_or_a_setting(
    masked: Repository, applied: str, cli: Cli, form: str
) -> None:
    assert hides(cli("status", "--format", form)).code == 0
    table = masked.lake / "orders"
    set_property(table, "x: token", "hunter2-y")
    set_property(table, LEVEL, "WriteSerializable")
    set_property(table, RETENTION, "interval 66 days")
    files = ("--report", "s.html", "--report", "s.json", "--report", "t.html")
    assert hides(cli("status", "--format", form, *files)).code == 0
    for file in ("s.html", "s.json", "t.html"):
        hides_text(Path(file).read_text())


@pytest.mark.parametrize("form", ["text", "json"])
def test_runs_and_undo_show_no_hidden_value(masked: Repository, applied: str, cli: Cli, form: str) -> None:
    assert hides(cli("runs", "--verbose", "--format", form)).code == 0
    assert hides(cli("undo", applied, "--format", form)).code == 0
    assert hides(cli("undo", applied, "--write", "--yes", "--out", "u.json", "--format", form)).code == 0
    assert "hunter2" not in Path("u.json").read_text()
    set_property(masked.lake / "orders", LEVEL, "WriteSerializable")
    set_property(masked.lake / "orders", RETENTION, "interval 66 days")
    assert hides(cli("undo", applied, "--format", form)).code == 3


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_conflicts_show_no_hidden_value(masked: Repository, applied: str, cli: Cli, form: str) -> None:
    masked.policies({"orders": "{retention: {log: interval 66 days}, properties: {app.token: hunter2-z}}"})
    ran = cli("conflicts", masked.name("orders"), "--format", form)
    assert "hunter2" not in ran.out + ran.err
    assert "66 days" not in ran.out + ran.err


def test_the_lease_and_the_checks_of_a_machine_show_no_hidden_value(masked: Repository, applied: str, cli: Cli) -> None:
    for args in (["window", "show", masked.name("orders")], ["doctor"], ["doctor", "--format", "json"]):
        hides(cli(*args))


def test_results_in_python_show_no_hidden_value(masked: Repository, applied: str) -> None:
    masked.policies({"orders": "{retention: {log: interval 66 days}, properties: {app.token: hunter2-z}}"})
    plan = tablectl.plan()
    for result in (plan, tablectl.drift(), tablectl.status(), tablectl.apply(plan)):
        for text in (result._repr_html_(), result.to_html(), result.to_markdown(), repr(result), str(result)):
            hides_text(text)


def test_a_plan_saved_in_python_is_private_if_it_holds_hidden_values(masked: Repository, applied: str) -> None:
    tablectl.plan().save("none.json")
    masked.policies({"orders": "{properties: {app.token: hunter2-z}}"})
    tablectl.plan().save("plan.json")
    tablectl.plan().save("plan.html")
    modes = [Path(name).stat().st_mode & 0o077 for name in ("none.json", "plan.json", "plan.html")]
    assert [bool(mode) for mode in modes] == [True, False, True]


@pytest.mark.parametrize("form", ["text", "json", "markdown", "html"])
def test_advice_shows_no_hidden_value(masked: Repository, applied: str, cli: Cli, form: str) -> None:
    hides(cli("advise", "--list-files", "--format", form))
    hides(cli("advise", "--out", f"{form}.yaml", "--format", form))


def test_notifications_hold_no_hidden_value(masked: Repository, applied: str, cli: Cli) -> None:
    with (masked.root / "tablectl.yaml").open("a") as file:
        file.write("notify: [{command: [sh, -c, 'cat >> told; echo >> told']}]\n")
    masked.policies({"orders": "{retention: {log: interval 66 days}, properties: {app.token: hunter2-z}}"})
    hides(cli("drift"))
    hides(cli("apply", "--yes"))
    told = Path("told").read_text()
    assert told.count("orders") >= 2
    hides_text(told)


@pytest.mark.parametrize("form", FORMS)
def test_a_masked_list_of_columns_is_hidden_in_refusals_and_findings(masked: Repository, cli: Cli, form: str) -> None:
    (masked.root / "tablectl.yaml").write_text("reports: {mask: ['delta.dataSkippingStats*']}\n")
    masked.policies({"orders": "{data_skipping: [hunter2_column, day, kind]}"})
    for args in (["plan"], ["lint"], ["drift"], ["explain", masked.name("orders")]):
        if form in ("text", "json") or args[0] not in ("explain", "lint"):
            ran = cli(*args, "--format", form)
            assert "hunter2" not in ran.out + ran.err, args


# Without `reports.mask`


@pytest.fixture
def secrets(repo: Repository, fake_spark: FakeSpark) -> Repository:
    assert fake_spark is not None
    found = {"password": f"{SECRET}-1", "fs.azure.account.key": f"{SECRET}-2", "svc.API-Key": f"{SECRET}-3"}
    repo.table("orders", properties={**found, "primary_key": "id", "owner.team": "web", LEVEL: "Serializable"})
    return repo


@pytest.mark.parametrize("form", FORMS)
def test_values_of_keys_like_secrets_are_hidden_without_being_asked(secrets: Repository, cli: Cli, form: str) -> None:
    """Whoever reads the comment of a pull request must not read the passwords of the tables."""
    policy = "{isolation: WriteSerializable, properties: {password: hunter2-new, primary_key: day, owner.team: data}}"
    secrets.policies({"orders": policy})
    for command in (["plan"], ["drift"], ["status"], ["apply", "--yes"]):
        said = cli(*command, "--format", form)
        assert "hunter2" not in said.out + said.err, command
        assert said.out or "is not one of" in said.err


@pytest.mark.parametrize("shown", ["primary_key", "owner.team", LEVEL])
def test_what_is_not_like_a_secret_is_shown(secrets: Repository, cli: Cli, shown: str) -> None:
    secrets.policies({"orders": "{isolation: WriteSerializable, properties: {primary_key: day, owner.team: data}}"})
    (table,) = json.loads(cli("plan", "--format", "json").out)["tables"]
    assert not any("••" in str(change) for change in table["changes"])
    assert shown in json.dumps(table)


def test_import_and_adopt_write_no_value_that_looks_like_a_secret(secrets: Repository, cli: Cli) -> None:
    name = secrets.name("orders")
    for said in (cli("import", name), cli("init", "new", name, "--ci", "none")):
        assert said.code == 0, said.err
    files = [cli("import", name).out, Path("new/policies/tables.yaml").read_text()]
    for text in files:
        assert "hunter2" not in text
        assert text.count("`reports.mask` hides its value") == 3
        assert "primary_key: id" in text
    secrets.policies({"orders": "{properties: {password: hunter2-old-0, owner.team: data}}"})
    adopted = cli("drift", "--adopt", "--yes")
    assert "hunter2" not in adopted.out + adopted.err
    policy = Path("policies/lake.yaml").read_text()
    assert ("hunter2-old-0" in policy, "hunter2-old-1" in policy, "owner.team: web" in policy) == (True, False, True)


def test_the_default_masks_can_be_switched_off(secrets: Repository, cli: Cli) -> None:
    (secrets.root / "tablectl.yaml").write_text("reports: {mask: []}\n")
    assert f"password: {SECRET}-1" in cli("import", secrets.name("orders")).out


def test_no_key_that_delta_knows_looks_like_a_secret() -> None:
    known = {key for dialect in EVERY_DIALECT for key in known_keys(dialect)}
    assert len(known) > 30
    assert [key for key in known if MaskedKeys(SECRET_KEYS).hides(key)] == []


@pytest.mark.parametrize(
    ("key", "hidden"),
    [
        *((key, True) for key in ("db.Password", "oauth.client.secret", "app_token", "aws.accessKeyId", "signing.key")),
        *((key, True) for key in ("private-key", "api_key", "encryption.key", "serviceAccountKey", "db.passwd")),
        *((key, False) for key in ("primary_key", "partition.keys", "merge_key", "sort.key", "key", "keyboard")),
    ],
)
def test_what_looks_like_a_secret(key: str, hidden: bool) -> None:
    assert MaskedKeys(SECRET_KEYS).hides(key) is hidden


# A variable of a masked key


@pytest.fixture
def variable(repo: Repository, fake_spark: FakeSpark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Repository:
    """The base's policies give a masked key the value of ``TOK``; the branch gives it to other keys instead."""
    assert fake_spark is not None
    repo.table("orders", properties={"owner.team": "web"})
    base = tmp_path / "base"
    (base / "policies").mkdir(parents=True)
    (base / "tablectl.yaml").write_text("engine: {dialect: oss}\n")
    policy = f"version: 1\ntables: {{delta.`{repo.lake}/orders`: {{properties: {{svc.token: 'Bearer ${{TOK}}'}}}}}}\n"
    (base / "policies" / "lake.yaml").write_text(policy)
    monkeypatch.setenv("TABLECTL_BASE_CONFIG", str(base / "tablectl.yaml"))
    monkeypatch.setenv("TABLECTL_VAR_TOK", "it's hunter2")
    monkeypatch.setenv("TABLECTL_VAR_TEAM", "data")
    return repo


@pytest.mark.parametrize("form", FORMS)
def test_the_value_of_a_masked_key_does_not_show_itself_under_another(
    variable: Repository, cli: Cli, form: str
) -> None:
    """The attacker's branch takes the variable of the base's masked key, and reads the comment of its plan."""
    properties = "harmless: 'x ${TOK}', owner.team: '${TEAM}'"
    variable.policies({"orders": f"{{tags: ['${{TOK}}'], owner: 'a ${{TOK}}', properties: {{{properties}}}}}"})
    for command in (["plan"], ["drift"], ["lint"], ["apply", "--yes"]):
        said = cli(*command, "--format", form)
        assert "hunter2" not in said.out + said.err, command
    assert cli("plan", "--var", "TOK=other", "--var", "TEAM=ops", "--out", "p.json").code == 0
    said = cli("show", "p.json", "--format", "text")
    assert "ops" in said.out


def test_without_a_base_the_policies_themselves_say_which_variables_are_secret(
    variable: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TABLECTL_BASE_CONFIG")
    variable.policies({"orders": "{properties: {svc.token: '${TOK}', harmless: '${TOK}', owner.team: '${TEAM}'}}"})
    said = cli("plan")
    assert "hunter2" not in said.out
    assert "properties.owner.team  web → data" in said.out


def test_all_variables_are_secret_where_the_policies_of_the_base_cannot_be_read(
    variable: Repository, cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "base" / "policies" / "lake.yaml").write_text("version: 1\ntables: {a.b: {isolation: none}}\n")
    variable.policies({"orders": "{properties: {harmless: '${TOK}'}}"})
    assert "hunter2" not in cli("plan").out


def test_show_hides_what_plan_hides(variable: Repository, cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """No command before it has read the policies, which say what is secret."""
    monkeypatch.delenv("TABLECTL_BASE_CONFIG")
    variable.policies({"orders": "{properties: {svc.token: '${TOK}', harmless: '${TOK}', owner.team: '${TEAM}'}}"})
    cli("plan", "--out", "p.json")
    done = cli("show", "p.json")
    assert "hunter2" not in done.out
    assert "data" in done.out


@pytest.mark.parametrize("word", ["note", "warning", "error", "L020"])
def test_a_variable_with_a_word_of_the_reports_breaks_none(repo: Repository, cli: Cli, word: str) -> None:
    repo.table("orders", properties={"delta.logRetentionDuration": "60 days"})
    repo.policies({"orders": "{retention: {log: 60 days}, properties: {app.token: '${WORD}'}}"})
    for form in ("text", "json", "sarif", "markdown"):
        for command in ("plan", "lint"):
            if (command, form) != ("lint", "markdown"):
                assert cli(command, "--format", form, "--var", f"WORD={word}").code == 0, (command, form)


# Values with the form of a credential


OLD_FORMS = {name: f"old {text}" for name, (text, _) in SECRETS.items()}
OLD_FORMS |= {"dsn": "postgres://u:OLDSECRET2@h/x", "jdbc.url": "jdbc:postgresql://svc:OLDSECRET1@h/db"}
HELD = frozenset({secret for _, secret in SECRETS.values()} | {"OLDSECRET", "NEWSECRET"})


def holds_none(ran: Result) -> Result:
    for text in (ran.out, ran.err):
        no_secret(text)
    return ran


def no_secret(text: str) -> None:
    assert [secret for secret in HELD if secret in text or json.dumps(secret)[1:-1] in text] == []


@pytest.fixture(params=["the default", "mask: []"])
def formed(request: pytest.FixtureRequest, repo: Repository, fake_spark: FakeSpark) -> Repository:
    """A table whose properties hold a credential of each form, under keys that say nothing; the policy changes some."""
    assert fake_spark is not None
    if request.param == "mask: []":
        (repo.root / "tablectl.yaml").write_text("reports: {mask: []}\n")
    names = {f"conf.{number}": text for number, text in enumerate(OLD_FORMS.values())}
    table = repo.table("orders", properties={**names, "owner.team": "web"})
    set_property(table, "conf.2", f"{names['conf.2']} ")
    new = {key: text.replace("old", "new") for key, text in names.items()}
    repo.policies({"orders": json.dumps({"properties": {**new, "conf.0": None, "owner.team": "data"}})})
    return repo


@pytest.mark.parametrize("formed", ["the default"], indirect=True)
@pytest.mark.parametrize("form", FORMS)
def test_no_format_of_any_command_shows_a_credential_in_a_value(formed: Repository, cli: Cli, form: str) -> None:
    name = formed.name("orders")
    assert holds_none(cli("plan", "--out", "p.json")).code == 0
    assert Path("p.json").stat().st_mode & 0o077 == 0
    commands = [["plan"], ["drift"], ["status"], ["show", "p.json"], ["lint"], ["explain", name], ["conflicts", name]]
    for command in (*commands, ["check"], ["advise"], ["apply", "p.json"], ["runs"], ["status"]):
        said = holds_none(cli(*command, "--format", form))
        assert said.out or "is not one of" in said.err, command
    holds_none(cli("runs", "--verbose"))
    files = [f"r{suffix}" for suffix in (".md", ".html", ".json", ".sarif", ".xml", ".txt")]
    set_property(formed.lake / "orders", "conf.1", "jdbc:mysql://svc:OLDSECRET9@h/db")
    holds_none(cli("drift", *(each for file in files for each in ("--report", file))))
    for file in files:
        no_secret(Path(file).read_text())


def test_no_credential_in_a_value_is_written_into_a_policy(formed: Repository, cli: Cli) -> None:
    name = formed.name("orders")
    Path("policies/lake.yaml").unlink()
    imported = holds_none(cli("import", name))
    assert imported.out.count("holds a credential") + imported.out.count("hides its value") == len(OLD_FORMS)
    assert "owner.team: web" in imported.out
    formed.policies({"orders": "{properties: {conf.0: null, conf.1: mine, owner.team: data}}"})
    adopted = holds_none(cli("drift", "--adopt", "--yes"))
    assert "it holds a credential: declare it with a variable" in " ".join(adopted.out.split())
    policy = Path("policies/lake.yaml").read_text()
    no_secret(policy)
    assert "conf.1: mine" in policy
    assert "owner.team: web" in policy


@pytest.mark.parametrize("maker", ["spark", "spark-submit", "python", "dbt", "delta-rs", "sql"])
def test_no_credential_in_a_value_is_printed_for_a_maker_of_tables(formed: Repository, cli: Cli, maker: str) -> None:
    said = holds_none(cli("defaults", maker))
    assert said.code == 0, said.err


def test_the_plan_file_keeps_each_value_and_applies(formed: Repository, cli: Cli) -> None:
    assert holds_none(cli("plan", "--out", "p.json", "--verbose")).code == 0
    for command in ("show", "drift", "status"):
        holds_none(cli(command, *(["p.json"] if command == "show" else []), "--format", "json"))
    assert "OLDSECRET1" in Path("p.json").read_text()
    assert holds_none(cli("apply", "p.json")).code == 0
    assert holds_none(cli("plan", "--detailed-exitcode")).code == 0


def test_an_engine_that_repeats_a_credential_is_not_repeated(
    formed: Repository, fake_spark: FakeSpark, cli: Cli
) -> None:
    def refuse(sql: str) -> None:
        if "conf.2" in sql:
            raise RuntimeError(f"cannot run {sql} on jdbc:postgresql://svc:OLDSECRET1@h/db")

    fake_spark.after = refuse
    said = holds_none(cli("apply", "--yes"))
    assert (said.code, "cannot run" in said.out) == (5, True)


def test_two_credentials_that_look_alike_are_told_apart(repo: Repository, cli: Cli) -> None:
    repo.table("orders", properties={"dsn": "postgres://u:OLDSECRET2@h/x", "owner.team": "web"})
    repo.policies({"orders": "{properties: {dsn: 'postgres://u:NEWSECRET3@h/x'}}"})
    said = holds_none(cli("plan", "--verbose"))
    assert "postgres://…@h/x → postgres://…@h/x (changed)" in said.out


def test_a_masked_value_that_is_empty_says_so(secrets: Repository, cli: Cli) -> None:
    set_property(secrets.lake / "orders", "password", "")
    secrets.policies({"orders": "{properties: {password: hunter2-x, owner.token: ''}}"})
    said = cli("plan", "--verbose").out
    assert "(empty) → ••••••" in said
    assert "not set → (empty)" in said
