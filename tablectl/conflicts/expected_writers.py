"""The transactions to expect in flight on a table, according to its history, its policy and its columns; and what that
rests on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tablectl.conflicts.transactions import CurrentTransaction, Platform, Reads
from tablectl.delta.client_families import UNKNOWN
from tablectl.delta.clients import find_client, parse_version
from tablectl.delta.dialects import dialect_of
from tablectl.delta.keys import CLUSTERING_DOMAIN
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import LIVE, Kind
from tablectl.model.plan import Basis

_ALL = Reads(partitions=None, files=(LIVE.path,))
_UNKNOWN = Client(UNKNOWN.name)


@dataclass(frozen=True, slots=True)
class ExpectedWriters:
    """The facts about a table that decide which writers to expect. The tables of a lake share a few such values."""

    clients: tuple[Client, ...]
    partitioned: bool
    clustered: bool
    identity: bool
    schema_writers: bool
    overwrites: bool

    @classmethod
    def of(cls, basis: Basis, dialect: str) -> ExpectedWriters:
        """The facts of a table: the clients of its commits, and those that its policy declares.

        If neither names a client, one client of unknown kind is expected. If not all commits of the last 30 days were
        read and the policy declares no clients, an unknown client with every kind of write is expected as well. If the
        dialect has a runtime, a client of it always comes first.
        """
        unknown = expects_unknown(basis)
        named = dict.fromkeys((*basis.client_list(), *declared_clients(basis)))
        clients = tuple(named) if named and not unknown else (*named, _UNKNOWN)
        runtime = dialect_of(dialect).runtime
        if runtime and not any(client.family is runtime for client in clients):
            clients = (Client(runtime.name), *clients)
        return cls(
            clients=clients,
            partitioned=basis.partitioned,
            clustered=basis.clustered,
            identity=basis.identity,
            schema_writers=basis.schema_writers or unknown,
            overwrites=basis.overwrites or unknown,
        )

    def strictest(self) -> ExpectedWriters:
        """The same table, written by clients of unknown kind in every way."""
        return replace(self, clients=(*self.clients, _UNKNOWN), schema_writers=True, overwrites=True)


@dataclass(frozen=True, slots=True)
class WriterProfile:
    """A transaction to expect, with the least favourable reads and writes of its kind."""

    name: str
    """For people: ``MERGE``, ``INSERT that draws identity values``."""
    current: CurrentTransaction
    because: str = ""
    """The property of the table because of which to expect it; empty for a transaction that any table may see."""

    @property
    def appends(self) -> bool:
        """Whether it reads nothing of the table and only adds rows: guard mode ``append`` (docs/guards.md)."""
        return self.current.reads.nothing and not self.current.metadata


def expected_writers(expected: ExpectedWriters) -> tuple[WriterProfile, ...]:
    """The writers to expect, client by client."""
    return tuple(writer for client in expected.clients for writer in _of_client(client, expected))


def _of_client(client: Client, expected: ExpectedWriters) -> Iterator[WriterProfile]:
    platform = Platform(clustered=expected.clustered, identity=expected.identity)
    append = CurrentTransaction(kind=Kind.APPEND, client=client, partitioned=expected.partitioned, platform=platform)
    yield WriterProfile(Kind.APPEND, append)
    yield WriterProfile(Kind.STREAMING_APPEND, replace(append, kind=Kind.STREAMING_APPEND, app_ids=("a stream",)))
    reading = replace(append, kind=Kind.READING_INSERT, reads=_ALL)
    yield WriterProfile(Kind.READING_INSERT, reading)
    rewriting = replace(reading, removes=(LIVE.path,))
    for kind in (Kind.UPDATE, Kind.DELETE, Kind.MERGE):
        yield WriterProfile(kind, replace(rewriting, kind=kind))
    yield WriterProfile(Kind.OPTIMIZE, replace(rewriting, kind=Kind.OPTIMIZE, data_change=False))
    if expected.overwrites:
        # An overwrite clears the clustering of a clustered table, and writes no clustering on other tables (delta-1.4).
        domains = (CLUSTERING_DOMAIN,) if expected.clustered else ()
        overwrite = replace(rewriting, kind=Kind.OVERWRITE, domains=domains)
        yield WriterProfile(Kind.OVERWRITE, overwrite, "the history has full overwrites")
    if expected.identity:
        because = "the table has identity columns, whose inserts carry metadata"
        yield WriterProfile("INSERT that draws identity values", replace(append, metadata=True), because)
    if expected.schema_writers:
        because = "recent writes changed the schema with their data"
        yield WriterProfile("INSERT that changes the schema", replace(append, metadata=True), because)


def declared_clients(basis: Basis) -> tuple[Client, ...]:
    """The declared clients that can write. A client whose conflict rules are not documented counts as unknown."""
    found = [(find_client(name), version) for name, version in basis.options.clients]
    clients = (
        Client(data.engine, parse_version(version)) if data and data.engine else _UNKNOWN
        for data, version in found
        if data is None or data.writes is not None
    )
    return tuple(dict.fromkeys(clients))


def expects_unknown(basis: Basis) -> bool:
    """Whether clients may write that neither the commits nor the policy name: too many commits were made in 30 days to
    read them all, and the policy declares no clients.
    """
    return basis.evidence.cut and not basis.options.clients


def evidence_text(basis: Basis) -> str:
    """The basis of a judgement: ``412 commits since 8 October 2026, by Delta Spark 4.0.1 and 4.4.0; declared: deltalake
    1.6``.
    """
    evidence = basis.evidence
    counted = f"{evidence.commits:,} commit{'' if evidence.commits == 1 else 's'}" if evidence.commits else "no commits"
    since = f" since {_day(evidence.since)}" if evidence.since else ""
    by = f", by {clients_text(basis.client_list())}" if basis.clients else ""
    declared = ", ".join(f"{name} {version}" for name, version in basis.options.clients)
    return f"{counted}{since}{by}" + (f"; declared: {declared}" if declared else "")


def clients_text(clients: tuple[Client, ...]) -> str:
    """``Delta Spark 4.0.1 and 4.4.0, delta-rs 1.6.6``."""
    kinds: dict[str, list[str]] = {}
    for client in clients:
        kinds.setdefault(Client(client.engine).text(), []).append(".".join(map(str, client.version)))
    return ", ".join(f"{kind} {_and([each for each in versions if each])}".rstrip() for kind, versions in kinds.items())


def _and(words: list[str]) -> str:
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def _day(milliseconds: int) -> str:
    try:
        moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return "an unknown day"
    return f"{moment.day} {moment:%B %Y}"
