"""Drift as text, where logs hold what no one would expect."""

from __future__ import annotations

import json

from tablectl.delta.protocol import Client
from tablectl.documents.style import Style
from tablectl.log.blame import Origin
from tablectl.model.commit import Commit
from tablectl.model.plan import Change, TableFailure
from tablectl.model.safe_text import time_text
from tablectl.planning.drift import Difference, Drift, TableDrift
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tests.builders import live_table
from tests.reports.rendered import drift_text, render_drift


def drift(commit: Commit | None, **more: object) -> Drift:
    reading = ValueReader(Variables(), "oss", "spark_catalog", [])
    (spec,) = read_specs([("p.yaml", b"version: 1\ntables: {a.b: {isolation: Serializable}}\n")], reading).tables
    change = Change(attribute="isolation", before="default", after="Serializable")
    origin = Origin(commit, "Serializable", known=True) if commit else Origin(before=4)
    difference = Difference(change=change, source=SourceFile("p.yaml", 2, 1), origin=origin)
    live = live_table("a.b")
    return Drift(tables=(TableDrift(spec=spec, live=live, differences=(difference,)),), **more)  # type: ignore[arg-type]


def test_what_a_log_holds_cannot_move_the_cursor() -> None:
    commit = Commit(3, 10**30, "WRITE\x1b[2J", user="ann\n", client=Client("unknown"), job={"jobName": "a\tb"})
    text = drift_text(drift(commit), Style())
    assert "\x1b" not in text
    assert "version 3: WRITE\\x1b[2J" in text
    assert "ann\\n (an unknown client), job a\\tb" in text


def test_an_operation_without_a_name_and_a_user() -> None:
    text = drift_text(drift(Commit(3, 0, "")), Style(width=100))
    assert "version 3: unknown operation; before that it was Serializable" in text
    assert "unknown user" in text


def test_what_no_one_can_tell_is_said() -> None:
    failure = TableFailure(name="a.c", message="gone", hint="look")
    found = drift(None, failures=(failure,), as_declared=("a.d",))
    assert drift_text(found, Style(width=100)) == (
        "x a.c  not readable\n"
        "    error    gone\n"
        "    hint     look\n"
        "\n"
        "~ a.b  never applied\n"
        "  version 7\n"
        "    isolation  declared Serializable, found default  p.yaml:2\n"
        "    since    before version 4, the oldest one in the history\n"
        "\n"
        "Drift: 1 table differs in 1 value; 1 not readable; 1 without drift.\n"
    )
    body = json.loads(render_drift(found, ReportFormat.JSON, Style(), Context()))
    (told,) = body["tables"][0]["differences"]
    assert told["origin"] == {"commit": None, "was": None, "known": False, "before": 4}
    assert body["exit_code"] == 1


def test_times_of_a_log() -> None:
    assert time_text(1_700_000_000_000) == "2023-11-14 22:13:20 UTC"
    assert [time_text(number) for number in (0, -1, 10**30)] == ["", "", ""]
