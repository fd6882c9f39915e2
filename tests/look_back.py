"""The look-back of a live table made by hand: the commits that show what a test wants them to show."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tablectl.delta.protocol import Client
from tablectl.model.table import Commit

_START = 1_700_000_000_000
_TOLD = ("clients", "overwrites", "schema_writers")


def look_back(
    clients: Iterable[Client], *, overwrites: bool = False, schema_writers: bool = False, version: int = 7
) -> tuple[Commit, ...]:
    """One commit of each client, newest first, up to a version; the newest has done what the flags say."""
    return tuple(
        Commit(
            version - index,
            _START + version - index,
            "WRITE",
            client=client,
            changes_data=True,
            overwrites=overwrites and index == 0,
            schema_writer=schema_writers and index == 0,
        )
        for index, client in enumerate(clients)
    )


def with_look_back(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Facts of a live table, its ``history`` made from what is told of it: ``clients`` and the flags."""
    told = {key: facts[key] for key in _TOLD if key in facts}
    rest = {key: value for key, value in facts.items() if key not in told}
    return {**rest, "history": look_back(**told)} if told else rest
