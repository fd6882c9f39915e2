"""Finds the newest protocol, metadata and clustering domain of a version, from the cheapest source.

The order of sources is delta-4: the version's own checksum, otherwise the commits, newest first, until an older
checksum or the checkpoint provides the rest. A commit always takes precedence over a checksum.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.delta.protocol import Protocol
from tablectl.frozen import frozen
from tablectl.log.actions import CLUSTERING, DomainMetadata, Metadata
from tablectl.log.checksum import Checksum
from tablectl.log.commits import ParsedCommit
from tablectl.log.history import History
from tablectl.model.errors import LiveError
from tablectl.storage.table_log import AHEAD

_NOT_CLUSTERED = DomainMetadata(CLUSTERING, "", removed=True)


@frozen
class State:
    """The table-level actions of a version's log, not yet interpreted."""

    protocol: Protocol
    metadata: Metadata
    clustering: DomainMetadata | None
    """``None``, or a removed one, if the table has no clustering columns."""
    files: int | None = None
    """Files, bytes and deletion vectors, if a checksum of this version has them."""
    bytes: int | None = None
    vectors: int | None = None


@dataclass(slots=True)
class StateFindings:
    """The first of each action in a walk from the newest to the oldest. Later ones are older and ignored."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None
    clustering: DomainMetadata | None = None

    def take(self, source: ParsedCommit | Checksum | State) -> None:
        """Takes the actions that are still missing."""
        self.protocol = self.protocol or source.protocol
        self.metadata = self.metadata or source.metadata
        self.clustering = self.clustering or source.clustering

    @property
    def complete(self) -> bool:
        """Whether older sources cannot matter: clustering columns require the feature in the protocol."""
        if self.protocol is None or self.metadata is None:
            return False
        return self.clustering is not None or not self.protocol.has("clustering")


def find_state(history: History, *, known_first: bool = False, before: State | None = None) -> State:
    """Walks a segment. Raises ``LiveError`` if a file is damaged, or if the log does not define the table.

    ``before`` is the state at the segment's base, if that is known.

    With ``known_first``, commits that were read before are used before a checksum is read. The state then has none.
    """
    segment = history.segment
    if known_first and (state := _known_state(history)):
        return state
    newest = history.checksum(segment.version)
    findings = StateFindings()
    if segment.version in segment.files.commits:
        findings.take(history.commit(segment.version))
    if newest is not None:
        findings.take(newest)
    if not findings.complete:
        if segment.checkpoint is not None and segment.version - segment.base > AHEAD:
            history.log.start(load_checkpoint_reader)
            history.log.open_ahead(segment.checkpoint.files[0])
        _walk(history, findings, before)
    if not findings.complete and segment.checkpoint is not None:
        _take_checkpoint(history, findings)
    if findings.protocol is None or findings.metadata is None:
        lacking = "protocol" if findings.protocol is None else "metaData"
        raise LiveError(
            f"{history.log.location}: no {lacking} action up to version {segment.version} of its log",
            "the log is damaged: every Delta table has one in its first commit",
        )
    counts = (newest.files, newest.bytes, newest.vectors) if newest else (None, None, None)
    return State(findings.protocol, findings.metadata, findings.clustering, *counts)


def _known_state(history: History) -> State | None:
    """The state from commits that were read before; ``None`` if they are not sufficient, or if only a checksum counts
    the deletion vectors.
    """
    findings = StateFindings()
    for version in range(history.segment.version, history.segment.base, -1):
        if not history.known(version):
            return None
        findings.take(history.commit(version))
        if findings.complete:
            break
    if not findings.complete or findings.protocol is None or findings.metadata is None:
        return None
    vectors = findings.protocol.has("deletionVectors")
    return None if vectors else State(findings.protocol, findings.metadata, findings.clustering)


def _walk(history: History, findings: StateFindings, before: State | None) -> None:
    for step in history.steps():
        findings.take(step)
        if not findings.complete and (checksum := history.checksum(step.version)):
            findings.take(checksum)
        if findings.complete:
            return
    base = history.segment.base
    if before is not None:
        findings.take(before)
        findings.clustering = findings.clustering or _NOT_CLUSTERED
    elif base >= 0 and base in history.segment.files.commits and (checksum := history.checksum(base)):
        findings.take(checksum)


def load_checkpoint_reader() -> None:
    """Loads the Parquet reader while a store answers: it takes as long as ten answers. Of so many commits without a
    checksum, usually none has the metadata, and the walk ends at the checkpoint.
    """
    import tablectl.log.checkpoint  # noqa: F401, PLC0415


def _take_checkpoint(history: History, findings: StateFindings) -> None:
    # Only this function needs a Parquet reader, which is slow to import.
    from tablectl.log.checkpoint import read_checkpoint  # noqa: PLC0415

    checkpoint = history.segment.checkpoint
    assert checkpoint is not None
    protocol, metadata, domains = read_checkpoint(history.log, checkpoint)
    clustering = next((domain for domain in domains if domain.name == CLUSTERING), None)
    findings.protocol = findings.protocol or protocol
    findings.metadata = findings.metadata or metadata
    findings.clustering = findings.clustering or clustering or _NOT_CLUSTERED
