"""Upkeep: what a policy declares about OPTIMIZE and VACUUM, what a table's log says of its files, and what is due."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from tablectl.delta.properties import DEFAULT_FILE_RETENTION, parse_interval
from tablectl.model.table_options import Optimize, parse_size

NEVER = "never"
"""Cancels an inherited ``every``."""
FEWEST = 16
"""An OPTIMIZE that merges fewer small files is left to ``every``: their number does not matter to a reader."""
_LONGEST = 5 * 366 * 86_400
_SHORTEST = 3600
_PERCENT = re.compile(r"([1-9][0-9]?|100) ?%")
_MICROS = 1_000_000
_AHEAD = 86_400_000
"""Milliseconds. Clocks differ by some hours."""

UpkeepKind = Literal["optimize", "vacuum"]


def parse_every(text: str) -> str:
    """An interval between an hour and five years, or ``never``. Raises ``ValueError``."""
    if text != NEVER and not _SHORTEST <= span_seconds(text) <= _LONGEST:
        raise ValueError("needs an interval from 1 hour to 5 years, such as '7 days'")
    return text


def parse_share(text: str) -> str:
    """A percentage from 1% to 100%. Raises ``ValueError``."""
    if _PERCENT.fullmatch(text) is None:
        raise ValueError("needs a percentage from 1% to 100%, such as '30%'")
    return text.replace(" ", "")


def parse_target(text: str) -> str:
    """A file size from 1 MB to 10 GB. Raises ``ValueError``."""
    if not 1_000_000 <= parse_size(text) <= 10_000_000_000:
        raise ValueError("needs a size from 1 MB to 10 GB")
    return text


def span_seconds(text: str) -> float:
    """The seconds of ``7 days``. Raises ``ValueError``."""
    return parse_interval(text) / _MICROS


def believable(at: int, now: int) -> int:
    """A time of a commit or a record, in milliseconds since the epoch; 0 if the clock of its writer was far ahead: it
    says nothing.
    """
    return at if at <= now + _AHEAD else 0


def kept_seconds(retention: str | None) -> float:
    """For how many seconds VACUUM keeps files that no version names, by the table property; ``None`` is not set. A text
    that is not an interval counts as the default.
    """
    return span_seconds(retention if retention and is_interval(retention) else DEFAULT_FILE_RETENTION)


def is_interval(text: str) -> bool:
    """Whether Delta can read the text as an interval: it refuses VACUUM for another one (``DeltaConfig.scala``)."""
    try:
        return parse_interval(text) >= 0
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizePolicy:
    """When the files of a table are merged: if either condition holds."""

    small_files: str = ""
    """The share of the table's bytes in small files, as ``30%``; empty for no such condition."""
    target: str = "128 MB"
    """The size of the merged files. A file below half of it is small."""
    every: str = ""
    """How long after the last OPTIMIZE; empty for no such condition."""

    @property
    def text(self) -> str:
        """``small_files 30%, target 128 MB, every 7 days``, for people and as ``read_optimize`` reads it."""
        parts = {"small_files": self.small_files, "target": self.target, "every": self.every}
        return ", ".join(f"{key} {value}" for key, value in parts.items() if value)

    @property
    def target_bytes(self) -> int:
        """The size of the merged files in bytes."""
        return parse_size(self.target)

    @property
    def share(self) -> float | None:
        """``small_files`` as a number from 0 to 1; ``None`` without that condition."""
        return int(self.small_files[:-1]) / 100 if self.small_files else None

    @property
    def why_not(self) -> str:
        """What is wrong with it as a whole; empty if nothing is."""
        return "" if self.small_files or self.every else "needs `small_files` or `every`"


@dataclass(frozen=True, slots=True, kw_only=True)
class VacuumPolicy:
    """When files that no version needs any more are deleted. The table's own retention says which these are."""

    every: str = ""

    @property
    def text(self) -> str:
        """``every 7 days``, for people and as ``read_vacuum`` reads it."""
        return f"every {self.every}"


def read_optimize(text: str) -> OptimizePolicy:
    """Parses ``OptimizePolicy.text``."""
    return OptimizePolicy(**_pairs(text))


def read_vacuum(text: str) -> VacuumPolicy:
    """Parses ``VacuumPolicy.text``."""
    return VacuumPolicy(**_pairs(text))


def _pairs(text: str) -> Mapping[str, str]:
    return {key: value for key, _, value in (part.partition(" ") for part in text.split(", "))}


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepPolicy:
    """What a policy declares about the upkeep of one table."""

    optimize: OptimizePolicy | None = None
    vacuum: VacuumPolicy | None = None
    clusters: Optimize = "never"
    """The option ``optimize`` of the policy: what of a clustered table is clustered again."""

    def every(self, kind: UpkeepKind) -> float | None:
        """Seconds after which a kind is due again; ``None`` if time alone makes it never due."""
        found = self.optimize if kind == "optimize" else self.vacuum
        return span_seconds(found.every) if found and found.every and found.every != NEVER else None


@dataclass(frozen=True, slots=True, kw_only=True)
class WriterFiles:
    """The files that one writer added, by the metrics of its commits."""

    name: str
    commits: int = 0
    files: int = 0
    bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepFacts:
    """What the log of a table says of its files. ``None`` in a count means unknown."""

    files: int | None = None
    bytes: int | None = None
    small_files: int | None = None
    """Files below half of the target that an OPTIMIZE can merge with another one."""
    small_bytes: int | None = None
    optimized_at: int = 0
    """When the newest OPTIMIZE committed, in milliseconds since the epoch; 0 if none of the read commits is one."""
    optimized_by_us: bool = False
    """Whether a run of tablectl made it."""
    added_since: int = 0
    """Files that writers added since the first commit of that run."""
    vacuumed_at: int = 0
    """When the newest VACUUM ended; 0 as above."""
    removed: tuple[tuple[int, int, int], ...] = ()
    """For each commit since the newest VACUUM that removes files: its time, the files and their bytes, by its
    metrics.
    """
    unread: str = ""
    """Why other commits may have removed more; empty if none has."""
    commits: int = 0
    """How many commits were read."""
    oldest: int = 0
    """The time of the oldest of them; 0 if unknown."""
    cut: bool = False
    """Whether older commits exist that were not read, or that were cleaned up."""
    log: int = 0
    """How many commit files the log has."""
    writers: tuple[WriterFiles, ...] = ()
    """Those that added files, the one with most files first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepTask:
    """One kind of upkeep of one table: whether it is due, since when and why."""

    kind: UpkeepKind
    due: bool
    why: str
    since: int = 0
    """Since when it is due, or when it will be, in milliseconds since the epoch; 0 if unknown."""
    last: int = 0
    """When it was done last; 0 if no read commit shows it."""
    files: int | None = None
    """The files that it would rewrite or delete, at most; ``None`` if unknown."""
    bytes: int | None = None
    notes: tuple[str, ...] = field(default=())
