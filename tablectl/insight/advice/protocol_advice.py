"""Advice on the protocol: features that a table supports and does not use, and the clients that they lock out."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.delta import keys
from tablectl.delta.clients import LockedOut, judge, known_clients, newest_version
from tablectl.delta.protocol import Protocol
from tablectl.insight.advice.facts import TableFacts
from tablectl.insight.advice.records import Advice
from tablectl.model.table import LiveTable

_VECTORS = "deletionVectors"


def protocol_advice(facts: TableFacts) -> Iterator[Advice]:
    """At most one advice: the features to drop."""
    live = facts.live
    unused = tuple(each for each in sorted(live.protocol.features) if _unused(live, each))
    if not unused or live.catalog is not None or not live.protocol.lists_features:
        return
    after = Protocol(
        live.protocol.reader,
        live.protocol.writer,
        live.protocol.reader_features - set(unused),
        live.protocol.writer_features - set(unused),
    )
    gained = sorted(
        f"{each.client} {each.version} can {each.access} it"
        for data in known_clients()
        for each in judge(data.name, ".".join(map(str, newest_version(data))), after, live.protocol)
        if isinstance(each, LockedOut)
    )
    if not gained:
        return
    others = [each for each in unused if each != _VECTORS]
    yield Advice(
        code="A12",
        title=f"drop {', '.join(unused)}: supported, and not used",
        declare=(("deletion_vectors", "", "dropped"),) if _VECTORS in unused else (),
        do="; ".join(f"ALTER TABLE {live.name.text} DROP FEATURE {each}" for each in others),
        evidence=(f"no property, column or file of the table uses {', '.join(unused)}", *gained),
        benefit="clients",
        amount=len(gained),
        cost=("writers fail once for each feature, and checkpointProtection is added (docs/deletion-vectors.md)",),
        observations=len(unused),
        confidence="high",
        computed="the protocol without these features, for the newest known version of each client",
    )


def _unused(live: LiveTable, feature: str) -> bool:
    """Whether a feature that can be dropped leaves no trace in the table's state."""
    match feature:
        case "deletionVectors":
            return (live.property(keys.DELETION_VECTORS) or "").lower() != "true" and live.vectors == 0
        case "v2Checkpoint":
            return (live.property(keys.CHECKPOINT_POLICY) or "classic").lower() == "classic"
        case "inCommitTimestamp":
            return (live.property(keys.IN_COMMIT_TIMESTAMPS) or "").lower() != "true"
        case "checkConstraints":
            return not any(key.lower().startswith("delta.constraints.") for key in live.properties)
        case _:
            return False
