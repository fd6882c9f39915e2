"""``properties``: all other table properties, each with its own change. ``null`` means "not set"."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablectl.attributes.base import Attribute, ChangeTarget, Needs, PlannedOperation, is_true, set_or_unset
from tablectl.attributes.deletion_vectors import BESIDE_MANIFEST
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.properties import find_anywhere
from tablectl.model.operations import Operation, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.safe_text import cut
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

_OVER_VECTORS = (
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.EXISTING_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION"
)


_FEED_COLUMNS = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
"""The columns that the change data feed adds. Their letter case counts (``CDCReader.checkMetadataChange``)."""


class Properties(Attribute):
    """The attribute ``properties``."""

    name = "properties"
    value_type = ValueType(name=name, description="Any other table property; null unsets it.", keyed=True)

    def read(self, live: LiveTable, key: str) -> Value:
        return live.property(key)

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares by meaning: ``interval 7 days`` equals ``interval 1 week``. A text that some client ignores equals
        only itself. A default that all engines share needs no commit.
        """
        if found is None or declared is None:
            return found == declared or (found is None and _meaning(key, declared) == _shared_default(key))
        readable = found == self.value_type.written(key, found)
        return found in {declared, cut(str(declared))} or (readable and _meaning(key, found) == _meaning(key, declared))

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Symlink manifests exclude deletion vectors and mapped columns, and the change data feed needs its own column
        names (delta-1.3, delta-1.8).
        """
        if not is_true(None if change.after is None else str(change.after)):
            return None
        if change.key == keys.MANIFEST:
            wanted = is_true(target.property(live, keys.DELETION_VECTORS))
            if wanted or live.vectors:
                return Reason(
                    reason="symlink manifests cannot say that a row is deleted, "
                    "and the table has or will have deletion vectors",
                    fix="declare `deletion_vectors: purged` and apply that first",
                    condition=BESIDE_MANIFEST if wanted else _OVER_VECTORS,
                )
            mode = (target.property(live, keys.COLUMN_MAPPING) or "none").lower()
            if mode != "none":
                return Reason(
                    reason=f"the table maps its columns by {mode}, and readers of symlink manifests do not know "
                    "the names in the data files; Delta takes the property, and then every write fails after its "
                    "commit",
                    fix="declare `column_mapping: none` and apply that first, or leave the manifests off",
                    condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
                )
            return None
        if change.key == keys.CHANGE_DATA_FEED:
            taken = [field.name for field in live.schema.fields if field.name in _FEED_COLUMNS]
            if not taken:
                return None
            return Reason(
                reason=f"the table has a column {taken[0]}, a name that the change data feed needs for itself",
                fix=f"rename the column, or leave {keys.CHANGE_DATA_FEED} out",
                condition="DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        known = find_anywhere(change.key)
        note = ""
        if known and known.enables(change.after) and not basis.protocol.protocol().has(known.feature):
            note = f"the protocol feature {known.feature}"
        made, undo = set_or_unset(change.key, change.after), set_or_unset(change.key, change.before)
        if (
            change.key == keys.CHANGE_DATA_FEED
            and change.after is None
            and basis.stored_text(keys.OLD_CHANGE_DATA_FEED)
        ):
            made = UnsetProperties((keys.OLD_CHANGE_DATA_FEED, change.key))
        return (PlannedOperation(change.id, made, undo=undo, undo_note=note),)

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        """The keys of Delta. User keys concern no other attribute."""
        items = declared.items() if isinstance(declared, Mapping) else ()
        return {key: value for key, value in items if key.lower().startswith("delta.")}

    def born(self, declared: Declared) -> Iterable[Operation]:
        """All keys that are set, those of users too."""
        items = declared.items() if isinstance(declared, Mapping) else ()
        values = tuple((key, str(value)) for key, value in items if value is not None)
        return (SetProperties(values),) if values else ()

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """Symlink manifests exclude deletion vectors, old ones too."""
        return Needs(vectors=key == keys.MANIFEST and str(value).lower() == "true")


def _meaning(key: str, value: Value) -> object:
    known = find_anywhere(key)
    if known is None or not isinstance(value, str):
        return value
    try:
        return known.parse(value)
    except ValueError:
        return value


_NO_DEFAULT = object()


def _shared_default(key: str) -> object:
    known = find_anywhere(key)
    return known.parse(known.default) if known and known.default is not None else _NO_DEFAULT
