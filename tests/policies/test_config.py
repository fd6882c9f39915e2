"""``tablectl.yaml``, and the variables that override it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tablectl.model.calendar import Calendar, Rule
from tablectl.model.errors import DEBUG, InputError, UsageError
from tablectl.policies.config import Config, EngineConfig, WindowConfig
from tablectl.policies.read_config import FILE, load_config


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path()


def wrong(root: Path, text: str, **environ: str) -> list[str]:
    (root / FILE).write_text(text)
    with pytest.raises(InputError) as caught:
        load_config(root, environ)
    return [str(problem) for problem in caught.value.problems]


@pytest.mark.parametrize("text", [None, "", "# nothing set\n", "{}"])
def test_defaults(root: Path, text: str | None) -> None:
    if text is not None:
        (root / FILE).write_text(text)
    config = load_config(root, {})
    assert config == Config()
    assert (config.policies, config.state) == ("policies", None)
    assert config.engine == EngineConfig(catalog="spark_catalog", dialect="oss", remote=None, conf={})
    assert config.window == WindowConfig(parallel=4, ttl=60)


def test_everything_set(root: Path) -> None:
    (root / FILE).write_text("""
policies: conf/policies
state: s3://lake/leases
engine:
  catalog: lake
  dialect: databricks
  remote: sc://spark:15002/;use_ssl=true
  conf: {spark.sql.shuffle.partitions: 8, spark.x: true, spark.y: "no"}
window: {parallel: 16, ttl: 120}
reports: {mask: ["*password*", owner.key]}
stores:
  s3: {endpoint: "http://minio:9000", region: eu-west-1, allow_http: true, timeout: 20s}
  az: {account_name: lake, use_azure_cli: true}
""")
    config = load_config(root, {})
    assert (config.policies, config.state) == ("conf/policies", "s3://lake/leases")
    assert config.reports.mask == ("*password*", "owner.key")
    assert (config.engine.catalog, config.engine.dialect) == ("lake", "databricks")
    assert config.engine.remote == "sc://spark:15002/;use_ssl=true"
    assert config.engine.conf == {"spark.sql.shuffle.partitions": "8", "spark.x": "true", "spark.y": "no"}
    assert config.window == WindowConfig(parallel=16, ttl=120)
    assert config.stores.families() == {
        "s3": {"endpoint": "http://minio:9000", "region": "eu-west-1", "allow_http": "true", "timeout": "20s"},
        "az": {"account_name": "lake", "use_azure_cli": "true"},
    }


def test_hooks_and_calendar(root: Path) -> None:
    (root / FILE).write_text("""
engine: {exclusive_commits: true}
window:
  drain: 0
  hook_timeout: 5
  together: [ledger, lake.finance.*]
  before:
    - ./pause.sh "nightly load"
    - [airflow, pools, set, lake, 0]
  after: []
  allow:
    - {cron: 0 22 * * SAT, duration: 8h, timezone: Europe/Berlin, tables: [lake.*, "*orders"], tags: [ledger]}
    - {cron: "*/15 * * * *", duration: 1d2h 30m}
  deny: [{cron: 0 0 20 12 *, duration: 14d}]
