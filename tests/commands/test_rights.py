"""What a plan and `doctor` say about the rights of the login, on a stand-in for Unity Catalog of Databricks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tablectl.catalogs.http_client import HttpClient
from tablectl.catalogs.unity import UnityCatalog
from tablectl.commands import doctor
from tablectl.delta.names import TableName
from tablectl.model.catalog_answers import TableRights
from tablectl.model.operations import OPERATIONS, RIGHTS
from tests.catalogs.unity_server import UnityServer, send, serving
from tests.commands.conftest import Cli, Repository

ME = {"userName": "ci@example.com", "id": "42", "groups": [{"display": "Engineers", "value": "7"}]}
ORDERS = TableName("lake", ("sales", "orders"))


def given(principal: str, *privileges: str) -> dict[str, Any]:
    return {"principal": principal, "privileges": [{"privilege": each} for each in privileges]}


@pytest.fixture
def server(repo: Repository) -> Iterator[UnityServer]:
    with serving(UnityServer(me=ME)) as state:
        state.add_external("sales.orders", f"file://{repo.table('orders')}", owner="admin@example.com")
        (repo.root / "tablectl.yaml").write_text(
            "engine: {dialect: databricks, catalog: lake}\n"
            f"catalogs: {{lake: {{type: unity, url: '{state.url}', credentials: environment}}}}\n"
        )
        policy = "{isolation: Serializable, clustering: [id], properties: {owner.team: web}}"
        repo.policies(f"version: 1\ntables:\n  lake.sales.orders: {policy}\n")
        yield state


def rights(server: UnityServer) -> TableRights | None:
    return UnityCatalog(HttpClient(server.url), {}).rights([ORDERS]).get(ORDERS)


def findings(cli: Cli) -> list[str]:
    plan = json.loads(cli("plan", "--format", "json").out)
    assert plan["failures"] == []
    return [each["message"] for table in plan["tables"] for each in table["findings"] if each["code"] == "D007"]


def test_a_plan_names_the_rights_that_the_login_does_not_show(cli: Cli, server: UnityServer) -> None:
    assert findings(cli) == [
        "the catalog does not show that ci@example.com has MODIFY: SET TBLPROPERTIES; ownership: CLUSTER BY"
    ]
    assert "D007" in cli("plan").out


def test_a_right_of_a_group_counts_and_those_of_others_do_not(cli: Cli, server: UnityServer) -> None:
    server.assignments["sales.orders"] = [given("other@example.com", "MANAGE"), given("engineers", "MODIFY", "SELECT")]
    assert findings(cli) == ["the catalog does not show that ci@example.com has ownership: CLUSTER BY"]
    server.assignments["sales.orders"].append(given("account users", "MANAGE"))
    assert findings(cli) == []


def test_the_owner_may_do_everything(cli: Cli, server: UnityServer) -> None:
    for owner in ("CI@example.com", "Engineers"):
        server.tables["sales.orders"]["owner"] = owner
        assert findings(cli) == []


def test_with_severity_error_such_a_table_is_not_applied(cli: Cli, repo: Repository, server: UnityServer) -> None:
    with (repo.root / "tablectl.yaml").open("a") as file:
        file.write("lint: {D007: error}\n")
    (table,) = json.loads(cli("plan", "--format", "json").out)["tables"]
    assert table["statements"] == []
    assert [each["condition"] for each in table["refusals"]] == ["D007"]
    assert cli("plan", "--out", "p.json").code == 3
    assert cli("show", "p.json").code in (0, 3)


def test_a_server_that_does_not_tell_changes_nothing(cli: Cli, server: UnityServer) -> None:
    server.me = None
    assert (rights(server), findings(cli)) == (None, [])


def test_the_open_source_dialect_asks_for_no_rights(cli: Cli, repo: Repository, server: UnityServer) -> None:
    file = repo.root / "tablectl.yaml"
    file.write_text(file.read_text().replace("dialect: databricks, ", ""))
    assert findings(cli) == []
    assert not any("permissions" in each or "scim" in each for each in server.asked)


@pytest.mark.parametrize(
    "answer",
    [
        {"privilege_assignments": "MODIFY"},
        {"privilege_assignments": [1, {"principal": 3}, {"principal": "ci@example.com", "privileges": [None]}]},
        {"next_page_token": "again"},
        [],
    ],
)
def test_hostile_answers_grant_nothing_and_end(server: UnityServer, answer: Any) -> None:
    path = "/api/2.1/unity-catalog/effective-permissions/table/lake.sales.orders"
    server.override[path] = lambda handler: send(handler, 200, answer)
    found = rights(server)
    assert found is None or not found.allows("MODIFY")


def test_doctor_says_what_the_login_may_not_do(cli: Cli, server: UnityServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "java_problem", lambda _environ: None)
    server.assignments["sales.orders"] = [given("ci@example.com", "MODIFY")]

    def found() -> dict[str, Any]:
        checks = json.loads(cli("doctor", "--format", "json").out)["checks"]
        (one,) = [each for each in checks if each["subject"] == "rights on lake.sales.orders"]
        return one  # type: ignore[no-any-return]

    told = found()
    assert told["health"] == "note"
    assert "ownership: CLUSTER BY, DROP FEATURE" in told["found"]
    assert "MODIFY" not in told["found"]
    server.tables["sales.orders"]["owner"] = "ci@example.com"
    assert (found()["health"], found()["found"]) == ("ok", "ci@example.com may run every statement")


def test_every_kind_of_statement_has_its_right() -> None:
    assert len(RIGHTS) == len(OPERATIONS)
    by = {right: sorted(verb for verb, needs in RIGHTS.items() if needs == right) for right in RIGHTS.values()}
    assert by["MANAGE"] == ["PREDICTIVE OPTIMIZATION"]
    assert {"SET TBLPROPERTIES", "UNSET TBLPROPERTIES", "OPTIMIZE", "VACUUM"} <= {*by["MODIFY"]}
    assert {"CLUSTER BY", "SET MANAGED", "DROP FEATURE", "ADD CONSTRAINT"} <= {*by["ownership"]}
