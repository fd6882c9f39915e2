"""Who alters a table, from the commits of the last days, and what that is expected to cost the writers.

Which writers fail follows from the conflict rules, how many from the mean number of writes in flight at the hour of
each commit. Which writes really failed is not in the log.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from tablectl.conflicts.past_writers import PastWriter, kind_of, names_of, past_writers
from tablectl.conflicts.rules import decide
from tablectl.conflicts.transactions import ConflictResult
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.model.altering_job import LEAST_FAILED, AlteringJob, AlteringKind
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import LIVE, NEW, CommittedTransaction, Kind, MetadataChange, ProtocolChange
from tablectl.model.expected_loss import CommitWindow, Period, hour_of_week, week_of_loss
from tablectl.model.plan import Basis
from tablectl.model.safe_text import printable
from tablectl.model.writers_in_history import STAMP
from tablectl.support.json_text import read_json

_WEEK = 7 * 86_400.0
_FEW = 3
"""Fewer commits make no series."""
_MOST = 20
_LONGEST = 60
_KEYS = 3
_CREATES = ("CREATE TABLE", "CLONE", "CONVERT")
_COLUMNS = (
    "ADD COLUMN",
    "CHANGE COLUMN",
    "REPLACE COLUMN",
    "DROP COLUMN",
    "RENAME COLUMN",
    "UPDATE COLUMN",
    "UPDATE SCHEMA",
)
_FEATURES = ("UPGRADE", "DROP FEATURE", "ADD CONSTRAINT", "DROP CONSTRAINT", "ROW TRACKING", "REORG")
_DAY = 86_400.0
_FILES = frozenset({"overwrites", "replaces", "optimizes"})
_HALF = 0.5
"""An outcome that is not certain."""
_SHARES: Mapping[ConflictResult, float] = MappingProxyType({ConflictResult.COMMITS: 0.0, ConflictResult.FAILS: 1.0})
_KINDS: Mapping[AlteringKind, Kind] = MappingProxyType(
    {
        "settings": Kind.SET_PROPERTIES,
        "columns": Kind.CHANGE_COLUMN,
        "features": Kind.UPGRADE_PROTOCOL,
        "clustering": Kind.CLUSTER_BY,
        "replaces": Kind.REPLACE_TABLE,
        "overwrites": Kind.OVERWRITE,
        "optimizes": Kind.OPTIMIZE,
    }
)


def altering_jobs(commits: Sequence[Commit], basis: Basis, dialect: str) -> tuple[AlteringJob, ...]:
    """The series that are expected to fail writes, the most work first. ``commits`` are the newest first. A series that
    costs fewer than ``LEAST_FAILED`` writes a week does not count, nor do commits of tablectl.
    """
    past = past_writers(commits, basis, dialect)
    if past is None or past.period.seconds <= 0:
        return ()
    idle, groups = _idle(commits), dict[tuple[AlteringKind, str, str, str], list[Commit]]()
    for each in commits:
        kind = kind_of_change(each)
        if kind and past.period.start <= each.timestamp / 1000 <= past.period.end:
            groups.setdefault((kind, each.operation, who_of(each), each.client.text()), []).append(each)
    optimizers = {who for kind, _, who, _ in groups if kind == "optimizes"}
    found = []
    for (kind, operation, who, client), made in groups.items():
        if len(made) < _FEW or (kind == "optimizes" and len(optimizers) < 2):
            continue
        own, end = names_of(made[0]), made[0].timestamp / 1000  # a job does not fail itself
        others = [
            each
            for each in past.writers
            if (not own or each.names != own) and not (made[0].changes_data and end in {one.end for one in each.writes})
        ]
        failed, seconds, fails = _price(made, idle, others, past.period)
        if failed < LEAST_FAILED:
            continue
        found.append(
            AlteringJob(
                kind=kind,
                operation=operation,
                who=who,
                client=client,
                keys=tuple(dict.fromkeys(key for each in made[:_MOST] for key in _keys_of(each)))[:_KEYS],
                commits=len(made),
                since=made[-1].timestamp,
                newest=made[0].timestamp,
                days=past.period.seconds / 86_400,
                nothing=sum(each.version in idle for each in made),
                failed=failed,
                seconds=seconds,
                fails=fails,
            )
        )
    return tuple(sorted(found, key=lambda each: (-each.seconds, -each.failed, each.operation, each.who))[:_MOST])


def kind_of_change(commit: Commit) -> AlteringKind | None:
    """What a commit of others changes besides rows; ``None`` if nothing, or if it made the table."""
    operation = commit.operation
    if commit.version == 0 or commit.user_metadata.startswith(STAMP) or operation.startswith(_CREATES):
        return None
    if commit.overwrites:
        return "overwrites" if operation == "WRITE" else "replaces"
    if operation == "OPTIMIZE" and commit.changes_data:
        return "optimizes"
    if not commit.changes_metadata:
        return None
    if commit.changes_data:
        return "writes" if commit.schema_writer else "features"
    if operation.startswith(_FEATURES) or (operation.startswith("SET") and any(map(_is_feature, _keys_of(commit)))):
        return "features"
    if operation == "CLUSTER BY":
        return "clustering"
    return "columns" if operation.startswith(_COLUMNS) else "settings"


def who_of(commit: Commit) -> str:
    """Who made a commit, with one name for all runs of a job; empty if the log does not say."""
    stream = f"stream {commit.transactions[0].app_id[:8]}" if commit.transactions else ""
    found = commit.source or stream or " ".join(commit.user_metadata.split())
    return printable(found if len(found) <= _LONGEST else f"{found[:_LONGEST]}…")


def _is_feature(key: str) -> bool:
    return key.startswith("delta.feature.")


def _keys_of(commit: Commit) -> Iterator[str]:
    """The properties or the column that an ALTER names."""
    try:
        told = read_json(commit.parameters.get("properties") or commit.parameters.get("column") or "null")
    except ValueError:
        return
    if isinstance(told, dict):
        yield from (str(told["name"]),) if "name" in told and "type" in told else map(str, told)
    elif isinstance(told, list):
        yield from map(str, told)


def _idle(commits: Sequence[Commit]) -> frozenset[int]:
    """The versions that repeat the state of the table. Of the first commit it is not known."""
    known: dict[int, str] = {}
    found = set()
    for commit in reversed(commits):
        marks = {place: mark for place, mark in enumerate(commit.state_marks) if mark}
        if marks and marks.items() <= known.items():
            found.add(commit.version)
        known |= marks
    return frozenset(found)


def _transaction(commit: Commit, kind: AlteringKind, *, idle: bool) -> CommittedTransaction:
    """The commit as the conflict rules see it."""
    metadata, protocol, domain = (*map(bool, commit.state_marks), False, False, False)[:3]
    known = bool(commit.state_marks)
    columns = kind in {"columns", "writes", "replaces"}
    changed = (
        MetadataChange(schema="other") if columns else MetadataChange(sets=tuple((key, "") for key in _keys_of(commit)))
    )
    rewrites = kind in {"overwrites", "replaces", "optimizes"} or commit.blind_append is False
    return CommittedTransaction(
        kind=_KINDS.get(kind) or kind_of(commit),
        metadata=(MetadataChange() if idle else changed) if metadata or not (known or kind in _FILES) else None,
        protocol=ProtocolChange() if protocol else None,
        domains=(CLUSTERING_DOMAIN,) if domain else (),
        added=(NEW,) if commit.changes_data else (),
        removed=(LIVE,) if commit.changes_data and rewrites else (),
        blind=commit.blind_append is True or not commit.changes_data,
        data_change=commit.changes_data and kind != "optimizes",
    )


def _price(
    made: Sequence[Commit], idle: frozenset[int], others: Sequence[PastWriter], period: Period
) -> tuple[float, float, tuple[str, ...]]:
    """The expected failed writes of a week, the seconds of their work, and the writers. By the last week, so that a job
    that stopped costs nothing.
    """
    length = min(max(period.seconds, _DAY), _WEEK)
    recent = [each for each in made if each.timestamp / 1000 > period.end - length]
    seen = Counter(
        (_transaction(each, kind, idle=each.version in idle), hour_of_week(each.timestamp / 1000))
        for each in recent
        if (kind := kind_of_change(each))
    )
    failed, seconds = dict[str, float](), 0.0
    for writer in others:
        week = week_of_loss(writer.writes, period, CommitWindow(1))
        shares = {one: _SHARES.get(decide(one, writer.current).result, _HALF) for one, _ in seen}
        for (one, hour), count in seen.items():
            factor = count * shares[one] * _WEEK / length
            failed[writer.name] = failed.get(writer.name, 0.0) + factor * week[hour].failed
            seconds += factor * week[hour].seconds
    named = tuple(name for name in sorted(failed, key=lambda name: -failed[name])[:_KEYS] if failed[name] > 0)
    return sum(failed.values()), seconds, named
