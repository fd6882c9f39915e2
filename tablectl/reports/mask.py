"""Values that reports do not show: those of property keys that match a pattern of ``reports.mask``.

Masking makes other records to be shown. The plan itself, its file and the statements that run keep every value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from fnmatch import translate
from functools import cached_property

from tablectl.model.lint import RULES as CODES
from tablectl.model.live import Commit
from tablectl.model.plan import Change, CommitEffect, Finding, Plan, Refusal, Statement, TablePlan, Value
from tablectl.model.text import printable
from tablectl.planning.drift import Difference, Drift, TableDrift
from tablectl.window.report import RunReport, StatementRun, TableRun

HIDDEN = "••••••"
_PAIR = re.compile(r"`[^`]*`|('(?:[^'\\]|\\.)*') = ('(?:[^'\\]|\\.)*')|'(?:[^'\\]|\\.)*'", re.DOTALL)
"""What a statement is made of, as ``model.sql`` quotes it: names, settings, other literals."""
_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_PROPERTIES = "properties"
_SHORTEST = 4
"""Characters below which a value is not looked for in prose: it would be found everywhere."""
_WAS = re.compile(r" (?:was|shall be|is) ")


@dataclass(frozen=True)
class Mask:
    """Globs over property keys (``*password*``, ``owner.*``), whatever their letter case."""

    patterns: tuple[str, ...] = ()

    @cached_property
    def _keys(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(each) for each in self.patterns), re.IGNORECASE)

    def hides(self, key: str) -> bool:
        """Whether the values of a property are not shown."""
        return bool(self.patterns) and self._keys.match(key) is not None

    def value(self, key: str, value: Value) -> Value:
        """A property's value as it is shown; that it is not set stays visible."""
        return HIDDEN if value is not None and self.hides(key) else value

    def plan(self, plan: Plan) -> Plan:
        """A plan to be shown."""
        if not self.patterns:
            return plan
        return replace(plan, tables=tuple(map(self._table, plan.tables)))

    def run(self, report: RunReport) -> RunReport:
        """A run to be shown."""
        if not self.patterns:
            return report
        return replace(report, tables=tuple(map(self._table_run, report.tables)))

    def drift(self, drift: Drift) -> Drift:
        """What differs, to be shown."""
        if not self.patterns:
            return drift
        return replace(drift, tables=tuple(map(self._table_drift, drift.tables)))

    def text(self, text: str, properties: Iterable[Mapping[str, str | None]]) -> str:
        """A text without the values that some properties have."""
        values = (value for each in properties for key, value in each.items() if value and self.hides(key))
        return _Secrets(values).hidden(text)

    def sql(self, sql: str) -> str:
        """A statement of ours to be shown."""

        def hide(match: re.Match[str]) -> str:
            if match[1] and self.hides(_text(match[1])):
                return f"{match[1]} = '{HIDDEN}'"
            return match[0]

        return _PAIR.sub(hide, sql)

    def _table(self, table: TablePlan) -> TablePlan:
        secrets = _Secrets(each for change in table.changes if self.hides(change.key) for each in _values(change))
        return replace(
            table,
            changes=tuple(map(self.change, table.changes)),
            statements=tuple(self._statement(each, secrets) for each in table.statements),
            refusals=tuple(_refusal(each, secrets) for each in table.refusals),
            findings=tuple(self._finding(each, secrets) for each in table.findings),
            undo=tuple(map(self.sql, table.undo)),
            basis=replace(
                table.basis,
                stored=tuple((key, HIDDEN if self.hides(key) else text) for key, text in table.basis.stored),
            ),
        )

    def _finding(self, finding: Finding, secrets: _Secrets) -> Finding:
        """What a finding says of a property that is not shown may hold its value, changed or not."""
        if finding.about.startswith("properties.") and self.hides(finding.about.removeprefix("properties.")):
            return replace(finding, message=CODES[finding.code].title if finding.code in CODES else HIDDEN)
        return replace(finding, message=secrets.hidden(finding.message))

    def _table_drift(self, table: TableDrift) -> TableDrift:
        return replace(
            table,
            differences=tuple(map(self._difference, table.differences)),
            applied=_commit(table.applied) if table.applied else None,
        )

    def _difference(self, difference: Difference) -> Difference:
        change, origin = difference.change, difference.origin
        shown = replace(
            origin,
            commit=_commit(origin.commit) if origin.commit else None,
            was=self.value(change.key, origin.was) if change.key else origin.was,
        )
        return replace(difference, change=self.change(change), origin=shown)

    def change(self, change: Change) -> Change:
        """One change to be shown."""
        before, after = self.value(change.key, change.before), self.value(change.key, change.after)
        return replace(
            change, before=before, after=after, via=tuple(self.value(change.key, each) for each in change.via)
        )

    def _statement(self, statement: Statement, secrets: _Secrets) -> Statement:
        sets = tuple((key, HIDDEN if self.hides(key) else value) for key, value in statement.effect.sets)
        effect: CommitEffect = replace(statement.effect, sets=sets)
        return replace(
            statement,
            sql=self.sql(statement.sql),
            undo=tuple(map(self.sql, statement.undo)),
            reason=secrets.hidden(statement.reason),
            effect=effect,
        )

    def _table_run(self, table: TableRun) -> TableRun:
        secrets = _Secrets(value for each in table.statements for value in self._sent(each.sql))
        return replace(
            table,
            message=self._said(secrets.hidden(table.message)),
            notes=tuple(map(secrets.hidden, table.notes)),
            statements=tuple(self._statement_run(each, secrets) for each in table.statements),
            refusals=tuple(_refusal(each, secrets) for each in table.refusals),
        )

    def _statement_run(self, statement: StatementRun, secrets: _Secrets) -> StatementRun:
        return replace(statement, sql=self.sql(statement.sql), error=secrets.hidden(statement.error))

    def _sent(self, sql: str) -> Iterator[str]:
        for match in _PAIR.finditer(sql):
            if match[1] and self.hides(_text(match[1])):
                yield _text(match[2])

    def _said(self, message: str) -> str:
        """``properties.owner.token was a and is b``, which tells values that nobody declared: cut before them."""
        for match in re.finditer(r"properties\.", message):
            words = _WAS.search(message, match.end())
            if words and self.hides(message[match.end() : words.start()]):
                return f"{message[: words.start()]}{words[0]}{HIDDEN}"
        return message


def _commit(commit: Commit) -> Commit:
    """Without the parameter in which commits repeat all the properties that they set."""
    shown = {name: HIDDEN if name == _PROPERTIES else value for name, value in commit.parameters.items()}
    return replace(commit, parameters=shown)


class _Secrets:
    """Values to be found in prose: an engine repeats what it did not like."""

    def __init__(self, values: Iterable[str]) -> None:
        found = {form for value in values for form in (value, printable(value)) if len(value) >= _SHORTEST}
        self._found = sorted(found, key=len, reverse=True)

    def hidden(self, text: str) -> str:
        for each in self._found:
            text = text.replace(each, HIDDEN)
        return text


def _values(change: Change) -> Iterator[str]:
    return (each for each in (change.before, change.after, *change.via) if isinstance(each, str))


def _refusal(refusal: Refusal, secrets: _Secrets) -> Refusal:
    return replace(refusal, reason=secrets.hidden(refusal.reason), way_out=secrets.hidden(refusal.way_out))


def _text(literal: str) -> str:
    """The text of a literal, as ``model.sql.quote_text`` wrote it."""

    def plain(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if len(found) > 1 else _CONTROLS.get(found, found)

    return _ESCAPE.sub(plain, literal[1:-1])
