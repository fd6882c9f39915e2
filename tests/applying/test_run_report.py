"""The exit code of a run follows from what came of its tables."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tablectl.model.errors import ExitCode
from tablectl.model.plan import Phase, Refusal, TableFailure
from tablectl.model.run_report import CommitRun, RunOutcome, RunReport, StatementRun, TableRun
from tablectl.support.typed_json import json_form, read_record

_COMMIT = CommitRun(version=1, operation="SET TBLPROPERTIES", user="ann", at=0)
_REFUSAL = Refusal(change="partitioning", reason="no ALTER changes it", fix="rewrite the table")
_UNREADABLE = TableFailure(name="lake.s.gone", message="not a Delta table")


def _report(*outcomes: RunOutcome, committed: bool = False, failures: int = 0) -> RunReport:
    tables = tuple(TableRun(name=f"t{index}", outcome=outcome) for index, outcome in enumerate(outcomes))
    if committed:
        tables = (replace(tables[0], commits=(_COMMIT,)), *tables[1:])
    return RunReport(run="1", plan="2", tables=tables, failures=(_UNREADABLE,) * failures)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), ExitCode.DONE),
        ((RunOutcome.ALREADY,), ExitCode.DONE),
        ((RunOutcome.STALE,), ExitCode.REFUSED),
        ((RunOutcome.REFUSED,), ExitCode.REFUSED),
        ((RunOutcome.NO_WINDOW,), ExitCode.WINDOW),
        ((RunOutcome.FAILED,), ExitCode.ERROR),
        ((RunOutcome.INTERRUPTED,), ExitCode.ERROR),
        ((RunOutcome.UNVERIFIED,), ExitCode.PARTIAL),
        ((RunOutcome.UNKNOWN,), ExitCode.PARTIAL),
        ((RunOutcome.HOOK_FAILED,), ExitCode.WINDOW),
        ((RunOutcome.NO_WINDOW, RunOutcome.STALE), ExitCode.WINDOW),
        ((RunOutcome.FAILED, RunOutcome.NO_WINDOW), ExitCode.ERROR),
        ((RunOutcome.FAILED, RunOutcome.UNVERIFIED), ExitCode.ERROR),
        ((RunOutcome.ALREADY, RunOutcome.REFUSED), ExitCode.REFUSED),
        ((RunOutcome.ALREADY, RunOutcome.FAILED), ExitCode.ERROR),
    ],
)
def test_without_a_commit(outcomes: tuple[RunOutcome, ...], code: ExitCode) -> None:
    assert _report(*outcomes).exit_code is code


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_a_gate_that_may_still_be_shut_is_never_exit_code_0(outcome: RunOutcome) -> None:
    table = TableRun(name="t", outcome=outcome, shut_ms=1, shut="writers may wait")
    wrong = TableRun(name="t", outcome=outcome).code is ExitCode.ERROR
    assert RunReport(run="1", plan="2", tables=(table,)).exit_code is (ExitCode.ERROR if wrong else ExitCode.PARTIAL)


def test_a_window_of_unknown_length_stays_unknown_when_the_table_is_tried_again() -> None:
    first = TableRun(name="t", outcome=RunOutcome.UNKNOWN, epoch=1, window_ms=None, shut_ms=5, shut="writers may wait")
    again = TableRun(name="t", outcome=RunOutcome.ALREADY, epoch=2).following(first)
    assert (again.window_ms, again.shut_ms, again.shut) == (None, 0, "")
    without_lease = TableRun(name="t", outcome=RunOutcome.NO_WINDOW).following(first)
    assert (without_lease.shut_ms, without_lease.shut) == (first.shut_ms, first.shut)
    assert without_lease.code is ExitCode.PARTIAL


@pytest.mark.parametrize("outcome", list(RunOutcome))
def test_once_committed_whatever_goes_wrong_makes_the_run_a_partial_one(outcome: RunOutcome) -> None:
    fine = outcome in {RunOutcome.APPLIED, RunOutcome.ALREADY, RunOutcome.WAITING, RunOutcome.ALREADY}
    assert _report(RunOutcome.APPLIED, outcome, committed=True).exit_code is (
        ExitCode.DONE if fine else ExitCode.PARTIAL
    )
    assert _report(outcome, committed=True).exit_code is (ExitCode.DONE if fine else ExitCode.PARTIAL)


def test_once_a_statement_went_through_it_counts_even_where_the_log_could_not_be_read() -> None:
    sent = StatementRun(id="closed-set", sql="ALTER TABLE t", phase=Phase.CLOSED, milliseconds=1)
    failed = replace(sent, error="no")
    table = TableRun(name="t", outcome=RunOutcome.FAILED, statements=(sent,))
    assert RunReport(run="1", plan="2", tables=(table,)).exit_code is ExitCode.PARTIAL
    nothing = replace(table, statements=(failed,))
    assert RunReport(run="1", plan="2", tables=(nothing,)).exit_code is ExitCode.ERROR


def test_a_table_that_the_plan_refused_is_left_out() -> None:
    refused = TableRun(name="r", outcome=RunOutcome.REFUSED, refusals=(_REFUSAL,))
    already = TableRun(name="a", outcome=RunOutcome.ALREADY)
    assert RunReport(run="1", plan="2", tables=(refused,)).exit_code is ExitCode.REFUSED
    assert RunReport(run="1", plan="2", tables=(refused, already)).exit_code is ExitCode.PARTIAL


def test_a_table_that_could_not_be_read() -> None:
    assert _report(failures=1).exit_code is ExitCode.ERROR
    assert _report(RunOutcome.APPLIED, committed=True, failures=1).exit_code is ExitCode.PARTIAL
    assert _report(RunOutcome.ALREADY, failures=1).exit_code is ExitCode.PARTIAL
    assert _report(RunOutcome.STALE, failures=1).exit_code is ExitCode.ERROR


def test_a_report_is_read_back_from_its_json() -> None:
    report = _report(RunOutcome.APPLIED, RunOutcome.NO_WINDOW, committed=True, failures=1)
    body = json_form(report)
    assert body.pop("exit_code") == ExitCode.PARTIAL
    assert read_record(RunReport, json.dumps(body)) == report
    assert report.committed
