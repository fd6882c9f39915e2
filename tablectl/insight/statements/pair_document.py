"""The outcomes of two concurrent statements as a document: where each reads and writes, which one fails, and possible
fixes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from tablectl.conflicts.transactions import ConflictResult
from tablectl.documents.document import Block, Card, Document, Facts, Heading, Paragraph, Tone
from tablectl.insight.matrix.matrix import BY_APPLY, IN_TURN
from tablectl.insight.statements.compare import (
    ClientComparison,
    Comparison,
    RewrittenStatement,
    SuggestedPartitioning,
    Suggestions,
)
from tablectl.insight.statements.pair import EVERYWHERE, NO_REGION, StatementCommit

_TONES: dict[ConflictResult, Tone] = {
    ConflictResult.COMMITS: "good",
    ConflictResult.MAY_FAIL: "pending",
    ConflictResult.UNKNOWN: "pending",
    ConflictResult.FAILS: "bad",
}
_LONGEST = 400


def document_of_pair(overlapping: Comparison) -> Document:
    """The comparison, one card for each client."""
    columns = overlapping.partition_columns
    layout = f"partitioned by {', '.join(columns)}" if columns else "no partitions"
    clustered = ", clustered" if overlapping.clustered else ""
    about = Paragraph(f"version {overlapping.version}, {layout}{clustered}", "quiet")
    return Document(
        subject=overlapping.table.text,
        verdict=None,
        cards=(
            Card((overlapping.table.text,), "", "", "", brief=(about,)),
            *(_view(overlapping, each) for each in overlapping.views),
        ),
        tail=(Paragraph(" ".join(overlapping.assumptions), "quiet"),),
        record=overlapping,
    )


def _view(overlapping: Comparison, view: ClientComparison) -> Card:
    level = f"{view.isolation}{'' if view.isolation_pinned else ' (not set)'}"
    who = " and ".join(client.text() for client in view.clients)
    blocks = tuple(_blocks(overlapping, view))
    return Card((f"With {who}",), f"at {level}", "quiet", "", "client", brief=blocks)


def _blocks(overlapping: Comparison, view: ClientComparison) -> Iterator[Block]:
    partitioned = bool(overlapping.partition_columns)
    made = zip("12", overlapping.statements, view.commits, view.footprints, strict=True)
    for number, statement, commits, main in made:
        text = " ".join(statement.sql.split())
        sql = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
        yield Facts(((number, sql), *_commits(commits, main, partitioned=partitioned)))
    for number, other, outcome in zip("12", "21", view.fates, strict=True):
        what = outcome.result.value
        if outcome.exceptions:
            what += f" with {' or '.join(outcome.exceptions)}"
        yield Paragraph(f"{number} in flight, {other} commits first: {what}", _TONES[outcome.result])
        yield Facts((("why", f"{outcome.reason} ({outcome.source})"),))
        if outcome.afterwards:
            yield Facts((("then", outcome.afterwards),))
    if not view.apart:
        yield from _ways(view.ways)


def _commits(
    commits: Sequence[StatementCommit], main: StatementCommit, *, partitioned: bool
) -> Iterator[tuple[str, str]]:
    """Where a statement reads and writes, and its commits if that is not exactly one."""
    if not commits:
        yield "commits", "nothing"
        return
    if len(commits) > 1:
        yield "commits", "; ".join(_numbered(commits))
    reads = main.reads.where if main.reads else "nothing of the table"
    yield "reads", "the whole table" if reads == EVERYWHERE else reads
    yield "writes", _writes(main)
    for each in main.passed_over if partitioned else ():
        yield "not used", f"{_cut(each.condition)}: {each.reason}"


def _numbered(commits: Sequence[StatementCommit]) -> Iterator[str]:
    """The commits with their places; equal ones that follow each other together."""
    first = 1
    for text, same in groupby(each.kind.value + _kind_of(each) for each in commits):
        last = first + len(list(same)) - 1
        yield f"{first} {text}" if first == last else f"{first}-{last} {text}"
        first = last + 1


def _kind_of(commit: StatementCommit) -> str:
    if commit.automatic:
        return f" ({commit.automatic}, if there are enough small files)"
    return "" if commit.sure else " (if there are files to rewrite)"


def _writes(commit: StatementCommit) -> str:
    """Where rows are changed, and where new or moved rows may be written."""
    rewrites, adds = commit.rewrites.where, commit.adds.where
    if rewrites == adds == NO_REGION:
        return "no files"
    if commit.data_change and NO_REGION not in (rewrites, adds) and rewrites != adds:
        return f"{rewrites}; new rows {adds}"
    return adds if rewrites == NO_REGION else rewrites


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _ways(ways: Suggestions) -> Iterator[Block]:
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
    yield Facts(((f"{each.statement + 1}", f"rewritten{condition}: {each.sql}"),))


def _partitioning(each: SuggestedPartitioning, *, first: bool) -> str:
    instead = " instead of clustering" if each.unclustered else ""
    opening = "" if first else "or "
    return (
        f"{opening}PARTITIONED BY ({', '.join(each.columns)}){instead}: both would commit unchanged; "
        "only if it has few values, because each is a directory (D60)"
    )
