"""The commits of a statement on a table, each as a footprint: the statement's own, and those that Delta adds to them.

What a statement that tablectl can send commits is defined once, in ``model.operations``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from tablectl.delta import keys
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.locations import canonical_location
from tablectl.delta.properties import other_spelling
from tablectl.delta.protocol import Protocol
from tablectl.insight.conflict_context import ConflictContext
from tablectl.insight.statements.command_actions import (
    Action,
    Alter,
    NoCommit,
    Rearrange,
    Replace,
    Send,
    StatementError,
    Undocumented,
    Whole,
)
from tablectl.insight.statements.disjoint_partitions import ANYWHERE, NOWHERE, UNKNOWN, Region, both
from tablectl.insight.statements.parse_writes import ParsedStatement
from tablectl.insight.statements.predicates import admits, registered_by_scan
from tablectl.insight.statements.reads_and_writes import Footprint, check_table, footprint
from tablectl.insight.statements.target import StatementTable
from tablectl.model.commit_contents import CommittedTransaction, Kind, MetadataChange, ProtocolChange, settings_commit
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    RemoveMapping,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.operations.drop_feature import drop_feature_commits
from tablectl.model.plan import Basis

Footprints = tuple[Footprint, ...]
AUTO_COMPACTION = "automatic compaction"
_VERSIONS = ("delta.minreaderversion", "delta.minwriterversion")
_LOGS_VACUUM = ("wasbs", "wasbss", "abfs", "abfss", "adl", "gs", "file", "hdfs")
"""The schemes of stores on which Delta records a VACUUM in the log unless a session says otherwise
(``VacuumCommand.scala``)."""


def commits_of(statement: ParsedStatement, subject: StatementTable, setting: ConflictContext) -> Footprints:
    """The commits of a statement, in order. Raises ``StatementError`` if it writes another table, or if the client does
    not have the statement.
    """
    check_table(statement, subject)
    if statement.action is not None:
        return _of_action(statement, statement.action, subject, setting)
    if statement.matches:
        _only_on_databricks("INSERT … REPLACE ON or USING", setting)
    own = footprint(statement, subject, documented=not setting.client.family.rules_from_source)
    if own.kind is Kind.OVERWRITE and setting.clustered:
        own = replace(own, domains=(CLUSTERING_DOMAIN,))  # it clears the clustering columns (delta-1.4)
    return (own, *_compaction(own, setting))


def _compaction(own: Footprint, setting: ConflictContext) -> Footprints:
    """The OPTIMIZE of the partitions to which a write added files, if they have many small ones by then."""
    if not setting.compacts or not own.adds.boxes:
        return ()
    where = replace(own.adds, exact=False)
    compaction = _files(Kind.OPTIMIZE, where, where)
    return (replace(compaction, sure=False, automatic=AUTO_COMPACTION),)


def _files(kind: Kind, where: Region, reads: Region | None) -> Footprint:
    """A rewrite of files that changes no row."""
    return Footprint(
        kind=kind, reads=reads, rewrites=where, adds=where, surely_adds=True, surely_reads=False, data_change=False
    )


def _settings(kind: Kind, change: MetadataChange | None) -> Footprint:
    """A change of settings, which reads no rows."""
    return Footprint(
        kind=kind,
        reads=None,
        rewrites=NOWHERE,
        adds=NOWHERE,
        surely_adds=False,
        metadata=change,
        data_change=False,
    )


def _of_action(
    statement: ParsedStatement, action: Action, subject: StatementTable, setting: ConflictContext
) -> Footprints:
    match action:
        case Send():
            return tuple(_of_commit(each) for each in _sent(action.operation, subject, setting))
        case Alter():
            return _altered(action, setting)
        case Rearrange():
            return (_rearranged(statement, action, subject),)
        case Replace():
            return (_replaced(action, subject, setting),)
        case Whole(kind=Kind.VACUUM):
            return _vacuum(subject, setting)
        case Whole(kind=Kind.COPY_INTO):
            return _copied(setting)
        case Whole():
            return (_restored(action.kind, setting),)
        case Undocumented():
            return _undocumented(action.kind, setting)
        case NoCommit():
            return ()


def _of_commit(made: CommittedTransaction) -> Footprint:
    """A commit of a statement that tablectl can send. Its files may be any."""
    where = UNKNOWN if made.added or made.removed else NOWHERE
    everything = made.kind is Kind.REMOVE_MAPPING
    return Footprint(
        kind=made.kind,
        reads=(ANYWHERE if everything else UNKNOWN) if where.boxes else None,
        rewrites=where if made.removed else NOWHERE,
        adds=where if made.added else NOWHERE,
        surely_adds=everything,
        surely_reads=everything,
        metadata=made.metadata,
        protocol=made.protocol,
        domains=made.domains,
        data_change=made.data_change,
        sure=made.kind not in {Kind.REORG, Kind.BACKFILL, Kind.UNBACKFILL},
        momentary=made.kind in {Kind.EMPTY, Kind.TOMBSTONES, Kind.UPGRADE_PROTOCOL},
    )


def _sent(operation: Operation, subject: StatementTable, setting: ConflictContext) -> tuple[CommittedTransaction, ...]:
    basis = replace(setting.basis, nested=subject.nested, vectors=subject.vectors, files=subject.files)
    match operation:
        case SetProperties():
            return _set(operation, basis, setting)
        case UnsetProperties():
            return (_unset(operation, setting),)
        case ClusterBy(columns=()) if not setting.clustered:
            return ()  # Delta commits nothing for CLUSTER BY NONE on a table that was never clustered
        case DropFeature():
            features = setting.protocol.features
            name = next((each for each in features if each.lower() == operation.name.lower()), operation.name)
            return drop_feature_commits(
                name,
                setting.protocol,
                setting.value,
                truncate_history=operation.truncate_history,
                traces=_traces(name, subject),
            )
        case UpgradeUniform():
            return _upgrade(operation, basis, setting)
        case _:
            return operation.commits(basis)


def _traces(name: str, subject: StatementTable) -> bool:
    """Whether files or the schema may contain traces of a feature."""
    if name == "deletionVectors":
        return subject.vectors != 0
    return name.startswith("typeWidening") and "delta.typeChanges" in subject.schema.text


def _set(operation: SetProperties, basis: Basis, setting: ConflictContext) -> tuple[CommittedTransaction, ...]:
    """The commits of a SET, of which only what differs from the table counts."""
    stored = setting.properties
    values = [(key, value) for key, value in operation.values if stored.get(other_spelling(key) or key) != value]
    removed: tuple[CommittedTransaction, ...] = ()
    mapping = keys.COLUMN_MAPPING.lower()
    unmapped = setting.value(keys.COLUMN_MAPPING) in {"name", "id"} and any(
        key.lower() == mapping and value == "none" for key, value in values
    )
    if unmapped:
        removed = RemoveMapping().commits(basis)
        if len(operation.values) == 1:
            return removed
        values = [(key, value) for key, value in values if key.lower() != mapping]
    plain = tuple((key, value) for key, value in values if key.lower() not in _VERSIONS and key != "comment")
    *before, last = SetProperties(plain).commits(basis)
    added = {*(last.protocol.adds if last.protocol else ()), *_implied_by_versions(values, setting.protocol)}
    change = replace(last.metadata or MetadataChange(), described=any(key == "comment" for key, _ in values))
    protocol = ProtocolChange(adds=tuple(sorted(added))) if added else None
    return (*removed, *before, replace(last, metadata=change, protocol=protocol))


def _implied_by_versions(values: Iterable[tuple[str, str]], protocol: Protocol) -> frozenset[str]:
    """The features that ``delta.minReaderVersion`` and ``delta.minWriterVersion`` add to the protocol."""
    # A version has one digit.
    numbers = {key.lower(): int(value) for key, value in values if value.isdecimal() and len(value) <= 2}
    reader, writer = (numbers.get(each, 0) for each in _VERSIONS)
    raised = Protocol(max(reader, protocol.reader), max(writer, protocol.writer))
    return frozenset() if raised.lists_features else raised.features - protocol.features


def _unset(operation: UnsetProperties, setting: ConflictContext) -> CommittedTransaction:
    read = {other_spelling(key) or key for key in operation.keys}
    present = tuple(name for name in setting.properties if name in read)
    described = "comment" in operation.keys
    return settings_commit(Kind.UNSET_PROPERTIES, MetadataChange(removes=present, described=described))


def _upgrade(operation: UpgradeUniform, basis: Basis, setting: ConflictContext) -> tuple[CommittedTransaction, ...]:
    """Run again, the upgrade skips what is done already."""
    first, *others = operation.commits(basis)
    if setting.value(keys.iceberg_compat(operation.version)) == "true":
        others = [each for each in others if each.kind is Kind.REORG or not setting.value(keys.UNIFORM_FORMATS)]
        return tuple(others)
    return (first, *others)


def _rearranged(statement: ParsedStatement, action: Rearrange, subject: StatementTable) -> Footprint:
    """Which files it rewrites depends on their sizes and deletion vectors."""
    scope = subject.scope(statement.parts, "")
    condition = None if isinstance(statement.node, exp.Null) else statement.node
    where = replace(admits(condition, scope), exact=False)
    reading = registered_by_scan([condition], scope)
    found = _files(action.kind, where, both(reading.region, UNKNOWN))
    return replace(found, zorder=action.zorder, passed_over=reading.passed_over)


def _replaced(action: Replace, subject: StatementTable, setting: ConflictContext) -> Footprint:
    """A new table id, and the columns and settings of the statement."""
    names = tuple(each.casefold() for each in action.partitions)
    return Footprint(
        kind=Kind.REPLACE_TABLE,
        reads=ANYWHERE,
        rewrites=ANYWHERE,
        adds=ANYWHERE if action.query else NOWHERE,
        surely_adds=False,
        metadata=MetadataChange(beyond=True, schema="other"),
        domains=(CLUSTERING_DOMAIN,) if setting.clustered or action.clustering is not None else (),
        repartitions=names != subject.partitions,
    )


def _restored(kind: Kind, setting: ConflictContext) -> Footprint:
    """A RESTORE or a CLONE. The metadata may be the same as now."""
    return Footprint(
        kind=kind,
        reads=ANYWHERE,
        rewrites=UNKNOWN,
        adds=UNKNOWN,
        surely_adds=False,
        metadata=MetadataChange(),
        domains=(CLUSTERING_DOMAIN,) if setting.clustered else (),
        evolves=True,
    )


def _only_on_databricks(form: str, setting: ConflictContext) -> None:
    # Delta 4.4.0 parses REPLACE ON and REPLACE USING, and answers UNSUPPORTED_FEATURE.TABLE_OPERATION.
    if setting.client.family.rules_from_source:
        raise StatementError(f"{setting.client.text()} has no {form}", "it runs on Databricks: add --client databricks")


def _copied(setting: ConflictContext) -> Footprints:
    _only_on_databricks("COPY INTO", setting)
    own = Footprint(kind=Kind.COPY_INTO, reads=None, rewrites=NOWHERE, adds=UNKNOWN, surely_adds=True)
    return (own, *_compaction(own, setting))


def _vacuum(subject: StatementTable, setting: ConflictContext) -> Footprints:
    """It commits its begin and its end, if the table's store is one on which Delta records them."""
    scheme = canonical_location(subject.location).partition("://")[0]
    local = scheme.startswith("/")
    if setting.client.family.rules_from_source and not local and scheme not in _LOGS_VACUUM:
        return ()
    record = replace(_settings(Kind.VACUUM, None), momentary=True)
    return (record, record)


def _undocumented(kind: Kind, setting: ConflictContext) -> Footprints:
    """A statement of which Databricks does not say whether it commits anything; open-source Delta does not have it."""
    if setting.client.family.rules_from_source:
        return ()
    return (replace(_settings(kind, None), sure=False, momentary=True),)


def _altered(action: Alter, setting: ConflictContext) -> Footprints:
    present = tuple(name for name in setting.properties if name in action.change.removes)
    if action.kind is Kind.DROP_CONSTRAINT and not present and not setting.client.family.rules_from_source:
        return _undocumented(action.kind, setting)  # it may be a primary or a foreign key
    raises = action.kind is Kind.ADD_CONSTRAINT and not setting.protocol.has("checkConstraints")
    made = replace(
        _settings(action.kind, replace(action.change, removes=present)),
        reads=ANYWHERE if action.scans else None,
        protocol=ProtocolChange(adds=("checkConstraints",)) if raises else None,
    )
    return (made,)
