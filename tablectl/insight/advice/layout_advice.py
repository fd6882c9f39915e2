"""Advice on the files of a table: clustering, partitions, small files, deletion vectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tablectl.attributes.value_types import has_order, has_statistics, names_statistics
from tablectl.conflicts.past_writers import metric_seconds
from tablectl.delta import keys
from tablectl.delta.names import column_text
from tablectl.insight.advice.advice_records import (
    LEAST_WRITES,
    Advice,
    Confidence,
    Declared,
    TableFacts,
    confidence_of,
    enough,
)
from tablectl.insight.advice.conflict_loss import Layout, conflict_loss
from tablectl.insight.advice.jobs import Job
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import Kind
from tablectl.model.safe_text import size_text
from tablectl.support.json_text import read_json

_SMALL = 16_000_000
"""Bytes. Files that are smaller on average are small."""
_TARGET = 128_000_000
"""Bytes of a file after OPTIMIZE, as the automatic compaction of Delta Spark makes them."""
_MANY = 1000
_LEAST_BYTES = 1_000_000_000
_LEAST_SHARE = 0.2
_LEAST_COMPACTED = 0.5
_LEAST_VECTORS = 100
_VECTOR_SHARE = 0.3
_MANY_PARTITIONS = 200
_SMALL_PARTITION = 64_000_000
_COLUMNS = 2
_WEIGHT = 0.25
_RUNS = 3
_MOST_COLUMNS = 4
"""Columns by which a table can be clustered."""
_COPIES = 100
"""Copied rows for each changed one, from which on vectors are worth their price for readers."""
_CHANGED_ROWS = ("numUpdatedRows", "numDeletedRows", "numTargetRowsUpdated", "numTargetRowsDeleted")


def layout_advice(facts: TableFacts) -> Iterator[Advice]:
    """The advice on the files of a table."""
    yield from _clustering(facts)
    yield from _ordering(facts)
    yield from _statistics(facts)
    yield from _rewriting(facts)
    yield from _unclustered(facts)
    yield from _small_files(facts)
    yield from _vectors(facts)
    yield from _partitions(facts)


def _clustering(facts: TableFacts) -> Iterator[Advice]:
    """Columns by which UPDATE, DELETE and MERGE search their rows. Queries leave no trace in the log."""
    live, found = facts.live, _searched(facts)
    if found is None or live.partition_columns or live.clustering:
        return
    chosen = [name for name in (_clusterable(facts, each) for each in found.columns) if name]
    if not chosen:
        return
    names = tuple(chosen[:_COLUMNS])
    yield Advice(
        code="A07",
        title=f"cluster by {', '.join(names)}: writers search their rows by it",
        declare=(("clustering", "", names),),
        do="queries are not in the log: check that they search by the same columns",
        evidence=(
            f"{found.writes:,} writes search by {', '.join(names)}: {found.scans:,.0f} s of scans a week",
            f"they touch {found.touched:,.1f} of {live.files:,} files on average",
        ),
        benefit="writer-seconds a week",
        amount=found.saved,
        leaves=found.scans - found.saved,
        cost=(f"the data is clustered by OPTIMIZE FULL, which rewrites {size_text(live.bytes or 0)}",),
        observations=found.writes,
        confidence=found.confidence,
        computed="scan times of these writes x the share of files that they did not touch",
    )


@dataclass(frozen=True, slots=True)
class _Searched:
    """How UPDATE, DELETE and MERGE search their rows."""

    columns: tuple[str, ...]
    """By which they search the most, in lower case."""
    writes: int
    scans: float
    """Seconds a week."""
    touched: float
    """The files that a write changes on average."""
    saved: float
    """The seconds of scans a week of files that no write changed."""
    confidence: Confidence


def _searched(facts: TableFacts) -> _Searched | None:
    """What the scans of writers cost; ``None`` if that is too little, or the table is small."""
    files, jobs = facts.live.files or 0, facts.jobs
    if jobs is None or jobs.weeks <= 0 or files < _MANY:
        return None
    searching = [write for job in jobs.jobs if job.rewrites for write in job.writes if write.conditions]
    scans = [metric_seconds(write.commit, "scanTimeMs") or 0.0 for write in searching]
    total = sum(scans)
    if len(searching) < LEAST_WRITES or total <= 0:
        return None
    weights: defaultdict[str, float] = defaultdict(float)
    for write, seconds in zip(searching, scans, strict=True):
        for column in {each.column.lower() for each in write.conditions if each.shape != "other"}:
            weights[column] += seconds
    heavy = sorted(
        (each for each in weights if weights[each] >= _WEIGHT * total), key=lambda each: (-weights[each], each)
    )
    touched = sum(write.files.removed_files for write in searching) / len(searching)
    saved = total / jobs.weeks * (1 - min(touched / files, 1.0))
    if not enough(saved, jobs):
        return None
    sure = confidence_of(len(searching), jobs.period.seconds)
    return _Searched(tuple(heavy), len(searching), total / jobs.weeks, touched, saved, sure)


def _statistics(facts: TableFacts) -> Iterator[Advice]:
    """A column without statistics by which writers search: they open every file."""
    live, found = facts.live, _searched(facts)
    leaves = [path for path, _ in live.schema.leaves()]
    named = live.property(keys.STATISTICS_COLUMNS)
    for column in found.columns if found else ():
        field = facts.field(column)
        if field is None or not has_order(field) or field.name in live.partition_columns or _clusterable(facts, column):
            continue
        place = leaves.index((field.name,)) + 1
        declare: Declared = ("properties", keys.INDEXED_COLUMNS, str(place))
        if named is not None:
            known = tuple(column_text(path) for path in leaves if names_statistics(path, named))
            declare = ("data_skipping", "", (*known, field.name))
        assert found is not None
        yield Advice(
            code="A18",
            title=f"collect statistics of {field.name}: writers search their rows by it",
            declare=(declare,),
            do="existing files keep the statistics that they have: OPTIMIZE rewrites them, and on Databricks ANALYZE "
            "TABLE … COMPUTE DELTA STATISTICS computes them",
            evidence=(
                f"{field.name} is column {place} of {len(leaves)}, and has no statistics",
                f"{found.writes:,} writes search by it, and others: {found.scans:,.0f} s of scans a week",
            ),
            benefit="writer-seconds a week",
            amount=found.saved,
            cost=(
                "longer entries of files in the log",
                "at most so much: a scan skips files only where values come in order, as times and growing ids do",
            ),
            observations=found.writes,
            confidence="low",
            computed="scan times of these writes x the share of files that they did not touch",
        )
        return


def _ordering(facts: TableFacts) -> Iterator[Advice]:
    """Z-order rewrites what it ordered before; liquid clustering, only what is new."""
    live, jobs = facts.live, facts.jobs
    if jobs is None or jobs.weeks <= 0 or live.partition_columns or live.clustering:
        return
    runs = [each for each in facts.past.commits if each.commit.operation == "OPTIMIZE"]
    ordered = [(each, columns) for each in runs if (columns := _zorder(each.commit.parameters.get("zOrderBy", "")))]
    names = tuple(_clusterable(facts, each) for each in ordered[0][1]) if ordered else ()
    if len(ordered) < _RUNS or not all(names) or len(names) > _MOST_COLUMNS:
        return
    again = sum(each.removed_bytes for each, _ in ordered)
    new = sum(write.files.added_bytes for job in jobs.jobs for write in job.writes if write.kind is not Kind.OPTIMIZE)
    saved = (again - new) / jobs.weeks
    if saved < _LEAST_BYTES:
        return
    yield Advice(
        code="A16",
        title=f"cluster by {', '.join(names)} instead of ZORDER BY",
        declare=(("clustering", "", names),),
        do="run OPTIMIZE without ZORDER BY, which a clustered table refuses",
        evidence=(
            f"{len(ordered)} runs of OPTIMIZE … ZORDER BY rewrote {size_text(again)}",
            f"the other writes added {size_text(new)} in that time",
        ),
        benefit="bytes a week",
        amount=saved,
        leaves=new / jobs.weeks,
        cost=(f"the first OPTIMIZE FULL rewrites {size_text(live.bytes or 0)}",),
        observations=len(ordered),
        confidence="high" if len(ordered) > _RUNS else "medium",
        computed="bytes that ZORDER BY rewrote, less those that other writes added",
    )


def _zorder(text: str) -> tuple[str, ...]:
    try:
        columns = read_json(text) if text else []
    except ValueError:
        return ()
    return tuple(each for each in columns if isinstance(each, str)) if isinstance(columns, list) else ()


def _rewriting(facts: TableFacts) -> Iterator[Advice]:
    """Writes that copy many rows to change few. A property that is set is someone's decision."""
    live, jobs = facts.live, facts.jobs
    if jobs is None or jobs.weeks <= 0 or live.property(keys.DELETION_VECTORS) is not None:
        return
    writes = [write for job in jobs.jobs if job.rewrites for write in job.writes if _copied(write.commit)]
    copied = sum(_copied(each.commit) for each in writes)
    changed = sum(each.commit.metric(name) for each in writes for name in _CHANGED_ROWS)
    size = sum(each.files.removed_bytes for each in writes) / jobs.weeks
    if len(writes) < LEAST_WRITES or copied < _COPIES * max(changed, 1) or size < _LEAST_BYTES:
        return
    yield Advice(
        code="A15",
        title="deletion vectors: writes copy many rows to change few",
        declare=(("deletion_vectors", "", "enabled"),),
        do="purge them as part of the upkeep: OPTIMIZE, or REORG TABLE … APPLY (PURGE)",
        evidence=(
            f"{len(writes):,} writes changed {changed:,} rows, and copied {copied:,} others to new files",
            f"they rewrote {size_text(int(size))} a week",
        ),
        benefit="bytes a week",
        amount=size * copied / (copied + changed),
        leaves=size * changed / (copied + changed),
        cost=(
            "each reader must know deletion vectors, and merges them until the files are rewritten",
            "deleted rows stay in the files until a purge and a VACUUM",
        ),
        observations=len(writes),
        confidence=confidence_of(len(writes), jobs.period.seconds),
        computed="the rows and bytes that the commits record; with vectors, a write adds the changed rows only",
    )