""")
    config = load_config(root, {})
    assert config.engine.exclusive_commits
    window = config.window
    assert (window.drain, window.hook_timeout) == (0, 5)
    assert window.together == ("ledger", "lake.finance.*")
    assert window.before == (("./pause.sh", "nightly load"), ("airflow", "pools", "set", "lake", "0"))
    assert window.after == ()
    assert window.calendar == Calendar(
        allow=(
            Rule(
                cron="0 22 * * SAT",
                duration=timedelta(hours=8),
                timezone="Europe/Berlin",
                tables=("lake.*", "*orders"),
                tags=("ledger",),
            ),
            Rule(cron="*/15 * * * *", duration=timedelta(days=1, hours=2, minutes=30)),
        ),
        deny=(Rule(cron="0 0 20 12 *", duration=timedelta(days=14)),),
    )


def test_variables_win_over_the_file(root: Path) -> None:
    (root / FILE).write_text("policies: a\nengine: {remote: sc://file}\nwindow: {ttl: 120}\n")
    environ = {
        "TABLECTL_POLICIES": "p",
        "TABLECTL_PLANS": "q",
        "TABLECTL_STATE": "/state",
        "TABLECTL_ENGINE_CATALOG": "lake",
        "TABLECTL_ENGINE_DIALECT": "databricks",
        "TABLECTL_ENGINE_REMOTE": "",
        "TABLECTL_WINDOW_PARALLEL": "8",
        "TABLECTL_VAR_X": "not a setting",
        "TABLECTL_VAR_LAKE": "a value of policies",
        "TABLECTL_STREAMS": "of a hook",
        "TABLECTL_EMPTY": "",
    }
    config = load_config(root, environ)
    assert (config.policies, config.state) == ("p", "/state")
    assert (config.engine.catalog, config.engine.dialect, config.engine.remote) == ("lake", "databricks", "sc://file")
    assert (config.window.parallel, config.window.ttl) == (8, 120)


ENVIRONMENTS = """
policies: a
variables: {TEAM: web, SIZE: 1}
engine: {catalog: lake, conf: {spark.x: 1, spark.y: 1}}
window:
  ttl: 120
  deny: [{cron: 0 0 20 12 *, duration: 14d}, {cron: 0 0 1 1 *, duration: 1d}]
