"""The JSON form of records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any

OMITTED: Mapping[str, bool] = MappingProxyType({"omitted": True})
"""The metadata of a field that is not written if it has its default value."""


def is_omitted(field: Field[Any]) -> bool:
    """Whether a field is not written if it has its default value."""
    return bool(field.metadata.get("omitted"))


def json_form(record: object) -> Any:
    """The JSON-serializable form of a record (a dataclass) or a time. For the ``default`` argument of
    ``json.dumps``.
    """
    if isinstance(record, datetime):
        return record.isoformat().replace("+00:00", "Z")
    written = ((each, getattr(record, each.name)) for each in fields(record))  # type: ignore[arg-type] # or TypeError
    return {each.name: value for each, value in written if not (is_omitted(each) and value == each.default)}