def _copied(commit: Commit) -> int:
    return commit.metric("numTargetRowsCopied", "numCopiedRows")


def _clusterable(facts: TableFacts, column: str) -> str:
    """The column's own spelling; empty if Delta cannot cluster by it."""
    field = facts.field(column)
    if field is None or not has_order(field):
        return ""
    return field.name if has_statistics((field.name,), facts.live.schema, facts.live.property) else ""


def _unclustered(facts: TableFacts) -> Iterator[Advice]:
    live = facts.live
    if live.marks is None or not live.clustering:
        return
    outside, whole = live.marks.outside(tuple(map(column_text, live.clustering))), live.marks.total()
    if outside.bytes < _LEAST_BYTES or outside.bytes < _LEAST_SHARE * whole.bytes:
        return
    yield Advice(
        code="A08",
        title="run OPTIMIZE: data is not clustered by the table's columns",
        do="OPTIMIZE clusters new files; OPTIMIZE … FULL also those that are clustered by other columns",
        evidence=(f"{outside.files:,} of {whole.files:,} files, {size_text(outside.bytes)}, are not clustered",),
        benefit="bytes",
        amount=outside.bytes,
        cost=(f"rewrites {size_text(outside.bytes)}",),
        observations=whole.files,
        confidence="high",
        computed="the tags of the files in the log",
    )


