"""Lint findings as a document: tables with equal findings together, the most severe first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence

from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    Document,
    Facts,
    Heading,
    Names,
    Tone,
    Verdict,
    overview_of,
    unread_title,
    without_tables,
)
from tablectl.documents.style import Style, plural
from tablectl.lint_rules import RULES
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Finding, LintedTable, Severity
from tablectl.model.safe_text import natural_key, printable
from tablectl.planning.lint import Linted
from tablectl.reports.plan_document import failure_card, failure_lines
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import by_key, failure_groups

_ORDER: Sequence[Severity] = ("error", "warning", "note")
_TONES: dict[str, Tone] = {"error": "bad", "warning": "pending", "note": "quiet"}


def lint_document(linted: Linted, context: Context) -> Document:
    """The document of the findings that the repository does not ignore."""
    failures = failure_groups(linted.failures)
    groups = _groups(linted.tables)
    unread = (failure_card(each, row=(failure_lines(each),)) for each in failures)
    cards = (*unread, *(_card(group, context) for group in groups))
    verdict = _verdict(linted)
    return Document(
        subject="Lint",
        verdict=verdict,
        summary=tuple(map(Cell, verdict.parts)),
        overview=overview_of(cards, "All findings, the most severe first", ("Tables", "Findings")),
        cards=cards,
        tail=tuple(_tail(linted)),
        hint=f"`tablectl explain {_shown(groups[0][0])[0].code}` says why and how to fix it." if groups else "",
    )


def _verdict(linted: Linted) -> Verdict:
    everything = [each for table in linted.tables for each in table.findings]
    parts = [counted(everything)] if everything else []
    parts += [f"{plural(len(linted.tables), 'table')} checked"]
    parts += [f"{len(linted.failures)} not readable"] if linted.failures else []
    if linted.failures:
        return Verdict("bad", unread_title(linted.tables), tuple(parts))
    if linted.exit_code is not ExitCode.DONE:
        return Verdict("bad", "Errors found", tuple(parts))
    if any(each.severity == "warning" for each in everything):
        return Verdict("pending", "Warnings found", tuple(parts))
    return Verdict("good", "Nothing found" if not everything else "Notes only", tuple(parts))


def _tail(linted: Linted) -> Iterator[Block]:
    yield from without_tables(linted.unmatched)
    quiet = tuple(sorted((each.name for each in linted.tables if not _shown(each)), key=natural_key))
    if quiet:
        yield Names(f"{plural(len(quiet), 'table')} without findings", quiet)


def _shown(table: LintedTable) -> list[Finding]:
    found = [each for each in table.findings if each.severity != "ignored"]
    return sorted(found, key=lambda each: (_ORDER.index(each.severity), each.code))


def _groups(tables: Sequence[LintedTable]) -> list[tuple[LintedTable, ...]]:
    found = by_key((each for each in tables if _shown(each)), lambda each: each.name, _key)
    return sorted(found, key=lambda group: _ORDER.index(_shown(group[0])[0].severity))


def _key(table: LintedTable) -> Hashable:
    return tuple((each.code, each.severity, each.message) for each in _shown(table))


def _card(group: Sequence[LintedTable], context: Context) -> Card:
    shown = _shown(group[0])
    names = tuple(each.name for each in group)
    details: list[Block] = [Names(f"All {len(names):,} tables", names)] if len(names) > 1 else []
    for each in shown:
        details += [Heading(each.code), Facts(tuple(_page(each)))]
    return Card(
        names=names,
        state=shown[0].severity,
        tone=_TONES[shown[0].severity],
        mark="!" if shown[0].severity == "error" else "~",
        effects=tuple(
            Cell(f"{each.code}: {each.message}{_place(group[0].name, each, context)}", tone=_TONES[each.severity])
            for each in shown
        ),
        details=tuple(details),
        row=(tuple(Cell(f"{each.code}: {each.message}", tone=_TONES[each.severity]) for each in shown),),
    )


def _place(table: str, finding: Finding, context: Context) -> str:
    place = context.place(table, finding.about)
    return f" (`{place}`)" if place else ""


def _page(finding: Finding) -> Iterator[tuple[str, str]]:
    rule = RULES.get(finding.code)
    if rule:
        yield "breaks", rule.breaks
        yield "why", rule.why
        yield "fix", rule.fix
        yield "source", rule.source


def findings_lines(tables: Iterable[LintedTable], style: Style) -> list[str]:
    """Each table with findings."""
    lines: list[str] = []
    for table in tables:
        shown = _shown(table)
        if shown:
            lines.append(style.paint(printable(table.name), "bold"))
            for each in shown:
                lines += style.prose(each.code, f"{each.severity}: {each.message}", 2)
            lines.append("")
    return lines


def counted(findings: Sequence[Finding]) -> str:
    """``1 error, 2 warnings``, and how many are ignored."""
    counts = Counter(each.severity for each in findings)
    parts = [plural(counts[name], name) for name in _ORDER if counts[name]]
    return ", ".join([*parts, *([f"{counts['ignored']} ignored"] if counts["ignored"] else [])])
