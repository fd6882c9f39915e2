"""A table with a reader feature that tablectl does not know is shown as far as its log says it in clear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.model.errors import LiveError
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.plan_table import plan_table
from tests.log.log_actions import add, clustering, info, metadata, protocol

Put = Callable[..., None]
Read = Callable[..., LiveTable]
NEW = protocol(3, 7, "clustering", "domainMetadata", readers=("adaptiveMetadata-preview", "deletionVectors"))


@pytest.fixture
def table(put: Put) -> None:
    put(0, [info(), NEW, metadata(**{"owner.team": "web", "delta.isolationLevel": "Serializable"}), clustering("a")])
    put(1, [info(), add("one", 10)])


@pytest.mark.usefixtures("table")
def test_protocol_properties_schema_and_history_are_shown_and_nothing_else(read: Read) -> None:
    found = read(look_back=5, counts=True, partly=True)
    assert found.unknown == ("adaptiveMetadata-preview",)
    assert found.protocol.has("deletionVectors")
    assert found.properties["owner.team"] == "web"
    assert [field.name for field in found.schema.fields] == ["a", "b"]
    assert [commit.version for commit in found.history] == [1, 0]
    assert (found.files, found.bytes, found.vectors, found.clustering) == (None, None, None, None)


@pytest.mark.usefixtures("table")
def test_who_does_not_ask_for_it_gets_the_error(read: Read) -> None:
    with pytest.raises(LiveError, match="reader feature adaptiveMetadata-preview, unknown here"):
        read()


@pytest.mark.usefixtures("table")
def test_a_reader_version_beyond_the_known_ones_is_an_error_all_the_same(put: Put, read: Read) -> None:
    put(2, [info(), protocol(4, 8)])
    with pytest.raises(LiveError, match="reader version 4"):
        read(partly=True)


@pytest.mark.usefixtures("table")
def test_what_is_in_clear_can_drift_and_every_change_is_refused(read: Read) -> None:
    policy: dict[str, Any] = {"isolation": "default", "properties": {"owner.team": "ops"}, "clustering": ("b",)}
    found = read(partly=True)
    changes = diff(Policy(policy), found)
    assert [change.id for change in changes] == ["isolation", "properties.owner.team"], "clustering is not known"
    plan = plan_table(Policy(policy), found, "oss")
    assert plan is not None
    assert plan.statements == ()
    assert [each.change for each in plan.refusals] == ["isolation", "properties.owner.team"]
    assert all("adaptiveMetadata-preview, unknown to tablectl" in each.reason for each in plan.refusals)
