"""Reads records from JSON, strictly: unknown keys, missing keys and values of other types are errors.

The only module that needs pydantic, which takes longer to load than most commands run. It is loaded only to read a
record; ``plain`` writes records without it (docs/start-up.md).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:  # see the module docstring
    from pydantic import TypeAdapter

_Record = TypeVar("_Record")


def read_record(kind: type[_Record], data: bytes | str) -> _Record:
    """Parses JSON into a record of type ``kind``. Raises ``ValueError`` with the position: ``changes.0.after: …``."""
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
