"""What a merge turns on or off besides the settings that an apply changes, as parts of a plan's document.

Upkeep, locks, tags, windows, consents, and what is declared no longer. Tables with the same are one group.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from tablectl.documents.document import Card, Cell, ChangeRow, Changes, Names, Tone
from tablectl.documents.style import plural
from tablectl.lint_rules import RULES
from tablectl.model.plan import BesidesSettings, Change, Plan, UpkeepForecast
from tablectl.model.safe_text import natural_key, size_text, time_text, value_text
from tablectl.model.upkeep import UpkeepKind
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import by_key

_NO_RUN = "an apply of this plan does none of it"
_VERBS: dict[UpkeepKind, str] = {"vacuum": "VACUUM", "optimize": "OPTIMIZE"}


@dataclass(frozen=True, slots=True)
class BesidesGroup:
    """Tables whose policies turn the same on or off."""

    tables: tuple[BesidesSettings, ...]
    """At least one, in natural order of their names."""
    compared: bool

    @property
    def names(self) -> tuple[str, ...]:
        """Their names."""
        return tuple(each.name for each in self.tables)

    @property
    def state(self) -> str:
        """One word: the weightiest of what changes."""
        kinds = {each.attribute for each in self.tables[0].changes}
        if self.tables[0].upkeep or "upkeep" in kinds:
            return "upkeep"
        return "lock" if "locked" in kinds else "policy"


def besides_groups(plan: Plan) -> tuple[BesidesGroup, ...]:
    """Upkeep first, then locks; within these large groups first, then by name."""

    def key(each: BesidesSettings) -> Hashable:
        upkeep = tuple((one.kind, one.declared, one.kept) for one in each.upkeep)
        return each.changes, upkeep, tuple((one.code, one.severity, one.message) for one in each.findings)

    groups = [BesidesGroup(each, plan.compared) for each in by_key(plan.besides, lambda each: each.name, key)]
    order = ("upkeep", "lock", "policy")
    return tuple(
        sorted(groups, key=lambda each: (order.index(each.state), -len(each.tables), natural_key(each.names[0])))
    )


def besides_clauses(plan: Plan) -> list[str]:
    """``turns VACUUM on for 1 table``: what a merge does besides settings, the weightiest first."""
    found: dict[str, list[str]] = {}
    for table in plan.besides:
        if not plan.compared:
            verbs = " and ".join(_VERBS[each.kind] for each in table.upkeep)
            found.setdefault(f"{verbs} declared for {{}}", []).append(table.name)
        for change in table.changes:
            found.setdefault(_clause(change), []).append(table.name)
    ranked = sorted(
        found.items(), key=lambda each: [word in each[0] for word in ("VACUUM", "OPTIMIZE", "lock")], reverse=True
    )
    return [text.format(plural(len(set(names)), "table")) for text, names in ranked]


def _clause(change: Change) -> str:
    turned = "on" if change.before is None else "off" if change.after is None else ""
    if change.attribute == "upkeep":
        verb = change.key.upper()
        return f"turns {verb} {turned} for {{}}" if turned else f"changes when {verb} runs on {{}}"
    if change.attribute == "locked":
        return {"on": "locks {}", "off": "lifts the lock of {}"}.get(turned, "changes the lock of {}")
    if change.attribute == "policy":
        return "{} no longer declared"
    if turned == "off" and change.attribute not in {"window", "tags"}:
        return "{} with a setting that is no longer declared"
    return f"changes `{change.attribute}` of {{}}"


def upkeep_text(forecasts: Sequence[UpkeepForecast], now: datetime | None = None) -> str:
    """What runs of one kind of upkeep do on some tables."""
    first, least = forecasts[0], min(each.since for each in forecasts)
    known = [each for each in forecasts if each.files is not None]
    total, size = sum(each.files or 0 for each in known), sum(each.bytes or 0 for each in known)
    sized = f", {size_text(size)}" if total and all(each.bytes is not None for each in known) else ""
    amount = f"{plural(total, 'file')}{sized}"
    if len(known) < len(forecasts):
        amount = f"{amount} and those of {plural(len(forecasts) - len(known), 'table')} that are not counted"
    if not known:
        amount = "how many is unknown, because commits without metrics may have removed some"
    when = f"from {time_text(least)} on" if least and (now is None or least > now.timestamp() * 1000) else "from now on"
    if first.kind == "vacuum":
        does = f"deletes files for good that no version needs, {first.kept} after they were removed"
        so_far = f"so far {amount}" if known else amount
        return f"once merged, `tablectl upkeep` runs VACUUM {first.declared}, {when}: it {does} ({so_far})"
    return f"once merged, `tablectl upkeep` runs OPTIMIZE ({first.declared}), {when}: it rewrites at most {amount}"


def besides_card(group: BesidesGroup, context: Context) -> Card:
    """The part of a group of tables."""
    first = group.tables[0]
    rows = tuple(
        ChangeRow(each.id, value_text(each.before), value_text(each.after), _places(group, each.id, context))
        for each in first.changes
    )
    shown = tuple(Cell(f"{each.id}: {each.before} → {each.after}", code=True) for each in rows)
    if not group.compared:
        shown = tuple(Cell(f"upkeep.{each.kind}: {each.declared}", code=True) for each in first.upkeep)
    effects = tuple(_effects(group, context.now))
    places = _places(group, first.changes[0].id if first.changes else "upkeep", context)
    return Card(
        names=group.names,
        state=group.state,
        tone="pending",
        mark="~",
        lasting=effects,
        brief=(*((Changes(rows),) if rows else ()),),
        details=(Names(f"All {len(group.names):,} tables", group.names),) if len(group.names) > 1 else (),
        row=((*shown, *places), effects, (Cell(_NO_RUN, tone="quiet"),)),
    )


def _effects(group: BesidesGroup, now: datetime | None) -> Iterator[Cell]:
    for kinds in zip(*(each.upkeep for each in group.tables), strict=True):
        yield Cell(upkeep_text(kinds, now), tone="pending")
    for change in group.tables[0].changes:
        if text := _effect(change):
            yield Cell(text, tone="pending")
    for each in group.tables[0].findings:
        if each.severity != "ignored":
            tone: Tone = "bad" if each.severity == "error" else "pending" if each.severity == "warning" else ""
            rule = RULES.get(each.code)
            harm = f". {rule.breaks}".rstrip(".") if rule else ""
            yield Cell(f"{each.code}: {each.message}{harm}", tone=tone)


def _effect(change: Change) -> str:
    """What holds after the merge; empty if the change itself says it."""
    if change.attribute == "locked":
        return "every later change of the table is refused until then" if change.after else "later changes are applied"
    if change.attribute == "upkeep" and change.after is None:
        return f"`tablectl upkeep` runs no {change.key.upper()} there any more"
    if change.attribute == "tags" and "(its profile)" in f"{change.before}{change.after}":
        return "the tag attaches its profile: what that declares later changes the table, too"
    if change.attribute == "tags":
        return "`--tag` and rules of the calendar by tag take other tables"
    if change.attribute == "window":
        return "applies and upkeep open the window of the table at other times"
    if change.attribute == "policy":
        return "the table stays as it is; no plan, drift or upkeep looks at it any more"
    if change.attribute in {"allow", "rewrite", "truncate_history", "max_bytes", "allowed_features", "optimize"}:
        return "later plans may do what this consents to" if change.after else ""
    if change.after is None:
        return "the table stays as it is; drift of it is no longer reported"
    return ""


def _places(group: BesidesGroup, change: str, context: Context) -> tuple[Cell, ...]:
    name = group.names[0]
    place = context.place(name, change) if context.sources else ""
    return (Cell(place, code=True, href=context.link(name, change)),) if place else ()


def besides_lines(table: BesidesSettings) -> Iterator[str]:
    """What JUnit says of a table whose settings do not change."""
    yield from (f"{each.id}: {value_text(each.before)} → {value_text(each.after)}" for each in table.changes)
    yield from (upkeep_text((each,)) for each in table.upkeep)
    yield from (f"{each.code}: {each.message}" for each in table.findings if each.severity != "ignored")
