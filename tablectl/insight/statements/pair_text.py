"""The outcomes of two concurrent statements as text: where each reads and writes, which one fails, and possible
fixes.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from itertools import groupby

from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.protocol import Client
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
from tablectl.insight.statements.target import StatementTable
from tablectl.model.text import printable
from tablectl.reports.style import Style

_COLOURS = {
    ConflictResult.COMMITS: "green",
    ConflictResult.MAY_FAIL: "yellow",
    ConflictResult.UNKNOWN: "yellow",
    ConflictResult.FAILS: "red",
}
_LONGEST = 400


def between_text(overlapping: Comparison, style: Style) -> str:
    """The comparison as text."""
    live = overlapping.live
    layout = f"partitioned by {', '.join(live.partition_columns)}" if live.partition_columns else "no partitions"
    clustered = ", clustered" if live.clustering is not None else ""
    lines = [style.paint(printable(live.name.text), "bold")]
    lines += _wrap(f"version {live.version}, {layout}{clustered}", 2, style, "dim")
    for view in overlapping.views:
        several = len(overlapping.views) > 1
        lines += ["", *_view(overlapping, view, style, several=several)]
    lines += ["", *_wrap(" ".join(_assumed(overlapping)), 0, style, "dim")]
    return "\n".join(lines) + "\n"


def _view(overlapping: Comparison, view: ClientComparison, style: Style, *, several: bool) -> list[str]:
    setting, pair = view.pair.setting, view.pair
    level = f"{setting.level}{'' if setting.stored_level else ' (not set)'}"
    who = " and ".join(client.text() for client in view.clients)
    lines = _wrap(f"With {who}, at {level}:", 0, style, "bold") if several else []
    for number, statement, prints in zip("12", overlapping.statements, (pair.first, pair.second), strict=True):
        lines += [*_statement(number, statement.sql, style), *_commits(prints, overlapping, style), ""]
    lines += [] if several else _wrap(f"With {who}, at {level}:", 0, style, "bold")
    for number, other, pair_outcome in zip("12", "21", pair.outcomes, strict=True):
        lines += _pair_outcome(f"{number} in flight, {other} commits first:", pair_outcome, setting.client, style)
    return [*lines, *_ways(view.ways, pair, style)]


def _statement(number: str, sql: str, style: Style) -> list[str]:
    text = " ".join(sql.split())
    lines = _wrap(text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…", 4, style, "cyan")
    return [f"  {style.paint(number, 'bold')} {lines[0].removeprefix('    ')}", *lines[1:]]


def _commits(commits: Footprints, overlapping: Comparison, style: Style) -> list[str]:
    """Where a statement reads and writes, and its commits if that is not exactly one."""
    if not commits:
        return style.prose("commits", "nothing", 4)
    several = style.prose("commits", "; ".join(_numbered(commits)), 4)
    return [*(several if len(commits) > 1 else []), *_footprint(main_footprint(commits), overlapping, style)]


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


def _footprint(prints: Footprint, overlapping: Comparison, style: Style) -> list[str]:
    reads = "nothing of the table" if prints.reads is None else region_text(prints.reads, overlapping.subject)
    lines = style.prose("reads", "the whole table" if reads == EVERYWHERE else reads, 4)
    lines += style.prose("writes", _writes(prints, overlapping.subject), 4)
    for part, why in prints.passed_over if overlapping.subject.partition_columns else ():
        lines += _wrap(f"{_cut(part)} is not used: {why}", 13, style, "dim")
    return lines


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


def _pair_outcome(who: str, pair_outcome: PairOutcome, client: Client, style: Style) -> list[str]:
    what = pair_outcome.result.value
    if pair_outcome.conflicts:
        what += f" with {' or '.join(dict.fromkeys(each.raised_by(client) for each in pair_outcome.conflicts))}"
    short = len(f"  {who} {what}") <= style.width
    lines = [f"  {who} {style.paint(what, _COLOURS[pair_outcome.result], 'bold')}"] if short else [f"  {who}"]
    lines += [] if short else _wrap(what, 4, style, _COLOURS[pair_outcome.result], "bold")
    lines += _wrap(f"{pair_outcome.reason} ({pair_outcome.source})", 4, style)
    return [*lines, *(_wrap(pair_outcome.afterwards, 4, style) if pair_outcome.afterwards else [])]


def _ways(ways: Suggestions, pair: StatementPair, style: Style) -> list[str]:
    if pair.separate:
        return []
    lines = ["", style.paint("How to avoid the conflict:", "bold")]
    for each in ways.rewrites:
        lines += _rewrite(each, style)
    for index, partitioning in enumerate(ways.partitionings):
        lines += _wrap(_partitioning(partitioning, first=index == 0 and not ways.rewrites), 2, style)
    for index in ways.by_apply:
        lines += _wrap(f"{index + 1}: {BY_APPLY}", 2, style)
    if not ways.rewrites and not ways.partitionings and not ways.by_apply:
        lines += _wrap(f"no rewrite was found: {IN_TURN}", 2, style)
    return lines


def _rewrite(each: RewrittenStatement, style: Style) -> list[str]:
    condition = f", only if {each.only_if}" if each.only_if else ", with the same result"
    lines = _wrap(f"{each.index + 1} rewritten{condition}:", 2, style)
    return [*lines, *_wrap(each.sql, 4, style, "cyan")]


def _partitioning(each: SuggestedPartitioning, *, first: bool) -> str:
    instead = " instead of clustering" if each.unclustered else ""
    opening = "" if first else "or "
    return f"{opening}PARTITIONED BY ({', '.join(each.columns)}){instead}: both would commit unchanged"


def _assumed(overlapping: Comparison) -> Iterator[str]:
    changes = "rows, files or settings" if any(each.action for each in overlapping.statements) else "rows"
    yield f"This holds for statements that both change {changes}; a statement that changes none conflicts with nothing."
    others = dict.fromkeys(name for view in overlapping.views for name in _others(view.pair))
    if others:
        names = list(others)
        verb = "is taken for another table, not a view" if len(names) == 1 else "are taken for other tables, not views"
        yield f"{', '.join(names)} {verb} of this one."
    if overlapping.assumed:
        yield "No client in the table's history is known to run SQL: this answer assumes the newest Delta Spark."


def _others(pair: StatementPair) -> Sequence[str]:
    return [name for made in (pair.first, pair.second) for each in made for name in each.assumed]


def _wrap(text: str, indent: int, style: Style, *paint: str) -> list[str]:
    space = " " * indent
    lines = textwrap.wrap(
        printable(text), max(style.width, indent + 30) - indent, break_long_words=False, break_on_hyphens=False
    )
    return [space + style.paint(line, *paint) for line in lines]
