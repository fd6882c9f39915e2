"""The records of a plan: strict, frozen, and equal after JSON."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError

import pytest

from tablectl.attributes.policy import basis_of
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.model.plan import Basis, Change, Phase, ProtocolFact, Statement, strictest
from tablectl.support.typed_json import json_form, read_record
from tests.builders import live_table


def test_phases_in_the_order_they_run() -> None:
    assert sorted([Phase.CLOSED, Phase.FREE, Phase.REWRITE], key=lambda phase: phase.rank) == list(Phase)
    assert strictest(Phase.FREE, Phase.REWRITE) is Phase.REWRITE
    assert strictest(Phase.CLOSED, Phase.FREE, Phase.REWRITE) is Phase.CLOSED


def test_a_change_is_named_within_its_table() -> None:
    assert Change(attribute="isolation", before="default", after="Serializable").id == "isolation"
    assert Change(attribute="properties", key="owner.team", before=None, after="x").id == "properties.owner.team"


@pytest.mark.parametrize(
    "body",
    [
        '{"attribute": "isolation", "before": null}',
        '{"attribute": "isolation", "before": 1, "after": "x"}',
        '{"attribute": "isolation", "before": "x", "after": "y", "extra": 1}',
        '{"attribute": "isolation", "before": "x", "after": {"a": "b"}}',
        '{"attribute": "isolation", "before": "x", "after": ["a", 1]}',
        "[]",
    ],
)
def test_unknown_keys_and_wrong_types_are_errors(body: str) -> None:
    with pytest.raises(ValueError):
        read_record(Change, body)


def test_records_are_frozen() -> None:
    change = Change(attribute="isolation", before="default", after="Serializable")
    with pytest.raises(FrozenInstanceError):
        change.after = "WriteSerializable"  # type: ignore[misc]


def test_a_protocol_keeps_through_its_record() -> None:
    protocol = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors", "clustering"}))
    assert ProtocolFact.of(protocol).protocol() == protocol
    assert ProtocolFact.of(protocol).writer_features == ("clustering", "deletionVectors")


def test_the_basis_of_a_live_table() -> None:
    live = live_table(schema=Schema((Field("id", "long", identity=True),)), clustering=(), vectors=None)
    basis = basis_of(live)
    assert (basis.identity, basis.clustered, basis.partitioned, basis.vectors) == (True, True, False, None)
    assert basis.client_list() == live.clients
    assert read_record(Basis, json.dumps(json_form(basis))) == basis


def test_statements_take_only_verbs_that_exist() -> None:
    with pytest.raises(ValueError, match="verb: "):
        read_record(Statement, '{"id": "x", "verb": "DROP TABLE", "sql": "DROP TABLE t"}')