state: /state
env:
  dev: {}
  prod:
    variables: {SIZE: 2, LAKE: s3://lake}
    engine: {conf: {spark.y: 2, spark.z: 2}}
    window: {deny: [{cron: 0 0 1 5 *, duration: 1d}]}
    state:
"""


def test_an_environment_goes_over_the_top_level(root: Path) -> None:
    (root / FILE).write_text(ENVIRONMENTS)
    top, prod = load_config(root, {}), load_config(root, {}, "prod")
    assert (top.environment, list(top.env), top.state) == ("", ["dev", "prod"], "/state")
    assert top.variables == {"TEAM": "web", "SIZE": "1"}
    assert prod.environment == "prod"
    assert prod.variables == {"TEAM": "web", "SIZE": "2", "LAKE": "s3://lake"}  # maps by key
    assert prod.engine == EngineConfig(catalog="lake", conf={"spark.x": "1", "spark.y": "2", "spark.z": "2"})
    assert [rule.cron for rule in prod.window.deny] == ["0 0 1 5 *"]  # lists as a whole
    assert (prod.policies, prod.window.ttl, prod.state) == ("a", 120, None)


def test_an_environment_that_says_nothing_is_the_top_level(root: Path) -> None:
    (root / FILE).write_text(ENVIRONMENTS)
    assert load_config(root, {}, "dev") == replace(load_config(root, {}), environment="dev")


def test_who_names_the_environment(root: Path) -> None:
    (root / FILE).write_text(ENVIRONMENTS)
    for environ, env, chosen in (
        ({}, None, ""),
        ({"TABLECTL_ENV": ""}, None, ""),
        ({"TABLECTL_ENV": "prod"}, None, "prod"),
        ({"TABLECTL_ENV": "prod"}, "dev", "dev"),
        ({"TABLECTL_ENV": "prod"}, "", ""),
    ):
        assert load_config(root, environ, env).environment == chosen
    over = load_config(root, {"TABLECTL_ENV": "prod", "TABLECTL_STATE": "/theirs", "TABLECTL_POLICIES": "p"})
    assert (over.state, over.policies) == ("/theirs", "p")


@pytest.mark.parametrize(
    ("text", "env", "says"),
    [
        (ENVIRONMENTS, "prd", 'tablectl.yaml has no environment "prd"\n  hint: did you mean prod? known are dev, prod'),
        (ENVIRONMENTS, "x" * 99, "known are dev, prod"),
        ("", "prod", "it has none: add `env: {prod: …}` to it"),
        ("", "\n", "it has none: add `env: {prod: …}` to it"),
    ],
)
def test_an_environment_that_is_none(root: Path, text: str, env: str, says: str) -> None:
    (root / FILE).write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(root, {}, env)
    assert says in str(caught.value)


def test_an_environment_hides_no_section_that_is_none(root: Path) -> None:
    text = "engine: oss\nwindow:\nenv: {dev: {engine: {dialect: oss}, window: {ttl: 60}}}\n"
    assert [each.split(": ")[1] for each in wrong(root, text, TABLECTL_ENV="dev")] == [
        "`engine` takes a map, not text\n  hint",
        "`window` takes a map, not nothing\n  hint",
    ]


@pytest.mark.parametrize("env", ["", "dev", "prod"])
def test_what_is_wrong_in_any_environment_is_reported_once_in_all(root: Path, env: str) -> None:
    said = wrong(
        root, "policies: [a]\nenv:\n  dev: {state: x}\n  prod:\n    engine: {dialekt: oss}\n", TABLECTL_ENV=env
    )
    assert [each.split(":")[1] for each in said] == ["1", "3", "5"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("policiez: x", '1:1: unknown key "policiez"\n  hint: did you mean `policies`?'),
        (
            "engine: {cluster: 0710-a}",
            "1:1: `engine` has a `cluster`, which only `remote: databricks` uses",
        ),
        (
            "engine: {cluster: 0710-a, remote: databricks, runtime: serverless}",
            "1:1: `engine` has a `cluster` and `runtime: serverless`, which exclude each other",
        ),
        (
            "engine: {thrift: 'spark:10000', statement_bound: 0}",
            (
                "1:1: `engine` has `statement_bound: 0`, with which an endpoint would never end a statement: leave it "
                "out for an hour"
            ),
        ),
        (
            "engine: {dialect: databricks, warehouse: abc, statement_bound: 172801}",
            "1:1: `engine` has a `statement_bound` above 172800, the most that a warehouse takes",
        ),
        ("engine: {dialekt: oss}", '1:10: unknown key "engine.dialekt"\n  hint: did you mean `dialect`?'),
        ("env:", "1:1: `env` takes a map, not nothing\n  hint: put its keys under `env`"),
        ("env: {dev: prod}", "1:7: `env.dev` takes a map, not text\n  hint: put its keys under `env.dev`"),
        (
            "env: {dev: {env: {}}}",
            (
                '1:13: unknown key "env.dev.env"\n'
                "  hint: `env:` goes at the top level of the file: it is one for all environments"
            ),
        ),
        (
            "env: {pr od: {}}",
            "1:7: `env.pr od` is not an environment name: letters, digits, '_', '.' and '-'",
        ),
        (
            "variables: {1A: x}",
            "1:13: `variables.1A` is not a variable name: letters, digits and _, no digit first",
        ),
        ("variables: {A: 010}", '1:16: YAML reads 010 as a number, not as text\n  hint: quote it: "010"'),
        ("env: {dev: {policies: }}", "1:13: `env.dev.policies` has no value"),
        (
            "window: {before: x}",
            "1:10: `window.before` takes a list, not text\n  hint: put each of its items behind a dash",
        ),
        ("window: {after: ['a \"b']}", "1:18: `window.after.1` is not a command: no closing quotation"),
        (
            "window: {after: [[a, {b: c}]]}",
            "1:18: `window.after.1` needs a command, not a list\n  hint: for example [./pause.sh, nightly]",
        ),
        (
            "window: {after: [[]]}",
            "1:18: `window.after.1` needs a command, not a list\n  hint: for example [./pause.sh, nightly]",
        ),
        ("window: {after: [[''], x]}", "1:18: `window.after.1` needs a command with a name, and without NUL"),
        (
            "window: {together: ledger}",
            '1:10: `window.together` takes a list, not "ledger"\n  hint: put each of its items behind a dash',
        ),
        ("window: {together: ['']}", '1:21: `window.together.1` needs text without control characters, not ""'),
        ("window: {hook_timeout: 0}", '1:10: `window.hook_timeout` needs at least 1, not "0"'),
        (
            "window: {allow: {cron: x}}",
            "1:10: `window.allow` takes a list, not a map\n  hint: put each of its items behind a dash",
        ),
        ("window: {deny: [{duration: 1h}]}", "1:17: `window.deny.1` needs `cron`"),
        ("window: {deny: [{}]}", "1:17: `window.deny.1` needs `cron` and `duration`"),
        (
            "window: {deny: [{cron: 0 0 * *, duration: 1h}]}",
            "1:18: `window.deny.1.cron` needs the five fields of cron, such as '0 22 * * 6', not \"0 0 * *\"",
        ),
        (
            "window: {deny: [{cron: 0 0 30 2 *, duration: 1h}]}",
            '1:18: `window.deny.1.cron` needs the five fields of cron (bad day-of-month), not "0 0 30 2 *"',
        ),
        (
            "window: {deny: [{cron: 0 0 1 * *, duration: soon}]}",
            '1:35: `window.deny.1.duration` needs a duration, such as 2h30m or 1d, not "soon"',
        ),
        (
            "window: {deny: [{cron: 0 0 1 * *, duration: 32d}]}",
            '1:35: `window.deny.1.duration` needs a duration of at most 31d, not "32d"',
        ),
        (
            "window: {deny: [{cron: 0 0 1 * *, duration: 1h, timezone: ../../etc/passwd}]}",
            (
                "1:49: `window.deny.1.timezone` needs the name of a time zone, such as Europe/Berlin, "
                'not "../../etc/passwd"'
            ),
        ),
        (
            "window: {deny: [{cron: 0 0 1 * *, duration: 1h, table: x}]}",
            '1:49: unknown key "window.deny.1.table"\n  hint: did you mean `tables`?',
        ),
        (
            "engine: {exclusive_commits: maybe}",
            '1:10: "maybe" is not a value of `engine.exclusive_commits`\n  hint: known here: true, false',
        ),
        ("engine: oss", "1:1: `engine` takes a map, not text\n  hint: put its keys under `engine`"),
        ("engine:", "1:1: `engine` takes a map, not nothing\n  hint: put its keys under `engine`"),
        ("policies: [a]", "1:1: `policies` takes text, not a list"),
        ("policies:", "1:1: `policies` has no value"),
        ('policies: ""', '1:1: `policies` needs text without control characters, not ""'),
        ("policies: {a: b}", "1:1: `policies` takes text, not a map"),
        ("state: lake/x", '1:1: `state` needs an absolute path or a URI, such as s3://lake/tablectl, not "lake/x"'),
        (
            "engine: {dialect: spark}",
            '1:10: "spark" is not a value of `engine.dialect`\n  hint: known here: oss, databricks',
        ),
        (
            "engine: {remote: host:15002}",
            (
                "1:10: `engine.remote` needs the address of a Spark Connect server, "
                "such as sc://host:15002, or databricks, not this"
            ),
        ),
        ("engine: {conf: {a: no}}", '1:20: YAML reads no as true or false, not as text\n  hint: quote it: "no"'),
        ("engine: {conf: {a: {b: c}}}", "1:17: `engine.conf.a` takes text, not a map"),
        ("window: {parallel: 65}", '1:10: `window.parallel` needs at most 64, not "65"'),
        ("window: {ttl: 5}", '1:10: `window.ttl` needs at least 10, not "5"'),
        (
            "window: {ttl: 60x}",
            '1:10: `window.ttl` needs a length of time, such as 5m, or a number of seconds, not "60x"',
        ),
        ("stores: {s4: {}}", '1:10: unknown key "stores.s4"\n  hint: known here: concurrency, processes, s3, gs, az'),
        (
            "stores: {s3: eu-west-1}",
            "1:10: `stores.s3` takes a map, not text\n  hint: put its keys under `stores.s3`",
        ),
        ("stores: {s3: {region: {}}}", "1:15: `stores.s3.region` takes text, not a map"),
        (
            "stores: {s3: {secret_access_key: x}}",
            (
                "1:15: `stores.s3.secret_access_key` is a secret\n"
                "  hint: put it into the environment, as AWS_SECRET_ACCESS_KEY"
            ),
        ),
        (
            "stores: {gs: {service_account_key: x}}",
            (
                "1:15: `stores.gs.service_account_key` is a secret\n"
                "  hint: put it into the environment, as GOOGLE_SERVICE_ACCOUNT_KEY"
            ),
        ),
        (
            "stores: {s3: {proxy_url: http://me:hunter2@proxy}}",
            (
                "1:15: `stores.s3.proxy_url` holds a user name or a password before its host\n"
                "  hint: put it into the environment"
            ),
        ),
        (
            "stores: {s3: {endpoint: 'https://s3.example?X-Amz-Signature=hunter2'}}",
            "1:15: `stores.s3.endpoint` holds the credential `X-Amz-Signature=`\n  hint: put it into the environment",
        ),
        (
            "state: s3://KEY:hunter2@lake/leases",
            (
                "1:1: `state` needs a place without credentials, which belong in the environment, not "
                '"s3://…@lake/leases"'
            ),
        ),
        ("policies: a\npolicies: b", '2:1: the key "policies" occurs twice: first on line 1\n  hint: keep one of them'),
        ("[a]", "1:1: the configuration is a map, not a list\n  hint: for example `engine: {dialect: oss}`"),
        ("a: ]", "1:4: this is not valid YAML: did not find expected node content"),
    ],
)
def test_what_is_refused(root: Path, text: str, problem: str) -> None:
    assert wrong(root, text) == [f"tablectl.yaml:{problem}"]


def test_an_unknown_option_of_a_store_names_those_that_are(root: Path) -> None:
    (problem,) = wrong(root, "stores: {s3: {regoin: eu-west-1}}")
    first, hint = problem.split("\n")
    assert first == "tablectl.yaml:1:15: `stores.s3.regoin` is not an option"
    assert hint.startswith("  hint: did you mean `region`? known are allow_http, ")
    assert "virtual_hosted_style_request" in hint


def test_a_wrong_variable_is_named(root: Path) -> None:
    assert wrong(root, "policies: [a]", TABLECTL_WINDOW_TTL="soon", TABLECTL_ENGINE_DIALECT="hive") == [
        'TABLECTL_ENGINE_DIALECT: "hive" is not a value of `engine.dialect`\n  hint: known here: oss, databricks',
        'TABLECTL_WINDOW_TTL: `window.ttl` needs a length of time, such as 5m, or a number of seconds, not "soon"',
        "tablectl.yaml:1:1: `policies` takes text, not a list",
    ]


def test_a_directory_called_like_the_file_is_an_error(root: Path) -> None:
    (root / FILE).mkdir()
    with pytest.raises(InputError, match="this is not a file"):
        load_config(root, {})


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
@given(data=st.binary(max_size=100) | st.text(max_size=100).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_arbitrary_bytes_are_a_config_or_an_input_error(tmp_path: Path, data: bytes) -> None:
    for prefix in (
        b"",
        b"engine:\n  conf:\n    ",
        b"window: ",
        b"window:\n  allow:\n  - ",
        b"window: {after: [",
        b"env:\n  dev:\n    ",
    ):
        (tmp_path / FILE).write_bytes(prefix + data)
        with suppress(InputError, UsageError):
            load_config(tmp_path, {}, "dev")


def test_a_link_that_leads_nowhere_is_not_the_same_as_no_file(root: Path) -> None:
    """Its calendar, its limits and its masks would be gone without a word."""
    (root / "tablectl.yaml").symlink_to(root / "gone.yaml")
    with pytest.raises(InputError) as caught:
        load_config(root, {})
    assert [str(each) for each in caught.value.problems] == ["tablectl.yaml: a link that leads nowhere"]


@pytest.mark.parametrize("key", ["plans", "instal", "install"])
def test_a_key_of_the_top_level_in_an_environment_names_its_place(root: Path, key: str) -> None:
    (root / "tablectl.yaml").write_text(f"env: {{prod: {{{key}: {{required: true}}}}}}\n")
    with pytest.raises(InputError) as found:
        load_config(root, {})
    (problem,) = found.value.problems
    assert problem.message == f'unknown key "env.prod.{key}"'
    meant = "plans" if key == "plans" else "install"
    assert problem.hint == f"`{meant}:` goes at the top level of the file: it is one for all environments"


@pytest.mark.parametrize("text", ["signatures: {required: true}", "env: {prod: {signatures: {signers: a}}}"])
def test_signatures_are_refused_with_their_replacement(root: Path, text: str) -> None:
    """Not ignored: whoever asked for signed plans must learn that nothing checks them."""
    (root / "tablectl.yaml").write_text(f"{text}\n")
    with pytest.raises(InputError) as found:
        load_config(root, {})
    (problem,) = found.value.problems
    assert problem.message.startswith("unknown key")
    assert "`gh attestation` (docs/recipes.md)" in problem.hint
    (root / "tablectl.yaml").write_text("{}\n")
    with pytest.raises(InputError, match="TABLECTL_SIGNATURES_REQUIRED: no setting has this name"):
        load_config(root, {"TABLECTL_SIGNATURES_REQUIRED": "true"})


@pytest.mark.parametrize("text", ["0.1", "2", '"0.5"', "1000000"])
def test_the_limit_of_a_quiet_moment_is_a_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "tablectl.yaml").write_text(f"window: {{quiet: {text}}}\n")
    assert load_config(tmp_path, {}).window.quiet == float(text.strip('"'))


@pytest.mark.parametrize("text", ["0", "-1", "1e3", ".nan", "much", "1.0.0", "0.0001"])
def test_another_limit_is_an_error_at_its_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "tablectl.yaml").write_text(f"window:\n  quiet: {text}\n")
    with pytest.raises(InputError, match=r"tablectl\.yaml:2"):
        load_config(tmp_path, {})


def test_two_places_for_the_statements_are_refused_without_their_tokens(root: Path) -> None:
    problems = wrong(root, "engine: {remote: 'sc://a/;token=t', thrift: 'b:10000'}\n")
    assert len(problems) == 1
    assert "has both `remote` and `thrift`: keep one of them" in problems[0]
    assert "token" not in problems[0]


def test_the_pace_of_rewrites_is_a_size_above_nothing(root: Path) -> None:
    (root / FILE).write_text("window: {max_bytes_per_hour: 500 GB}\n")
    assert load_config(root, {}).window.max_bytes_per_hour == 500 * 1000**3
    assert "is not a size above 0" in wrong(root, "window: {max_bytes_per_hour: 0}\n")[0]


SECRETS = [
    "notify: https://hooks.example/T0/CANARY",
    "notify: [https://hooks.example/T0/CANARY]",
    "notify: [{https://hooks.example/T0/CANARY: x}]",
    "notify: [{webhook: 'http://hooks.example/T0/CANARY'}]",
    "notify: [{events: [CANARY], command: [x]}]",
    "notify: [{command: [x], timeout: CANARY}]",
    "window: {before: ./pause.sh --token=CANARY}",
    "window: {after: [{./resume.sh: CANARY}]}",
    'window: {before: ["./pause.sh \'CANARY"]}',
    "engine: {remote: 'https://h/;token=CANARY'}",
    "engine: {remote: ['sc://h/;token=CANARY']}",
    "engine: {conf: CANARY}",
    "engine: {conf: {spark.hadoop.password: [CANARY]}}",
]


@pytest.mark.parametrize("text", [*SECRETS, *(f"env: {{prod: {{{each}}}}}" for each in SECRETS)])
def test_no_error_shows_a_value_of_a_key_that_can_hold_a_secret(tmp_path: Path, text: str) -> None:
    (tmp_path / "tablectl.yaml").write_text(text.replace(": https://hooks.example/T0/CANARY}", ": 'CANARY'}"))
    with pytest.raises(InputError) as caught:
        load_config(tmp_path, {})
    assert "CANARY" not in str(caught.value)
    assert "tablectl.yaml:1:" in str(caught.value)


@pytest.mark.parametrize(
    "text", ["notify: 1234567", "window: {before: [[./x, 1234.5]]}", "engine: {conf: {a: 1234.5}}"]
)
def test_no_error_shows_a_secret_that_yaml_reads_as_a_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "tablectl.yaml").write_text(text)
    with pytest.raises(InputError) as caught:
        load_config(tmp_path, {})
    assert "1234" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("TABLECTL_ENGINE_CATALOGUE", "did you mean TABLECTL_ENGINE_CATALOG?"),
        ("TABLECTL_ENGIN_CATALOG", "did you mean TABLECTL_ENGINE_CATALOG?"),
        ("TABLECTL_ENVS", "did you mean TABLECTL_ENV?"),
        ("TABLECTL_QQQQQQQQQQ", "another beginning"),
    ],
)
def test_a_variable_that_sets_nothing_is_an_error(root: Path, name: str, hint: str) -> None:
    (found,) = wrong(root, "", **{name: "x"})
    assert found.startswith(f"{name}: no setting has this name")
    assert hint in found


def test_a_variable_that_the_configuration_names_is_the_users(root: Path) -> None:
    (root / FILE).write_text("window: {before: [[sh, -c, 'pause $TABLECTL_MINE']]}")
    assert load_config(root, {"TABLECTL_MINE": "x"}).window.before


def test_the_variable_that_every_unexpected_error_names_is_known(root: Path) -> None:
    (root / FILE).write_text("")
    assert load_config(root, {DEBUG: "1"}) == load_config(root, {})


@pytest.mark.parametrize("kind", ["polaris", "iceberg-rest", "lakekeeper", "gravitino", "nessie", "hms", "hive"])
def test_a_catalog_of_an_unknown_type_gets_one_true_error(root: Path, kind: str) -> None:
    (found,) = wrong(root, f"catalogs: {{p: {{type: {kind}, url: 'https://x'}}}}")
    assert f'"{kind}" is not a value of `catalogs.p.type`' in found
    assert "docs/catalogs.md" in found


def test_the_variable_of_the_debug_log_is_known(root: Path) -> None:
    assert load_config(root, {DEBUG: "1"}) == load_config(root, {})


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h30m", 5400), ("1h", 3600), ("1m30s", 90)]
)
def test_a_length_of_time_is_written_one_way_or_as_a_number(root: Path, text: str, seconds: int) -> None:
    (root / FILE).write_text(f"window: {{drain: {text}, soak: {text}, hook_timeout: {min(seconds, 3600)}s}}\n")
    window = load_config(root, {}).window
    assert (window.drain, window.soak) == (seconds, 90 if text == "90" else seconds / 60)
    assert load_config(root, {"TABLECTL_WINDOW_DRAIN": text}).window.drain == seconds


@pytest.mark.parametrize("text", ["5 m", "m", "-5m", "1.5h", "5x", "5M", "99999999999m"])
def test_other_texts_are_refused_as_a_length_of_time(root: Path, text: str) -> None:
    (found,) = wrong(root, f"window: {{drain: {text}}}\n")
    assert "needs a length of time, such as 5m, or a number of seconds" in found
    assert "tablectl.yaml:1:" in found


def test_the_bounds_hold_for_every_spelling(root: Path) -> None:
    (found,) = wrong(root, "window: {ttl: 2h}\n")
    assert "3600" in found


def test_a_token_that_was_pasted_as_the_name_of_its_variable_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text(
        "catalogs: {lake: {type: unity, url: 'https://u', token_variable: dapi0123}}\n"
    )
    with pytest.raises(InputError) as error:
        load_config(tmp_path, {})
    assert "never the token itself" in str(error.value)
    assert "dapi0123" not in str(error.value)
