"""Findings of the protocol: who can no longer read or write, and what of that is not documented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tablectl.attributes.policy import Policy
from tablectl.model.errors import PlanFileError
from tablectl.model.lint import LintSetting, Severities
from tablectl.model.live import Client, LiveTable, Protocol
from tablectl.model.options import Options
from tablectl.model.plan import Plan, TablePlan
from tablectl.planning.plan_file import dump_plan, load_plan
from tablectl.planning.protocol import protocol_raise
from tablectl.planning.table import plan_table

_NUMBERED = Protocol(1, 2)


@pytest.mark.parametrize(
    ("before", "features", "found"),
    [
        (_NUMBERED, set(), []),
        (_NUMBERED, {"appendOnly"}, []),
        (_NUMBERED, {"changeDataFeed"}, [("P002", "writers need protocol 7 with changeDataFeed")]),
        (
            _NUMBERED,
            {"deletionVectors"},
            [
                ("P001", "readers need protocol 3 with deletionVectors"),
                ("P002", "writers need protocol 7 with deletionVectors"),
            ],
        ),
        (_NUMBERED, {"clustering"}, [("P002", "writers need protocol 7 with clustering")]),
        # What a numbered protocol implies is no news when it is written out.
        (
            Protocol(2, 5),
            {"deletionVectors"},
            [
                ("P001", "readers need protocol 3 with deletionVectors"),
                ("P002", "writers need protocol 7 with deletionVectors"),
            ],
        ),
        (
            Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"deletionVectors"})),
            {"v2Checkpoint"},
            [
                ("P001", "readers need protocol 3 with v2Checkpoint"),
                ("P002", "writers need protocol 7 with v2Checkpoint"),
            ],
        ),
    ],
)
def test_a_raised_protocol_is_found(before: Protocol, features: set[str], found: list[tuple[str, str]]) -> None:
    after = before.raised(frozenset(features))
    assert [(each.code, each.message) for each in protocol_raise(before, after)] == found


def planned(live: LiveTable, severities: Severities | None = None, **options: object) -> TablePlan:
    policy = Policy(isolation="Serializable", deletion_vectors="enabled")
    plan = plan_table(policy, live, "oss", Options(**options), severities or Severities())  # type: ignore[arg-type]
    assert plan is not None
    return plan


def test_a_client_that_is_locked_out_is_a_refusal_at_the_change_that_does_it(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(), clients=(("deltalake", "1.6"), ("trino", "440")))
    (refusal,) = plan.refusals
    assert refusal.change == "deletion_vectors"
    assert refusal.reason == (
        "trino 440 could no longer write the table: it writes tables with deletionVectors only since Trino 454 "
        "(source: trino.io: table features of the Delta Lake connector, and release notes, by release; as of 2025-11)"
    )
    assert refusal.way_out.startswith("upgrade it to 454 and say so under `clients`")
    assert plan.statements == ()
    assert plan.protocol_after == plan.basis.protocol
    assert {"P001", "P002"} <= {each.code for each in plan.findings}, "what was asked for is told"


def test_a_feature_that_is_not_allowed_is_a_refusal(live: Callable[..., LiveTable]) -> None:
    (refusal,) = planned(live(), allowed_features=("clustering",)).refusals
    assert refusal.reason == "it adds deletionVectors to the protocol, which `allowed_features` does not name"
    assert planned(live(), allowed_features=("deletionVectors",)).refusals == ()


def test_without_a_raise_nobody_is_locked_out(live: Callable[..., LiveTable], vectors_protocol: Protocol) -> None:
    plan = planned(live(protocol=vectors_protocol), clients=(("spark", "0.8"), ("presto", "1")), allowed_features=())
    assert plan.refusals == ()
    assert not {"P001", "P002", "P003", "P004"} & {each.code for each in plan.findings}


def test_what_is_not_documented_is_found_and_never_guessed(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(), clients=(("presto", "0.29"), ("spark", "3.5")))
    assert plan.refusals == ()
    assert [each.message for each in plan.findings if each.code == "P003"] == [
        "nothing is documented here of presto: whether it knows deletionVectors was not checked",
        "whether spark 3.5 knows deletionVectors is not documented: there is no Delta Lake 3.5",
    ]


def test_a_writer_of_the_history_that_is_locked_out(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(clients=(Client("delta-spark", (2, 2, 0)), Client("delta-spark", (4, 4, 0)))))
    assert [each.message for each in plan.findings if each.code == "P004"] == [
        "Delta Spark 2.2.0 wrote the table lately, and it reads tables with deletionVectors only since Delta Lake 2.3.0"
    ]


def whole(plan: TablePlan, empty: Plan) -> Plan:
    return replace(empty, tables=(plan,), failures=())


def test_a_plan_file_that_forgets_a_client_is_not_believed(live: Callable[..., LiveTable], rich: Plan) -> None:
    clients = (("trino", "440"),)
    honest = planned(live(), clients=clients)
    assert load_plan(dump_plan(whole(honest, rich)), "p.json").tables == (honest,)
    # All that an unguarded plan holds, and the client in its basis: only deriving it again finds it out.
    free = planned(live())
    forged = replace(free, basis=replace(free.basis, options=Options(clients=clients)))
    with pytest.raises(PlanFileError, match="does not follow from its changes"):
        load_plan(dump_plan(whole(forged, rich)), "p.json")


@pytest.mark.parametrize("change", ["findings", "features", "undo"])
def test_nor_one_that_leaves_out_what_its_reader_must_know(
    live: Callable[..., LiveTable], rich: Plan, change: str
) -> None:
    honest = planned(live())
    forged = {
        "findings": replace(honest, findings=()),
        "features": replace(honest, features=()),
        "undo": replace(honest, undo=()),
    }[change]
    with pytest.raises(PlanFileError, match="does not follow from its changes"):
        load_plan(dump_plan(whole(forged, rich)), "p.json")


def test_an_error_leaves_the_table_out(live: Callable[..., LiveTable], rich: Plan) -> None:
    plan = planned(live(), Severities({"P001": LintSetting("error")}))
    assert [(each.change, each.condition) for each in plan.refusals] == [("isolation", "P001")]
    assert not plan.applies
    assert load_plan(dump_plan(whole(plan, rich)), "p.json").tables == (plan,)
    ignored = planned(live(), Severities({"P001": LintSetting("ignored", "readers are new")}))
    assert load_plan(dump_plan(whole(ignored, rich)), "p.json").tables == (ignored,)
    assert ignored.applies
