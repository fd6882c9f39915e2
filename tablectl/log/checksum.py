"""From a version checksum file (``.crc``) to the state it records, and whether it may be believed. Pure.

Delta protocol, "Version Checksum File"; delta-4. A checksum is written after its commit, best effort, and
never overwritten: one may be missing, half-written, left behind by a table that lay here before, or copied here.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.delta.protocol import Protocol
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


@dataclass(frozen=True, slots=True)
class Checksum:
    """What a ``.crc`` says about its version."""

    txn_id: str
    protocol: Protocol
    metadata: Metadata
    domains: tuple[DomainMetadata, ...] | None
    """Every active domain; ``None`` where the file does not tell, which is not the same as none."""
    files: int
    bytes: int
    vectors: int | None

    @property
    def clustering(self) -> DomainMetadata | None:
        """The clustering domain: removed where all domains are known and it is not among them."""
        if self.domains is None:
            return None
        found = next((domain for domain in self.domains if domain.name == CLUSTERING), None)
        return found or DomainMetadata(CLUSTERING, "", removed=True)


def parse_checksum(raw: bytes) -> Checksum | None:
    """The checksum, or ``None`` where any part of it is missing or damaged: it is only a shorter way."""
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
    """Whether a checksum was written for this very commit.

    Both must carry the same ``txnId``: a commit without one (delta-rs) never wrote a checksum, so one beside it came
    from elsewhere. And nothing that the commit itself says may differ: if it does, the commit is right.
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
