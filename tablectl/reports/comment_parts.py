"""What comments on pull requests carry besides the report: their ends, and what changed since the last plan.

Each comment of a plan carries the list of its groups, out of sight. The list is display only. It comes back from a
comment that people may have edited, so it is bounded and escaped.
"""

from __future__ import annotations

import binascii
import hashlib
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from tablectl.documents.document import CommentEnd
from tablectl.documents.style import plural
from tablectl.model.plan import Change, Plan, TableFailure
from tablectl.model.run_report import RunReport
from tablectl.model.safe_text import natural_key, value_text
from tablectl.reports.besides_document import BesidesGroup, besides_groups
from tablectl.reports.document_markdown import code, words
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import Group
from tablectl.support.differences import differences
from tablectl.support.json_text import read_json, write_json

_LONGEST_TITLE = 80
_NOT_READABLE = "not readable"
_LIST = re.compile(r"<!-- tablectl groups: ([A-Za-z0-9+/=]{1,6000}) -->")
_LONGEST_LIST = 6_000
_MOST_BYTES = 200_000
_MOST_LISTED = 6
_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""
_RESERVED = 3_000
"""Bytes for what a CI job adds to a plan: the name, links, what changed since the last plan, the digest."""


@dataclass(frozen=True, slots=True)
class GroupRecord:
    """The tables of a plan with equal changes of equal weight."""

    weight: str
    title: str
    """The first change, and how many more there are."""
    count: int
    tables: str
    """A digest of their names."""


Records = Mapping[str, GroupRecord]
"""The groups of a plan by a short digest of weight and changes."""


def records_of(
    groups: Iterable[Group], failures: Sequence[TableFailure], besides: Iterable[BesidesGroup] = ()
) -> Records:
    """The records of a plan's groups; tables that cannot be read are one group."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(_key(group), []).append(group)
    records = {key: _record(same) for key, same in found.items()}
    for each in besides:
        title = _title(each.tables[0].changes) if each.tables[0].changes else f"{each.state} is declared"
        key = _short_digest([each.state, title, *map(repr, each.tables[0].changes)])
        records[key] = GroupRecord(each.state, title, len(each.names), _digest_of(each.names))
    if failures:
        names = [each.name for each in failures]
        records[_NOT_READABLE] = GroupRecord(_NOT_READABLE, "the log cannot be read", len(names), _digest_of(names))
    return records


def _key(group: Group) -> str:
    changes = [(each.id, each.before, each.after) for each in group.changes]
    return _short_digest([group.weight.word, *map(repr, changes)])


def _record(groups: Sequence[Group]) -> GroupRecord:
    names = [name for group in groups for name in group.names]
    return GroupRecord(groups[0].weight.word, _title(groups[0].changes), len(names), _digest_of(names))


def _title(changes: Sequence[Change]) -> str:
    first = changes[0]
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    text = f"{first.id}: {value_text(first.before)} → {value_text(first.after)}{more}"
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _digest_of(names: Iterable[str]) -> str:
    return _short_digest(sorted(names, key=natural_key))


def _short_digest(texts: Sequence[str]) -> str:
    """Forty bits of a digest of some texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(texts).encode(errors="backslashreplace")).hexdigest()[:10]


def group_list(records: Records) -> str:
    """The comment for programs with the groups of a plan; empty if it would be too long."""
    entries = {key: [each.weight, each.title, each.count, each.tables] for key, each in records.items()}
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
            str(key): GroupRecord(str(weight), str(title)[:_LONGEST_TITLE], int(count), str(tables))
            for key, (weight, title, count, tables) in entries.items()
        }
    except (binascii.Error, zlib.error, ValueError, TypeError, AttributeError, OverflowError):
        return None


def since_text(old: Records, new: Records, digest: str) -> str:
    """What changed, as one paragraph of HTML: groups that are new, then those that are gone, then those with other
    tables. ``digest`` is that of the old plan.
    """
    told: dict[str, list[str]] = {"added": [], "removed": [], "changed": []}
    for each in differences(old, new, lambda _path, before, after: bool(before.tables == after.tables)):
        verb = {"added": "new: ", "removed": "gone: "}.get(each.kind, "")
        was = f", was {plural(each.before.count, 'table')}" if each.kind == "changed" else ""
        told[each.kind].append(f"{verb}{_shown(each.before if each.kind == 'removed' else each.after)}{was}")
    said = [text for texts in told.values() for text in texts]
    name = f" {code(digest[:12])}" if digest else ""
    if not said:
        return f"<p>Since the last plan{name}: the same changes on the same tables.</p>"
    more = f"; and {len(said) - _MOST_LISTED} more differences" if len(said) > _MOST_LISTED else ""
    return f"<p><b>Since the last plan{name}</b>: {'; '.join(said[:_MOST_LISTED])}{more}</p>"


def _shown(group: GroupRecord) -> str:
    return f"{words(group.weight)} {code(group.title)} ({plural(group.count, 'table')})"


def end_of_plan(plan: Plan, groups: Sequence[Group], context: Context) -> CommentEnd:
    """Of a plan, whose masked values are hidden already."""
    foot = (
        f"{group_list(records_of(groups, plan.failures, besides_groups(plan)))}\n{_plan_foot(plan, context)}".lstrip()
    )
    return CommentEnd(foot, _where_plan(plan, context), _RESERVED)


def end_of_run(report: RunReport, context: Context) -> CommentEnd:
    """Of a run."""
    facts = [f"run {code(report.run)}", f"plan {code(report.plan[:_SHORT])}"]
    where = "The log of the run has them all, and so has its report in another format (<code>--report FILE</code>)."
    return CommentEnd(_foot("run", facts, context), where)


def end_of_drift(context: Context) -> CommentEnd:
    """Of drift."""
    return CommentEnd(_foot("drift", [], context), "<code>tablectl drift --verbose</code> prints all of it.")


def _plan_foot(plan: Plan, context: Context) -> str:
    made = [f"tablectl {code(plan.tool[:_SHORT])}", f"{code(plan.dialect[:_SHORT])} dialect"]
    named = [f"plan {code(context.digest[:_SHORT])}"] if context.digest else []
    return _foot("plan", [*named, *made], context)


def _foot(subject: str, facts: list[str], context: Context) -> str:
    """The facts as HTML, and a comment for programs."""
    run = [f'<a href="{escape(context.address)}">CI run</a>'] if context.address else []
    said = " · ".join([*facts, *run])
    return f"{f'<p><sub>{said}</sub></p>' if said else ''}\n<!-- tablectl {subject} -->".lstrip()


def _where_plan(plan: Plan, context: Context) -> str:
    """Where the whole plan can be read, as HTML."""
    run = f' of <a href="{escape(context.address)}">this CI run</a>' if context.address else ""
    if context.plan_file:
        shown = code(f"tablectl show {context.plan_file}")
        return f"The whole plan{run} is in {code(context.plan_file)}: {shown}."
    command = f"tablectl plan --env {plan.env}" if plan.env else "tablectl plan"
    return f"The whole plan{run} is what {code(command)} prints."
