"""Findings of the protocol: who can no longer read or write, and what of that is not documented."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tablectl.attributes.policy import Policy
from tablectl.delta.protocol import Client, Protocol
from tablectl.lint_rules import LintSetting, Severities
from tablectl.model.commit import Commit
from tablectl.model.errors import PlanFileError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.locked_out_clients import protocol_raise
from tablectl.planning.plan_file import dump_plan, load_plan
from tablectl.planning.plan_table import plan_table

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
        # Writing out what a numbered protocol implies adds nothing.
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


_VECTORS = Protocol(3, 7, frozenset({"deletionVectors"}), frozenset({"appendOnly", "deletionVectors", "invariants"}))


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        # Delta gives a list without reader features back for a number, and reader 2 is the column mapping.
        (
            _VECTORS,
            Protocol(2, 7, frozenset(), frozenset({"appendOnly", "columnMapping", "invariants"})),
            [
                ("P001", "readers need protocol 2 with columnMapping"),
                ("P002", "writers need protocol 7 with columnMapping"),
            ],
        ),
        (
            Protocol(1, 4),
            Protocol(2, 5),
            [
                ("P001", "readers need protocol 2 with columnMapping"),
                ("P002", "writers need protocol 5 with columnMapping"),
            ],
        ),
        (_VECTORS, Protocol(1, 3), [("P002", "writers need protocol 3 with checkConstraints")]),
        (_VECTORS, Protocol(1, 2), []),
        (
            Protocol(2, 5),
            Protocol(3, 7, frozenset({"columnMapping"}), frozenset({"columnMapping"})),
            [
                ("P001", "readers need protocol 3"),
                ("P002", "writers need protocol 7"),
            ],
        ),
    ],
)
def test_a_feature_that_a_number_implies_is_new_to_clients_too(
    before: Protocol, after: Protocol, found: list[tuple[str, str]]
) -> None:
    assert [(each.code, each.message) for each in protocol_raise(before, after)] == found


def planned(live: LiveTable, severities: Severities | None = None, **options: object) -> TablePlan:
    policy = Policy({"isolation": "Serializable", "deletion_vectors": "enabled"})
    plan = plan_table(policy, live, "oss", TableOptions(**options), severities or Severities())  # type: ignore[arg-type]
    assert plan is not None
    return plan


def test_a_client_that_is_locked_out_is_a_refusal_at_the_change_that_does_it(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(), clients=(("deltalake-querybuilder", "1.6"), ("trino", "440")))
    (refusal,) = plan.refusals
    assert refusal.change == "deletion_vectors"
    assert refusal.reason == (
        "trino 440 could no longer write the table: it writes tables with deletionVectors only since Trino 454 "
        "(source: trino.io: table features of the Delta Lake connector, and release notes, by release; "
        "as of 2025-11-30)"
    )
    assert refusal.fix.startswith("upgrade it to 454 and change its version under `clients`")
    assert plan.statements == ()
    assert plan.protocol_after == plan.basis.protocol
    assert {"P001", "P002"} <= {each.code for each in plan.findings}, "what was asked for is reported"


def test_a_feature_that_is_not_allowed_is_a_refusal(live: Callable[..., LiveTable]) -> None:
    (refusal,) = planned(live(), allowed_features=("clustering",)).refusals
    assert refusal.reason == "it adds deletionVectors to the protocol, which `allowed_features` does not name"
    assert planned(live(), allowed_features=("deletionVectors",)).refusals == ()


def test_without_a_protocol_upgrade_no_client_is_locked_out(
    live: Callable[..., LiveTable], vectors_protocol: Protocol
) -> None:
    plan = planned(live(protocol=vectors_protocol), clients=(("spark", "0.8"), ("presto", "1")), allowed_features=())
    assert plan.refusals == ()
    assert not {"P001", "P002", "P003", "P004"} & {each.code for each in plan.findings}


def test_what_is_not_documented_is_found_and_never_guessed(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(), clients=(("impala", "3.0"), ("trinoo", "480"), ("spark", "3.5")))
    assert plan.refusals == ()
    assert [each.message for each in plan.findings if each.code == "P003"] == [
        "impala is not in the table of clients: whether it knows deletionVectors was not checked",
        "trinoo is not in the table of clients: whether it knows deletionVectors was not checked; did you mean trino?",
        "whether spark 3.5 knows deletionVectors is not documented: there is no Delta Lake 3.5",
    ]


def test_a_writer_of_the_history_that_is_locked_out(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(clients=(Client("delta-spark", (2, 2, 0)), Client("delta-spark", (4, 4, 0)))))
    assert [each.message for each in plan.findings if each.code == "P004"] == [
        (
            "Delta Spark 2.2.0 recently wrote the table, and it reads tables with deletionVectors only since Delta "
            "Lake 2.3.0"
        )
    ]


_DELTA_RS = Client("delta-rs", (1, 6, 6))
_SPARK = Client("delta-spark", (4, 4, 0))


@pytest.mark.parametrize(
    ("policy", "lost"),
    [
        ({"clustering": ("Customer",)}, "clustering"),
        ({"row_tracking": "enabled"}, "rowTracking"),
        ({"deletion_vectors": "enabled"}, "QueryBuilder"),
    ],
)
@pytest.mark.parametrize("version", [(1, 6, 6), (1, 7, 0), (3,)])
def test_a_change_that_locks_out_the_only_writer_is_refused(
    live: Callable[..., LiveTable], policy: dict[str, Any], lost: str, version: tuple[int, ...]
) -> None:
    table = live(clients=(Client("delta-rs", version),))
    plan = plan_table(Policy(policy), table, "oss")
    assert plan
    (refusal,) = plan.refusals
    assert refusal.reason.startswith("it locks out delta-rs ")
    assert "the only client that recently wrote the table" in refusal.reason
    assert "1.6.6 was tried" in refusal.reason
    assert "`allow: [lockout]`" in refusal.fix
    # With deletion vectors, deltalake loses the right reading, too: another writer alone would not help.
    assert f"client that {'reads' if lost == 'QueryBuilder' else 'writes'} such tables" in refusal.fix
    assert lost in refusal.reason or lost in refusal.fix or lost == "rowTracking"
    assert plan.statements == ()
    assert "P004" not in {each.code for each in plan.findings}, "the refusal says it already"


def test_a_lockout_with_consent_is_planned_with_a_finding(live: Callable[..., LiveTable], rich: Plan) -> None:
    plan = planned(live(clients=(_DELTA_RS,)), allow=("lockout",))
    assert plan.refusals == ()
    assert plan.statements
    assert [each.message.partition(",")[0] for each in plan.findings if each.code == "P004"] == [
        "delta-rs 1.6.6 recently wrote the table"
    ]
    assert load_plan(dump_plan(whole(plan, rich)), "p.json").tables == (plan,)


def test_a_plan_file_with_a_consent_that_it_was_not_given_is_refused(
    live: Callable[..., LiveTable], rich: Plan
) -> None:
    allowed = planned(live(clients=(_DELTA_RS,)), allow=("lockout",))
    forged = replace(allowed, basis=replace(allowed.basis, options=TableOptions()))
    with pytest.raises(PlanFileError, match="`refusals` does not follow from its changes"):
        load_plan(dump_plan(whole(forged, rich)), "p.json")


def test_a_lockout_is_a_finding_where_another_writer_keeps_access(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(clients=(_DELTA_RS, _SPARK)))
    assert plan.refusals == ()
    assert len([each for each in plan.findings if each.code == "P004"]) == 1


def test_two_versions_of_one_client_do_not_make_another_writer(live: Callable[..., LiveTable]) -> None:
    (refusal,) = planned(live(clients=(_DELTA_RS, Client("delta-rs", (1, 6, 5))))).refusals
    assert "delta-rs 1.6.5 and delta-rs 1.6.6, the only clients that" in refusal.reason


@pytest.mark.parametrize(
    "other",
    [
        Commit(8, 1, "SET TBLPROPERTIES", client=_SPARK, changes_metadata=True),
        Commit(8, 1, "OPTIMIZE", client=_SPARK, changes_data=True),
        Commit(8, 1, "WRITE", client=_SPARK, changes_data=True, user_metadata='{"tablectl":{"plan":"p","run":"r"}}'),
    ],
)
def test_clients_that_only_alter_or_optimize_are_not_writers(live: Callable[..., LiveTable], other: Commit) -> None:
    table = live()
    mine = Commit(7, 1, "WRITE", client=_DELTA_RS, changes_data=True)
    (refusal,) = planned(replace(table, history=(other, mine))).refusals
    assert "delta-rs 1.6.6" in refusal.reason


def test_a_table_that_only_an_unknown_client_writes_is_refused(live: Callable[..., LiveTable]) -> None:
    (refusal,) = planned(live(clients=(Client("unknown"),))).refusals
    assert refusal.reason == (
        "it locks out an unknown client, the only client that recently wrote the table: "
        "it is unknown whether it writes tables with deletionVectors"
    )


def test_a_client_that_the_policy_names_is_judged_by_the_version_there(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(clients=(_DELTA_RS,)), clients=(("deltalake-querybuilder", "1.6.6"),))
    assert plan.refusals == ()


def test_a_consent_to_lock_out_does_not_go_over_clients(live: Callable[..., LiveTable]) -> None:
    plan = planned(live(clients=(_DELTA_RS,)), clients=(("deltalake", "1.6.6"),), allow=("lockout",))
    (refusal,) = plan.refusals
    assert refusal.reason.startswith("deltalake 1.6.6 could no longer read the table: its to_pyarrow_table")


def _off(live: Callable[..., LiveTable], protocol: Protocol, vectors: int | None, client: str) -> TablePlan:
    table = live(protocol=protocol, vectors=vectors, properties={"delta.enableDeletionVectors": "true"})
    plan = plan_table(Policy({"deletion_vectors": "purged"}), table, "oss", TableOptions(clients=((client, "470"),)))
    assert plan
    return plan


@pytest.mark.parametrize("vectors", [3, None])
def test_vectors_that_remain_when_they_are_turned_off_for_trino_are_a_refusal(
    live: Callable[..., LiveTable], vectors_protocol: Protocol, vectors: int | None
) -> None:
    (refusal,) = _off(live, vectors_protocol, vectors, "trino").refusals
    assert refusal.change == "deletion_vectors"
    assert refusal.reason.startswith("trino 470 would read wrong rows: it ignores the deletion vectors")
    assert "trinodb/trino/issues/30685" in refusal.reason
    assert refusal.fix.startswith("purge first")


def test_vectors_in_an_old_checkpoint_are_a_finding_for_trino_and_nothing_for_spark(
    live: Callable[..., LiveTable], vectors_protocol: Protocol
) -> None:
    assert [each.code for each in _off(live, vectors_protocol, 0, "trino").findings if each.code == "P005"] == ["P005"]
    plan = _off(live, vectors_protocol, 3, "spark")
    assert plan.refusals == ()
    assert "P005" not in {each.code for each in plan.findings}


def whole(plan: TablePlan, empty: Plan) -> Plan:
    return replace(empty, tables=(plan,), failures=())


def test_a_plan_file_without_a_known_client_is_refused(live: Callable[..., LiveTable], rich: Plan) -> None:
    clients = (("trino", "440"),)
    honest = planned(live(), clients=clients)
    assert load_plan(dump_plan(whole(honest, rich)), "p.json").tables == (honest,)
    # All that an unguarded plan holds, and the client in its basis: only deriving it again finds it out.
    free = planned(live())
    forged = replace(free, basis=replace(free.basis, options=TableOptions(clients=clients)))
    with pytest.raises(PlanFileError, match="does not follow from its changes"):
        load_plan(dump_plan(whole(forged, rich)), "p.json")


@pytest.mark.parametrize("change", ["findings", "features", "undo"])
def test_a_plan_file_without_a_lockout_finding_is_refused(
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
