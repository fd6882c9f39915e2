"""The outcomes of two concurrent statements as JSON."""

from __future__ import annotations

from typing import Any

from tablectl.statements.compare import ClientComparison, Comparison
from tablectl.statements.footprint import Footprint
from tablectl.statements.pair import PairOutcome, region_text
from tablectl.statements.regions import Region
from tablectl.statements.target import StatementTable


def between_json(meeting: Comparison) -> dict[str, Any]:
    """The comparison as plain values. The first of a view's two outcomes is that of the first statement after the
    second.
    """
    return {
        "table": meeting.live.name.text,
        "version": meeting.live.version,
        "partition_columns": list(meeting.live.partition_columns),
        "apart": meeting.apart,
        "clients_assumed": meeting.assumed,
        "statements": [{"sql": each.sql, "operation": each.verb} for each in meeting.statements],
        "views": [_view(view, meeting.subject) for view in meeting.views],
    }


def _view(view: ClientComparison, subject: StatementTable) -> dict[str, Any]:
    return {
        "clients": [{"engine": client.engine, "version": list(client.version)} for client in view.clients],
        "isolation": view.pair.setting.level,
        "isolation_pinned": view.pair.setting.stored_level is not None,
        "apart": view.pair.apart,
        "footprints": [_footprint(each, subject) for each in (view.pair.first, view.pair.second)],
        "fates": [_fate(each) for each in view.pair.fates],
        "ways": {
            "rewrites": [
                {"statement": each.index, "sql": each.sql, "only_if": each.only_if or None}
                for each in view.ways.rewrites
            ],
            "partitionings": [
                {"columns": list(each.columns), "unclustered": each.unclustered} for each in view.ways.partitionings
            ],
        },
    }


def _footprint(prints: Footprint, subject: StatementTable) -> dict[str, Any]:
    return {
        "kind": prints.kind.value,
        "reads": None if prints.reads is None else _region(prints.reads, subject),
        "rewrites": _region(prints.rewrites, subject),
        "adds": _region(prints.adds, subject),
        "passed_over": [{"condition": part, "reason": why} for part, why in prints.passed_over],
        "taken_for_other_tables": list(prints.assumed),
    }


def _region(region: Region, subject: StatementTable) -> dict[str, Any]:
    return {"where": region_text(region, subject), "exact": region.exact}


def _fate(fate: PairOutcome) -> dict[str, Any]:
    return {
        "result": fate.result.value,
        "conditions": [each.value for each in fate.conflicts],
        "exceptions": [each.exception for each in fate.conflicts],
        "reason": fate.reason,
        "source": fate.source,
    }
