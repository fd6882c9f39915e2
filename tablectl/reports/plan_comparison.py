"""What changed between two plans: groups that are new or gone, and what changed in groups that both have.

A plan is compared as the records of its groups. Those of an earlier plan come from its file, or from a comment
(``since``). ``deepdiff`` compares them. It gets dictionaries with strings as keys and nothing else, because its time
for lists and for texts of several lines grows with the square of their size, and plan files are untrusted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from tablectl.frozen import frozen
from tablectl.model.plan import Change, Plan, TableFailure
from tablectl.model.text import listed, natural_key, printable, value_text
from tablectl.reports.groups import Group, plan_groups
from tablectl.reports.style import Style, plural

_FEW = 5
_LONGEST_TITLE = 80
_NOT_READABLE = "not readable"
_CANNOT_BE_READ = "the log cannot be read"


@frozen
class GroupRecord:
    """The tables of a plan with equal changes of equal weight. What the changes cost may differ."""

    weight: str
    title: str
    """The first change, and how many more there are."""
    count: int
    tables: tuple[str, ...]
    """The names, in natural order. Of a comment: one digest of them."""
    changes: tuple[str, ...] = ()
    """Each change. Empty of a comment."""
    effects: tuple[str, ...] = ()
    """What the changes do to others. Empty of a comment."""


Records = Mapping[str, GroupRecord]
"""The groups of a plan by a short digest of weight and changes."""


@frozen
class OneSided:
    """The tables, or the effects, that only one of two records has."""

    added: list[str] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)


@frozen
class GroupDifference:
    """How one group differs. A group that only one plan has is ``None`` in the other one."""

    now: GroupRecord | None
    before: GroupRecord | None
    tables: OneSided = field(default_factory=OneSided)
    effects: OneSided = field(default_factory=OneSided)


def records_of(groups: Iterable[Group], failures: Sequence[TableFailure]) -> Records:
    """The records of a plan's groups; tables that cannot be read are one group."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        found.setdefault(_key(group), []).append(group)
    records = {key: _record(same) for key, same in found.items()}
    if failures:
        names = tuple(sorted((each.name for each in failures), key=natural_key))
        records[_NOT_READABLE] = GroupRecord(
            _NOT_READABLE, _CANNOT_BE_READ, len(names), names, changes=(_CANNOT_BE_READ,)
        )
    return records


def differences(now: Records, before: Records) -> tuple[GroupDifference, ...]:
    """Groups that are new, then those that are gone, then those that changed."""
    from deepdiff import DeepDiff  # noqa: PLC0415  (loads numpy and pandas where they are installed)

    # By default deepdiff skips keys that begin with `__`, and compares dictionaries with few common keys as a whole.
    found = DeepDiff(
        _plain(before), _plain(now), view="tree", ignore_private_variables=False, threshold_to_diff_deeper=0
    )
    changed: dict[str, GroupDifference] = {}
    for kind in ("dictionary_item_added", "dictionary_item_removed"):
        for item in found.get(kind, ()):
            key, *inner = item.path(output_format="list")
            difference = changed.setdefault(key, GroupDifference(now.get(key), before.get(key)))
            if inner:
                parts: OneSided = getattr(difference, inner[0])
                (parts.added if kind.endswith("added") else parts.removed).append(inner[1])
    order = {key: index for index, key in enumerate([*now, *before])}
    return tuple(changed[key] for key in sorted(changed, key=lambda key: (*_rank(changed[key]), order[key])))


def comparison_text(plan: Plan, other: Plan, style: Style) -> str:
    """What ``plan`` has that ``other`` has not, and the other way round."""
    now, before = (records_of(plan_groups(each), each.failures) for each in (plan, other))
    lines = [line for each in differences(now, before) for line in _lines(each, style)]
    return "\n".join(lines or ["The two plans make the same changes on the same tables."]) + "\n"


def _rank(difference: GroupDifference) -> tuple[bool, bool]:
    return difference.before is not None, difference.now is not None


def _plain(records: Records) -> dict[str, dict[str, dict[str, bool]]]:
    """The records as nested dictionaries. The count follows from the tables."""
    return {
        key: {"tables": dict.fromkeys(each.tables, True), "effects": dict.fromkeys(each.effects, True)}
        for key, each in records.items()
    }


def _key(group: Group) -> str:
    changes = [(each.id, each.before, each.after) for each in group.changes]
    return short_digest([group.weight.word, *map(repr, changes)])


def short_digest(texts: Sequence[str]) -> str:
    """Forty bits of a digest of some texts, in hexadecimal digits."""
    return hashlib.sha256("\0".join(texts).encode(errors="backslashreplace")).hexdigest()[:10]


def _record(groups: Sequence[Group]) -> GroupRecord:
    first = groups[0]
    names = tuple(sorted((name for group in groups for name in group.names), key=natural_key))
    effects = dict.fromkeys(effect.text for group in groups for effect in group.effects)
    return GroupRecord(
        first.weight.word, _title(first.changes), len(names), names, tuple(map(_change, first.changes)), tuple(effects)
    )


def _change(change: Change) -> str:
    return f"{change.id}: {value_text(change.before)} → {value_text(change.after)}"


def _title(changes: Sequence[Change]) -> str:
    more = f" and {len(changes) - 1} more" if len(changes) > 1 else ""
    text = f"{_change(changes[0])}{more}"
    return text if len(text) <= _LONGEST_TITLE else f"{text[: _LONGEST_TITLE - 1]}…"


def _lines(difference: GroupDifference, style: Style) -> Iterator[str]:
    now, before = difference.now, difference.before
    if now and before:
        was = f", was {plural(before.count, 'table')}" if difference.tables.added or difference.tables.removed else ""
        mark = style.paint("~", "yellow", "bold")
        yield f"{mark} {printable(now.title)}  {now.weight.upper()}: {plural(now.count, 'table')}{was}"
        yield from _parts(difference.tables)
        yield from _effects(difference.effects)
    elif group := now or before:
        mark, colour = ("+", "green") if now else ("-", "red")
        yield f"{style.paint(mark, colour, 'bold')} {_shown(group.tables)}  {group.weight.upper()}"
        yield from (f"    {printable(each)}" for each in group.changes)


def _parts(tables: OneSided) -> Iterator[str]:
    for mark, names in (("+", tables.added), ("-", tables.removed)):
        if names:
            yield f"    {mark} {_shown(sorted(names, key=natural_key))}"


def _effects(effects: OneSided) -> Iterator[str]:
    yield from (f"    now: {printable(each)}" for each in effects.added)
    yield from (f"    was: {printable(each)}" for each in effects.removed)


def _shown(names: Sequence[str]) -> str:
    return listed([*map(printable, names)], _FEW)
