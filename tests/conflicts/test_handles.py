"""What a plan says of handles that were made before; that Delta does so is in ``test_against_spark``."""

from __future__ import annotations

import pytest

from tablectl.conflicts.handles import old_handles
from tablectl.model.plan import CommitEffect


@pytest.mark.parametrize(
    ("key", "value", "what"),
    [
        ("delta.enableDeletionVectors", "true", "merge, update and delete fail through a DeltaTable"),
        ("delta.enableRowTracking", "TRUE", "merge and update fail through a DeltaTable"),
        ("delta.enableDeletionVectors", "false", ""),
        ("delta.isolationLevel", "Serializable", ""),
    ],
)
def test_what_fails_through_an_older_handle(key: str, value: str, what: str) -> None:
    found = old_handles(CommitEffect(sets=(("owner.team", "web"), (key, value))))
    assert found.startswith(what)
    assert bool(found) is bool(what)
