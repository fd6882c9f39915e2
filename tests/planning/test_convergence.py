"""Any policy on any table: after the statements nothing is left to do, wherever a run was stopped in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tablectl.attributes.base import PlannedOperation
from tablectl.attributes.policy import ATTRIBUTES, CONTRADICTIONS, Policy, basis_of
from tablectl.delta import keys
from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.names import parse_column
from tablectl.delta.protocol import Client, Protocol
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.operations import (
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.plan import Phase, Statement, TablePlan
from tablectl.model.table import HistoryTruncation, LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.planning.derive_statements import derive_table, operations_for
from tablectl.planning.diff import ChangeState, change_state, current, diff
from tablectl.planning.plan_table import plan_table
from tests.applying.fake_lake import changed_properties, parse_sql

Live = Callable[..., LiveTable]

_KEYS: dict[str, tuple[str, ...]] = {
    "delta.appendOnly": ("true", "false", "TRUE"),
    "delta.checkpointPolicy": ("v2", "classic"),
    "delta.compatibility.symlinkFormatManifest.enabled": ("true", "false"),
    "delta.dataSkippingNumIndexedCols": ("0", "1", "32", "-1"),
    "delta.enableChangeDataFeed": ("true", "false"),
    "delta.checkpointRetentionDuration": ("interval 7 days", "interval 1 week", "60 days", "INTERVAL 1 day 13 days"),
    "owner.team": ("web", "Web", "it's"),
    "Owner.Team": ("web",),
}
REWRITE = TableOptions(rewrite="allowed")
_VECTORS = "delta.enableDeletionVectors"
_LEVEL = "delta.isolationLevel"
_MANIFEST = "delta.compatibility.symlinkFormatManifest.enabled"
_CLUSTERING = frozenset({"clustering", "domainMetadata"})
_BRINGS = {
    "clustering": _CLUSTERING,
    "rowTracking": {"domainMetadata"},
    "icebergCompatV2": {"columnMapping"},
}

columns = st.lists(st.sampled_from(["id", "Customer", "day"]), min_size=1, max_size=3, unique=True).map(tuple)
values = {key: st.sampled_from(texts) for key, texts in _KEYS.items()}
clients = st.lists(
    st.sampled_from(
        [Client("delta-spark", (4, 4, 0)), Client("delta-spark", (3, 2)), Client("kernel", (4,)), Client("unknown")]
    ),
    max_size=2,
    unique=True,
).map(tuple)


counted = st.integers(0, 5)
parts = st.builds(FileGroup, columns=st.none() | columns, files=counted, bytes=counted)
every_marks = st.lists(parts, max_size=3, unique_by=lambda part: part.columns).map(
    lambda each: ClusteringState(parts=tuple(each), older=ClusteringState(parts=tuple(each)).unclustered())
)
options = st.builds(
    TableOptions,
    optimize=st.sampled_from(["never", "incremental", "full"]),
    truncate_history=st.booleans(),
    rewrite=st.just("allowed"),
)


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any policy over the columns and keys above."""
    body: dict[str, Any] = {
        "isolation": draw(st.sampled_from([None, "Serializable", "default"])),
        "deletion_vectors": draw(st.sampled_from([None, "enabled", "disabled", "purged", "dropped"])),
        "clustering": draw(st.none() | st.just("none") | columns),
        "row_tracking": draw(st.sampled_from([None, "enabled", "disabled"])),
        "column_mapping": draw(st.sampled_from([None, "name", "none"])),
        "uniform": draw(st.sampled_from([None, "none", "iceberg_v1", "iceberg_v2", "iceberg_v3"])),
        "data_skipping": draw(st.none() | st.just("default") | columns),
        "properties": draw(st.fixed_dictionaries({}, optional={key: st.none() | each for key, each in values.items()})),
    }
    declared = body | {f"properties.{key}": value for key, value in (body["properties"] or {}).items()}
    assume(not any(all(declared.get(name) == value for name, value in pair) for pair in CONTRADICTIONS))
    return Policy(body)


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    """Facts of any table that Delta could have made, as far as they belong together."""
    properties = draw(st.fixed_dictionaries({}, optional=values))
    features = draw(
        st.sets(
            st.sampled_from(
                ["deletionVectors", "v2Checkpoint", "clustering", "rowTracking", "columnMapping", "icebergCompatV2"]
            )
        )
    )
    brought = [needed for feature, needed in _BRINGS.items() if feature in features]
    protocol = Protocol(1, 2).raised(frozenset(features).union(*brought))
    if draw(st.booleans()):
        levels = ["Serializable", "serializable", "WriteSerializable"]
        properties["delta.isolationLevel"] = draw(st.sampled_from(levels))
    if draw(st.booleans()):
        properties[keys.STATISTICS_COLUMNS] = draw(st.sampled_from(["id", "id,Customer", "day, ID"]))
    manifest = properties.get("delta.compatibility.symlinkFormatManifest.enabled") == "true"
    vectors = None if manifest else draw(st.none() | st.integers(0, 3))
    if "deletionVectors" in features and not manifest:
        properties[_VECTORS] = draw(st.sampled_from(["true", "false", "TRUE"]))
    if "rowTracking" in features:
        switches = [("true", None), ("false", None), ("false", "true"), (None, "true"), (None, None)]
        pair = zip(
            ("delta.enableRowTracking", "delta.rowTrackingSuspended"), draw(st.sampled_from(switches)), strict=True
        )
        properties.update({key: text for key, text in pair if text})
    if "columnMapping" in features:
        properties[keys.COLUMN_MAPPING] = draw(st.sampled_from(["none"] if manifest else ["name", "NAME", "none"]))
    if "icebergCompatV2" in features:
        switches = [("true", "iceberg"), ("true", None), ("false", None), (None, None)]
        compat, formats = draw(st.sampled_from(switches))
        properties.update(
            {key: text for key, text in ((keys.iceberg_compat(2), compat), (keys.UNIFORM_FORMATS, formats)) if text}
        )
        if compat == "true":
            properties |= {keys.COLUMN_MAPPING: "name", _VECTORS: "false"}
            properties.pop(_MANIFEST, None)
    clustered = draw(st.just(()) | columns.map(lambda names: tuple((name,) for name in names)))
    return {
        "protocol": protocol,
        "properties": properties,
        "vectors": vectors if "deletionVectors" in features else 0,
        "clustering": clustered if "clustering" in features else None,
        "marks": draw(every_marks),
        "clients": draw(clients),
        "schema_writers": draw(st.booleans()),
        "overwrites": draw(st.booleans()),
    }


