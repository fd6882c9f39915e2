"""Advice on settings: history that a stream has not read yet, an order of commits that a ledger needs, features that
nothing uses.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from tablectl.conflicts.transactions import Level
from tablectl.delta import keys
from tablectl.delta.clients import LockedOut, judge, newest_locked_out, parse_version
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, DEFAULT_LOG_RETENTION, parse_interval
from tablectl.delta.protocol import PROTECTION, Protocol, find_feature
from tablectl.insight.advice.advice_records import LEAST_WRITES, Advice, Declared, TableFacts, confidence_of
from tablectl.model.commit_contents import Kind
from tablectl.model.stream_progress import StreamPosition, UnknownStream
from tablectl.model.table import LiveTable

_DAY = 86_400.0
_INTERVAL = "delta.checkpointInterval"
_FAR = 100
"""Commits between two checkpoints that a reader hardly notices."""
_MANY_COMMITS = 50_000
_LONG_MARKED = 21
"""Days. The General Data Protection Regulation gives a month for an erasure (article 12)."""
_SPARE = 2
"""How many times the lag of a stream the retention should be: a stream that is behind once can be so again."""


def retention_advice(facts: TableFacts) -> tuple[list[Advice], list[str]]:
    """At most one advice for a table whose declared streams are further behind than its history is kept; and what
    is unknown of streams.
    """
    untold = [f"the stream {each.name} {each.text}" for each in facts.streams if isinstance(each, UnknownStream)]
    lags = [found for each in facts.streams if isinstance(each, StreamPosition) and (found := _lag(facts, each))]
    if not lags:
        return [], untold
    lag, name = max(lags)
    log = _days(facts, keys.LOG_RETENTION, DEFAULT_LOG_RETENTION)
    files = _days(facts, keys.DELETED_FILE_RETENTION, DEFAULT_FILE_RETENTION)
    short = [(key, days) for key, days in (("log", log), ("deleted_files", files)) if days < lag]
    if not short:
        return [], untold
    wanted = math.ceil(_SPARE * lag)
    # Deleted files must not be kept for longer than the log.
    declare = {key: f"{wanted} days" for key, _ in short} | ({"log": f"{wanted} days"} if log < wanted else {})
    kept = " and ".join(f"{'the log' if key == 'log' else 'deleted files'} for {days:g} days" for key, days in short)
    advice = Advice(
        code="A13",
        title=f"keep the history for longer than the stream {name} is behind",
        declare=tuple(("retention", key, value) for key, value in sorted(declare.items())),
        evidence=(f"{name} is {lag:.1f} days behind the newest commit", f"the table keeps {kept}"),
        benefit="days of risk",
        amount=round(sum(lag - days for _, days in short), 1),
        cost=("storage for the files and commits of that time",),
        observations=len(facts.streams),
        confidence="medium",
        computed="the time from the first commit that the stream has not read to the newest one, less the retention, "
        "which should be twice that time; what time travel needs leaves no trace in the log",
    )
    return [advice], untold


def _lag(facts: TableFacts, stream: StreamPosition) -> tuple[float, str] | None:
    """Days from the first commit with rows that a stream has not read to the newest one."""
    commits = [each.commit for each in facts.past.commits if each.added_files and each.commit.timestamp > 0]
    unread = [each.timestamp for each in commits if not stream.passed(each.version)]
    if not unread:
        return None
    return (max(each.timestamp for each in commits) - min(unread)) / 1000 / _DAY, stream.name


def _usual_days(interval: str) -> float:
    return parse_interval(interval) / 1e6 / _DAY


def _days(facts: TableFacts, key: str, default: str) -> float:
    """An interval of the table in days; the default if the table has none that can be read."""
    try:
        return _usual_days(facts.live.property(key) or default)
    except ValueError:
        return _usual_days(default)


def log_advice(facts: TableFacts) -> Iterator[Advice]:
    """Logs that are slow to read: few checkpoints, or very many commits."""
    live, jobs = facts.live, facts.jobs
    if jobs is None or jobs.weeks <= 0 or jobs.writes < LEAST_WRITES:
        return
    between = live.property(_INTERVAL) or ""
    if between.isascii() and between.isdigit() and int(between[:9]) > _FAR:
        yield _log_advice(
            facts,
            "write checkpoints more often",
            (("properties", _INTERVAL, str(_FAR)),),
            f"{_INTERVAL} is {between}: who opens the table reads up to so many commits one by one",
            int(between[:9]) - _FAR,
            "a checkpoint lists all files of the table: the writer whose commit is due takes longer",
        )
    days, kept = _days(facts, keys.LOG_RETENTION, DEFAULT_LOG_RETENTION), _usual_days(DEFAULT_LOG_RETENTION)
    surplus = (days - kept) * len(facts.past.commits) / (7 * jobs.weeks)
    if surplus > _MANY_COMMITS and _days(facts, keys.DELETED_FILE_RETENTION, DEFAULT_FILE_RETENTION) <= kept:
        yield _log_advice(
            facts,
            "keep fewer commits, if no one needs that history",
            (("retention", "log", f"{kept:g} days"),),
            f"the log keeps {days:g} days, some {surplus:,.0f} commits more than with {kept:g}",
            surplus,
            "older versions are gone for time travel, audits and streams that stopped: only their owners know",
        )


def _log_advice(
    facts: TableFacts, title: str, declare: tuple[Declared, ...], evidence: str, amount: float, cost: str
) -> Advice:
    return Advice(
        code="A17",
        title=title,
        declare=declare,
        evidence=(evidence,),
        benefit="files",
        amount=amount,
        cost=(cost,),
        observations=len(facts.past.commits),
        confidence="medium",
        computed="the commits of the time that was read, and the properties of the table",
    )


def erasure_advice(facts: TableFacts) -> Iterator[Advice]:
    """Rows that a DELETE marked long ago, and that files of the current version still hold."""
    marked: list[int] = []
    for each in reversed(facts.past.commits):
        if each.commit.operation == "REORG":
            marked = []
        elif (
            each.commit.operation == "DELETE"
            and each.commit.metric("numDeletionVectorsAdded")
            and each.commit.timestamp
        ):
            marked.append(each.commit.timestamp)
    newest = max((each.commit.timestamp for each in facts.past.commits), default=0)
    days = (newest - min(marked)) / 1000 / _DAY if marked else 0.0
    if not facts.live.vectors or days < _LONG_MARKED:
        return
    yield Advice(
        code="A19",
        title="purge the deletion vectors, if these DELETEs erase personal data",
        do=f"REORG TABLE {facts.live.name.text} APPLY (PURGE), then VACUUM once the old files are out of retention",
        evidence=(
            f"{len(marked)} DELETEs marked rows in deletion vectors, the first {days:.0f} days ago; no REORG since",
            f"{facts.live.vectors:,} files have a deletion vector: the rows are still in them",
        ),
        benefit="days of risk",
        amount=round(days, 1),
        cost=("rewrites these files; concurrent UPDATE, DELETE and MERGE of their rows fail once",),
        observations=len(marked),
        confidence="medium",
        computed="the time since the first of these DELETEs; an OPTIMIZE may have purged some of them",
    )


def ledger_advice(facts: TableFacts) -> Iterator[Advice]:
    """At most one advice: Serializable for appends that read the table first, which weaker levels do not order."""
    appends = [
        write
        for job in (facts.jobs.jobs if facts.jobs else ())
        for write in job.writes
        if job.kind in {Kind.APPEND, Kind.READING_INSERT}
        and write.commit.blind_append is False
        and write.commit.isolation == Level.WRITE_SERIALIZABLE.value
        and write.commit.client.family.records_blind_appends
    ]
    if facts.jobs is None or len(appends) < LEAST_WRITES or facts.context.stored_level is Level.SERIALIZABLE:
        return
    at_risk = [
        each for each in appends if (read := each.commit.read_version) is not None and read < each.commit.version - 1
    ]
    if not at_risk:
        return
    yield Advice(
        code="A14",
        title="Serializable, if these appends depend on what they read",
        declare=(("isolation", "", Level.SERIALIZABLE.value),),
        evidence=(
            f"{len(appends)} appends read the table before they wrote, at WriteSerializable",
            f"{len(at_risk)} of them committed after another write that they had not read",
        ),
        benefit="appends at risk",
        amount=len(at_risk),
        cost=("more writes fail: an append that has read the table fails if another write changed what it read",),
        observations=len(appends),
        confidence=confidence_of(len(appends), facts.jobs.period.seconds),
        computed="appends that are not blind, with commits between the version that they read and their own; whether "
        "their rows depend on what they read is not in the log",
    )


_VECTORS = "deletionVectors"


def protocol_advice(facts: TableFacts) -> tuple[list[Advice], list[str]]:
    """At most one advice: the features to drop, if clients gain access by it and no client loses it; else what to ask.

    The clients are those that the policy declares, else all known ones in their newest version. For a drop, Delta may
    add checkpointProtection, which locks out others.
    """
    live, declared = facts.live, facts.options.clients
    unused = tuple(each for each in sorted(live.protocol.features) if _unused(live, each))
    if not unused or live.catalog is not None or not live.protocol.lists_features:
        return [], []
    after = _without(live.protocol, unused)
    gains, losses = (_lost_access(facts, *pair) for pair in ((after, live.protocol), (live.protocol, after)))
    gained = {client: access for client, access in gains.items() if client not in losses}
    lost = sorted({name for name, version in losses if (name, version) not in gains})
    title = f"drop {', '.join(unused)}: supported, and not used"
    if lost and not declared:
        why = f"Delta adds checkpointProtection, which locks out {', '.join(lost)}: declare `clients` of the table"
        return [], [f"{title}: {why}"]
    if not gained or lost:
        return [], []
    clients = sorted(f"{name} {version} can {access} it" for (name, version), access in gained.items())
    named = [find_feature(each) for each in unused]
    advice = Advice(
        code="A12",
        title=title,
        declare=tuple(
            (each.attribute, "", "dropped") if each.attribute else ("features", each.name, "dropped")
            for each in named
            if each
        ),
        evidence=(f"no property, column or file of the table uses {', '.join(unused)}", *clients),
        benefit="clients",
        amount=len(gained),
        cost=("writers fail once for each feature, and checkpointProtection is added (docs/deletion-vectors.md)",),
        observations=len(unused),
        confidence="high",
        computed="the protocol without these features, for the declared clients, else the newest known of each",
    )
    return [advice], []


def _lost_access(facts: TableFacts, before: Protocol, after: Protocol) -> dict[tuple[str, str], str]:
    """The clients that a change of the protocol locks out: of the declared ones, else of all known ones in their newest
    version. Client and version → access.
    """
    if facts.options.clients:
        judged = [each for client in facts.options.clients for each in judge(*client, before, after)]
        return {(each.client, each.version): each.access for each in judged if isinstance(each, LockedOut)}
    known = newest_locked_out(before, after)
    return {(each.client, each.version): each.access for each in known if any(parse_version(each.version))}


def _without(protocol: Protocol, features: Sequence[str]) -> Protocol:
    """The protocol after the drop of some features, with what Delta adds for it."""
    dropped = [find_feature(each) for each in features]
    added = {PROTECTION} if any(each and each.leaves == "with history" for each in dropped) else set()
    return Protocol(
        protocol.reader,
        protocol.writer,
        protocol.reader_features - set(features),
        (protocol.writer_features - set(features)) | added,
    )


def _unused(live: LiveTable, feature: str) -> bool:
    """Whether a feature that can be dropped leaves no trace in the table's state."""
    match feature:
        case "deletionVectors":
            return (live.property(keys.DELETION_VECTORS) or "").lower() != "true" and live.vectors == 0
        case "v2Checkpoint":
            return (live.property(keys.CHECKPOINT_POLICY) or "classic").lower() == "classic"
        case "inCommitTimestamp":
            return (live.property(keys.IN_COMMIT_TIMESTAMPS) or "").lower() != "true"
        case "checkConstraints":
            return not any(key.lower().startswith(keys.CONSTRAINTS) for key in live.properties)
        case _:
            return False
