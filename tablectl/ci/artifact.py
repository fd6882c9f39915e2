"""Unpack the artifact with a plan. Whoever may push a branch decides what is in it, so only two files are read."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib
from collections.abc import Mapping

from tablectl.model.errors import PlanFileError
from tablectl.planning.plan_file import MAX_BYTES

PLAN = "plan.json"
SIGNATURE = "plan.json.sig"
ARCHIVE_BYTES = 128 << 20
"""The maximum size of an artifact: a plan, its signature and its reports."""
_LIMITS = {PLAN: MAX_BYTES, SIGNATURE: 1 << 20}
_HINT = "look at the page of the run that made it, and plan again"
_MOST_FILES = 1_000
_ENTRY = b"PK\x01\x02"
"""Starts each entry of the directory of a ZIP file (APPNOTE.TXT 4.3.12)."""


def unpack(archive: bytes, what: str) -> Mapping[str, bytes]:
    """The plan and its signature, if there is one; other files are ignored.

    Raises ``PlanFileError`` if there is no plan, or if one of them is no plain file, is there twice or is too large.
    Nothing is written, and no more is unpacked than the limits allow, whatever sizes the archive declares.
    """
    if archive.count(_ENTRY) > _MOST_FILES:
        raise PlanFileError(f"{what} is an artifact of more than {_MOST_FILES:,} files", _HINT)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [each for each in opened.infolist() if each.filename.rstrip("/") in _LIMITS]
            found = {each.filename: _read(opened, each, what) for each in entries}
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError) as error:
        raise PlanFileError(f"{what} cannot be unpacked: {error}", _HINT) from None
    if len(found) < len(entries):
        raise PlanFileError(f"{what} is an artifact that holds a file twice", _HINT)
    if PLAN not in found:
        raise PlanFileError(f"{what} is an artifact without {PLAN}: the run made a report and no plan", _HINT)
    return found


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, what: str) -> bytes:
    mode = entry.external_attr >> 16
    plain = stat.S_IFMT(mode) in {0, stat.S_IFREG} and not entry.is_dir()
    if not plain or entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise PlanFileError(f"{what} is an artifact in which {entry.filename} is no plain file", _HINT)
    limit = _LIMITS[entry.filename]
    with archive.open(entry) as stream:
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise PlanFileError(f"{what} is an artifact in which {entry.filename} is larger than {limit:,} bytes", _HINT)
    return data
