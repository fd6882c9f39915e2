"""What each stranger of `chaos.strangers` does on the fake lake."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from chaos.strangers import Stranger
from tablectl.applying.copy_records import delete_parts
from tablectl.delta.schema import Field, Schema
from tablectl.leases.acquire import break_lease
from tablectl.leases.lease_records import tail
from tablectl.leases.owner import Owner
from tablectl.model.commit import Commit
from tests.applying.fake_lake import SPARK, FakeTable
from tests.applying.world import Kill

if TYPE_CHECKING:
    from tests.strangers.stage import Stage

HOUR, DAY = 3600.0, 86_400.0


def _set(key: str, value: str) -> Callable[[Stage, FakeTable], None]:
    return lambda _stage, table: table.set_property(key, value)


def _data(operation: str) -> Callable[[Stage, FakeTable], None]:
    return lambda _stage, table: table.commit(operation, "etl")


def _no_data(operation: str) -> Callable[[Stage, FakeTable], None]:
    """A commit that changes files, and no row."""

    def act(_stage: Stage, table: FakeTable) -> None:
        table.commit(operation, "etl")
        table.rows[-1] = table.rows[-2]

    return act


def _append_only(_stage: Stage, table: FakeTable) -> None:
    protocol = table.live.protocol.raised(frozenset({"appendOnly"}))
    properties = {**table.live.properties, "delta.appendOnly": "true"}
    table.commit("SET TBLPROPERTIES", properties=properties, protocol=protocol)


def _add_column(_stage: Stage, table: FakeTable) -> None:
    schema = json.loads(table.live.schema.text)
    schema["fields"].append({"name": "added", "type": "long", "nullable": True, "metadata": {}})
    table.commit("ADD COLUMNS", schema=Schema((*table.live.schema.fields, Field("added", "long")), json.dumps(schema)))


def _enable_feature(_stage: Stage, table: FakeTable) -> None:
    protocol = table.live.protocol.raised(frozenset({"inCommitTimestamp"}))
    properties = {**table.live.properties, "delta.enableInCommitTimestamps": "true"}
    table.commit("SET TBLPROPERTIES", properties=properties, protocol=protocol)


def _cluster(_stage: Stage, table: FakeTable) -> None:
    if not table.live.partition_columns:  # Delta refuses it otherwise
        protocol = table.live.protocol.raised(frozenset({"clustering", "domainMetadata"}))
        table.commit("CLUSTER BY", clustering=(("id",),), protocol=protocol)


def _add_constraint(_stage: Stage, table: FakeTable) -> None:
    protocol = table.live.protocol.raised(frozenset({"checkConstraints"}))
    properties = {**table.live.properties, "delta.constraints.theirs": "id < 100"}
    table.commit("ADD CONSTRAINT", properties=properties, protocol=protocol)


def restore(table: FakeTable, version: int) -> None:
    """Metadata, files and rows of an earlier version. RESTORE never lowers the protocol (delta-1.9)."""
    at = next((index for index, each in enumerate(table.states) if each.version == version), 0)
    to, protocol = table.states[at], table.live.protocol
    raised = to.protocol.raised(protocol.reader_features | protocol.writer_features)
    kept = table.live.upkeep  # of the log, which goes on
    table.states.append(replace(to, version=table.live.version + 1, protocol=raised, upkeep=kept))
    table.rows.append(table.rows[at])
    version = table.live.version
    table.history.append(Commit(version, table.at(version), "RESTORE", "ben", SPARK, "", True, True))


def _replace(_stage: Stage, table: FakeTable) -> None:
    """Delta keeps the id of a table that is replaced, and takes properties and layout from the new definition."""
    table.commit("CREATE OR REPLACE TABLE", properties={}, partition_columns=(), clustering=None, vectors=0)
    table.rows[-1] = 1


def _recreate(stage: Stage, table: FakeTable) -> None:
    old = table.states[0]
    table.states[:] = [replace(old, version=0, table_id=f"{old.table_id} again")]
    table.history[:] = [Commit(0, table.at(0), "CREATE TABLE", "ben", SPARK)]
    table.rows[:] = [1]
    stage.forget(table)


def _log_cleaned(_stage: Stage, table: FakeTable) -> None:
    """The commits before the newest are gone, as after a checkpoint and the retention of the log."""
    del table.history[:-1]


def _passes(seconds: float) -> Callable[[Stage, FakeTable], None]:
    """The process is suspended: no lease is renewed meanwhile."""

    def act(stage: Stage, _table: FakeTable) -> None:
        stage.run.clock.now += seconds
        stage.run.clock.ends += seconds

    return act


def _break(stage: Stage, table: FakeTable) -> None:
    store = stage.run.stores[table.live.location]
    last = tail(store)
    if last is not None and last.held:
        owner = Owner("ben", "bens-laptop", 9, "", "0.1.0")
        break_lease(store, last.epoch, "it hangs", owner, stage.run.clock)


def _clean(stage: Stage, table: FakeTable) -> None:
    """`window clean` does nothing while an apply holds the table."""
    store = stage.run.stores[table.live.location]
    last = tail(store)
    if last is None or not last.held:
        delete_parts(store)


def _second_apply(stage: Stage, _table: FakeTable) -> None:
    stage.apply_elsewhere()


def _stop(stage: Stage, _table: FakeTable) -> None:
    stage.run.stop.set()


def _kill(stage: Stage, _table: FakeTable) -> None:
    stage.dead = True
    raise Kill


ACT: Mapping[Stranger, Callable[[Stage, FakeTable], None]] = MappingProxyType(
    {
        Stranger.VACUUM: lambda stage, table: stage.vacuum(table, 7 * DAY),
        Stranger.SHORT_VACUUM: lambda stage, table: stage.vacuum(table, HOUR),
        Stranger.OPTIMIZE: _no_data("OPTIMIZE"),
        Stranger.SET_OTHER: _set("their.key", "theirs"),
        Stranger.SET_DECLARED: _set("owner.team", "theirs"),
        Stranger.APPEND_ONLY: _append_only,
        Stranger.ADD_COLUMN: _add_column,
        Stranger.ENABLE_FEATURE: _enable_feature,
        Stranger.CLUSTER_BY: _cluster,
        Stranger.ADD_CONSTRAINT: _add_constraint,
        Stranger.RESTORE: lambda _stage, table: restore(table, table.live.version - 1),
        Stranger.RESTORE_FIRST: lambda _stage, table: restore(table, 0),
        Stranger.REPLACE: _replace,
        Stranger.RECREATE: _recreate,
        Stranger.APPEND: _data("WRITE"),
        Stranger.DELETE: _data("DELETE"),
        Stranger.MERGE: _data("MERGE"),
        Stranger.GUARDED_RESTORE: lambda stage, table: stage.guest(table, "RESTORE"),
        Stranger.GUARDED_MERGE: lambda stage, table: stage.guest(table, "MERGE"),
        Stranger.LOG_CLEANED: _log_cleaned,
        Stranger.DAY: _passes(DAY),
        Stranger.WEEK: _passes(7 * DAY),
        Stranger.MONTH: _passes(31 * DAY),
        Stranger.SECOND_APPLY: _second_apply,
        Stranger.BREAK: _break,
        Stranger.CLEAN: _clean,
        Stranger.STOP: _stop,
        Stranger.KILL: _kill,
    }
)
