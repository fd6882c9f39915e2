"""The type changes that a schema records (Delta protocol, "Type Change Metadata"), and which of them Iceberg knows.

The rules are those of ``isTypeChangeSupported`` and ``isTypeChangeSupportedByIceberg`` in ``TypeWidening.scala`` of
Delta 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from tablectl.delta.names import ColumnPath
from tablectl.delta.schema import TYPE_CHANGES, columns_of

FEATURES = ("typeWidening", "typeWidening-preview")
"""The features under which Delta reads the record of type changes. Without one it ignores it."""
_DECIMAL = re.compile(r"decimal\((\d{1,2}),(\d{1,2})\)")
_DIGITS = {"byte": 10, "short": 10, "integer": 10, "long": 20}
"""The digits that Delta asks of a decimal that an integer is widened to: a byte counts as an integer."""


@dataclass(frozen=True, slots=True)
class TypeChange:
    """One change of the type of a column, or of a part of it."""

    path: ColumnPath
    """The column. Inside arrays and maps the names are ``element``, ``key`` and ``value``."""
    before: str
    """The type in older data files, as Delta names it: ``integer``, ``decimal(10,2)``."""
    after: str

    @property
    def iceberg_refuses(self) -> bool:
        """Whether Delta takes the change, and its Iceberg compatibility does not: a date to a timestamp, an integer to
        a double or a decimal, another scale of a decimal. Delta ignores here what it does not take at all.
        """
        wider = _DECIMAL.fullmatch(self.after)
        if wider is None:
            return (self.before, self.after) == ("date", "timestamp_ntz") or (
                self.before in {"byte", "short", "integer"} and self.after == "double"
            )
        narrower = _DECIMAL.fullmatch(self.before)
        if narrower is None:
            digits, scale = _DIGITS.get(self.before), 0
        else:
            digits, scale = int(narrower[1]), int(narrower[2])
        if digits is None:
            return False
        new_digits, new_scale = int(wider[1]), int(wider[2])
        takes = new_scale >= scale and new_digits - new_scale >= digits - scale
        return takes and (narrower is None or new_scale != scale)


def type_changes(schema: str) -> Iterator[TypeChange]:
    """Every type change that a ``schemaString`` records, at any depth. An entry without two plain types is left out:
    the text comes from other writers.

    Raises ``ValueError`` for a malformed schema.
    """
    if TYPE_CHANGES not in schema:
        return
    for column in columns_of(schema):
        recorded = column.metadata.get(TYPE_CHANGES)
        for each in recorded if isinstance(recorded, list) else ():
            if isinstance(each, Mapping):
                before, after, inner = each.get("fromType"), each.get("toType"), each.get("fieldPath", "")
                if isinstance(before, str) and isinstance(after, str) and isinstance(inner, str):
                    yield TypeChange((*column.path, *filter(None, inner.split("."))), before, after)
