"""The jobs that write a table, from its commits: which writes belong together, how long they take, what they read."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from tablectl.conflicts.past_writers import is_write, kind_of, known_period, write_seconds
from tablectl.model.commit import Commit
from tablectl.model.commit_contents import CommitFiles, Kind
from tablectl.model.expected_loss import Period
from tablectl.support.json_text import read_json

Shape = Literal["equals", "range", "join", "other"]

_LONGEST = 10_000
_DEEPEST = 50
_MOST = 100
_MOST_LITERALS = 1_000
_ATTRIBUTE = re.compile(r"(?<![\w.])([A-Za-z_][\w.]*)#\d+L?")
_NAME = re.compile(r"`?([A-Za-z_][\w.]*)`?")
_COMPARISON = re.compile(r"(?P<left>\S+)\s+(?P<sign><=>|>=|<=|=|>|<|IN)\s+(?P<right>\S.*)", re.IGNORECASE | re.DOTALL)
_EQUAL = frozenset({"=", "<=>"})


@dataclass(frozen=True, slots=True)
class Condition:
    """A part of a conjunction: one column, and how it is restricted."""

    column: str
    shape: Shape
    """``equals`` a literal or one of some, a ``range``, a ``join`` with another column, or any ``other`` condition."""
    values: frozenset[str] = frozenset()
    """The literals of ``equals``, as the log spells them. They are data: no report shows them."""


def read_predicate(text: str) -> tuple[Condition, ...]:
    """The conditions of a predicate that all hold; ``()`` for a text that cannot be read. Bounded."""
    if len(text) > _LONGEST or text.endswith("…"):
        return ()
    found = [each for part in _expressions(text) for each in _conjuncts(part, 0)]
    return tuple(dict.fromkeys(found[:_MOST]))


def _expressions(text: str) -> list[str]:
    """The expressions of a JSON list of texts, or the text itself."""
    if not text.lstrip().startswith("["):
        return [text]
    try:
        parts = read_json(text)
    except ValueError:
        return []
    return [each for each in parts if isinstance(each, str)] if isinstance(parts, list) else []


def _conjuncts(text: str, depth: int) -> Iterator[Condition]:
    inner = _unwrapped(text.strip())
    if inner is None or depth > _DEEPEST:
        return
    parts = _split_at(inner, " AND ")
    if len(parts) > 1:
        for part in parts:
            yield from _conjuncts(part, depth + 1)
    elif len(_split_at(inner, " OR ")) > 1:
        yield from (Condition(name, "other") for name in _attributes(inner))
    else:
        yield from _condition(inner)


def _unwrapped(text: str) -> str | None:
    """The text without parentheses around it; ``None`` if they are not balanced, or too many."""
    for _ in range(_DEEPEST):
        closed = _closes(text)
        if closed is None:
            return None
        if not (text.startswith("(") and closed == len(text) - 1):
            return text
        text = text[1:-1].strip()
    return None


def _closes(text: str) -> int | None:
    """Where the first parenthesis closes, -1 if there is none; ``None`` if they are not balanced."""
    depth, first = 0, -1
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return None
        if char == ")" and depth == 0 and first < 0:
            first = place
    return first if depth == 0 else None


def _split_at(text: str, word: str) -> list[str]:
    """The parts between a word outside of parentheses."""
    parts, depth, start, upper = [], 0, 0, text.upper()
    if len(upper) != len(text):
        return [text]
    for place, char in enumerate(text):
        depth += (char == "(") - (char == ")")
        if depth == 0 and place >= start and upper.startswith(word, place):
            parts.append(text[start:place])
            start = place + len(word)
    return [*parts, text[start:]]


def _condition(text: str) -> Iterator[Condition]:
    found = _COMPARISON.fullmatch(text)
    if found is None:
        yield from (Condition(name, "other") for name in _attributes(text) if not text.lower().startswith("isnotnull"))
        return
    sign, left, right = found["sign"].upper(), found["left"], found["right"].strip()
    column, other = _column(left, text), _ATTRIBUTE.fullmatch(right)
    if other is not None and sign in _EQUAL and column:
        yield from (Condition(name, "join") for name in dict.fromkeys((column, other[1])))
    elif column and not _ATTRIBUTE.search(right):
        yield _compared(column, sign, right)
    elif other is not None and not _ATTRIBUTE.search(left):
        yield _compared(other[1], sign, left)
    else:
        yield from (Condition(name, "other") for name in _attributes(text))


def _compared(column: str, sign: str, literal: str) -> Condition:
    if sign in _EQUAL:
        return Condition(column, "equals", frozenset({_literal(literal)}))
    if sign == "IN":
        listed = _unwrapped(literal) if literal.startswith("(") else literal
        values = frozenset(_literal(each) for each in (listed or "").split(","))
        return Condition(column, "equals", values) if 0 < len(values) <= _MOST_LITERALS else Condition(column, "other")
    return Condition(column, "range")


def _column(text: str, whole: str) -> str:
    """The column that a side of a comparison is; a plain name only in text without attribute ids."""
    found = _ATTRIBUTE.fullmatch(text)
    if found is None and not _ATTRIBUTE.search(whole):
        found = _NAME.fullmatch(text)
    return found[1] if found else ""


def _attributes(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(_ATTRIBUTE.findall(text)))


def _literal(text: str) -> str:
    bare = text.strip()
    return bare[1:-1] if len(bare) > 1 and bare[0] == bare[-1] and bare[0] in "'\"" else bare


_REWRITES = frozenset({Kind.UPDATE, Kind.DELETE, Kind.MERGE, Kind.REPLACE_WHERE})
_LEAST_OF_VALUE = 3
"""Writes with the same literals, from which on they count as a job of their own."""
_LEAST_SPLIT = 0.5
"""The share of a group's writes that must be of such jobs. The others are one more job: a writer that mostly fails has
few writes.
"""
_MOST_VALUES = 20
_ID = 8
_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Write:
    """A write of the past."""

    files: CommitFiles
    kind: Kind
    end: float
    """The time of its commit, in seconds since the epoch."""
    seconds: float
    """Its duration."""
    conditions: tuple[Condition, ...]

    @property
    def commit(self) -> Commit:
        """Its commit."""
        return self.files.commit

    def values(self, column: str) -> frozenset[str]:
        """The literals to which it restricts a column; empty if it does not."""
        folded = column.lower()
        found = [each.values for each in self.conditions if each.shape == "equals" and each.column.lower() == folded]
        return frozenset.intersection(*found) if found else frozenset()


@dataclass(frozen=True, slots=True)
class Job:
    """Writes of the past by one job: the same operation, client, name and columns in the condition."""

    name: str
    kind: Kind
    writes: tuple[Write, ...]
    """Newest first."""

    @property
    def rewrites(self) -> bool:
        """Whether it reads the rows that it changes."""
        return self.kind in _REWRITES

    @property
    def overlaps_itself(self) -> bool:
        """Whether two of its writes ran at the same time: one of them read a version from before the other."""
        versions = sorted((each.commit for each in self.writes), key=lambda each: each.version)
        return any(
            later.read_version is not None and later.read_version < earlier.version
            for earlier, later in pairwise(versions)
        )

    @property
    def seconds(self) -> float:
        """The seconds of all its writes."""
        return sum(each.seconds for each in self.writes)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of its conditions, as far as they can be read."""
        return tuple(dict.fromkeys(each.column for write in self.writes for each in write.conditions))


