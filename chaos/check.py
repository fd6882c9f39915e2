"""What a round must have kept: pure functions over replayed logs, journals, reports and times."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from chaos.journal import Attempt, HookCall
from chaos.replay import Commit, Log, Row, Settings, settings_after, settings_at
from chaos.scenario import allowed
from chaos.strangers import MARK

Promise = Literal["rows", "metadata", "interleave", "free", "writers", "jobs", "finish", "exits"]
PROMISES: Mapping[Promise, str] = {
    "rows": "every row that a writer was told of is there exactly once",
    "metadata": "no metadata commit that the plan does not hold, and none twice",
    "interleave": "commits of two runs never interleave without a report",
    "free": "lease and guards are free in time",
    "writers": "no guarded writer failed because of an apply",
    "jobs": "hooks resume jobs after the last statement, and always",
    "finish": "the same command finishes, and the plan is then empty",
    "exits": "exit codes and reports are true",
}


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that a round broke, with what was seen."""

    promise: Promise
    table: str
    what: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.table}: {self.what}" if self.table else f"{self.promise}: {self.what}"


def check_attempts(log: Log, base: int, attempts: Sequence[Attempt]) -> list[Violation]:
    """What writers were told against the commits with their ids: ok is one, failed none, unknown at most one."""
    made = Counter(commit.user for commit in log.since(base))
    found = []
    for attempt in attempts:
        count = made[attempt.id]
        least = 1 if attempt.told == "ok" and attempt.act != "optimize" else 0
        most = 0 if attempt.told == "failed" else 1
        if attempt.act == "optimize" and attempt.told != "failed":
            most = max(count, 1)  # one for each group of files
        if not least <= count <= most:
            found.append(
                Violation(
                    "rows", attempt.table, f"{attempt.act} {attempt.id} was told {attempt.told} and has {count} commits"
                )
            )
    known = {MARK, *(attempt.id for attempt in attempts)}
    strange = [each for each in log.since(base) if each.stamp is None and each.user not in known]
    found += [
        Violation("rows", log.place.name, f"version {each.version} ({each.operation}) is of no one") for each in strange
    ]
    return found


def expected_rows(log: Log, base: int, before: Iterable[Row], attempts: Sequence[Attempt]) -> Counter[Row]:
    """The rows that the attempts which landed leave, in the order of their commits."""
    held: dict[tuple[int, int], list[int]] = {}
    for writer, key, value, _ in before:
        held.setdefault((writer, key), []).append(value)
    by_id = {attempt.id: attempt for attempt in attempts}
    for commit in log.since(base):
        attempt = by_id.get(commit.user)
        if attempt is not None:
            _do(held, attempt)
    return Counter((writer, key, value, key % 4) for (writer, key), values in held.items() for value in values)


def _do(held: dict[tuple[int, int], list[int]], attempt: Attempt) -> None:
    for key, value in attempt.pairs:
        row = (attempt.writer, key)
        if attempt.act == "append" or (attempt.act == "merge" and not held.get(row)):
            held.setdefault(row, []).append(value)
        elif attempt.act in {"merge", "update"} and row in held:
            held[row] = [value] * len(held[row])
        elif attempt.act == "delete":
            held.pop(row, None)


def check_rows(table: str, expected: Counter[Row], found: Iterable[Row]) -> list[Violation]:
    """Rows that are lost, there more often than written, or other than written."""
    there = Counter(found)
    lost, more = expected - there, there - expected
    return [
        Violation("rows", table, f"{sum(rows.values())} rows {word}, such as {min(rows)}")
        for word, rows in (("are lost or changed", lost), ("are there too often or as no one wrote them", more))
        if rows
    ]


def check_metadata(log: Log, base: int, plans: Iterable[str], keys: Sequence[str]) -> list[Violation]:
    """Every commit of metadata is of one of the plans, changes something that its policy may change, and no setting
    takes a value again that it had before.
    """
    known, found = set(plans), list[Violation]()
    now = settings_at(log, base)
    past: dict[str, set[str | None]] = {}
    for commit in log.since(base):
        if not commit.sets:
            continue
        after = settings_after(now, commit)
        if commit.user != MARK:
            words = _wrong(commit, known, keys, now, after, past)
            found += [Violation("metadata", log.place.name, text) for text in words]
        now = after
    return found


