"""Fresh, resume, done and stale: where a live table stands towards a change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import Change
from tablectl.model.table import LiveTable
from tablectl.planning.diff import ChangeState, change_state, current, diff, why_stale

Live = Callable[..., LiveTable]
_KEY = "delta.enableDeletionVectors"


def _change(table: LiveTable, **policy: Any) -> Change:
    (change,) = diff(Policy(policy), table)
    return change


@pytest.mark.parametrize(
    ("stored", "where"),
    [
        (None, ChangeState.PENDING),
        ("Serializable", ChangeState.DONE),
        ("SERIALIZABLE", ChangeState.DONE),
        ("WriteSerializable", ChangeState.STALE),
    ],
)
def test_isolation(live: Live, stored: str | None, where: ChangeState) -> None:
    change = _change(live(), isolation="Serializable")
    assert change_state(change, live(properties={"delta.isolationLevel": stored} if stored else {})) is where


@pytest.mark.parametrize(
    ("stored", "where"),
    [
        ("interval 30 days", ChangeState.PENDING),
        ("interval 720 hours", ChangeState.PENDING),  # another spelling of before
        ("interval 60 days", ChangeState.DONE),
        ("interval 1440 hours", ChangeState.DONE),  # another spelling of after
        ("interval 90 days", ChangeState.STALE),
        (None, ChangeState.STALE),
    ],
)
def test_properties_by_meaning(live: Live, stored: str | None, where: ChangeState) -> None:
    key = "delta.checkpointRetentionDuration"
    change = _change(live(properties={key: "interval 30 days"}), properties={key: "interval 60 days"})
    assert change_state(change, live(properties={key: stored} if stored else {})) is where


def test_new_data_and_foreign_settings_never_make_a_plan_stale(live: Live) -> None:
    change = _change(live(), isolation="Serializable")
    later = live(version=99, files=1000, properties={"someone": "else"}, overwrites=True)
    assert change_state(change, later) is ChangeState.PENDING


@pytest.mark.parametrize(
    ("stored", "vectors", "where"),
    [
        ("true", 3, ChangeState.PENDING),
        ("true", 0, ChangeState.PENDING),
        ("false", 3, ChangeState.PENDING),  # the state that its own SET leaves on the way
        ("false", None, ChangeState.PENDING),
        ("false", 0, ChangeState.DONE),
    ],
)
def test_purging_goes_on_from_where_it_was_stopped(
    live: Live, vectors_protocol: Protocol, stored: str, vectors: int | None, where: ChangeState
) -> None:
    change = _change(live(protocol=vectors_protocol, properties={_KEY: "true"}, vectors=3), deletion_vectors="purged")
    now = live(protocol=vectors_protocol, properties={_KEY: stored}, vectors=vectors)
    assert change_state(change, now) is where
    if where is ChangeState.PENDING:
        assert current(change, now).before == ("enabled" if stored == "true" else "disabled")


def test_turning_vectors_on_does_not_care_about_old_ones(live: Live, vectors_protocol: Protocol) -> None:
    change = _change(live(), deletion_vectors="enabled")
    assert change_state(change, live(protocol=vectors_protocol, vectors=5)) is ChangeState.PENDING
    assert change_state(change, live(protocol=vectors_protocol, vectors=0)) is ChangeState.PENDING


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ((Field("id", "long"), Field("day", "date")), "column Customer is gone"),
        (
            (Field("id", "long"), Field("customer", "long"), Field("day", "date")),
            "column Customer was string and is long",
        ),
    ],
)
def test_a_named_column_dropped_or_retyped_is_stale(live: Live, fields: tuple[Field, ...], why: str) -> None:
    change = _change(live(), clustering=("customer",))
    now = live(schema=Schema(fields))
    assert change_state(change, now) is ChangeState.STALE
    assert why_stale(change, now) == why


def test_other_columns_may_come_and_go(live: Live) -> None:
    change = _change(live(), clustering=("customer",))
    now = live(schema=Schema((Field("CUSTOMER", "string"), Field("new", "long"))))
    assert change_state(change, now) is ChangeState.PENDING


def test_clustering_by_others_in_the_meantime_is_stale(live: Live) -> None:
    change = _change(live(), clustering=("id",))
    now = live(clustering=(("day",),))
    assert change_state(change, now) is ChangeState.STALE
    assert why_stale(change, now) == "clustering was none and is [day]"
    assert change_state(change, live(clustering=(("ID",),))) is ChangeState.DONE


def test_why_a_property_is_stale(live: Live) -> None:
    change = _change(live(), properties={"owner.team": "web"})
    assert why_stale(change, live(properties={"owner.team": "ops"})) == "properties.owner.team was not set and is ops"
    assert why_stale(change, live(properties={"owner.team": ""})) == "properties.owner.team was not set and is ''"