@dataclass(frozen=True, slots=True)
class Jobs:
    """All jobs of a table, and the time in which all their writes are known."""

    jobs: tuple[Job, ...]
    period: Period

    @property
    def writes(self) -> int:
        """The number of writes."""
        return sum(len(each.writes) for each in self.jobs)

    @property
    def weeks(self) -> float:
        """The length of the time in weeks."""
        return self.period.seconds / (7 * 86_400)


def find_jobs(commits: Sequence[CommitFiles]) -> Jobs | None:
    """The jobs of some commits, newest first; ``None`` if no commit has a usable time."""
    every = [each.commit for each in commits]
    period = known_period(every, None)
    if period is None:
        return None
    inside = [each for each in every if period.start <= each.timestamp / 1000 <= period.end]
    times = {each.version: each.timestamp / 1000 for each in inside}
    groups: dict[tuple[str, ...], list[CommitFiles]] = {}
    conditions: dict[int, tuple[Condition, ...]] = {}
    for each in commits:
        commit = each.commit
        if commit.version in times and is_write(commit):
            conditions[commit.version] = read_predicate(commit.parameters.get("predicate", ""))
            groups.setdefault(_key(commit, conditions[commit.version]), []).append(each)
    jobs = (job for group in groups.values() for job in _split(group, times, conditions))
    return Jobs(tuple(sorted(jobs, key=lambda job: (-job.seconds, job.name))), period)