def _wrong(
    commit: Commit,
    plans: set[str],
    keys: Sequence[str],
    before: Settings,
    after: Settings,
    past: dict[str, set[str | None]],
) -> Iterator[str]:
    name = f"version {commit.version} ({commit.operation})"
    if commit.stamp is None or commit.stamp[1] not in plans:
        yield f"{name} is of no plan of this round"
    changed = [key for key in sorted(before.keys() | after.keys()) if before.get(key) != after.get(key)]
    if not changed:
        yield f"{name} is a metadata commit that changes nothing"
    for key in changed:
        if not allowed(keys, key):
            yield f"{name} changes {key}, which the policy does not hold: {before.get(key)} → {after.get(key)}"
        had = past.setdefault(key, set())
        had.add(before.get(key))
        if after.get(key) in had:
            yield f"{name} sets {key} to {after.get(key)} a second time"


@dataclass(frozen=True, slots=True)
class Told:
    """What one run of the command left: its exit code and its report, where it wrote one."""

    code: int
    report: Mapping[str, object] | None = None
    disturbed: bool = False
    """Whether a fault was done to it."""
    acquired: Mapping[str, float] | None = None
    """When it took the lease of each table, in seconds since the epoch, by the records."""

    @property
    def run(self) -> str:
        """Its run id; empty without a report."""
        return str((self.report or {}).get("run", ""))

    @property
    def span(self) -> tuple[float, float]:
        """When the run began and ended, in milliseconds since the epoch; all time without a report."""
        began, took = ((self.report or {}).get(key) for key in ("at", "took_ms"))
        if not isinstance(began, int) or not isinstance(took, int):
            return -math.inf, math.inf
        return began, began + took

    def of(self, table: str) -> Mapping[str, object]:
        """The report of the table in a folder; empty where there is none."""
        tables = (self.report or {}).get("tables")
        for each in tables if isinstance(tables, list) else ():
            if isinstance(each, dict) and re.search(rf"/{re.escape(table)}\W*$", str(each.get("name", ""))):
                return each
        return {}


def check_interleaving(log: Log, base: int, told: Sequence[Told], acquired: Mapping[str, float]) -> list[Violation]:
    """A commit of a run after another run took the table must be in the report of one of the two.

    ``acquired`` has, by run id, when a run took the lease (seconds since the epoch). Where it is unknown, the first
    commit of a run counts.
    """
    stamped = [(commit, commit.stamp[0]) for commit in log.since(base) if commit.stamp is not None]
    begun = {run: (acquired.get(run) or commit.at) for commit, run in reversed(stamped)}
    found = []
    for index, (commit, run) in enumerate(stamped):
        others = {other for _, other in stamped[:index] if other != run}
        others |= {other for other, since in begun.items() if begun[run] < since < commit.at}
        for other in sorted(others):
            late = begun.get(other, 0.0) > begun[run]
            if late and not _reported(log.place.name, told, run, other):
                words = f"landed after run {other} had taken the table, and no report says so"
                what = f"version {commit.version} ({commit.operation}) of run {run} {words}"
                found.append(Violation("interleave", log.place.name, what))
    return found


def _reported(table: str, told: Sequence[Told], run: str, other: str) -> bool:
    texts = {each.run: json.dumps(each.of(table)) for each in told if each.run}
    return other in texts.get(run, "") or run in texts.get(other, "")


def check_lost(table: str, told: Sequence[Told], lost: Mapping[str, str]) -> list[Violation]:
    """A run whose lease another run took does not say "applied" without naming that run (``lost``: by run, which). It
    cannot name a run that began after its own end.
    """
    found = []
    began = {each.run: each.span[0] for each in told}
    for each in told:
        other, report = lost.get(each.run), each.of(table)
        if other and began.get(other, -math.inf) > each.span[1]:
            continue
        if other and report.get("outcome") == "applied" and other not in json.dumps(report):
            what = f"run {each.run} says that it applied the table, and not that run {other} took it over"
            found.append(Violation("exits", table, what))
    return found


_DONE = frozenset({"", "applied", "already", "waiting"})
"""Outcomes of a table with which a run may end with 0. The last one: the run lost its lease to a run of the same plan,
and the table is as declared (docs/window.md).
"""


