"""The exit code of a run follows from what came of its tables."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tablectl.model.as_json import plain, read_record
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Phase, Refusal, TableFailure
from tablectl.window.report import CommitRun, Outcome, RunReport, StatementRun, TableRun

_COMMIT = CommitRun(version=1, operation="SET TBLPROPERTIES", user="ann", at=0)
_REFUSAL = Refusal(change="partitioning", reason="no ALTER changes it", way_out="rewrite the table")
_UNREADABLE = TableFailure(name="lake.s.gone", message="not a Delta table")


def _report(*outcomes: Outcome, committed: bool = False, failures: int = 0) -> RunReport:
    tables = tuple(TableRun(name=f"t{index}", outcome=outcome) for index, outcome in enumerate(outcomes))
    if committed:
        tables = (replace(tables[0], commits=(_COMMIT,)), *tables[1:])
    return RunReport(run="1", plan="2", tables=tables, failures=(_UNREADABLE,) * failures)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), ExitCode.DONE),
        ((Outcome.ALREADY,), ExitCode.DONE),
        ((Outcome.STALE,), ExitCode.REFUSED),
        ((Outcome.REFUSED,), ExitCode.REFUSED),
        ((Outcome.HELD,), ExitCode.WINDOW),
        ((Outcome.FAILED,), ExitCode.ERROR),
        ((Outcome.INTERRUPTED,), ExitCode.ERROR),
        ((Outcome.UNVERIFIED,), ExitCode.PARTIAL),
        ((Outcome.UNKNOWN,), ExitCode.PARTIAL),
        ((Outcome.ELSEWHERE,), ExitCode.PARTIAL),
        ((Outcome.LEASE_LOST,), ExitCode.ERROR),
        ((Outcome.SUCCEEDED,), ExitCode.DONE),
        ((Outcome.HELD, Outcome.STALE), ExitCode.WINDOW),
        ((Outcome.FAILED, Outcome.HELD), ExitCode.ERROR),
        ((Outcome.FAILED, Outcome.UNVERIFIED), ExitCode.ERROR),
        ((Outcome.ALREADY, Outcome.REFUSED), ExitCode.REFUSED),
        ((Outcome.ALREADY, Outcome.FAILED), ExitCode.ERROR),
    ],
)
def test_without_a_commit(outcomes: tuple[Outcome, ...], code: ExitCode) -> None:
    assert _report(*outcomes).exit_code is code


@pytest.mark.parametrize("outcome", list(Outcome))
def test_once_committed_whatever_goes_wrong_makes_the_run_a_partial_one(outcome: Outcome) -> None:
    fine = outcome in {Outcome.APPLIED, Outcome.ALREADY, Outcome.WAITING, Outcome.SUCCEEDED}
    assert _report(Outcome.APPLIED, outcome, committed=True).exit_code is (ExitCode.DONE if fine else ExitCode.PARTIAL)
    assert _report(outcome, committed=True).exit_code is (ExitCode.DONE if fine else ExitCode.PARTIAL)


def test_once_a_statement_went_through_it_counts_even_where_the_log_could_not_be_read() -> None:
    sent = StatementRun(id="closed-set", sql="ALTER TABLE t", phase=Phase.CLOSED, milliseconds=1)
    failed = replace(sent, error="no")
    table = TableRun(name="t", outcome=Outcome.FAILED, statements=(sent,))
    assert RunReport(run="1", plan="2", tables=(table,)).exit_code is ExitCode.PARTIAL
    nothing = replace(table, statements=(failed,))
    assert RunReport(run="1", plan="2", tables=(nothing,)).exit_code is ExitCode.ERROR


def test_a_table_that_the_plan_refused_is_left_out() -> None:
    refused = TableRun(name="r", outcome=Outcome.REFUSED, refusals=(_REFUSAL,))
    already = TableRun(name="a", outcome=Outcome.ALREADY)
    assert RunReport(run="1", plan="2", tables=(refused,)).exit_code is ExitCode.REFUSED
    assert RunReport(run="1", plan="2", tables=(refused, already)).exit_code is ExitCode.PARTIAL


def test_a_table_that_could_not_be_read() -> None:
    assert _report(failures=1).exit_code is ExitCode.ERROR
    assert _report(Outcome.APPLIED, committed=True, failures=1).exit_code is ExitCode.PARTIAL
    assert _report(Outcome.ALREADY, failures=1).exit_code is ExitCode.PARTIAL
    assert _report(Outcome.STALE, failures=1).exit_code is ExitCode.ERROR


def test_a_report_survives_its_json() -> None:
    report = _report(Outcome.APPLIED, Outcome.HELD, committed=True, failures=1)
    assert read_record(RunReport, json.dumps(report, default=plain)) == report
    assert report.committed