def _key(commit: Commit, conditions: Sequence[Condition]) -> tuple[str, ...]:
    shapes = sorted(f"{each.column} {each.shape}" for each in conditions)
    client = (commit.client.engine, *map(str, commit.client.version))
    stream = commit.transactions[0].app_id if commit.transactions else ""
    return (
        kind_of(commit),
        str(commit.blind_append),
        commit.job.get("jobName") or commit.job.get("jobId") or stream or commit.user,
        *client,
        *shapes,
    )


def _split(
    group: Sequence[CommitFiles], times: Mapping[int, float], conditions: Mapping[int, tuple[Condition, ...]]
) -> Iterator[Job]:
    """One job, or one for each literal that is used often: four writers of four regions are four jobs."""
    seconds = write_seconds([each.commit for each in group], times)
    kind = kind_of(group[0].commit)
    writes = [
        Write(each, kind, times[each.commit.version], taken, conditions[each.commit.version])
        for each, taken in zip(group, seconds, strict=True)
    ]
    parts = _by_literals(writes)
    for index, part in enumerate(parts, 1):
        yield Job(f"{_name(writes)}, {index} of {len(parts)}" if len(parts) > 1 else _name(writes), kind, part)


def _by_literals(writes: Sequence[Write]) -> list[tuple[Write, ...]]:
    """The writes by their literals, those with the same ones first that are the most; all in one part if most literals
    are used seldom.
    """
    counts = Counter(map(_literals, writes))
    often = [each for each in counts if counts[each] >= _LEAST_OF_VALUE]
    enough = sum(counts[each] for each in often) >= _LEAST_SPLIT * len(writes)
    if not (enough and 1 < len(counts) <= _MOST_VALUES) or frozenset() in counts:
        return [tuple(writes)]
    often.sort(key=lambda each: (-counts[each], sorted(map(sorted, each))))
    parts = [tuple(each for each in writes if _literals(each) == literals) for literals in often]
    seldom = tuple(each for each in writes if _literals(each) not in often)
    return [*parts, seldom] if seldom else parts


def _literals(write: Write) -> frozenset[tuple[str, ...]]:
    return frozenset((each.column, *sorted(each.values)) for each in write.conditions if each.shape == "equals")


def _name(writes: Sequence[Write]) -> str:
    """What the job is called in reports: without literals."""
    commit = writes[0].commit
    columns = tuple(dict.fromkeys(each.column for each in writes[0].conditions))
    by = f" by {', '.join(columns[:3])}" if columns else ""
    if commit.transactions:
        return f"stream {commit.transactions[0].app_id[:_ID]}"
    who = commit.job.get("jobName") or (f"job {commit.job['jobId']}" if "jobId" in commit.job else commit.user)
    return f"{writes[0].kind}{by}{f' by {who[:_LONGEST_NAME]}' if who else ''} ({commit.client.text()})"
