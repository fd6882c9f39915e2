"""The outcomes of two concurrent statements as a document: where each reads and writes, which one fails, and possible
fixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.protocol import Client
from tablectl.documents.document import Block, Card, Document, Facts, Heading, Paragraph, Tone
from tablectl.insight.matrix.matrix import BY_APPLY, IN_TURN
from tablectl.insight.statements.compare import (
    ClientComparison,
    Comparison,
    RewrittenStatement,
    SuggestedPartitioning,
    Suggestions,
)
from tablectl.insight.statements.effects import Footprints
from tablectl.insight.statements.footprint import Footprint
from tablectl.insight.statements.pair import EVERYWHERE, PairOutcome, StatementPair, main_footprint, region_text
from tablectl.insight.statements.regions import Region
from tablectl.insight.statements.target import StatementTable

_TONES: dict[ConflictResult, Tone] = {
    ConflictResult.COMMITS: "good",
    ConflictResult.MAY_FAIL: "pending",
    ConflictResult.UNKNOWN: "pending",
    ConflictResult.FAILS: "bad",
}
_LONGEST = 400


def document_of_pair(overlapping: Comparison) -> Document:
    """The comparison, one card for each client."""
    live = overlapping.live
    layout = f"partitioned by {', '.join(live.partition_columns)}" if live.partition_columns else "no partitions"
    clustered = ", clustered" if live.clustering is not None else ""
    about = Paragraph(f"version {live.version}, {layout}{clustered}", "quiet")
    return Document(
        subject=live.name.text,
        verdict=None,
        cards=(
            Card((live.name.text,), "", "", "", brief=(about,)),
            *(_view(overlapping, each) for each in overlapping.views),
        ),
        tail=(Paragraph(" ".join(_assumed(overlapping)), "quiet"),),
        record=_json(overlapping),
    )


def _view(overlapping: Comparison, view: ClientComparison) -> Card:
    setting = view.pair.setting
    level = f"{setting.level}{'' if setting.stored_level else ' (not set)'}"
    who = " and ".join(client.text() for client in view.clients)
    blocks = tuple(_blocks(overlapping, view))
    return Card((f"With {who}",), f"at {level}", "quiet", "", "client", brief=blocks)


def _blocks(overlapping: Comparison, view: ClientComparison) -> Iterator[Block]:
    pair = view.pair
    for number, statement, prints in zip("12", overlapping.statements, (pair.first, pair.second), strict=True):
        text = " ".join(statement.sql.split())
        sql = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield Facts(((number, sql), *_commits(prints, overlapping)))
    for number, other, outcome in zip("12", "21", pair.outcomes, strict=True):
        what = outcome.result.value
        if outcome.conflicts:
            client = pair.setting.client
            what += f" with {' or '.join(dict.fromkeys(each.raised_by(client) for each in outcome.conflicts))}"
        yield Paragraph(f"{number} in flight, {other} commits first: {what}", _TONES[outcome.result])
        yield Facts((("why", f"{outcome.reason} ({outcome.source})"),))
        if outcome.afterwards:
            yield Facts((("then", outcome.afterwards),))
    yield from _ways(view.ways, pair)


def _commits(commits: Footprints, overlapping: Comparison) -> Iterator[tuple[str, str]]:
    """Where a statement reads and writes, and its commits if that is not exactly one."""
    if not commits:
        yield "commits", "nothing"
        return
    if len(commits) > 1:
        yield "commits", "; ".join(_numbered(commits))
    prints, subject = main_footprint(commits), overlapping.subject
    reads = "nothing of the table" if prints.reads is None else region_text(prints.reads, subject)
    yield "reads", "the whole table" if reads == EVERYWHERE else reads
    yield "writes", _writes(prints, subject)
    for part, why in prints.passed_over if subject.partition_columns else ():
        yield "not used", f"{_cut(part)}: {why}"


def _numbered(commits: Footprints) -> Iterator[str]:
    """The commits with their places; equal ones that follow each other together."""
    first = 1
    for text, same in groupby(each.kind.value + _kind_of(each) for each in commits):
        last = first + len(list(same)) - 1
        yield f"{first} {text}" if first == last else f"{first}-{last} {text}"
        first = last + 1


def _kind_of(commit: Footprint) -> str:
    if commit.automatic:
        return f" ({commit.automatic}, if there are enough small files)"
    return "" if commit.sure else " (if there are files to rewrite)"


def _writes(prints: Footprint, subject: StatementTable) -> str:
    """Where rows are changed, and where new or moved rows may be written."""
    if not prints.rewrites.boxes and not prints.adds.boxes:
        return "no files"
    rewrites, adds = (region_text(each, subject) for each in (prints.rewrites, prints.adds))
    if prints.data_change and prints.rewrites.boxes and prints.adds.boxes and rewrites != adds:
        return f"{rewrites}; new rows {adds}"
    return rewrites if prints.rewrites.boxes else adds


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _ways(ways: Suggestions, pair: StatementPair) -> Iterator[Block]:
    if pair.separate:
        return
    yield Heading("How to avoid the conflict", style="sql")
    for each in ways.rewrites:
        yield from _rewrite(each)
    for index, partitioning in enumerate(ways.partitionings):
        yield Paragraph(_partitioning(partitioning, first=index == 0 and not ways.rewrites))
    yield from (Paragraph(f"{index + 1}: {BY_APPLY}") for index in ways.by_apply)
    if not ways.rewrites and not ways.partitionings and not ways.by_apply:
        yield Paragraph(f"no rewrite was found: {IN_TURN}")


def _rewrite(each: RewrittenStatement) -> Iterator[Block]:
    condition = f", only if {each.only_if}" if each.only_if else ", with the same result"
    yield Facts(((f"{each.index + 1}", f"rewritten{condition}: {each.sql}"),))


def _partitioning(each: SuggestedPartitioning, *, first: bool) -> str:
    instead = " instead of clustering" if each.unclustered else ""
    opening = "" if first else "or "
    return (
        f"{opening}PARTITIONED BY ({', '.join(each.columns)}){instead}: both would commit unchanged; "
        "only if it has few values, because each is a directory (D60)"
    )


def _assumed(overlapping: Comparison) -> Iterator[str]:
    changes = "rows, files or settings" if any(each.action for each in overlapping.statements) else "rows"
    yield f"This holds for statements that both change {changes}; a statement that changes none conflicts with nothing."
    others = dict.fromkeys(name for view in overlapping.views for name in _others(view.pair))
    if others:
        names, partitions = list(others), overlapping.subject.partitions
        verb = "is taken for another table, not a view" if len(names) == 1 else "are taken for other tables, not views"
        yield f"{', '.join(names)} {verb} of this one."
        if any(domain.type == "string" for domain in map(overlapping.subject.domain, partitions) if domain):
            yield "Its text columns are assumed to have no collation, by which 'ab' also finds 'AB'."
    if overlapping.assumed:
        yield "No client in the table's history is known to run SQL: this answer assumes the newest Delta Spark."


def _others(pair: StatementPair) -> Sequence[str]:
    return [name for made in (pair.first, pair.second) for each in made for name in each.assumed]


def _json(overlapping: Comparison) -> dict[str, Any]:
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
        "views": [_json_of_view(view, overlapping.subject) for view in overlapping.views],
    }


def _json_of_view(view: ClientComparison, subject: StatementTable) -> dict[str, Any]:
    return {
        "clients": [{"engine": client.engine, "version": list(client.version)} for client in view.clients],
        "isolation": view.pair.setting.level,
        "isolation_pinned": view.pair.setting.stored_level is not None,
        "apart": view.pair.separate,
        "footprints": [
            _json_of_footprint(main_footprint(each), subject) for each in (view.pair.first, view.pair.second)
        ],
        "commits": [[_json_of_commit(each, subject) for each in made] for made in (view.pair.first, view.pair.second)],
        "fates": [_json_of_outcome(each, view.pair.setting.client) for each in view.pair.outcomes],
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


def _json_of_footprint(prints: Footprint, subject: StatementTable) -> dict[str, Any]:
    return {
        "kind": prints.kind.value,
        "reads": None if prints.reads is None else _json_of_region(prints.reads, subject),
        "rewrites": _json_of_region(prints.rewrites, subject),
        "adds": _json_of_region(prints.adds, subject),
        "passed_over": [{"condition": part, "reason": why} for part, why in prints.passed_over],
        "taken_for_other_tables": list(prints.assumed),
    }


def _json_of_commit(made: Footprint, subject: StatementTable) -> dict[str, Any]:
    """One commit of a statement; ``automatic`` if Delta adds it, ``sure`` if it is made in any case."""
    return {
        "kind": made.kind.value,
        "reads": None if made.reads is None else _json_of_region(made.reads, subject),
        "rewrites": _json_of_region(made.rewrites, subject),
        "adds": _json_of_region(made.adds, subject),
        "metadata": made.most_metadata is not None,
        "protocol": made.protocol is not None,
        "automatic": made.automatic or None,
        "sure": made.sure,
    }


def _json_of_region(region: Region, subject: StatementTable) -> dict[str, Any]:
    return {"where": region_text(region, subject), "exact": region.exact}


def _json_of_outcome(pair_outcome: PairOutcome, client: Client) -> dict[str, Any]:
    return {
        "result": pair_outcome.result.value,
        "conditions": [each.value for each in pair_outcome.conflicts],
        "exceptions": list(dict.fromkeys(each.raised_by(client) for each in pair_outcome.conflicts)),
        "reason": pair_outcome.reason,
        "source": pair_outcome.source,
        "afterwards": pair_outcome.afterwards or None,
    }
