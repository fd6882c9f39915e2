"""The rows of ``tablectl status`` appended to a Delta table so that a history accumulates."""

from __future__ import annotations

from typing import Any

from tablectl.json_text import json_form
from tablectl.model.errors import TablectlError, UsageError, one_line
from tablectl.reports.status import LakeStatus

_INSTALL = "install tablectl with the extra `status` (docs/install.md)"


def append_rows(status: LakeStatus, location: str) -> None:
    """Append the rows to the Delta table at a path or address; create it if it does not exist.

    Raises ``UsageError`` without the package `deltalake`, and ``TablectlError`` if the table cannot be written.
    """
    try:
        from deltalake import write_deltalake  # noqa: PLC0415  # an extra
    except ImportError:
        raise UsageError("--to needs the Python package deltalake", _INSTALL) from None
    try:
        write_deltalake(location, _arrow(status), mode="append", schema_mode="merge")
    except Exception as error:
        raise TablectlError(f"{location}: the rows cannot be appended: {one_line(error)}") from error


def _arrow(status: LakeStatus) -> Any:
    """The rows with the time and the environment of the reading. Times are UTC."""
    import pyarrow as pa  # noqa: PLC0415  # slow to load

    texts, time = pa.list_(pa.string()), pa.timestamp("us", tz="UTC")
    types = {
        **dict.fromkeys(("table", "location", "state", "policy", "changed_by", "applied_run"), pa.string()),
        **dict.fromkeys(("isolation", "log_retention", "file_retention", "error", "env", "owner"), pa.string()),
        **dict.fromkeys(("version", "files", "bytes", "file_bytes", "vectors", "unclustered_bytes"), pa.int64()),
        **dict.fromkeys(("reader", "writer"), pa.int32()),
        **dict.fromkeys(("differences", "features", "locked_out", "findings"), texts),
        **dict.fromkeys(("changed_at", "applied_at", "written_at", "read_at"), time),
    }
    rows = []
    for table in status.tables:
        row = {**json_form(table), "env": status.env, "owner": table.owner, "read_at": status.at}
        for name in ("changed_at", "applied_at", "written_at", "read_at"):
            row[name] = row[name] * 1000 if row[name] is not None and row[name] < _LAST else None
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=pa.schema(list(types.items())))


_LAST = 253_402_300_800_000
"""The first millisecond of the year 10000, which a writer's clock may pass."""
