"""A commit in a table's history: what it did, by which writer and with which client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import computed_field

from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.protocol import Client
from tablectl.model.stamp import Stamp, read_stamp
from tablectl.support.typed_json import Unwritten

UNKNOWN_CLIENT = Client("unknown")


@dataclass(frozen=True, slots=True)
class AppTransaction:
    """A ``txn`` action: the last batch that an application, usually a stream, wrote to the table with this commit."""

    app_id: str
    """A stream's query id, or the ``txnAppId`` that a writer set."""
    version: int
    last_updated: int = 0
    """Milliseconds since the epoch, by the writer's clock; 0 if unknown."""


STATEMENT_ID = "queryHistoryStatementId"
"""In ``Commit.job``: the statement of a SQL warehouse that made the commit, by its id in the history of queries."""


@dataclass(frozen=True, slots=True)
class Commit:
    """One entry of a table's history: what the commit did, and the contents of its ``commitInfo``.

    ``commitInfo`` can contain anything: malformed values count as absent, and long texts are cut.
    """

    version: int
    timestamp: int
    """Milliseconds since the epoch: the in-commit timestamp, otherwise the writer's clock; 0 if unknown."""
    operation: str
    user: str = ""
    client: Client = UNKNOWN_CLIENT
    user_metadata: Unwritten[str] = ""
    changes_metadata: Unwritten[bool] = False
    """Whether the commit has a ``metaData`` or ``protocol`` action, or writes a domain other than row tracking's."""
    changes_data: Unwritten[bool] = False
    """Whether the commit adds or removes files."""
    overwrites: Unwritten[bool] = False
    """Whether the commit replaced the whole table."""
    schema_writer: Unwritten[bool] = False
    """Whether the commit changes both data and metadata, as schema evolution and identity columns do."""
    state_marks: Unwritten[tuple[str, ...]] = ()
    """Short digests of its ``metaData``, its ``protocol`` and its domains, each empty if the commit has none. ``()`` if
    it has none of them, or if they were not kept. A commit with the marks of the one before changes nothing of a
    table's state; it fails writers of most clients all the same.
    """
    engine: str = ""
    """The unchanged ``engineInfo``, from which ``client`` is derived."""
    parameters: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The operation's parameters that are not null, as ``DESCRIBE HISTORY`` shows them. A cut value ends with …"""
    metrics: Unwritten[Mapping[str, str]] = field(default_factory=lambda: NOTHING_SET)
    """The operation's metrics, in the same form."""
    tags: Unwritten[Mapping[str, str]] = field(default_factory=lambda: NOTHING_SET)
    """The writer's tags for the commit, such as ``delta.rowTracking.preserved``."""
    read_version: Unwritten[int | None] = None
    """The version that the transaction started from."""
    isolation: Unwritten[str] = ""
    """The isolation level of the transaction: ``Serializable``, ``WriteSerializable``, ``SnapshotIsolation``."""
    blind_append: Unwritten[bool | None] = None
    """Whether the commit only added files and read none; ``None`` if unknown."""
    transactions: Unwritten[tuple[AppTransaction, ...]] = ()
    first_file: Unwritten[int] = 0
    """When the first of its new files was written, in milliseconds since the epoch; 0 if unknown."""
    job: Mapping[str, str] = field(default_factory=lambda: NOTHING_SET)
    """The job, notebook and cluster of the commit, as Databricks records them: ``jobId``, ``jobName``, ``runId``, …,
    ``notebookId``, ``clusterId``; and ``STATEMENT_ID``.
    """

    @computed_field
    @property
    def stamp(self) -> Stamp | None:
        """The run of tablectl that made it; ``None`` for other commits."""
        return read_stamp(self.user_metadata)

    def metric(self, *names: str) -> int:
        """The first of these metrics that the commit has; 0 if it has none, or no number of 64 bits."""
        text = next((self.metrics[name] for name in names if name in self.metrics), "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < len(str(2**63)) else 0

    @property
    def source(self) -> str:
        """What committed, with one name for all runs of a job: ``job nightly``, ``notebook 42``, the user, ``cluster
        0123-abc``; empty if the commit names none. A job has a new cluster for each run.
        """
        job = self.job.get("jobName") or self.job.get("jobId")
        notebook, cluster = self.job.get("notebookId"), self.job.get("clusterId")
        if job or notebook:
            return f"job {job}" if job else f"notebook {notebook}"
        return self.user or (f"cluster {cluster}" if cluster else "")


@dataclass(frozen=True, slots=True)
class WriteHistory:
    """The commits of the last 30 days, as far as they show who writes a table, and how."""

    commits: tuple[Commit, ...]
    """Newest first, without the contents that do not describe the writer."""
    cut: bool = False
    """Whether older commits of these days are unknown: there are too many, one is damaged, or the log was cleaned."""