def _small_files(facts: TableFacts) -> Iterator[Advice]:
    live = facts.live
    if not live.files or live.bytes is None or live.files < _MANY or live.bytes >= live.files * _SMALL:
        return
    if live.property(keys.AUTO_COMPACT) is not None:
        return
    # A compaction joins the files of one partition, never those of two.
    saved = live.files - max(live.bytes // _TARGET, live.layout.partitions if live.layout else 1, 1)
    if saved < live.files * _LEAST_COMPACTED:
        return
    # The job that adds the most small files
    jobs = facts.jobs.jobs if facts.jobs else ()
    best = max(jobs, key=_small_added, default=None)
    guilty = best if best is not None and _small_added(best) else None
    evidence = [f"{live.files:,} files of {size_text(live.bytes // live.files)} on average"]
    if guilty is not None:
        files = sum(write.files.added_files for write in guilty.writes)
        size = sum(write.files.added_bytes for write in guilty.writes)
        evidence.append(
            f"{guilty.name} added {files:,} of {size_text(size // max(files, 1))} in {len(guilty.writes):,} writes"
        )
    yield Advice(
        code="A09",
        title="compact small files after each write",
        declare=(("properties", keys.AUTO_COMPACT, "true"),),
        do="one OPTIMIZE compacts the files that are there",
        evidence=tuple(evidence),
        benefit="files",
        amount=saved,
        cost=("each write that leaves many small files also compacts them, in a commit of its own",),
        observations=live.files,
        confidence="high",
        computed=f"the table's files, minus those of the same bytes at {size_text(_TARGET)}, one a partition at least",
    )


def _small_added(job: Job) -> int:
    """The number of files of a job's writes whose files were small."""
    files = (write.files for write in job.writes)
    return sum(each.added_files for each in files if each.added_bytes < each.added_files * _SMALL)


def _vectors(facts: TableFacts) -> Iterator[Advice]:
    live = facts.live
    if not live.files or not live.vectors or live.vectors < max(_LEAST_VECTORS, _VECTOR_SHARE * live.files):
        return
    yield Advice(
        code="A10",
        title="purge deletion vectors: every reader merges them",
        do=f"REORG TABLE {live.name.text} APPLY (PURGE), once or on a schedule",
        evidence=(f"{live.vectors:,} of {live.files:,} files have a deletion vector",),
        benefit="files",
        amount=live.vectors,
        cost=("rewrites these files; concurrent UPDATE, DELETE and MERGE of their rows fail once",),
        observations=live.files,
        confidence="high",
        computed="the files with deletion vectors in the current version",
    )


def _partitions(facts: TableFacts) -> Iterator[Advice]:
    """Many small partitions: clustering instead, unless the partitions keep writers apart."""
    live, layout, jobs = facts.live, facts.live.layout, facts.jobs
    if layout is None or layout.partitions < _MANY_PARTITIONS or layout.median >= _SMALL_PARTITION:
        return
    columns = tuple(name for name in (_clusterable(facts, each) for each in live.partition_columns) if name)[:4]
    if not columns:
        return
    if jobs is not None and jobs.weeks > 0:
        now = conflict_loss(jobs, Layout.of(live, jobs), facts.context)
        without = conflict_loss(jobs, Layout(), facts.context)
        if enough(without.seconds - now.seconds, jobs):
            return
    yield Advice(
        code="A11",
        title=f"cluster by {', '.join(columns)} instead of partitions",
        declare=(("rewrite", "", "allowed"), ("partitioning", "", "none"), ("clustering", "", columns)),
        evidence=(
            f"{layout.partitions:,} partitions, half of them below {size_text(layout.median)}",
            *(f"{name} has {count:,} values" for name, count in layout.values),
        ),
        benefit="bytes",
        amount=live.bytes or 0,
        cost=("statements that name partitions must change",),
        observations=layout.partitions,
        confidence="high",
        computed="the sizes of the partitions in the current version; the conflicts of past writes do not increase",
    )