def check_exits(told: Sequence[Told], logs: Mapping[str, Log]) -> list[Violation]:
    """Exit codes are documented ones and fit the reports and the commits (docs/exit-codes.md).

    A table that is done and whose after-hook has not run yet ends a run with 4 or 5.
    """
    found = []
    for each in told:
        if each.code < 0:
            continue
        if each.code not in {0, 1, 3, 4, 5}:
            found.append(Violation("exits", "", f"a run ended with {each.code}"))
        committed = [name for name, log in logs.items() if any(c.stamp and each.run == c.stamp[0] for c in log.commits)]
        outcomes = {name: str(each.of(name).get("outcome", "")) for name in logs}
        if each.code in {3, 4} and committed:
            found.append(
                Violation("exits", ", ".join(committed), f"exit code {each.code}, yet run {each.run} made commits")
            )
        wrong = {name: word for name, word in outcomes.items() if word not in _DONE}
        if each.code == 0 and wrong:
            found.append(Violation("exits", ", ".join(wrong), f"exit code 0 with {wrong}"))
        owed = any(each.of(name).get("owed") for name in logs)
        if each.code not in {0, 1} and each.report is not None and not wrong and not owed:
            found.append(
                Violation("exits", "", f"exit code {each.code}, and every table is {sorted(set(outcomes.values()))}")
            )
    return found


def check_jobs(log: Log, base: int, calls: Sequence[HookCall], *, shared: bool) -> list[Violation]:
    """Jobs that a run has paused stay paused until its last commit, and are resumed at the end.

    ``shared``: the tables share a window, so the hooks of one run for all of them.
    """
    of_table = [call for call in calls if shared or call.table == log.place.name]
    found = []
    for commit in log.since(base):
        run = commit.stamp[0] if commit.stamp is not None else ""
        before = [call for call in of_table if call.at <= commit.at]
        paused = max((call.at for call in before if call.hook == "before" and call.run == run), default=None)
        if paused is not None and any(call.hook == "after" and call.at > paused for call in before):
            what = f"version {commit.version} ({commit.operation}) of run {run} came after its jobs were resumed"
            found.append(Violation("jobs", log.place.name, what))
    if of_table and of_table[-1].hook == "before":
        found.append(Violation("jobs", log.place.name, "its jobs were never resumed"))
    return found


_AT_VERSION = re.compile(r"committed at version (\d+)")
_SHOWN = {"txnId": re.compile(r'"txnId":\s*"([^"]+)"'), "timestamp": re.compile(r'"timestamp":\s*(\d+)')}
_METADATA = re.compile(r"MetadataChanged|ProtocolChanged|DELTA_METADATA_|DELTA_PROTOCOL_|SCHEMA_CHANGE")
_CONFLICT = re.compile(r"\bDELTA_CONCURRENT|Concurrent[A-Z]\w+Exception")


def check_writers(log: Log, attempts: Sequence[Attempt]) -> tuple[list[Violation], int]:
    """Failures that an apply caused, and how many writers caused among themselves."""
    found, others = [], 0
    for attempt in attempts:
        if attempt.told != "failed":
            continue
        cause = cause_of(log, attempt)
        if cause == "writer":
            others += 1
        else:
            first = " ".join(attempt.error.split())[:400]
            found.append(Violation("writers", attempt.table, f"{attempt.act} {attempt.id} failed ({cause}): {first}"))
    return found, others


def cause_of(log: Log, attempt: Attempt) -> str:
    """Whose commit failed an attempt: ``apply``, ``writer``, or ``unknown`` where the log does not tell."""
    text = attempt.error
    if "GuardTimeout" in text.partition(":")[0]:
        return "gate"
    commit = _find(log, text)
    if commit is not None:
        return "apply" if commit.stamp is not None else "writer"
    if _METADATA.search(text):
        return "apply"
    return "unknown conflict" if _CONFLICT.search(text) else "unknown"


def _find(log: Log, text: str) -> Commit | None:
    """The commit that Delta's message names: by version since Delta 4.1, before as JSON, which may be cut."""
    named = _AT_VERSION.search(text)
    if named is not None and int(named.group(1)) < len(log.commits):
        return log.commits[int(named.group(1))]
    for name, pattern in _SHOWN.items():
        shown = pattern.search(text)
        found = (commit for commit in log.commits if shown and str(commit.info.get(name)) == shown.group(1))
        commit = next(found, None)
        if commit is not None:
            return commit
    return None
