"""``deletion_vectors``: what a live table reads as, and which state satisfies which."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.attributes.deletion_vectors import DeletionVectors
from tablectl.delta import keys
from tablectl.delta.protocol import Protocol
from tablectl.model.table import LiveTable

_WITH = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"}))
_WITHOUT = Protocol(1, 2)


@pytest.mark.parametrize(
    ("protocol", "stored", "vectors", "reads"),
    [
        (_WITH, "true", 0, "enabled"),
        (_WITH, "TRUE", 3, "enabled"),
        (_WITH, "true", None, "enabled"),
        (_WITH, "false", 0, "purged"),
        (_WITH, "false", 3, "disabled"),
        (_WITH, "false", None, "disabled"),
        (_WITH, None, 0, "purged"),
        (_WITH, None, None, "disabled"),
        (_WITHOUT, None, None, "dropped"),
        (_WITHOUT, "false", 0, "dropped"),
    ],
)
def test_reads(
    live: Callable[..., LiveTable], protocol: Protocol, stored: str | None, vectors: int | None, reads: str
) -> None:
    properties = {} if stored is None else {keys.DELETION_VECTORS: stored}
    assert DeletionVectors().read(live(protocol=protocol, properties=properties, vectors=vectors), "") == reads


@pytest.mark.parametrize(
    ("found", "declared", "agrees"),
    [
        ("enabled", "enabled", True),
        ("disabled", "enabled", False),
        ("purged", "enabled", False),
        ("enabled", "disabled", False),
        ("disabled", "disabled", True),
        ("purged", "disabled", True),
        ("enabled", "purged", False),
        ("disabled", "purged", False),
        ("purged", "purged", True),
        ("purged", "dropped", False),
        ("protected", "purged", True),
        ("protected", "dropped", False),
        ("dropped", "dropped", True),
        ("dropped", "disabled", True),
        ("dropped", "enabled", False),
    ],
)
def test_disabled_asks_less_than_purged_and_that_less_than_dropped(found: str, declared: str, agrees: bool) -> None:
    assert DeletionVectors().agrees(found, declared, "") is agrees
