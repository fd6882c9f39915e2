"""Records as JSON, and back. Reading is strict: an unknown key, a missing one and a value of another type are errors.

The only module that needs pydantic, which takes longer to load than most commands run: it is loaded when a record is
read, and never to write one (docs/start-up.md).
"""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # see above
    from pydantic import TypeAdapter

_Record = TypeVar("_Record")


def plain(record: object) -> Any:
    """What ``json.dumps`` shall write for a record (a dataclass) or a time; for its ``default``."""
    if isinstance(record, datetime):
        return record.isoformat().replace("+00:00", "Z")
    return {field.name: getattr(record, field.name) for field in fields(record)}  # type: ignore[arg-type] # or TypeError


def read_record(kind: type[_Record], data: bytes | str) -> _Record:
    """The record of a kind in some JSON. Raises ``ValueError`` that says where and what: ``changes.0.after: …``."""
    from pydantic import ValidationError  # noqa: PLC0415  # see above

    try:
        record: _Record = _reader(kind).validate_json(  # type: ignore[arg-type] # mypy takes generic types for unhashable
            data, strict=True, extra="forbid"
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        said = str(first.get("ctx", {}).get("error", first["msg"]))
        raise ValueError(f"{where}: {said}" if where else said) from None
    return record


@cache
def _reader(kind: type[Any]) -> TypeAdapter[Any]:
    from pydantic import TypeAdapter  # noqa: PLC0415  # see above

    return TypeAdapter(kind)
