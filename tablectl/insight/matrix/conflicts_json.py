"""Which operations conflict on a table, for machines: every pair of operations, with reason, source and fixes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablectl.conflicts.streaming_readers import ReaderStop, stream_reader
from tablectl.conflicts.transactions import ConflictOutcome
from tablectl.delta.dialects import dialect_for
from tablectl.delta.protocol import Client
from tablectl.insight.matrix.conflict_report import ConflictReport, ContextComparison
from tablectl.insight.matrix.context import ConflictContext
from tablectl.insight.matrix.matrix import Matrix, MatrixCell, RowLevel, compare, fixes_for, row_levels
from tablectl.insight.matrix.operations import TableOperation


def conflicts_json(report: ConflictReport) -> dict[str, Any]:
    """The matrix as plain values. ``meeting`` is the outcome for the same data, ``apart`` the outcome for different
    data.
    """
    return {
        "table": report.live.name.text,
        "version": report.live.version,
        "declared": report.declared,
        "changes": [
            {
                "change": change.id,
                "before": change.before,
                "after": change.after,
                "refused": change.id in report.refused,
            }
            for change in report.changes
        ],
        "operations": {each.key: each.name for view in report.views for each in _operations(view)},
        "views": [_view(view) for view in report.views],
    }


def _operations(view: ContextComparison) -> tuple[TableOperation, ...]:
    return (*view.live.all_committed, *(view.planned.all_committed if view.planned else ()))


def _view(view: ContextComparison) -> dict[str, Any]:
    setting = view.live.setting
    made: dict[str, Any] = {
        "clients": [{"engine": client.engine, "version": list(client.version)} for client in view.clients],
        "isolation": setting.level,
        "isolation_pinned": setting.stored_level is not None,
        "pairs": [_cell(cell, setting) for cell in view.live.cells],
        "streaming_readers": _readers(view.live),
        "row_level": [_row_level(each) for each in row_levels(setting)],
        "policy": None,
    }
    if view.planned is not None:
        different, equal = compare(view.live, view.planned)
        planned = view.planned.setting
        made["policy"] = {
            "equal": equal,
            "different": [
                {
                    "before": _cell(each.before, setting) if each.before else None,
                    "after": _cell(each.after, planned) if each.after else None,
                }
                for each in different
            ],
            "row_level": [_row_level(each) for each in row_levels(planned)],
        }
    return made


def _cell(cell: MatrixCell, setting: ConflictContext) -> dict[str, Any]:
    return {
        "current": cell.current.key,
        "committed": cell.committed.key,
        "verdict": cell.verdict,
        "meeting": _outcome(cell.overlapping, setting.client),
        "apart": _outcome(cell.separate, setting.client),
        "avoid": list(fixes_for(cell, setting)),
    }


def _outcome(outcome: ConflictOutcome, client: Client) -> dict[str, Any]:
    """``message`` is the text of clients that have one exception for all conflicts."""
    failure: Mapping[str, str | None] = {"exception": None, "message": None, "condition": None}
    conflict = outcome.conflict
    if conflict:
        message = conflict.message_of(client) or None
        failure = {"exception": conflict.raised_by(client), "message": message, "condition": conflict}
    return {"result": outcome.result, **failure, "reason": outcome.reason, "source": outcome.source}


def _readers(found: Matrix) -> list[dict[str, Any]]:
    dialect = dialect_for(found.setting.client.family).name
    rows = []
    for each in found.all_committed:
        made = [transaction.committed for transaction in each.transactions(found.setting, "a")]
        rows.append({"committed": each.key, **_stop(stream_reader(made, dialect))})
    return rows


def _stop(stop: ReaderStop) -> dict[str, Any]:
    return {
        "effect": stop.effect.name.lower(),
        "condition": stop.condition or None,
        "reason": stop.reason,
        "source": stop.source,
        "avoid": stop.fix or None,
    }


def _row_level(each: RowLevel) -> dict[str, Any]:
    return {"statement": each.statement, "holds": each.holds, "sources": each.sources, "why_not": each.why_not or None}