def clustered(table: LiveTable, *, full: bool) -> ClusteringState:
    """What an OPTIMIZE leaves of a table's parts."""
    assert table.marks is not None
    columns = tuple(".".join(path) for path in table.clustering or ())
    kept = () if full else tuple(part for part in table.marks.parts if part.columns not in {None, columns})
    total = sum(part.files for part in table.marks.parts if part not in kept)
    done = FileGroup(columns=columns, files=total, bytes=total)
    return ClusteringState(parts=(*kept, done))


def with_properties(table: LiveTable, pairs: tuple[tuple[str, str], ...]) -> LiveTable:
    """What a SET leaves."""
    properties = dict(table.properties or NOTHING_SET)
    for key, value in pairs:
        if key.startswith("delta.feature."):  # no property: it only brings the feature
            feature = frozenset({key.removeprefix("delta.feature.")})
            table = replace(table, protocol=table.protocol.raised(feature))
            continue
        same = [old for old in properties if key.startswith("delta.") and old.lower() == key.lower()]
        properties = {old: text for old, text in properties.items() if old not in same} | {key: value}
    return replace(table, properties=properties)


def _values(operation: Operation) -> tuple[tuple[str, str], ...]:
    return tuple((key, value) for key, value in operation.properties.items() if value is not None)


def _upgraded(table: LiveTable, upgrade: UpgradeUniform) -> LiveTable:
    others = [
        key for each in (1, 2) if each != upgrade.version and (key := keys.iceberg_compat(each)) in table.properties
    ]
    upgraded = operate(table, SetProperties((*_values(upgrade), *((key, "false") for key in others))))
    return replace(upgraded, vectors=0) if upgrade.version > 1 else upgraded


def operate(table: LiveTable, operation: Operation) -> LiveTable:
    """What Delta makes of the table."""
    properties = dict(table.properties or NOTHING_SET)
    match operation:
        case SetProperties() | RemoveMapping():
            return with_properties(table, _values(operation))
        case UnsetProperties(keys):
            return replace(table, properties={key: text for key, text in properties.items() if key not in keys})
        case ClusterBy(columns):
            marks = table.marks and replace(table.marks, older=table.marks.unclustered())
            return replace(table, clustering=tuple(map(parse_column, columns)), marks=marks)
        case Purge():
            return replace(table, vectors=0)
        case UpgradeUniform():
            return _upgraded(table, operation)
        case OptimizeData(full):
            return replace(table, marks=clustered(table, full=full))
        case DropFeature(name):
            return replace(table, protocol=table.protocol.lowered(frozenset({name})))
        case Repartition(columns):
            clustering = None if table.clustering is None else ()
            return replace(table, partition_columns=columns, clustering=clustering, vectors=0)
        case _:
            raise AssertionError(operation)


