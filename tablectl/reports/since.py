"""What changed in a comment since the last plan: each comment carries the list of its groups, out of sight.

The list is display only. It comes back from a comment that people may have edited, so it is bounded and escaped.
"""

from __future__ import annotations

import binascii
import re
import zlib
from base64 import b64decode, b64encode

from tablectl.json_text import read_json, write_json
from tablectl.reports.markdown import code, words
from tablectl.reports.plan_comparison import GroupDifference, GroupRecord, Records, differences, short_digest
from tablectl.reports.style import plural

_LIST = re.compile(r"<!-- tablectl groups: ([A-Za-z0-9+/=]{1,6000}) -->")
_LONGEST_LIST = 6_000
_LONGEST_TITLE = 81
_MOST_BYTES = 200_000
_MOST_LISTED = 6


def group_list(records: Records) -> str:
    """The comment for programs with the groups of a plan; empty if it would be too long."""
    entries = {key: [each.weight, each.title, each.count, short_digest(each.tables)] for key, each in records.items()}
    packed = b64encode(zlib.compress(write_json(entries).encode(), 9)).decode()
    return f"<!-- tablectl groups: {packed} -->" if len(packed) <= _LONGEST_LIST else ""


def read_groups(body: str) -> Records | None:
    """The groups that a comment carries; ``None`` if it has no valid list."""
    found = _LIST.search(body)
    if not found:
        return None
    try:
        data = zlib.decompressobj().decompress(b64decode(found[1], validate=True), _MOST_BYTES)
        entries = read_json(data)
        return {
            str(key): GroupRecord(str(weight), str(title)[:_LONGEST_TITLE], int(count), (str(tables),))
            for key, (weight, title, count, tables) in entries.items()
        }
    except (binascii.Error, zlib.error, ValueError, TypeError, AttributeError, OverflowError):
        return None


def since_text(old: Records, new: Records, digest: str) -> str:
    """What changed, as one paragraph of HTML. ``digest`` is that of the old plan."""
    said = list(map(_said, differences(new, old)))
    name = f" {code(digest[:12])}" if digest else ""
    if not said:
        return f"<p>Since the last plan{name}: the same changes on the same tables.</p>"
    more = f"; and {len(said) - _MOST_LISTED} more differences" if len(said) > _MOST_LISTED else ""
    return f"<p><b>Since the last plan{name}</b>: {'; '.join(said[:_MOST_LISTED])}{more}</p>"


def _said(difference: GroupDifference) -> str:
    now, before = difference.now, difference.before
    if now and before:
        return f"{_shown(now)}, was {plural(before.count, 'table')}"
    return f"new: {_shown(now)}" if now else f"gone: {_shown(before)}" if before else ""


def _shown(group: GroupRecord) -> str:
    return f"{words(group.weight)} {code(group.title)} ({plural(group.count, 'table')})"
