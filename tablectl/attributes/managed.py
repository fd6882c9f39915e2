"""``managed``: whether Unity Catalog owns the storage of a table on Databricks.

``SET MANAGED`` moves the table to the storage of its catalog; the data at the old location stays. Its readers and
writers must use its name, and Databricks Runtime 15.4 or newer. A table without an answer of a catalog reads
``unknown``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, get_args

from tablectl.attributes.base import UNKNOWN, Attribute, ChangeTarget, Needs, PlannedOperation, why_no_dialect
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.dialects import DATABRICKS
from tablectl.delta.protocol import Protocol
from tablectl.model.operations import Operation, SetManaged, UnsetManaged
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

ManagedValue = Literal["true", "false"]
_LOST = "the history of Iceberg reads"
_STAYS = "the files at the old location, which nothing deletes; changes of the path in jobs"


class Managed(Attribute):
    """The attribute ``managed``."""

    name = "managed"
    value_type = ValueType(
        name=name,
        description="Databricks only. `true`: Unity Catalog owns the table's storage. `false`: the table is external.",
        words=get_args(ManagedValue),
        dialects=frozenset({DATABRICKS.name}),
    )
    may_leave_out = (("predictive_optimization", None), ("clustering", "auto"))

    def read(self, live: LiveTable, key: str) -> Value:
        managed = live.entry.managed if live.entry else None
        return UNKNOWN if managed is None else str(managed).lower()

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        """No change without an answer of a catalog: nothing is known then."""
        return super().diff(declared, live) if live.entry is not None else ()

    def leaves_out(self, declared: Declared | None, live: LiveTable) -> bool:
        """What only managed tables have, until the table is one: it moves, so nothing can follow in the same run."""
        return declared == "true" and live.entry is not None and live.entry.managed is False

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Refuses what the documentation excludes. The table moves, so that nothing after it could be verified: it is
        the last change of a table.
        """
        statement = "SET MANAGED" if change.after == "true" else "UNSET MANAGED"
        if wrong := why_no_dialect(target, statement):
            return wrong
        loses = not target.options.truncate_history and bool(target.property(live, keys.UNIFORM_FORMATS))
        return next(_problems(change, live, loses=loses), None)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        if change.after == "true":
            truncates = bool(basis.stored_text(keys.UNIFORM_FORMATS))
            note = f"{_LOST}; {_STAYS}" if truncates else _STAYS
            return (PlannedOperation(change.id, SetManaged(truncates), undo=UnsetManaged(), undo_note=note),)
        return (PlannedOperation(change.id, UnsetManaged(), undo=SetManaged(), undo_note=_STAYS),)

    def born(self, declared: Declared) -> Iterable[Operation]:
        """Unity Catalog owns the storage of each table that is created without a location."""
        return (UnsetManaged(),) if declared == "false" else ()

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        del key, value, options, live
        return Needs(entry=True)


def _problems(change: Change, live: LiveTable, *, loses: bool) -> Iterator[Reason]:
    """``loses``: the history of Iceberg reads, without consent."""
    if live.entry is not None and live.entry.foreign:
        statement = "SET MANAGED MOVE or COPY" if change.after == "true" else "SET EXTERNAL"
        fix = (
            f"stop the writers of its own catalog, and run `ALTER TABLE … {statement}` by hand (Runtime 17.3 or newer)"
        )
        yield Reason("another catalog owns the table, and its writers do not wait for this apply", fix)
    elif change.before == UNKNOWN:
        fix = "configure the catalog as `type: unity` in tablectl.yaml (docs/unity-catalog.md), or leave it out"
        yield Reason("no catalog tells whether the table is managed", fix)
    if change.after == "true" and _numbered_mapping(live.protocol):
        reason = "SET MANAGED fails on reader version 2 and writer version 7 with columnMapping"
        yield Reason(reason, "raise the reader version to 3 first", "DELTA_TRUNCATED_TRANSACTION_LOG")
    if change.after == "true" and loses:
        reason = "the table has UniForm, and SET MANAGED then gives up the history of Iceberg reads"
        yield Reason(reason, "accept that with `truncate_history: true`, or end UniForm first")


def _numbered_mapping(protocol: Protocol) -> bool:
    return (protocol.reader, protocol.writer) == (2, 7) and "columnMapping" in protocol.writer_features
