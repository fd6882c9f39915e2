"""Drift in the formats that are not plain text."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator

from tablectl.delta.protocol import Client
from tablectl.documents.style import Style
from tablectl.log.blame import Origin
from tablectl.model.commit import Commit
from tablectl.model.plan import Change, TableFailure
from tablectl.model.safe_text import printable
from tablectl.planning.drift import Difference, Drift, TableDrift, adoptable_values
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.write_live_values import Adoption
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tablectl.reports.schema import drift_schema
from tests.builders import live_table
from tests.reports.hostile import EVIL
from tests.reports.rendered import render_drift
from tests.reports.test_html import Read
from tests.reports.test_junit import cases, results
from tests.reports.test_plan_markdown import OURS, Page
from tests.reports.test_sarif import run_of

Golden = Callable[[str, str], None]


def table(name: str = "lake.sales.orders", text: str = "WRITE") -> TableDrift:
    policy = f"version: 1\ntables: {{{name}: {{isolation: Serializable}}}}\n"
    (spec,) = read_specs([("p.yaml", policy.encode())], ValueReader(Variables(), "oss", "lake", [])).tables
    commit = Commit(13, 1_795_000_000_000, text, user=text, client=Client("unknown"), job={"jobName": text})
    key = "owner.team" if text == "WRITE" else text
    differences = (
        Difference(
            change=Change(attribute="isolation", before="default", after="Serializable"),
            source=SourceFile("p.yaml", 2, 30),
            origin=Origin(commit, "Serializable", known=True),
        ),
        Difference(
            change=Change(attribute="properties", key=key, before=text, after="web"),
            source=SourceFile("p.yaml", 3, 7),
            origin=Origin(before=4),
        ),
    )
    live = live_table(name, version=15)
    return TableDrift(spec=spec, live=live, differences=differences, applied=commit)


@pytest.fixture
def drift() -> Drift:
    gone = TableFailure(name="lake.sales.gone", message="not a Delta table", hint="check the location")
    return Drift(
        tables=(table(),), failures=(gone,), as_declared=("lake.sales.b",), unmatched=("lake.old.*",), look_back=1000
    )


def rendered(drift: Drift, form: ReportFormat) -> str:
    return render_drift(drift, form, Style(), Context())


def test_markdown(drift: Drift, golden: Golden) -> None:
    golden("drift.md", rendered(drift, ReportFormat.MARKDOWN))


def test_verdicts(drift: Drift) -> None:
    def first(drift: Drift) -> str:
        return rendered(drift, ReportFormat.MARKDOWN).splitlines()[0]

    assert first(drift) == (
        "**⛔ Drift: Not all tables can be read** · 1 table differs in 2 values; 1 not readable; 1 without drift"
    )
    assert first(replace(drift, failures=())).startswith("**🟡 Drift: Drift found** · 1 table differs in 2 values")
    assert first(replace(drift, failures=(), tables=())) == "**✅ Drift: No drift** · 1 without drift"
    assert first(Drift()) == "**✅ Drift: No drift** · no tables"


def test_sarif_names_the_lines_that_declare(drift: Drift) -> None:
    run = run_of(rendered(drift, ReportFormat.SARIF))
    found = [
        (each["ruleId"], each["level"], each["locations"][0]["physicalLocation"].get("region", {}).get("startLine"))
        for each in run["results"]
    ]
    assert found == [("unreadable", "error", 1), ("drift", "warning", 2), ("drift", "warning", 3)]
    assert run["results"][1]["message"]["text"] == (
        "lake.sales.orders: isolation: declared Serializable, found default; since version 13, "
        "2026-11-18 11:06:40 UTC: WRITE; before that it was Serializable; by WRITE (an unknown client), job WRITE"
    )


def test_junit(drift: Drift) -> None:
    assert results(rendered(drift, ReportFormat.JUNIT)) == {
        "lake.sales.orders": "failure",
        "lake.sales.gone": "error",
        "lake.old.*": "skipped",
        "lake.sales.b": "passed",
    }


def test_html(drift: Drift) -> None:
    page = Read(rendered(drift, ReportFormat.HTML))
    said = " ".join(" ".join(page.text).split())
    assert page.unclustered == []
    assert "isolation Serializable default p.yaml:2" in said
    assert "since version 13, 2026-11-18 11:06:40 UTC: WRITE; before that it was Serializable" in said
    assert "before version 4, the oldest one in the history" in said
    assert "No drift" in rendered(Drift(), ReportFormat.HTML)


def test_json_tells_what_was_adopted(drift: Drift) -> None:
    first, *others = adoptable_values(drift)
    left = (replace(first, reason="it is inherited"),)
    adoption = Adoption({"p.yaml": "…"}, tuple(others), left, written=True)
    told = json.loads(rendered(replace(drift, adoption=adoption), ReportFormat.JSON))["adoption"]
    assert (told["written"], told["files"], told["left"][0]["reason"]) == (True, ["p.yaml"], "it is inherited")
    assert told["left"][0]["table"] == "lake.sales.orders"
    assert json.loads(rendered(drift, ReportFormat.JSON))["adoption"] is None


def test_the_schema_takes_what_is_printed_and_nothing_else(drift: Drift, golden: Golden) -> None:
    schema = drift_schema()
    Draft202012Validator.check_schema(schema)
    golden("drift.schema.json", json.dumps(schema, indent=2) + "\n")
    taken = Draft202012Validator(schema)
    adopted = replace(drift, adoption=Adoption({}, adoptable_values(drift), ()))
    for each in (drift, adopted):
        body = json.loads(rendered(each, ReportFormat.JSON))
        taken.validate(body)
        assert not taken.is_valid({**body, "more": 1})
        body["tables"][0]["differences"][0]["origin"]["commit"]["parameters"]["mode"] = 1
        assert not taken.is_valid(body)


@pytest.mark.parametrize("text", EVIL)
def test_nothing_of_others_means_anything(text: str) -> None:
    failure = TableFailure(name=text, message=text, hint=text)
    evil = Drift(tables=(table(text=text),), failures=(failure,), as_declared=(text,), unmatched=(text,))
    page = Page(rendered(evil, ReportFormat.MARKDOWN))
    assert set(page.tags) <= OURS
    assert page.links == []
    assert printable(text) in page.code
    assert Read(rendered(evil, ReportFormat.HTML)).unclustered == []
    assert len(run_of(rendered(evil, ReportFormat.SARIF))["results"]) == 3
    assert len(cases(rendered(evil, ReportFormat.JUNIT))) == 4
