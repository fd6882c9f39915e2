"""Parses the version checksum of a commit (``.crc``), and decides whether it belongs to it. Pure.

Delta protocol, "Version Checksum File"; checksums: delta-4. A checksum is written after its commit, best effort, and is
never overwritten. It can be missing, incomplete, left over from an earlier table at the same location, or a copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from tablectl.delta.protocol import Protocol
from tablectl.log.parse_action import (
    CLUSTERING,
    DomainMetadata,
    Metadata,
    expect_integer,
    expect_object,
    parse_domain,
    parse_json,
    parse_metadata,
    parse_protocol,
)
from tablectl.log.parse_commit import ParsedCommit, whole_number

_BINS_LIMIT = 1000


@dataclass(frozen=True, slots=True)
class SizeBin:
    """The files of a version from one size to another."""

    until: float
    """The size in bytes that these files do not reach; infinite for the last bin."""
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Checksum:
    """The contents of a ``.crc`` file."""

    txn_id: str
    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] | None
    """Every active domain; ``None`` if the file does not list them, which differs from an empty list."""
    files: int
    bytes: int
    vectors: int | None
    sizes: object = None
    """The histogram as it is written. It costs as much to check as the rest, and few commands ask for it."""

    @property
    def histogram(self) -> tuple[SizeBin, ...] | None:
        """The sizes of the files; ``None`` if the file does not have them, or if they do not add up."""
        # The bins, if they are whole numbers in order and hold so many files. Another histogram is ignored.
        found = self.sizes if isinstance(self.sizes, dict) else {}
        lists = [_numbers(found.get(key)) for key in ("sortedBinBoundaries", "fileCounts", "totalBytes")]
        starts, counts, sizes = lists
        if not starts or {len(each) for each in lists} != {len(starts)}:
            return None
        if sum(counts) != self.files or sorted(starts) != starts:
            return None
        return tuple(SizeBin(*each) for each in zip((*starts[1:], inf), counts, sizes, strict=True))

    @property
    def clustering(self) -> DomainMetadata | None:
        """The clustering domain; a removed one if the file lists all domains without it; ``None`` if it lists no
        domains.
        """
        if self.domains is None:
            return None
        found = next((domain for domain in self.domains if domain.name == CLUSTERING), None)
        return found or DomainMetadata(CLUSTERING, "", removed=True)


def parse_checksum(raw: bytes) -> Checksum | None:
    """The checksum; ``None`` if any part is missing or damaged, because it is only a shortcut."""
    try:
        value = expect_object(parse_json(raw), "the checksum")
        domains, vectors, txn_id = value.get("domainMetadata"), value.get("numDeletionVectorsOpt"), value.get("txnId")
        if domains is not None and not isinstance(domains, list):
            return None
        size = value.get("tableSizeBytes")
        return Checksum(
            txn_id=txn_id if isinstance(txn_id, str) else "",
            protocol=parse_protocol(value.get("protocol")),
            metadata=parse_metadata(value.get("metadata")),
            domains=None if domains is None else tuple(parse_domain(domain) for domain in domains),
            files=expect_integer(value.get("numFiles"), "numFiles"),
            bytes=expect_integer(size, "tableSizeBytes"),
            vectors=None if vectors is None else expect_integer(vectors, "numDeletionVectorsOpt"),
            sizes=value.get("fileSizeHistogram") or value.get("histogramOpt"),
        )
    except ValueError:
        return None


def _numbers(value: object) -> list[int]:
    """A list of whole numbers; empty if it is anything else."""
    if not isinstance(value, list) or len(value) > _BINS_LIMIT:
        return []
    numbers = [number for each in value if (number := whole_number(each)) is not None]
    return numbers if len(numbers) == len(value) else []


def belongs_to(checksum: Checksum, commit: ParsedCommit) -> bool:
    """Whether a checksum was written for this commit.

    Both must have the same ``txnId``. A commit without one (delta-rs) never wrote a checksum, so its checksum came from
    elsewhere. The checksum must also agree with everything in the commit. If it does not, the commit is right.
    """
    return (
        checksum.txn_id != ""
        and checksum.txn_id == commit.txn_id
        and (commit.protocol is None or commit.protocol == checksum.protocol)
        and (commit.metadata is None or commit.metadata == checksum.metadata)
        and (commit.clustering is None or checksum.clustering is None or _agree(commit.clustering, checksum.clustering))
    )


def _agree(one: DomainMetadata, other: DomainMetadata) -> bool:
    return one == other or (one.removed and other.removed)
