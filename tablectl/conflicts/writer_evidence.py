"""The clients that a policy declares under ``clients``, and what a judgement about concurrent writers rests on."""

from __future__ import annotations

from datetime import UTC, datetime

from tablectl.delta.client_families import UNKNOWN
from tablectl.delta.clients import find_client, parse_version
from tablectl.delta.protocol import Client
from tablectl.model.plan import Basis

_UNKNOWN = Client(UNKNOWN.name)


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
