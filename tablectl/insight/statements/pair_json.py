"""The outcomes of two concurrent statements as JSON."""

from __future__ import annotations

from typing import Any

from tablectl.delta.protocol import Client
from tablectl.insight.statements.compare import ClientComparison, Comparison
from tablectl.insight.statements.footprint import Footprint
from tablectl.insight.statements.pair import PairOutcome, main_footprint, region_text
from tablectl.insight.statements.regions import Region
from tablectl.insight.statements.target import StatementTable


def between_json(overlapping: Comparison) -> dict[str, Any]:
    """The comparison as plain values. The first of a view's two outcomes is that of the first statement after the
    second.
    """
    return {
        "table": overlapping.live.name.text,
        "version": overlapping.live.version,
        "partition_columns": list(overlapping.live.partition_columns),
        "apart": overlapping.separate,
        "clients_assumed": overlapping.assumed,
        "statements": [{"sql": each.sql, "operation": each.verb} for each in overlapping.statements],
        "views": [_view(view, overlapping.subject) for view in overlapping.views],
    }


def _view(view: ClientComparison, subject: StatementTable) -> dict[str, Any]:
    return {
        "clients": [{"engine": client.engine, "version": list(client.version)} for client in view.clients],
        "isolation": view.pair.setting.level,
        "isolation_pinned": view.pair.setting.stored_level is not None,
        "apart": view.pair.separate,
        "footprints": [_footprint(main_footprint(each), subject) for each in (view.pair.first, view.pair.second)],
        "commits": [[_commit(each, subject) for each in made] for made in (view.pair.first, view.pair.second)],
        "fates": [_pair_outcome(each, view.pair.setting.client) for each in view.pair.outcomes],
        "ways": {
            "rewrites": [
                {"statement": each.index, "sql": each.sql, "only_if": each.only_if or None}
                for each in view.ways.rewrites
            ],
            "partitionings": [
                {"columns": list(each.columns), "unclustered": each.unclustered} for each in view.ways.partitionings
            ],
            "by_apply": list(view.ways.by_apply),
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


def _commit(made: Footprint, subject: StatementTable) -> dict[str, Any]:
    """One commit of a statement; ``automatic`` if Delta adds it, ``sure`` if it is made in any case."""
    return {
        "kind": made.kind.value,
        "reads": None if made.reads is None else _region(made.reads, subject),
        "rewrites": _region(made.rewrites, subject),
        "adds": _region(made.adds, subject),
        "metadata": made.most_metadata is not None,
        "protocol": made.protocol is not None,
        "automatic": made.automatic or None,
        "sure": made.sure,
    }


def _region(region: Region, subject: StatementTable) -> dict[str, Any]:
    return {"where": region_text(region, subject), "exact": region.exact}


def _pair_outcome(pair_outcome: PairOutcome, client: Client) -> dict[str, Any]:
    return {
        "result": pair_outcome.result.value,
        "conditions": [each.value for each in pair_outcome.conflicts],
        "exceptions": list(dict.fromkeys(each.raised_by(client) for each in pair_outcome.conflicts)),
        "reason": pair_outcome.reason,
        "source": pair_outcome.source,
        "afterwards": pair_outcome.afterwards or None,
    }
