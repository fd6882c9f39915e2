"""Derives the files of a version from the names in a ``_delta_log``. Pure: accesses no store.

File names: Delta protocol, "Delta Log Entries", "Checkpoints" and "Version Checksum File"; delta-4. Compacted logs are
ignored: every commit after the checkpoint is needed anyway.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tablectl.model.errors import LiveError
from tablectl.storage.table_log import STAGED
from tablectl.support.json_text import read_json

_DIGITS = 20
"""The length of a version in a name."""
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint(?:\.([0-9]{10})\.([0-9]{10}))?\.parquet")
_V2 = re.compile(r"([0-9]{20})\.checkpoint\.[0-9A-Za-z]{8}-[0-9A-Za-z-]{27}\.(?:json|parquet)")
_STAGED = re.compile(rf"(?:{'|'.join(STAGED)})/([0-9]{{20}})\.[^/]+\.json")

_LARGEST_VERSION = 2**63 - 1


class GapError(ValueError):
    """The listed files do not form the version: the log is damaged, or it was cleaned up during the listing."""


class DamagedCheckpointError(LiveError):
    """A checkpoint that cannot be read. The state may be known without it."""

    def __init__(self, message: str, files: tuple[str, ...]) -> None:
        super().__init__(message)
        self.files = files
        """Those of the checkpoint."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A complete checkpoint: all its parts, or its single V2 file."""

    version: int
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFiles:
    """The relevant files of a listing."""

    commits: frozenset[int]
    checksums: frozenset[int]
    checkpoints: tuple[Checkpoint, ...]
    """One per version, ascending."""
    staged: int = -1
    """The newest commit that a catalog has not published yet; -1 if there is none."""
    whole: bool = False
    """Whether these are all files of the log."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One version: its newest checkpoint, and every commit after that."""

    version: int
    checkpoint: Checkpoint | None
    files: LogFiles
    known: int = -1
    """A version whose state is known without its files, instead of a checkpoint; -1 if there is none."""

    @property
    def base(self) -> int:
        """The version of the checkpoint, or the known one; -1 without them."""
        return self.checkpoint.version if self.checkpoint else self.known


def commit_name(version: int) -> str:
    """The file name of a commit."""
    return f"{version:020d}.json"


def checksum_name(version: int) -> str:
    """The file name of a version's checksum."""
    return f"{version:020d}.crc"


def parse_listing(names: Iterable[str], *, whole: bool = False) -> LogFiles:
    """Classifies the names of a listing. Names of other forms are ignored, as Delta does. ``whole`` says that they are
    all files of the log.
    """
    commits, checksums, staged = set[int](), set[int](), -1
    numbered = {".json": commits, ".crc": checksums}
    checkpoints: dict[int, dict[_Kind, dict[int, str]]] = {}
    for name in names:
        if (found := numbered.get(name[_DIGITS:])) is not None and name[:_DIGITS].isdecimal() and name.isascii():
            found.add(int(name[:_DIGITS]))
        elif match := _CLASSIC.fullmatch(name) or _V2.fullmatch(name):
            if match.re is _V2:
                kind, part = (2, 1, match[0]), 1
            else:
                kind, part = ((1, int(match[3]), ""), int(match[2])) if match[2] else ((0, 1, ""), 1)
            checkpoints.setdefault(int(match[1]), {}).setdefault(kind, {})[part] = name
        elif match := _STAGED.fullmatch(name):
            staged = max(staged, int(match[1]))
    complete = (_complete(version, checkpoints[version]) for version in sorted(checkpoints))
    return LogFiles(
        commits=frozenset(commits),
        checksums=frozenset(checksums),
        checkpoints=tuple(checkpoint for checkpoint in complete if checkpoint),
        staged=staged,
        whole=whole,
    )


_Kind = tuple[int, int, str]
"""A checkpoint in the order of ``CheckpointInstance`` (Delta 4.4.0, ``Checkpoints.scala``): one classic file, classic
parts by their number, then a V2 file by its name."""


def _complete(version: int, kinds: dict[_Kind, dict[int, str]]) -> Checkpoint | None:
    """The last complete one, which Delta reads. ``None`` if none is: writers do not publish parts atomically."""
    for kind in sorted(kinds, reverse=True):
        files, parts = kinds[kind], kind[1]
        if len(files) == parts and set(files) == set(range(1, parts + 1)):
            return Checkpoint(version, tuple(files[part] for part in sorted(files)))
    return None


def parse_hint(raw: bytes) -> int | None:
    """The version in ``_last_checkpoint``; ``None`` if the hint cannot be read, which only costs a longer listing."""
    try:
        hint = read_json(raw)
    except ValueError:
        return None
    version = hint.get("version") if isinstance(hint, dict) else None
    valid = isinstance(version, int) and not isinstance(version, bool) and 0 <= version <= _LARGEST_VERSION
    return version if valid else None


def segment(files: LogFiles, version: int | None = None, *, alone: bool = False) -> Segment:
    """The files of a version, or of the newest version. Raises ``GapError`` if files are missing.

    As in Delta, a checkpoint alone is not a version: its commit, or a later one, must exist too. With ``alone`` it is
    sufficient: a complete checkpoint contains the whole state up to its version (Delta protocol, "Checkpoints"), so no
    part of the table is guessed. Only the author of that version is unknown without the commit.
    """
    if not files.commits and not files.checkpoints:
        raise GapError("the log is empty")
    newest = max([*files.commits, *(checkpoint.version for checkpoint in files.checkpoints)])
    target = newest if version is None else version
    if target > newest:
        raise GapError(f"version {target} does not exist: the newest is {newest}")
    checkpoint = next((each for each in reversed(files.checkpoints) if each.version <= target), None)
    expected = checkpoint.version + 1 if checkpoint else 0
    if target < expected and target not in files.commits and not alone:
        raise GapError(f"version {target} is missing: there is its checkpoint, but not {commit_name(target)}")
    while expected <= target:
        if expected not in files.commits:
            since = (
                f"after the checkpoint of version {checkpoint.version}"
                if checkpoint
                else "and no complete checkpoint above"
            )
            raise GapError(f"version {expected} is missing: there is no {commit_name(expected)} {since}")
        expected += 1
    return Segment(target, checkpoint, files)
