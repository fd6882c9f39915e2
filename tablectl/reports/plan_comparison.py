"""What changed between two plans, as text: groups that are new or gone, and tables that joined or left a group."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.model.plan import Plan
from tablectl.model.text import natural_key, printable, value_text
from tablectl.reports.groups import Group, plan_groups
from tablectl.reports.style import Style, plural

_FEW = 5


def comparison_text(plan: Plan, other: Plan, style: Style) -> str:
    """What ``plan`` has that ``other`` has not, and the other way round."""
    now, before = _by_changes(plan_groups(plan)), _by_changes(plan_groups(other))
    lines = [line for key in now if key not in before for line in _group("+", now[key], style)]
    lines += [line for key in before if key not in now for line in _group("-", before[key], style)]
    for key in now:
        if key in before:
            lines += _moved(now[key], before[key], style)
    lines += _failures(plan, other)
    if not lines:
        return "The two plans make the same changes on the same tables.\n"
    return "\n".join(lines) + "\n"


def _by_changes(groups: Sequence[Group]) -> dict[object, list[Group]]:
    """The groups with equal changes of equal weight: the statements may differ in what they cost."""
    found: dict[object, list[Group]] = {}
    for group in groups:
        changes = tuple((each.id, each.before, each.after) for each in group.changes)
        found.setdefault((group.weight, changes), []).append(group)
    return found


def _names(groups: Sequence[Group]) -> list[str]:
    return sorted((name for group in groups for name in group.names), key=natural_key)


def _group(mark: str, groups: Sequence[Group], style: Style) -> Iterator[str]:
    colour = "green" if mark == "+" else "red"
    yield f"{style.paint(mark, colour, 'bold')} {_shown(_names(groups))}  {groups[0].weight.word.upper()}"
    for each in groups[0].changes:
        yield f"    {printable(each.id)}  {value_text(each.before)} → {value_text(each.after)}"


def _moved(now: Sequence[Group], before: Sequence[Group], style: Style) -> Iterator[str]:
    here, there = set(_names(now)), set(_names(before))
    if here == there:
        return
    change = now[0].changes[0]
    more = f" and {len(now[0].changes) - 1} more" if len(now[0].changes) > 1 else ""
    title = f"{printable(change.id)}  {value_text(change.before)} → {value_text(change.after)}{more}"
    mark = style.paint("~", "yellow", "bold")
    yield f"{mark} {title}: {plural(len(here), 'table')}, was {plural(len(there), 'table')}"
    for sign, names in (("+", here - there), ("-", there - here)):
        if names:
            yield f"    {sign} {_shown(sorted(names, key=natural_key))}"


def _failures(plan: Plan, other: Plan) -> Iterator[str]:
    here, there = {each.name for each in plan.failures}, {each.name for each in other.failures}
    if here - there:
        yield f"no longer readable: {_shown(sorted(here - there, key=natural_key))}"
    if there - here:
        yield f"readable again: {_shown(sorted(there - here, key=natural_key))}"


def _shown(names: Sequence[str]) -> str:
    shown = ", ".join(map(printable, names[:_FEW]))
    return f"{shown} and {len(names) - _FEW:,} more" if len(names) > _FEW else shown