def operations_of(statement: Statement, plan: TablePlan) -> list[PlannedOperation]:
    """The operations that a statement stands for: of the changes it serves, of its verb, of its id if they have one."""
    return [
        each
        for each in operations_for(plan.changes, plan.basis)
        if each.change in statement.serves and each.operation.verb == statement.verb and each.id in {"", statement.id}
    ]


def execute(table: LiveTable, statement: Statement, plan: TablePlan) -> LiveTable:
    """Run one statement of a plan."""
    if statement.only_if and table.vectors == 0:
        return table
    for each in operations_of(statement, plan):
        table = operate(table, each.operation)
    raised = table.protocol.raised(frozenset(statement.effect.features))
    return replace(table, protocol=raised, version=table.version + 1)


def asked(table: LiveTable, options: TableOptions) -> LiveTable:
    """The table as it is read for a policy with these options."""
    marked = table.protocol.has("deletionVectors") or table.protocol.has("checkpointProtection")
    truncation = HistoryTruncation() if options.truncate_history and marked else None
    return replace(table, optimize=options.optimize, truncation=truncation)


def converged(policy: Policy, table: LiveTable, options: TableOptions = REWRITE) -> LiveTable | None:
    """The table once a plan ran; ``None`` where the plan refuses the table."""
    table = asked(table, options)
    plan = plan_table(policy, table, "oss", options)
    if plan is None:
        return table
    if plan.refusals:
        return None
    for statement in plan.statements:
        table = execute(table, statement, plan)
    return asked(table, options)


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies(), options=options)
def test_after_all_statements_nothing_is_left(
    live: Live, facts: dict[str, Any], policy: Policy, options: TableOptions
) -> None:
    before = asked(live(**facts), options)
    after = converged(policy, before, options)
    if after is not None:
        assert diff(policy, after) == ()
        plan = plan_table(policy, before, "oss", options)
        assert plan is None or after.protocol == plan.protocol_after.protocol()


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies())
def test_nothing_undeclared_is_touched(live: Live, facts: dict[str, Any], policy: Policy) -> None:
    before = live(**facts)
    after = converged(policy, before)
    if after is None:
        return
    upgraded = policy.uniform not in {None, "none"}
    for entry in ATTRIBUTES:
        implied = upgraded and entry.name in {"column_mapping", "deletion_vectors", "row_tracking"}
        if getattr(policy, entry.name) is None and entry.name != "properties" and not implied:
            for key in (field.name for field in entry.value_type.fields) if entry.value_type.fields else ("",):
                assert entry.read(after, key) == entry.read(before, key)
    for key in _KEYS:
        if key not in (policy.properties or {}):
            assert after.properties.get(key) == before.properties.get(key)


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies())
def test_statements_run_in_phases_each_change_served_and_no_key_twice(
    live: Live, facts: dict[str, Any], policy: Policy
) -> None:
    plan = plan_table(policy, live(**facts), "oss", REWRITE)
    if plan is None or plan.refusals:
        return
    ranks = [statement.phase.rank for statement in plan.statements]
    assert ranks == sorted(ranks)
    assert {change for each in plan.statements for change in each.serves} == {change.id for change in plan.changes}
    ids = [statement.id for statement in plan.statements]
    assert len(set(ids)) == len(ids)
    plain = [each.effect for each in plan.statements if not each.effect.uniform]
    touched = [key for each in plain for key in (*dict(each.sets), *each.removes)]
    assert len(set(touched)) == len(touched)
    for phase in Phase:
        verbs = [
            each.verb for each in plan.statements if each.phase is phase and each.verb != "REORG" and not each.backfill
        ]
        assert len(set(verbs)) == len(verbs)


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies(), options=options, data=st.data())
def test_a_run_stopped_anywhere_goes_on_from_there(
    live: Live, facts: dict[str, Any], policy: Policy, options: TableOptions, data: st.DataObject
) -> None:
    table = asked(live(**facts), options)
    plan = plan_table(policy, table, "oss", options)
    if plan is None or plan.refusals:
        return
    for statement in plan.statements[: data.draw(st.integers(0, len(plan.statements)))]:
        table = asked(execute(table, statement, plan), options)
    standings = {change.id: change_state(change, table) for change in plan.changes}
    assert ChangeState.STALE not in standings.values()
    pending = tuple(current(change, table) for change in plan.changes if standings[change.id] is ChangeState.PENDING)
    basis = basis_of(table, options)
    rest = replace(
        plan, changes=pending, basis=basis, statements=derive_table(pending, basis, table.name, "oss").statements
    )
    for statement in rest.statements:
        table = execute(table, statement, rest)
    if "clustering" in {change.id for change in pending}:  # whose data can be looked at only once it is made
        table = converged(policy, asked(table, options), options) or table
    assert diff(policy, asked(table, options)) == ()


