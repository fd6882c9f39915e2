"""The risks of a lake as a document: tables with the same risk together, the worst first."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Hashable, Iterator, Sequence

from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    CommentEnd,
    Document,
    Facts,
    Grid,
    Names,
    Row,
    Tone,
    Verdict,
    group_names,
    unread_title,
)
from tablectl.documents.style import plural
from tablectl.insight.advice.facts import Declared
from tablectl.insight.advice.risks import LakeRisks, Risk, TableRisks
from tablectl.lint_rules.rule import HARMS, Harm
from tablectl.model.text import natural_key, size_text
from tablectl.policies.yaml_text import write_key, write_value

_TONES: dict[Harm, Tone] = {
    "data or history at risk": "bad",
    "clients locked out": "pending",
    "writers at risk": "pending",
    "debt": "quiet",
    "closed to some clients": "quiet",
}
_FOR_INFORMATION: Harm = "closed to some clients"
_Group = tuple[tuple[TableRisks, Risk], ...]


def document_of_risks(lake: LakeRisks) -> Document:
    """The document of what was found. It contains no values of masked properties."""
    groups = _groups(lake.tables)
    unread = [each for each in lake.tables if each.error]
    parts = tuple(_parts(lake, unread))
    cards = (*(_unread(each) for each in unread), *map(_card, groups))
    shown = zip(groups, cards[len(unread) :], strict=True)
    rows = (
        *(_unread_row(each, at) for at, each in enumerate(unread)),
        *(_row(group, card, len(unread) + at) for at, (group, card) in enumerate(shown)),
    )
    quiet = tuple(each.table for each in lake.tables if not each.risks and not each.error)
    return Document(
        subject="Check",
        verdict=_verdict(lake, bool(unread), groups, parts),
        overview=Grid("What was found, the worst first", ("Tables", "Risk", "Policy"), rows) if rows else None,
        cards=cards,
        tail=tuple(_tail(lake, quiet)),
        summary=tuple(map(Cell, parts)),
        record=lake,
        comment=lambda: CommentEnd(
            "<!-- tablectl check -->", "<code>tablectl check --report FILE.html</code> writes all of it."
        ),
    )


def _groups(tables: Sequence[TableRisks]) -> list[_Group]:
    """The same risk in several tables, the largest table first. What exactly their logs show may differ."""
    found: dict[Hashable, list[tuple[TableRisks, Risk]]] = {}
    for table in sorted(tables, key=lambda each: (-(each.bytes or 0), natural_key(each.table))):
        seen = Counter[Hashable]()  # a table with two findings of a rule is in two groups
        for each in table.risks:
            says = each.says if not each.code else ""
            key = (HARMS.index(each.harm), each.severity, each.code, says, each.means, each.declare, each.do)
            found.setdefault((key, seen[key]), []).append((table, each))
            seen[key] += 1
    # As in each table: the harm, then the severity.
    places = {id(group[0][1]): at for at, group in enumerate(found.values())}
    order = ("error", "warning", "note")
    return sorted(
        map(tuple, found.values()),
        key=lambda group: (
            HARMS.index(group[0][1].harm),
            order.index(group[0][1].severity),
            -sum(table.bytes or 0 for table, _ in group),
            places[id(group[0][1])],
        ),
    )


def _verdict(lake: LakeRisks, unread: bool, groups: Sequence[_Group], parts: tuple[str, ...]) -> Verdict:  # noqa: FBT001
    if unread or lake.failures:
        return Verdict("bad", unread_title(lake.tables), parts)
    worst = groups[0][0][1].harm if groups else _FOR_INFORMATION
    if worst == _FOR_INFORMATION:
        return Verdict("good", "Nothing found", parts)
    return Verdict("bad" if _TONES[worst] == "bad" else "pending", f"{worst[:1].upper()}{worst[1:]}", parts)


def _parts(lake: LakeRisks, unread: Sequence[TableRisks]) -> Iterator[str]:
    size = sum(each.bytes or 0 for each in lake.tables)
    yield f"{plural(len(lake.tables), 'table')} of {size_text(size)}" if size else plural(len(lake.tables), "table")
    counts = Counter(harm for each in lake.tables for harm in {risk.harm for risk in each.risks})
    known = (harm for harm in HARMS if counts[harm])
    yield from (
        f"{plural(counts[each], 'table')} {'' if each == _FOR_INFORMATION else 'with '}{each}" for each in known
    )
    if unread or lake.failures:
        yield f"{len(unread) + len(lake.failures)} not readable"


def _unread(table: TableRisks) -> Card:
    return Card((table.table,), "not readable", "bad", "!", effects=(Cell(table.error, tone="bad"),))


def _unread_row(table: TableRisks, at: int) -> Row:
    return Row((group_names((table.table,), "not readable", "bad"), (Cell(table.error, tone="bad"),), ()), at)


def _card(group: _Group) -> Card:
    names, risk = tuple(table.table for table, _ in group), group[0][1]
    return Card(
        names=names,
        state=risk.harm,
        tone=_TONES[risk.harm],
        mark="!" if _TONES[risk.harm] == "bad" else "~",
        brief=(Facts(tuple(_facts(group))),),
        details=(Names(f"All {len(names):,} tables", names),) if len(names) > 1 else (),
    )


def _facts(group: _Group) -> Iterator[tuple[str, str]]:
    risk = group[0][1]
    alike = len({each.says for _, each in group}) == 1
    yield "found", said(risk) if alike else f"in the largest: {said(risk)}"
    if risk.means:
        yield "means", risk.means
    if risk.do:
        yield "do", risk.do
    for at, line in enumerate(lines_of(risk.declare)):
        yield "" if at else "declare", f"`{line}`"


def said(risk: Risk) -> str:
    """What the log shows, with the code that `explain` knows."""
    return f"{risk.says} ({risk.code})" if risk.code else risk.says


def lines_of(declare: Sequence[Declared]) -> Iterator[str]:
    """The lines of a policy that declare some values, each value on one: ``retention: {log: 30 days}``."""
    for name in dict.fromkeys(name for name, _, _ in declare):
        inner = [(key, value) for other, key, value in declare if other == name]
        if inner[0][0]:
            pairs = ", ".join(f"{write_key(key, flow=True)}: {write_value(value, flow=True)}" for key, value in inner)
            yield f"{name}: {{{pairs}}}"
        else:
            yield f"{name}: {write_value(inner[0][1])}"


def _row(group: _Group, card: Card, at: int) -> Row:
    risk = group[0][1]
    policy = tuple(Cell(line, code=True) for line in lines_of(risk.declare)) or (Cell(risk.do),)
    cells = (group_names(card.names, card.state, card.tone), (Cell(said(risk), tone=card.tone),), policy)
    return Row(cells, at, card.names)


def _tail(lake: LakeRisks, quiet: tuple[str, ...]) -> Iterator[Block]:
    if lake.unmatched:
        yield Names(f"{plural(len(lake.unmatched), 'pattern')} without a table", lake.unmatched, warns=True)
    if lake.failures:
        yield Facts(tuple(("not looked up", f"{each.name}: {each.message}") for each in lake.failures))
    if quiet:
        yield Names(f"{plural(len(quiet), 'table')} without findings", quiet)
    asked = "".join(f" {shlex.quote(each)}" for each in lake.places)
    if any(each.declare for table in lake.tables for each in table.risks):
        yield Facts(
            (
                ("next", f"`tablectl check{asked} --out fixes.yaml` writes a policy file with these lines"),
                ("", "`tablectl plan fixes.yaml` shows what they change, and which writers fail"),
            )
        )
    elif lake.tables and lake.places:
        yield Facts((("next", f"`tablectl init lake-policies{asked}` writes the policies of these tables"),))
