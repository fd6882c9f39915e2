"""The phase of a statement: it follows from the commit it makes and from who writes the table (delta.md 2.2, 2.6).

A commit is free when no transaction in flight can lose to it. Delta Spark decides that in the *loser*, by the
loser's own version, so the clients seen in the table's history say which rules hold; an unknown client, or no
history at all, counts as the strictest.
"""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.model.live import Client
from tablectl.model.plan import Basis, CommitEffect, Phase

_TOLERATED = {
    ("delta.enabledeletionvectors", "true"): (4, 1),
    ("delta.checkpointpolicy", "v2"): (4, 3),
    ("delta.enableincommittimestamps", "true"): (4, 3),
}
"""Metadata that a writer of Delta Spark survives, from this version on (delta.md 2.2)."""
_IDENTICAL_METADATA = (4, 1)
"""Metadata that changes nothing is survived from this version on (delta.md 2.2, corollary)."""
_DOMAIN_BLIND = frozenset({"delta-spark", "kernel"})
"""Clients whose data writes lose to no domain but one that they write themselves (delta.md 2.2, 2.3)."""
_NO_WRITER = "the table's history names no writer, so none is known to survive it"
_METADATA_FAILS = "every other write in flight, once, with MetadataChangedException"


@dataclass(frozen=True, slots=True)
class Verdict:
    """A phase, why, and who in flight would fail if nobody waited."""

    phase: Phase
    reason: str
    fails: str = ""


def phase_of(effect: CommitEffect, basis: Basis, dialect: str) -> Verdict:
    """When a commit of this effect may run on a table of this basis."""
    if effect.rewrites_files:
        return Verdict(
            Phase.REWRITE,
            "it writes data files anew, rows unchanged: no append loses to that",
            "UPDATE, DELETE, MERGE, OPTIMIZE and INSERT … SELECT from the table itself in flight, once, "
            "with ConcurrentAppendException or ConcurrentDeleteReadException",
        )
    closed = _why_closed(effect, basis, dialect)
    if closed:
        return Verdict(Phase.CLOSED, closed, _METADATA_FAILS)
    if effect.domains and not effect.features:
        return Verdict(Phase.FREE, "only the clustering domain changes, which no data write in flight loses to")
    clients = ", ".join(client.text() for client in basis.client_list())
    return Verdict(Phase.FREE, f"writes in flight adopt this change and go on; this table's writers: {clients}")


def _why_closed(effect: CommitEffect, basis: Basis, dialect: str) -> str:
    if dialect == "databricks":
        return "on Databricks every metadata change fails all concurrent writes (D15)"
    if effect.domains and basis.overwrites:
        return "the table is overwritten whole now and then, and an overwrite and CLUSTER BY fail each other"
    if effect.domains and not effect.features:
        return _why_domain_fails(basis.client_list())
    if effect.removes:
        return "a property is removed: no write in flight survives that"
    unsafe = sorted({key for key, value in effect.sets if (key.lower(), value.lower()) not in _TOLERATED})
    if unsafe:
        return f"no write in flight survives a change of {', '.join(unsafe)}"
    if basis.identity:
        return "the table has identity columns: their inserts carry metadata, and two metadata changes never merge"
    if basis.schema_writers:
        return "recent writes changed the schema with their data, and two metadata changes never merge"
    return _why_clients(effect, basis.client_list())


def _why_clients(effect: CommitEffect, clients: tuple[Client, ...]) -> str:
    if not clients:
        return _NO_WRITER
    needed = max([_TOLERATED[key.lower(), value.lower()] for key, value in effect.sets] or [_IDENTICAL_METADATA])
    for client in clients:
        if client.engine != "delta-spark":
            return f"{client.text()} writes this table and fails on every metadata change"
        if client.version < needed:
            return (
                f"{client.text()} writes this table; writes in flight survive this from Delta Spark {_dots(needed)} on"
            )
    return ""


def _why_domain_fails(clients: tuple[Client, ...]) -> str:
    if not clients:
        return _NO_WRITER
    strict = next((client for client in clients if client.engine not in _DOMAIN_BLIND), None)
    return f"{strict.text()} writes this table and may fail on every metadata change" if strict else ""


def _dots(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
