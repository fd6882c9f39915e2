"""What is wrong or risky in a table: the findings of lint, the clients that are locked out, and the advice, each with
the policy that mends it. The risks of a lake as a document: tables with the same risk together, the worst first.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tablectl.delta.clients import newest_locked_out
from tablectl.delta.protocol import Protocol
from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    CommentEnd,
    Document,
    Facts,
    Lines,
    Names,
    Tone,
    Verdict,
    overview_of,
    unread_title,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.insight.advice.advice_records import Advice, Benefit, Declared, TableFacts
from tablectl.insight.advice.advise import advise, planned_with
from tablectl.lint_rules import RULES
from tablectl.lint_rules.rule import HARMS, Harm, LintedState
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Finding, Severity, TableFailure, TablePlan
from tablectl.model.report_methods import ReportMethods
from tablectl.model.safe_text import listed, natural_key, size_text
from tablectl.policies.write_yaml import write_key, write_value

_OLDEST = Protocol(1, 1)
_LONGEST = 160
"""Characters of an evidence that is shown; `advise` has all of it."""
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note", "ignored")
_HARMS: Mapping[Benefit, Harm] = MappingProxyType(
    {
        "days of risk": "data or history at risk",
        "appends at risk": "data or history at risk",
        "writer-seconds a week": "writers at risk",
        "bytes a week": "debt",
        "bytes": "debt",
        "files": "debt",
        "clients": "debt",
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Risk:
    """One thing that is wrong or risky in a table."""

    harm: Harm
    severity: Severity
    code: str
    """A lint rule, or a section of docs/advise.md; empty for clients that no policy names."""
    says: str
    """What the log shows."""
    means: str
    """What goes wrong."""
    declare: tuple[Declared, ...] = ()
    """The policy that mends it; empty if none does."""
    do: str = ""
    """What to do besides, or instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableRisks:
    """What was found in one table, the worst first."""

    table: str
    location: str
    files: int | None = None
    bytes: int | None = None
    risks: tuple[Risk, ...] = ()
    error: str = ""
    """Why the table cannot be read; empty if it can."""


@dataclass(frozen=True, slots=True, repr=False)
class LakeRisks(ReportMethods):
    """What was found in all tables."""

    places: tuple[str, ...]
    """What was asked for; empty for the tables of the policies."""
    tables: tuple[TableRisks, ...]
    failures: tuple[TableFailure, ...] = ()
    unmatched: tuple[str, ...] = ()
    format: int = 1

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0: a risk is for people to judge, and `lint` is for CI."""
        return ExitCode.ERROR if self.failures or any(table.error for table in self.tables) else ExitCode.DONE


def find_risks(
    facts: TableFacts,
    state: LintedState,
    findings: Iterable[Finding],
    masked: Callable[[TablePlan], TablePlan] = lambda table: table,
    rivals: Iterable[tuple[str, str]] = (),
) -> tuple[Risk, ...]:
    """The risks of a table, the worst first. ``findings`` are those of lint on ``state``. ``rivals`` are who alters it,
    each with what stops it.
    """
    advice, _ = advise(facts, masked)
    found = [
        *(Risk(harm="writers at risk", severity="warning", code="", says=says, means="", do=do) for says, do in rivals),
        *(_of_finding(each, facts, state) for each in findings if each.severity != "ignored"),
        *_locked_out(facts, bool(state.client_versions) or any(each.benefit == "clients" for each in advice)),
        *map(_of_advice, advice),
    ]
    return tuple(sorted(found, key=lambda each: (HARMS.index(each.harm), _SEVERITIES.index(each.severity))))


def _of_finding(finding: Finding, facts: TableFacts, state: LintedState) -> Risk:
    rule = RULES.get(finding.code)
    if rule is None:  # a rule of the user's own
        return Risk(harm="debt", severity=finding.severity, code=finding.code, says=finding.message, means="")
    mends = rule.mend(state)
    # A rule may have found several properties: this finding is mended by the lines of its own.
    declare = tuple(each for each in mends if ".".join(filter(None, each[:2])) == finding.about) or mends
    planned = planned_with(facts, declare) if declare else None
    possible = planned is not None and not planned.refusals
    return Risk(
        harm=rule.harm,
        severity=finding.severity,
        code=rule.code,
        says=finding.message,
        means=rule.breaks,
        declare=declare if possible else (),
        do="" if possible else rule.fix,
    )


def _locked_out(facts: TableFacts, said: bool) -> Iterator[Risk]:  # noqa: FBT001  # said by the caller's words
    """The newest known clients that cannot read or write the table, unless the policy or an advice names clients."""
    if said:
        return
    found = newest_locked_out(_OLDEST, facts.live.protocol)
    for access in ("read", "write"):
        those = [each for each in found if each.access == access]
        if those:
            names = listed(tuple(f"{each.client} {each.version}".removesuffix(" 0") for each in those), 20)
            features = ", ".join(sorted({each.feature for each in those}))
            yield Risk(
                harm="closed to some clients",
                severity="note",
                code="",
                says=f"needs {features}, so these cannot {access} it: {names}",
                means="Nothing is wrong if you use none of them.",
                do='declare the clients that you have (`clients: {trino: "478"}`): then one that is locked out is a '
                "finding",
            )


def _of_advice(advice: Advice) -> Risk:
    return Risk(
        harm=_HARMS[advice.benefit],
        severity="note" if advice.confidence == "low" else "warning",
        code=advice.code,
        says=f"{_amount(advice)}; {_evidence(advice)}",
        means="",
        declare=advice.declare,
        do="; ".join(filter(None, (advice.title, advice.do))),
    )


def _amount(advice: Advice) -> str:
    return size_text(int(advice.amount)) if advice.benefit == "bytes" else f"{advice.amount:,.0f} {advice.benefit}"


def _evidence(advice: Advice) -> str:
    """The first evidence, if it is short."""
    first = advice.evidence[0]
    return first if len(first) <= _LONGEST else f"{advice.confidence} confidence, {advice.observations:,} observations"


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
    cards = (*map(_unread, unread), *map(_card, groups))
    quiet = tuple(each.table for each in lake.tables if not each.risks and not each.error)
    return Document(
        subject="Check",
        verdict=_verdict(lake, bool(unread), groups, parts),
        overview=overview_of(cards, "What was found, the worst first", ("Tables", "Risk", "Policy")),
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
    error = (Cell(table.error, tone="bad"),)
    return Card((table.table,), "not readable", "bad", "!", effects=error, row=(error, ()))


def _card(group: _Group) -> Card:
    names, risk = tuple(table.table for table, _ in group), group[0][1]
    return Card(
        names=names,
        state=risk.harm,
        tone=_TONES[risk.harm],
        mark="!" if _TONES[risk.harm] == "bad" else "~",
        brief=(Facts(tuple(_facts(group))),),
        details=(Names(f"All {len(names):,} tables", names),) if len(names) > 1 else (),
        row=_row(risk),
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


def _row(risk: Risk) -> tuple[Lines, ...]:
    policy = tuple(Cell(line, code=True) for line in lines_of(risk.declare)) or (Cell(risk.do),)
    return (Cell(said(risk), tone=_TONES[risk.harm]),), policy


def _tail(lake: LakeRisks, quiet: tuple[str, ...]) -> Iterator[Block]:
    yield from without_tables(lake.unmatched, lake.failures)
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
