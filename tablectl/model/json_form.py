"""The JSON form of records."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import Any


def json_form(record: object) -> Any:
    """The JSON-serializable form of a record (a dataclass) or a time. For the ``default`` argument of
    ``json.dumps``.
    """
    if isinstance(record, datetime):
        return record.isoformat().replace("+00:00", "Z")
    return {field.name: getattr(record, field.name) for field in fields(record)}  # type: ignore[arg-type] # or TypeError