@settings(max_examples=150, deadline=None)
@given(facts=tables(), one=policies(), other=policies())
def test_there_and_back_again_restores_what_is_managed(
    live: Live, facts: dict[str, Any], one: Policy, other: Policy
) -> None:
    first = converged(one, live(**facts))
    there = converged(other, first) if first is not None else None
    back = converged(one, there) if there is not None else None
    if back is not None:
        assert diff(one, back) == ()


def take_back(table: LiveTable, plan: TablePlan) -> LiveTable:
    """Run the SQL that takes a plan back, as its reader would: by its text, in its order."""
    for text in plan.undo:
        sql = parse_sql(text)
        if sql.verb == "CLUSTER":
            table = replace(table, clustering=sql.columns)
        elif sql.verb == "UPGRADE":
            table = operate(table, UpgradeUniform(int(sql.values[0][1])))
        else:
            table = replace(table, properties=changed_properties(sql, table.properties))
        vectors, manifest = (
            table.property(_VECTORS),
            table.property("delta.compatibility.symlinkFormatManifest.enabled"),
        )
        assert not (str(vectors).lower() == str(manifest).lower() == "true"), "Delta refuses the two together"
    return table


def _properties(table: LiveTable, plan: TablePlan) -> dict[str, str]:
    """Those that can be put back: open-source Delta cannot set a level but Serializable again, and the plan says so."""
    lost = {_LEVEL for each in plan.changes if each.id == "isolation" and each.before == "WriteSerializable"}
    assert not lost or any("cannot set" in each.undo_note for each in plan.statements if "isolation" in each.serves)
    # What an interrupted DROP FEATURE left is lifted for good.
    lost |= {"delta.rowTrackingSuspended" for each in plan.changes if each.before == "suspended"}
    if any(each.id == "uniform" for each in plan.changes):
        # What the upgrade implies, which its undo note names.
        lost |= {_VECTORS, keys.COLUMN_MAPPING, keys.UNIFORM_ATOMIC, *keys.ICEBERG_COMPATS}
        lost |= {keys.ROW_TRACKING for each in plan.changes if each.after == "iceberg_v3"}
    # What takes a mapping away writes `none`, which is what every engine takes where nothing is set.
    none = ("delta.columnMapping.mode", "none")
    return {key: text for key, text in table.properties.items() if key not in lost and (key, text) != none}


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies())
def test_what_calls_itself_reversible_is_as_it_was(live: Live, facts: dict[str, Any], policy: Policy) -> None:
    before = live(**facts)
    plan = plan_table(policy, before, "oss", REWRITE)
    after = converged(policy, before)
    if plan is None or after is None:
        return
    back = take_back(after, plan)
    assert _properties(back, plan) == _properties(before, plan)
    assert (back.clustering or ()) == (before.clustering or ())
    assert all(each.undo or each.undo_note for each in plan.statements)
    raised = {each.name for each in plan.features if each.name != "domainMetadata"}
    assert raised <= {word.strip(",;") for each in plan.statements for word in each.undo_note.split()}


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies())
def test_each_statement_is_taken_back_by_its_own_undo(live: Live, facts: dict[str, Any], policy: Policy) -> None:
    before = live(**facts)
    plan = plan_table(policy, before, "oss")
    for statement in plan.statements if plan else ():
        assert plan is not None
        back = take_back(execute(before, statement, plan), replace(plan, undo=statement.undo))
        if statement.undo:
            assert _properties(back, plan) == _properties(before, plan)
            assert (back.clustering or ()) == (before.clustering or ())
