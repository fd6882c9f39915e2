"""What changed in a comment since the last plan: each comment carries the list of its groups, out of sight.

The list is display only. It comes back from a comment that people may have edited, so it is bounded and escaped.
"""

from __future__ import annotations

import binascii
import hashlib
import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tablectl.model.text import value_text
from tablectl.reports.groups import Group
from tablectl.reports.markdown import code, words
from tablectl.reports.style import plural

_LIST = re.compile(r"<!-- tablectl groups: ([A-Za-z0-9+/=]{1,6000}) -->")
_LONGEST_LIST = 6_000
_LONGEST_TITLE = 80
_MOST_BYTES = 200_000
_MOST_LISTED = 6


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """One group of an earlier or the current plan."""

    weight: str
    title: str
    count: int
    tables: str
    """A short digest of the names."""


Entries = Mapping[str, GroupEntry]
"""The groups by a short digest of their changes."""


def group_list(groups: Sequence[Group]) -> str:
    """The comment for programs with the groups of a plan; empty if it would be too long."""
    entries = {
        _id(group): [group.weight.word, _title(group), len(group.tables), _digest(group.names)] for group in groups
    }
    packed = b64encode(zlib.compress(json.dumps(entries).encode(), 9)).decode()
    return f"<!-- tablectl groups: {packed} -->" if len(packed) <= _LONGEST_LIST else ""


def read_groups(body: str) -> Entries | None:
    """The groups that a comment carries; ``None`` if it has no valid list."""
    found = _LIST.search(body)
    if not found:
        return None
    try:
        data = zlib.decompressobj().decompress(b64decode(found[1], validate=True), _MOST_BYTES)
        entries = json.loads(data)
        return {
            str(key): GroupEntry(str(weight), str(title)[: _LONGEST_TITLE + 1], int(count), str(tables))
            for key, (weight, title, count, tables) in entries.items()
        }
    except (binascii.Error, zlib.error, ValueError, TypeError, AttributeError, RecursionError):
        return None


def since_text(old: Entries, new: Entries, digest: str) -> str:
    """What changed, as one paragraph of HTML. ``digest`` is that of the old plan."""
    said = [f"new: {_shown(new[key])}" for key in new if key not in old]
    said += [f"gone: {_shown(old[key])}" for key in old if key not in new]
    for key in new:
        if key in old and old[key].tables != new[key].tables:
            said.append(f"{_shown(new[key])}, was {plural(old[key].count, 'table')}")
    name = f" {code(digest[:12])}" if digest else ""
    if not said:
        return f"<p>Since the last plan{name}: the same changes on the same tables.</p>"
    more = f"; and {len(said) - _MOST_LISTED} more differences" if len(said) > _MOST_LISTED else ""
    return f"<p><b>Since the last plan{name}</b>: {'; '.join(said[:_MOST_LISTED])}{more}</p>"


def _shown(entry: GroupEntry) -> str:
    return f"{words(entry.weight)} {code(entry.title)} ({plural(entry.count, 'table')})"


def _id(group: Group) -> str:
    changes = [(each.id, each.before, each.after) for each in group.changes]
    return _digest([group.weight.word, *map(repr, changes)])


def _title(group: Group) -> str:
    change = group.changes[0]
    more = f" and {len(group.changes) - 1} more" if len(group.changes) > 1 else ""
    text = f"{change.id}: {value_text(change.before)} → {value_text(change.after)}{more}"
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _digest(texts: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(texts).encode(errors="backslashreplace")).hexdigest()[:10]
