"""Parses a version checksum file (``.crc``) into the recorded state, and decides whether it can be trusted. Pure.

Delta protocol, "Version Checksum File"; delta-4. A checksum is written after its commit, best effort, and is never
overwritten. It can be missing, incomplete, left over from an earlier table at the same location, or a copy.
"""

from __future__ import annotations

from tablectl.delta.protocol import Protocol
from tablectl.frozen import frozen
from tablectl.log.actions import (
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
from tablectl.log.commits import ParsedCommit


@frozen
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
        return Checksum(
            txn_id=txn_id if isinstance(txn_id, str) else "",
            protocol=parse_protocol(value.get("protocol")),
            metadata=parse_metadata(value.get("metadata")),
            domains=None if domains is None else tuple(parse_domain(domain) for domain in domains),
            files=expect_integer(value.get("numFiles"), "numFiles"),
            bytes=expect_integer(value.get("tableSizeBytes"), "tableSizeBytes"),
            vectors=None if vectors is None else expect_integer(vectors, "numDeletionVectorsOpt"),
        )
    except ValueError:
        return None


def belongs(checksum: Checksum, commit: ParsedCommit) -> bool:
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
