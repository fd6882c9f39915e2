"""The outcomes of two concurrent statements on one table, with each as the current transaction after the other.

The rules decide on transactions, so each statement is represented twice: by everything that it may do, and by the least
that it does if it changes a row. If the current statement commits against the most, it commits. If it fails against the
least, it fails. Otherwise it may fail.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tablectl.conflicts.context import ConflictContext
from tablectl.conflicts.operations import Transaction
from tablectl.conflicts.rules.decide import decide
from tablectl.conflicts.transactions import NOTHING, Conflict, ConflictOutcome, ConflictResult, Reads
from tablectl.model.commits import CommittedTransaction, File, Kind, MetadataChange, Partition
from tablectl.statements.footprint import Footprint, footprint
from tablectl.statements.literals import shown_values
from tablectl.statements.parse import ParsedStatement
from tablectl.statements.regions import Region, covers, disjoint, either
from tablectl.statements.target import StatementTable

EVERYWHERE = "anywhere"
"""The text of a region that restricts no column."""
_HERE, _ELSEWHERE = "here", "elsewhere"
_MOST_SHOWN = 240


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """The outcome of one statement after the other committed, if both change rows."""

    result: ConflictResult
    reason: str
    source: str
    conflicts: tuple[Conflict, ...] = ()
    """How it fails or may fail, in the order of Delta's checks."""


@dataclass(frozen=True, slots=True)
class StatementPair:
    """Two statements on a table, for one client."""

    setting: ConflictContext
    first: Footprint
    second: Footprint
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
    documented = not setting.client.family.rules_from_source
    one, two = (footprint(each, subject, documented=documented) for each in (first, second))
    setting = replace(setting, partitioned=bool(subject.partition_columns))
    return StatementPair(
        setting, one, two, (_pair_outcome(one, two, subject, setting), _pair_outcome(two, one, subject, setting))
    )


def _pair_outcome(
    current: Footprint, committed: Footprint, subject: StatementTable, setting: ConflictContext
) -> PairOutcome:
    outcomes = [_outcome(current, each, setting) for each in _at_most(current, committed, setting)]
    worst, least = (
        max(outcomes, key=lambda each: each.rank),
        _outcome(_surely(current), _at_least(current, committed, setting), setting),
    )
    if worst.succeeds:
        return _commits(current, committed, subject, worst)
    if least.result is ConflictResult.FAILS and least.conflict:
        return PairOutcome(ConflictResult.FAILS, least.reason, least.source, (least.conflict,))
    failing = [each for each in outcomes if not each.succeeds]
    conflicts = tuple(dict.fromkeys(each.conflict for each in failing if each.conflict))
    if any(each.result is ConflictResult.UNKNOWN for each in outcomes):
        return PairOutcome(ConflictResult.UNKNOWN, worst.reason, worst.source, conflicts)
    reason = "; or ".join(dict.fromkeys(each.reason for each in failing))
    return PairOutcome(ConflictResult.MAY_FAIL, reason, failing[0].source, conflicts)


def _commits(
    current: Footprint, committed: Footprint, subject: StatementTable, outcome: ConflictOutcome
) -> PairOutcome:
    """The outcome of a commit. If partitions keep the statements disjoint, the reason names them."""
    writes = either([committed.adds, committed.rewrites])
    if current.reads is None or not writes.boxes or not disjoint(current.reads, writes):
        return PairOutcome(ConflictResult.COMMITS, outcome.reason, outcome.source)
    reason = f"it reads {region_text(current.reads, subject)}, the other writes {region_text(writes, subject)}"
    return PairOutcome(ConflictResult.COMMITS, reason, outcome.source)


def _outcome(
    current: Footprint, pair: tuple[CommittedTransaction, Transaction], setting: ConflictContext
) -> ConflictOutcome:
    committed, losing = pair
    record = losing.current(setting)
    platform = replace(record.platform, plain=current.plain, filtered=current.filtered)
    return decide(committed, replace(record, platform=platform, metadata=current.evolves or record.metadata))


def _at_most(
    current: Footprint, committed: Footprint, setting: ConflictContext
) -> list[tuple[CommittedTransaction, Transaction]]:
    """Everything that may happen, with and without the added files: the latter shows what else could end the
    transaction.
    """
    reads = current.reads
    read_again = reads is not None and not disjoint(reads, committed.rewrites)
    removed_again = not disjoint(current.rewrites, committed.rewrites)
    common = [path for path, shared in (("read", read_again), ("removed", removed_again)) if shared]
    where = _HERE if reads is not None and not disjoint(reads, committed.adds) else _ELSEWHERE
    added = (File("new", _partition(where, setting)),) if committed.adds.boxes else ()
    removed = tuple(File(path) for path in (common or ["other"])) if committed.rewrites.boxes else ()
    most = replace(_winner(committed, setting), added=added, removed=removed, metadata=_metadata(committed))
    losing = _losing(current, setting, files=("read",) if read_again else ("own",))
    return [(most, losing), (replace(most, added=()), losing), (replace(most, metadata=None), losing)]


def _at_least(
    current: Footprint, committed: Footprint, setting: ConflictContext
) -> tuple[CommittedTransaction, Transaction]:
    """What happens regardless of the rows, as long as both statements change some."""
    reads = current.reads
    adds = committed.surely_adds and bool(committed.adds.boxes)
    sure = (
        adds
        and reads is not None
        and current.surely_reads
        and (not setting.partitioned or covers(reads, committed.adds))
    )
    added = (File("new", _partition(_HERE, setting)),) if sure else ()
    return replace(_winner(committed, setting), added=added), _losing(_surely(current), setting, files=())


def _surely(current: Footprint) -> Footprint:
    """The least that a statement commits of metadata: it may evolve the schema, and a MERGE may insert nothing."""
    return replace(current, evolves=False, draws=current.draws and current.kind is not Kind.MERGE)


def _winner(committed: Footprint, setting: ConflictContext) -> CommittedTransaction:
    return CommittedTransaction(kind=committed.kind, blind=committed.kind is Kind.APPEND and setting.blind)


def _losing(current: Footprint, setting: ConflictContext, *, files: tuple[str, ...]) -> Transaction:
    partitions: tuple[Partition, ...] | None = ((_HERE,),) if setting.partitioned else None
    reads = NOTHING if current.reads is None or not current.reads.boxes else Reads(partitions=partitions, files=files)
    removed = (File("removed"),) if current.rewrites.boxes else ()
    made = CommittedTransaction(
        kind=current.kind, added=(File("its own"),), removed=removed, metadata=_metadata(current)
    )
    return Transaction(made, reads)


def _partition(where: str, setting: ConflictContext) -> Partition:
    return (where,) if setting.partitioned else ()


def _metadata(of: Footprint) -> MetadataChange | None:
    if of.evolves:
        return MetadataChange(schema="other")
    return MetadataChange(schema="other", tag="identity") if of.draws else None


def region_text(region: Region, subject: StatementTable) -> str:
    """A region as a condition on partition columns, truncated if long."""
    if not region.boxes:
        return "nothing"
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
