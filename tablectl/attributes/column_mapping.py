"""``column_mapping``: whether columns have separate names in data files, so that they can be renamed and dropped
(delta-1.7).

A table accepts the mapping by name at any time. Only a rewrite of all its data removes it. ``dropped`` also removes the
protocol feature. A table created with the mapping ``id`` keeps it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import (
    NO_NEEDS,
    SUPPORTED,
    ChangeTarget,
    Needs,
    PlannedOperation,
    WordAttribute,
    against_drop,
    against_left_names,
    drop_step,
    is_true,
    put_back,
)
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.keys import MANIFEST
from tablectl.delta.names import ColumnPath, column_text, parse_column
from tablectl.delta.schema import Schema
from tablectl.model.operations import ClusterBy, RemoveMapping, SetProperties
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

ColumnMappingValue = Literal["name", "none", "dropped"]

_FEATURE = "columnMapping"
_NOT_IN_PARQUET = frozenset(" ,;{}()\n\t=")
"""Characters that a column name must not contain if data files use the same name."""


class ColumnMapping(WordAttribute):
    """The attribute ``column_mapping``."""

    name = "column_mapping"
    value_type = ValueType(
        name=name,
        description="`name`: columns can be renamed and dropped. `none`: data files have the columns' own names; "
        "removing a mapping rewrites the table, and is refused without `rewrite: allowed`. `dropped`: nor do readers "
        "need to support mapped columns.",
        words=get_args(ColumnMappingValue),
    )
    keys = (keys.COLUMN_MAPPING,)
    off = "none"
    contradictions = (("name", f"properties.{MANIFEST}", "true"),)

    def read(self, live: LiveTable, key: str) -> Value:
        """``name``, ``id``, ``supported`` or ``none``. ``id`` supports everything that ``name`` does, but is another
        format. A table that has the feature and maps no column reads ``supported``.
        """
        mode = (live.property(keys.COLUMN_MAPPING) or "none").lower()
        return SUPPORTED if mode == "none" and live.protocol.has(_FEATURE) else mode

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """``supported`` satisfies ``none``, and a table without the feature satisfies ``dropped``."""
        return found == declared or (found, declared) in {(SUPPORTED, "none"), ("none", "dropped")}

    def between(self, found: Value, declared: str) -> tuple[Value, ...]:
        """A mapping is removed before the feature."""
        return (SUPPORTED,) if declared == "dropped" else ()

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        if change.after == "dropped" and (reason := next(against_drop(_FEATURE, live, target), None)):
            return reason
        if change.before == SUPPORTED and change.after == "dropped":
            return None
        found = _against_mapping(change, live, target) if change.after == "name" else _against_removal(live, target)
        return next(found, None)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        on = SetProperties(((keys.COLUMN_MAPPING, "name"),))
        if change.after == "name":
            kept = "" if basis.protocol.protocol().has(_FEATURE) else ", and the protocol feature columnMapping"
            note = f"the names in the data files (undoing that rewrites all of them){kept}"
            return (PlannedOperation(change.id, on, needs=(keys.MANIFEST,), undo=RemoveMapping(), undo_note=note),)
        dropped = change.after == "dropped"
        kept = "" if dropped else "the protocol feature columnMapping, and "
        note = f"{kept}the rewritten files, with the same rows"
        undo = put_back(keys.COLUMN_MAPPING, basis) if change.before == "name" else None
        needs = keys.ICEBERG_COMPATS
        removal = PlannedOperation(change.id, RemoveMapping(), needs=needs, undo=undo, undo_note=note)
        if not dropped:
            return (removal,)
        due = 0 if change.before != SUPPORTED else basis.truncation or None
        drop = drop_step(change.id, _FEATURE, basis, due=due, needs=(keys.COLUMN_MAPPING,))
        return (drop,) if change.before == SUPPORTED else (removal, drop)

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        return {keys.COLUMN_MAPPING: "none" if declared == "dropped" else str(declared)}

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """Removing the mapping rewrites all files."""
        truncation = frozenset({_FEATURE} if value == "dropped" and options.truncate_history else ())
        return NO_NEEDS if value == "name" else Needs(size=True, truncation=truncation)


def _against_mapping(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    if change.before not in {"none", SUPPORTED}:
        yield Reason(
            reason=f"the table maps its columns by {change.before}, and Delta does not change that to `name`",
            fix="leave `column_mapping` out: columns can be renamed and dropped as they are; "
            "or apply `column_mapping: none` with `rewrite: allowed` first",
            condition="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    else:
        yield from against_left_names(live, "leave the mapping off")
    if is_true(target.property(live, keys.MANIFEST)):
        yield Reason(
            reason="the table writes symlink manifests, whose readers do not know the names in the data files",
            fix=f"declare {keys.MANIFEST}: false under `properties`, or leave the mapping off",
            condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )


def _against_removal(live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    if any(is_true(target.property(live, key)) for key in keys.ICEBERG_COMPATS):
        yield Reason(
            reason="the table is kept compatible with Iceberg, which needs its columns mapped",
            fix="declare `uniform: none` too, or leave the mapping on",
            condition="DELTA_ICEBERG_COMPAT_VIOLATION.WRONG_REQUIRED_TABLE_PROPERTY",
        )
    if bad := why_needed(live.schema):
        yield Reason(
            reason=bad,
            fix="rename the column (ALTER TABLE … RENAME COLUMN), or leave the mapping on",
            condition="DELTA_INVALID_COLUMN_NAMES_WHEN_REMOVING_COLUMN_MAPPING",
        )
    clusters = (each for each in target.operations if isinstance(each, ClusterBy))
    planned = tuple(parse_column(column) for each in clusters for column in each.columns)
    for clustering, how, first in (
        (live.clustering or (), "the table is", "`clustering: none` first, then "),
        (planned, "this plan makes the table", ""),
    ):
        renamed = [column_text(path) for path in clustering if _mapped(path, live)]
        if renamed:
            reason = (
                f"{how} clustered by {_some(renamed)}, which has another name in the data files: Delta would keep "
                "that name for the clustering, and the table could not be optimized or clustered again"
            )
            fix = f"apply {first}`column_mapping: none`, then the clustering"
            yield Reason(reason, fix)
            return


def why_needed(schema: Schema) -> str:
    """Why the columns of a schema must be mapped; empty if they need not be (``SchemaUtils.checkFieldNames``)."""
    bad = [column_text(path) for path, field in schema.every_field() if _NOT_IN_PARQUET & set(field.name)]
    why = "it holds one of ' ,;{}()=', a tab or a line break"
    return f"data files cannot have the name {_some(bad)}: {why}" if bad else ""


def _mapped(path: ColumnPath, live: LiveTable) -> bool:
    """Whether a column, or a struct that contains it, has a different name in the data files."""
    found = [live.schema.find(path[: depth + 1]) for depth in range(len(path))]
    return any(each is not None and each[1].physical not in {"", each[1].name} for each in found)


def _some(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} (and {len(names) - 1} more)"
