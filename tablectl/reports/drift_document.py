"""Drift as a document: equal differences together, with who made them."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from enum import StrEnum

from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    Document,
    Facts,
    Fold,
    Grid,
    Heading,
    Lines,
    Names,
    Paragraph,
    Row,
    Tone,
    Verdict,
    overview_of,
    unread_title,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.log.blame import Origin
from tablectl.model.commit import Commit
from tablectl.model.safe_text import printable, time_text, value_text
from tablectl.model.stamp import read_stamp
from tablectl.model.table import CatalogDifference
from tablectl.planning.drift import Difference, Drift, SlippedTable, TableDrift
from tablectl.reports.plan_document import failure_card, failure_lines
from tablectl.reports.report_context import Context
from tablectl.reports.rivals import rival_advice, rival_text
from tablectl.reports.table_groups import by_key, failure_groups
from tablectl.reports.wording import owner_facts, unclustered_of_changes

_PARAMETERS = ("mode", "predicate", "version", "timestamp")
"""The parameters that help people to recognize an operation; properties and columns are reported separately."""
_LONGEST = 60


class Provenance(StrEnum):
    """Why a table is not as declared."""

    CHANGED = "changed by others"
    """Another writer changed it after the last apply."""
    PENDING = "not applied yet"
    """The policy changed after the last apply, or that apply did not include it."""
    NEVER = "never applied"
    """No apply of tablectl was found in the history."""
    CATALOG = "catalog differs"
    """The table is as declared, and its catalog says something else."""
    UNKNOWN = "unknown"
    """The history could not be read, or does not reach far enough."""

    @property
    def tone(self) -> Tone:
        """The colour: only what another writer changed is alarming."""
        return {"changed by others": "bad", "never applied": "quiet"}.get(self.value, "pending")  # type: ignore[return-value]


_ORDER = tuple(Provenance)


def provenance(difference: Difference, table: TableDrift) -> Provenance:
    """Why one value of a table differs."""
    origin = difference.origin
    if table.trouble:
        return Provenance.UNKNOWN
    if origin.commit and not read_stamp(origin.commit.user_metadata):
        if origin.known and origin.was == difference.change.after:
            return Provenance.CHANGED  # it was as declared, whoever declared it
        if table.applied and origin.commit.version > table.applied.version:
            return Provenance.CHANGED
    return Provenance.PENDING if table.applied else Provenance.NEVER


def table_provenance(table: TableDrift) -> Provenance:
    """The most alarming one of its differences."""
    found = (provenance(each, table) for each in table.differences)
    return min(found, key=_ORDER.index, default=Provenance.CATALOG)


def drift_document(drift: Drift, context: Context, *, each_table: bool = False) -> Document:
    """The document of drift. With ``each_table``, every table has its own part."""
    failures = failure_groups(drift.failures)
    groups = _groups(drift.tables, separate=each_table)
    unread = (failure_card(each, row=((), failure_lines(each))) for each in failures)
    cards = (*unread, *(_card(group, context) for group in groups))
    return Document(
        subject="Drift",
        verdict=drift_verdict(drift),
        env=drift.env,
        facts=(("History read", Cell(f"at most {plural(drift.look_back, 'commit')} per table")),),
        overview=overview_of(cards, "All differences", ("Tables", "Declared and found", "Who")),
        cards=cards,
        tail=tuple(_tail(drift)),
        summary=(*_summary(drift), *([Cell(_slipped_title(drift), tone="bad")] if drift.slipped else [])),
    )


def table_drift_card(table: TableDrift) -> Card:
    """The part of one table."""
    return _card((table,), Context())


def _tail(drift: Drift) -> Iterator[Block]:
    if drift.slipped:
        yield Heading(_slipped_title(drift))
        yield from (Paragraph(_slipped(each)) for each in drift.slipped)
    yield from without_tables(drift.unmatched)
    if drift.as_declared:
        yield Names(f"{plural(len(drift.as_declared), 'table')} without drift", drift.as_declared)


def _summary(drift: Drift) -> tuple[Cell, ...]:
    if drift.tables or drift.failures:
        return tuple(_parts(drift))
    return (Cell(f"{plural(len(drift.as_declared), 'table')} checked", tone="good"),)


def _slipped_title(drift: Drift) -> str:
    return f"{plural(len(drift.slipped), 'table')} created since the last apply, not as a policy declares"


def _slipped(table: SlippedTable) -> str:
    when = f" on {time_text(table.created_at)}" if table.created_at else ""
    return f"{table.table}: created{when} by {table.created_by or 'an unknown writer'}; `{table.command}`"


def _groups(tables: Iterable[TableDrift], *, separate: bool) -> list[tuple[TableDrift, ...]]:
    """Tables with equal differences of equal provenance; the most alarming first."""
    found = by_key(tables, lambda each: each.name, id if separate else _key)
    return sorted(found, key=lambda each: _ORDER.index(table_provenance(each[0])))


def _key(table: TableDrift) -> Hashable:
    return (
        tuple((each.change.id, each.change.before, each.change.after, _who(each, table)) for each in table.differences),
        table.catalog,
        str(table.trouble),
    )


def _who(difference: Difference, table: TableDrift) -> str:
    """Who made a difference, without the time: ``ann (Delta Spark 4.4.0), job nightly``."""
    found = provenance(difference, table)
    commit = difference.origin.commit
    return f"changed by {commit_author(commit)}" if found is Provenance.CHANGED and commit else found.value


def _row(table: TableDrift) -> tuple[Lines, ...]:
    changes = tuple(
        Cell(f"{each.change.id}: {value_text(each.change.after)}, found {value_text(each.change.before)}", code=True)
        for each in table.differences
    )
    who = dict.fromkeys((_who(each, table), provenance(each, table).tone) for each in table.differences)
    return changes, tuple(Cell(text, tone=tone) for text, tone in who)


def _card(group: tuple[TableDrift, ...], context: Context) -> Card:
    table, found = group[0], table_provenance(group[0])
    same = bool(table.differences) and all(_who(each, table) == found.value for each in table.differences)
    rows = tuple(
        ChangeRow(
            each.change.id,
            value_text(each.change.after),
            value_text(each.change.before),
            (Cell(f"{each.source.file}:{each.source.line}", code=True, href=context.link_of(each.source)),),
            "" if same else _who(each, table),
        )
        for each in table.differences
    )
    changes = Changes(rows, ("Declared", "Found"), "What differs", ("good", found.tone))
    details: list[Block] = []
    for each in group[:_MOST_HISTORIES]:
        details += _history(each, named=len(group) > 1)
    if len(group) > 1:
        details.append(Fold(f"All {len(group):,} tables", (_every(group),)))
    alone: list[Block] = [Paragraph(f"version {table.live.version}", "quiet")] if len(group) == 1 else []
    if owners := owner_facts(each.spec.owner for each in group):
        alone.append(Facts(tuple(owners)))
    return Card(
        names=tuple(each.spec.name.text for each in group),
        state=found.value,
        tone=found.tone,
        mark="~",
        brief=(*alone, *([changes] if rows else []), *(_history(table, named=False) if len(group) == 1 else [])),
        details=tuple(details) if len(group) > 1 else (),
        row=_row(table),
    )


_MOST_HISTORIES = 5


def _every(group: tuple[TableDrift, ...]) -> Grid:
    rows = (
        Row(((Cell(each.spec.name.text, code=True),), (Cell(f"version {each.live.version}"),), (Cell(_last(each)),)))
        for each in group
    )
    return Grid(f"All {len(group):,} tables", ("Table", "Version", "Since"), tuple(rows))


def _last(table: TableDrift) -> str:
    commits = [each.origin.commit for each in table.differences if each.origin.commit]
    return _commit(max(commits, key=lambda each: each.version)) if commits else ""


def _history(table: TableDrift, *, named: bool) -> list[Block]:
    blocks: list[Block] = [Heading(table.spec.name.text)] if named else []
    for facts, ids in _by_origin(table).items():
        several = len(table.differences) > len(ids)
        blocks.append(Facts((*((("value", ", ".join(ids)),) if several else ()), *facts)))
    more = table_facts(table)
    return [*blocks, *([Facts(tuple(more))] if more else [])]


def _by_origin(table: TableDrift) -> dict[tuple[tuple[str, str], ...], list[str]]:
    """The differences that one commit made, together."""
    found: dict[tuple[tuple[str, str], ...], list[str]] = {}
    for each in table.differences:
        if facts := tuple(origin_facts(each.origin, table)):
            found.setdefault(facts, []).append(each.change.id)
    return found


def origin_facts(origin: Origin, table: TableDrift) -> list[tuple[str, str]]:
    """Since when a difference exists and who caused it, as labels and prose."""
    if origin.commit:
        return [("since", _since(origin, origin.commit)), ("by", commit_author(origin.commit))]
    if table.trouble:
        return []
    return [("since", f"before version {origin.before}, the oldest one in the history")]


def table_facts(table: TableDrift) -> list[tuple[str, str]]:
    """What is known about a table in addition to its differences, as labels and prose."""
    facts = [("applied", f"last by tablectl in {_commit(table.applied)}")] if table.applied else []
    unclustered = unclustered_of_changes((each.change for each in table.differences), table.live.marks)
    facts += [("unclustered", f"{unclustered} is not clustered by the declared columns")] if unclustered else []
    facts += [("also altered", f"{rival_text(each)}; to stop it: {rival_advice(each)}") for each in table.rivals]
    facts += [("catalog", catalog_text(each)) for each in table.catalog]
    return facts + ([("error", f"its history cannot be read: {table.trouble}")] if table.trouble else [])


def catalog_text(difference: CatalogDifference) -> str:
    """Where a catalog disagrees with the log of its table."""
    told, logged = value_text(difference.catalog), value_text(difference.log)
    return f"disagrees with the log: {printable(difference.what)} is {told} in the catalog and {logged} in the log"


def _since(origin: Origin, commit: Commit) -> str:
    was = f"; before that it was {value_text(origin.was)}" if origin.known else ""
    return _commit(commit) + was


def _commit(commit: Commit) -> str:
    """``version 13, 2026-11-21 11:00:00 UTC: WRITE mode Overwrite, of run 0f3a (plan 81c2…)``."""
    when = f", {at}" if (at := time_text(commit.timestamp)) else ""
    shown = [f"{name} {_cut(commit.parameters[name])}" for name in _PARAMETERS if _told(commit, name)]
    what = " ".join([commit.operation or "unknown operation", *shown])
    return f"version {commit.version}{when}: {what}{_stamped(commit)}"


def _told(commit: Commit, name: str) -> bool:
    return commit.parameters.get(name, "") not in {"", "[]"}


def _stamped(commit: Commit) -> str:
    stamp = read_stamp(commit.user_metadata)
    return f", by tablectl, run {_cut(stamp.run)}, plan {stamp.plan[:12]}" if stamp else ""


def commit_author(commit: Commit) -> str:
    """The user, the client and the job."""
    return ", ".join([f"{printable(commit.user) or 'unknown user'} ({commit.client.text()})", *_job(commit)])


def _job(commit: Commit) -> list[str]:
    name, number = commit.job.get("jobName", ""), commit.job.get("jobId", "")
    run = commit.job.get("jobRunId", "") or commit.job.get("runId", "")
    parts = [f"job {' '.join(filter(None, [name, number]))}"] if name or number else []
    parts += [f"run {run}"] if run else []
    notebook, cluster = commit.job.get("notebookId", ""), commit.job.get("clusterId", "")
    return [*parts, *([f"notebook {notebook}"] if notebook else []), *([f"cluster {cluster}"] if cluster else [])]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _parts(drift: Drift) -> Iterator[Cell]:
    """How many tables differ, cannot be read, and do not differ."""
    values = [len(table.differences) for table in drift.tables if table.differences]
    if values:
        how = "differs" if len(values) == 1 else "differ"
        yield Cell(f"{plural(len(values), 'table')} {how} in {plural(sum(values), 'value')}", tone="pending")
    disagree = sum(1 for table in drift.tables if table.catalog)
    if disagree:
        how = "differs" if disagree == 1 else "differ"
        yield Cell(f"{plural(disagree, 'table')} {how} between catalog and log", tone="pending")
    if drift.failures:
        yield Cell(f"{len(drift.failures)} not readable", tone="bad")
    if drift.as_declared:
        yield Cell(f"{len(drift.as_declared)} without drift")


def drift_verdict(drift: Drift) -> Verdict:
    """The verdict on drift."""
    parts = tuple(each.text for each in _parts(drift)) or ("no tables",)
    if drift.failures:
        return Verdict("bad", unread_title(drift.tables or drift.as_declared), parts)
    if drift.tables:
        return Verdict("pending", "Drift found", parts)
    return Verdict("good", "No drift", parts)
