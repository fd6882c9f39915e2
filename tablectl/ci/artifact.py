"""Unpack the artifact with a plan. Whoever may push a branch decides what is in it, so only one file is read."""

from __future__ import annotations

import io
import stat
import zipfile
import zlib

from tablectl.model.errors import PlanFileError
from tablectl.planning.plan_file import MAX_BYTES

PLAN = "plan.json"
ARCHIVE_BYTES = 128 << 20
"""The maximum size of an artifact: a plan and its reports."""
_HINT = "look at the page of the run that made it, and plan again"
_MOST_FILES = 1_000
_ENTRY = b"PK\x01\x02"
"""Starts each entry of the directory of a ZIP file (APPNOTE.TXT 4.3.12)."""


def unpack(archive: bytes, what: str) -> bytes:
    """The plan; other files are ignored.

    Raises ``PlanFileError`` if there is no plan, or if its file is not a regular one, is there twice or is too large.
    Nothing is written, and no more is unpacked than the limit allows, whatever size the archive declares.
    """
    if archive.count(_ENTRY) > _MOST_FILES:
        raise PlanFileError(f"{what} is an artifact of more than {_MOST_FILES:,} files", _HINT)
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            entries = [each for each in opened.infolist() if each.filename.rstrip("/") == PLAN]
            found = [_read(opened, each, what) for each in entries]
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, OSError) as error:
        raise PlanFileError(f"{what} cannot be unpacked: {error}", _HINT) from None
    if len(found) > 1:
        raise PlanFileError(f"{what} is an artifact that holds {PLAN} twice", _HINT)
    if not found:
        raise PlanFileError(f"{what} is an artifact without {PLAN}: the run made a report and no plan", _HINT)
    return found[0]


def _read(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, what: str) -> bytes:
    mode = entry.external_attr >> 16
    plain = stat.S_IFMT(mode) in {0, stat.S_IFREG} and not entry.is_dir()
    if not plain or entry.flag_bits & 1 or entry.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
        raise PlanFileError(f"{what} is an artifact in which {entry.filename} is no plain file", _HINT)
    with archive.open(entry) as stream:
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise PlanFileError(
            f"{what} is an artifact in which {entry.filename} is larger than {MAX_BYTES:,} bytes", _HINT
        )
    return data
