"""The outcomes of two concurrent statements on one table, with each as the current transaction after the other.

The rules decide on transactions, so each commit is represented twice: by everything that it may do, and by the least
that it does if it changes a row. If the current statement commits against the most, it commits. If it fails against the
least, it fails. Otherwise it may fail.

A statement is a sequence of commits, the automatic ones included. Any of the current statement's own may be the one in
flight, so it fails only if each of them does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tablectl.conflicts.databricks_rules import row_level
from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import NOTHING, Conflict, ConflictOutcome, ConflictResult, Reads
from tablectl.delta.client_families import DATABRICKS
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.commits_of_statement import Footprints, commits_of
from tablectl.insight.statements.disjoint_partitions import NOWHERE, Region, covers, disjoint, either
from tablectl.insight.statements.literals import shown_values
from tablectl.insight.statements.parse_writes import ParsedStatement
from tablectl.insight.statements.reads_and_writes import Footprint
from tablectl.insight.statements.target import StatementTable
from tablectl.insight.table_operations import Transaction
from tablectl.model.commit_contents import CommittedTransaction, File, Kind, Partition

NO_REGION = "nothing"
"""The text of an empty region."""
EVERYWHERE = "anywhere"
"""The text of a region that restricts no column."""
_CHANGES = (Kind.UPDATE, Kind.DELETE, Kind.MERGE)
_HERE, _ELSEWHERE = "here", "elsewhere"
_MOST_SHOWN = 240


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """The outcome of one statement after the other committed, if both change rows or files."""

    result: ConflictResult
    reason: str
    source: str
    conflicts: tuple[Conflict, ...] = ()
    """How it fails or may fail, in the order of Delta's checks."""
    exceptions: tuple[str, ...] = ()
    """What its client raises for them."""
    afterwards: str = ""
    """What may happen to the commits that Delta adds to the statement; empty if nothing."""


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two statements on a table, for one client."""

    setting: ConflictContext
    first: Footprints
    second: Footprints
    outcomes: tuple[PairOutcome, PairOutcome]
    """The outcome of the first after the second, and of the second after the first."""

    @property
    def separate(self) -> bool:
        """Whether both certainly commit, whichever commits first."""
        return all(pair_outcome.result is ConflictResult.COMMITS for pair_outcome in self.outcomes)


def between(
    first: ParsedStatement, second: ParsedStatement, subject: StatementTable, setting: ConflictContext
) -> StatementPair:
    """Both orders of two statements. Raises ``StatementError`` if one of them writes another table."""
    pair = _by_files(first, second, subject, setting)
    if pair.separate:
        return pair
    found = _by_rows(pair, first, second, subject)
    one, two = (
        replace(
            each, exceptions=tuple(dict.fromkeys(conflict.raised_by(setting.client) for conflict in each.conflicts))
        )
        for each in found.outcomes
    )
    return replace(found, outcomes=(one, two))


def _by_rows(
    pair: StatementPair, first: ParsedStatement, second: ParsedStatement, subject: StatementTable
) -> StatementPair:
    """The same with row-level concurrency, if the conditions prove that no row concerns both statements.

    That is so if both would commit on a table that is partitioned by each of its columns.
    """
    holds = [row_level_of(commits, pair.setting) for commits in (pair.first, pair.second)]
    if not all(holds):
        return pair
    columns = tuple(each.name for each in subject.schema.fields if subject.domain(each.name.casefold()) is not None)
    apart = replace(subject, partition_columns=columns)
    if not _by_files(first, second, apart, pair.setting).separate:
        return pair
    reason = (
        "with row-level concurrency only rows that both change conflict, and their conditions have none in common; "
    )
    reason += "under many concurrent transactions it may fail all the same"
    source = ", ".join(dict.fromkeys(("D26", "D40", "D46", *(each for text in holds for each in text.split(", ")))))
    told = PairOutcome(ConflictResult.COMMITS, reason, source)
    first_told, second_told = (each if each.result is ConflictResult.COMMITS else told for each in pair.outcomes)
    return replace(pair, outcomes=(first_told, second_told))


def row_level_of(commits: Footprints, setting: ConflictContext) -> str:
    """The facts that give an UPDATE, DELETE or MERGE row-level concurrency; empty if it may lack it."""
    if len(commits) != 1 or commits[0].kind not in _CHANGES or setting.client.family is not DATABRICKS:
        return ""
    record = _losing(commits[0], setting, files=()).current(setting)
    platform = replace(record.platform, plain=commits[0].plain, filtered=commits[0].filtered)
    holds, source = row_level(replace(record, platform=platform))
    return source if holds and not record.platform.identity else ""


def _by_files(
    first: ParsedStatement, second: ParsedStatement, subject: StatementTable, setting: ConflictContext
) -> StatementPair:
    setting = replace(setting, partitioned=bool(subject.partition_columns))
    one, two = (commits_of(each, subject, setting) for each in (first, second))
    outcomes = (_pair_outcome(one, two, subject, setting), _pair_outcome(two, one, subject, setting))
    return StatementPair(setting, one, two, outcomes)


def main_footprint(commits: Footprints) -> Footprint:
    """The commit of a statement that says where it reads and writes: the first one with files, else the first."""
    with_files = (each for each in commits if each.adds.boxes or each.rewrites.boxes)
    return next(with_files, commits[0] if commits else _NO_COMMIT)


_NO_COMMIT = Footprint(kind=Kind.EMPTY, reads=None, rewrites=NOWHERE, adds=NOWHERE, surely_adds=False)


def _pair_outcome(
    current: Footprints, committed: Footprints, subject: StatementTable, setting: ConflictContext
) -> PairOutcome:
    """The outcome of a statement while any of its own commits is in flight."""
    own = [each for each in current if not each.automatic]
    if not own:
        return PairOutcome(ConflictResult.COMMITS, "it makes no commit", "delta-1.0")
    if not committed:
        return PairOutcome(ConflictResult.COMMITS, "the other makes no commit", "delta-1.0")
    outcomes = [_commit_outcome(each, committed, subject, setting) for each in own]
    found = _together(own, outcomes)
    later = [] if found.result is ConflictResult.FAILS else [each for each in current if each.automatic]
    afterwards = next((text for each in later if (text := _afterwards(each, committed, subject, setting))), "")
    return replace(found, afterwards=afterwards)


def _together(own: Sequence[Footprint], outcomes: Sequence[PairOutcome]) -> PairOutcome:
    """The outcome of several commits, of which any may be the one in flight."""
    if len(own) == 1:
        return outcomes[0]
    failing = [
        (each, outcome)
        for each, outcome in zip(own, outcomes, strict=True)
        if outcome.result is not ConflictResult.COMMITS
    ]
    if not failing:
        return outcomes[-1]
    conflicts = tuple(dict.fromkeys(conflict for _, outcome in failing for conflict in outcome.conflicts))
    lasting = [outcome for each, outcome in zip(own, outcomes, strict=True) if not each.momentary]
    if lasting and all(outcome.result is ConflictResult.FAILS for outcome in lasting):
        return replace(lasting[0], conflicts=conflicts)
    results = {outcome.result for _, outcome in failing}
    result = ConflictResult.UNKNOWN if ConflictResult.UNKNOWN in results else ConflictResult.MAY_FAIL
    reasons: dict[str, list[str]] = {}
    for each, outcome in failing:
        reasons.setdefault(outcome.reason, []).append(each.kind.value)
    told = (f"{reason} (in its commit {' or '.join(dict.fromkeys(kinds))})" for reason, kinds in reasons.items())
    return PairOutcome(result, "; or ".join(told), failing[0][1].source, conflicts)


def _afterwards(automatic: Footprint, committed: Footprints, subject: StatementTable, setting: ConflictContext) -> str:
    """What becomes of an automatic commit. Delta only logs its failure (``PostCommitHook.scala``)."""
    outcome = _commit_outcome(automatic, committed, subject, setting)
    if outcome.result is ConflictResult.COMMITS:
        return ""
    if not setting.client.family.rules_from_source:
        return f"the {automatic.automatic} after it may fail; what the statement shows of that is not documented"
    return f"the {automatic.automatic} after it may fail, which only leaves a warning in the driver's log"


def _commit_outcome(
    current: Footprint, committed: Footprints, subject: StatementTable, setting: ConflictContext
) -> PairOutcome:
    outcomes = [_outcome(current, each, setting) for each in _at_most(current, committed, setting)]
    worst = max(outcomes, key=lambda each: each.rank)
    if worst.succeeds:
        return _commits(current, committed, subject, worst)
    least = _outcome(_surely(current), _at_least(current, committed, setting), setting)
    certain = least.result is ConflictResult.FAILS and least.conflict is not None and not current.momentary
    if certain and least.conflict:
        # Databricks does not say which exception a commit of both protocol and metadata raises.
        either_of = not setting.client.family.rules_from_source and least.conflict is Conflict.METADATA_CHANGED
        also = [Conflict.PROTOCOL_CHANGED] if either_of and any(each.protocol for each in committed) else []
        return PairOutcome(ConflictResult.FAILS, least.reason, least.source, (least.conflict, *also))
    failing = [each for each in outcomes if not each.succeeds]
    conflicts = tuple(dict.fromkeys(each.conflict for each in failing if each.conflict))
    if any(each.result is ConflictResult.UNKNOWN for each in outcomes):
        return PairOutcome(ConflictResult.UNKNOWN, worst.reason, worst.source, conflicts)
    reason = "; or ".join(dict.fromkeys(each.reason for each in failing))
    return PairOutcome(ConflictResult.MAY_FAIL, reason, failing[0].source, conflicts)


def _commits(
    current: Footprint, committed: Footprints, subject: StatementTable, outcome: ConflictOutcome
) -> PairOutcome:
    """The outcome of a commit. If partitions keep the statements disjoint, the reason names them."""
    writes = either([region for each in committed for region in (each.adds, each.rewrites)])
    if current.reads is None or not writes.boxes or not disjoint(current.reads, writes):
        return PairOutcome(ConflictResult.COMMITS, outcome.reason, outcome.source)
    reason = f"it reads {region_text(current.reads, subject)}, the other writes {region_text(writes, subject)}"
    return PairOutcome(ConflictResult.COMMITS, reason, outcome.source)


Case = tuple[Sequence[CommittedTransaction], Transaction]
"""The committed transactions in the order of their versions, and the current one."""


def _outcome(current: Footprint, pair: Case, setting: ConflictContext) -> ConflictOutcome:
    committed, losing = pair
    record = losing.current(setting)
    platform = replace(record.platform, plain=current.plain, filtered=current.filtered)
    return decide_all(committed, replace(record, platform=platform, metadata=current.evolves or record.metadata))


def _at_most(current: Footprint, committed: Footprints, setting: ConflictContext) -> list[Case]:
    """Everything that may happen. To show what else could end the transaction, it is also decided without the added
    files, without the metadata, and for each commit of the other statement alone.
    """
    shared = current.reads is not None and any(not disjoint(current.reads, each.rewrites) for each in committed)
    losing = _losing(current, setting, files=("read",) if shared else ("own",))
    most = [_most(current, each, setting) for each in committed]
    alone = [[each] for each in most] if len(most) > 1 else []
    cases = [most, [replace(each, added=()) for each in most], [replace(each, metadata=None) for each in most], *alone]
    return [(each, losing) for each in cases]


def _most(current: Footprint, committed: Footprint, setting: ConflictContext) -> CommittedTransaction:
    reads = current.reads
    read_again = reads is not None and not disjoint(reads, committed.rewrites)
    removed_again = not disjoint(current.rewrites, committed.rewrites)
    common = [path for path, shared in (("read", read_again), ("removed", removed_again)) if shared]
    where = _HERE if reads is not None and not disjoint(reads, committed.adds) else _ELSEWHERE
    added = (File("new", _partition(where, setting)),) if committed.adds.boxes else ()
    removed = tuple(File(path) for path in (common or ["other"])) if committed.rewrites.boxes else ()
    marks = committed.data_change and bool(removed) and bool(setting.vectors)
    made = _winner(committed)
    return replace(
        made,
        blind=made.blind and setting.blind_sql,
        added=added,
        removed=removed,
        metadata=committed.most_metadata,
        traces=("deletionVectors",) if marks else (),
    )


def _at_least(current: Footprint, committed: Footprints, setting: ConflictContext) -> Case:
    """What happens regardless of the rows, as long as both statements change some."""
    made = [_least(current, each, setting) for each in committed if each.sure]
    return made, _losing(_surely(current), setting, files=())


def _least(current: Footprint, committed: Footprint, setting: ConflictContext) -> CommittedTransaction:
    reads = current.reads
    adds = committed.surely_adds and bool(committed.adds.boxes)
    sure = (
        adds
        and reads is not None
        and current.surely_reads
        and (not setting.partitioned or covers(reads, committed.adds))
    )
    added = (File("new", _partition(_HERE, setting)),) if sure else ()
    return replace(_winner(committed), added=added, metadata=committed.metadata)


def _surely(current: Footprint) -> Footprint:
    """The least that a statement commits of metadata: it may evolve the schema, and a MERGE may insert nothing."""
    return replace(current, evolves=False, draws=current.draws and current.kind is not Kind.MERGE)


def _winner(committed: Footprint) -> CommittedTransaction:
    return CommittedTransaction(
        kind=committed.kind,
        blind=committed.reads is None,
        protocol=committed.protocol,
        domains=committed.domains,
        data_change=committed.data_change,
        zorder=committed.zorder,
        repartitions=committed.repartitions,
    )


def _losing(current: Footprint, setting: ConflictContext, *, files: tuple[str, ...]) -> Transaction:
    partitions: tuple[Partition, ...] | None = ((_HERE,),) if setting.partitioned else None
    reads = NOTHING if current.reads is None or not current.reads.boxes else Reads(partitions=partitions, files=files)
    made = replace(
        _winner(current),
        added=(File("its own"),) if current.adds.boxes or current.data_change else (),
        removed=(File("removed"),) if current.rewrites.boxes else (),
        metadata=current.most_metadata,
    )
    return Transaction(made, reads)


def _partition(where: str, setting: ConflictContext) -> Partition:
    return (where,) if setting.partitioned else ()


def region_text(region: Region, subject: StatementTable) -> str:
    """A region as a condition on partition columns, truncated if long."""
    if not region.boxes:
        return NO_REGION
    if region.everywhere:
        return EVERYWHERE
    names = {name.casefold(): name for name in subject.partition_columns}
    texts = []
    for box in region.boxes:
        known = ((names.get(name, name), values, subject.domain(name)) for name, values in box)
        parts = [shown_values(name, values, domain) if domain else f"{name} …" for name, values, domain in known]
        texts.append(" AND ".join(parts))
    text = " OR ".join(f"({each})" if len(texts) > 1 and " AND " in each else each for each in texts)
    return text if len(text) <= _MOST_SHOWN else f"{text[: _MOST_SHOWN - 1]}…"
