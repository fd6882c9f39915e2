"""Masking: reports do not show the values of property keys that match a pattern of ``reports.mask``, and no part of any
value that has the form of a credential.

Masking creates other records for display. The plan itself, its file and the statements that run keep every value.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar

from tablectl.attributes.policy import HIDDEN, SECRET_KEYS, MaskedKeys, Policy
from tablectl.attributes.retention import span_text
from tablectl.delta.credentials import scrub
from tablectl.delta.names import quote_text
from tablectl.lint_rules import RULES as CODES
from tablectl.lint_rules.rule import LintRule
from tablectl.model.commit import Commit
from tablectl.model.plan import (
    BesidesSettings,
    Change,
    CommitEffect,
    Finding,
    LintedTable,
    Plan,
    Refusal,
    Statement,
    TablePlan,
    Value,
)
from tablectl.model.safe_text import printable
from tablectl.model.table import CatalogDifference
from tablectl.policies.merge_layers import Declarations
from tablectl.support.json_text import read_json, write_json

if TYPE_CHECKING:  # records of other commands, which a plan does not load
    from tablectl.model.run_report import RunReport, StatementRun, TableRun
    from tablectl.planning.drift import Difference, Drift, TableDrift
    from tablectl.planning.lint import Linted
    from tablectl.planning.undo import PastRun, PastRuns, RunUndo, ValueUndo
    from tablectl.policies.write_live_values import AdoptableValue

_Record = TypeVar("_Record")
_PAIR = re.compile(r"`[^`]*`|('(?:[^'\\]|\\.)*') = ('(?:[^'\\]|\\.)*')|'(?:[^'\\]|\\.)*'", re.DOTALL)
"""The parts of a statement, as ``delta.names`` quotes them: names, settings, other literals."""
_ESCAPE = re.compile(r"\\(u[0-9a-f]{4}|U[0-9a-f]{8}|.)", re.DOTALL)
_CONTROLS = {"n": "\n", "r": "\r", "t": "\t"}
_HARMLESS = frozenset(
    {
        *("mode", "partitionBy", "clusterBy", "zOrderBy", "isManaged", "outputMode", "queryId", "epochId", "batchId"),
        *(
            "numFilesCompacted",
            "auto",
            "predicate",
            "version",
            "timestamp",
            "ifExists",
            "isFull",
            "applyPurge",
            "featureName",
        ),
    }
)
"""Parameters of commits that contain no property values, according to Delta's ``DeltaOperations.scala``."""
EMPTY = "(empty)"
_SHORTEST = 4
"""Values with fewer characters are searched for only as whole words: otherwise they would match everywhere."""
_WRITE_IT = "reports.mask hides its value: write it yourself"
_CREDENTIAL = "it holds a credential: declare it with a variable, such as ${NAME}"
_KEY = re.compile(r"delta\.[A-Za-z]+(?:\.[A-Za-z]+)*")
_WAS = re.compile(r" (?:was|is) ")
_DECLARED = re.compile(": declared ")


@dataclass(frozen=True)
class Mask(MaskedKeys):
    """Creates the records that are shown in place of others. Its patterns are those of ``MaskedKeys``."""

    values: frozenset[str] = frozenset()
    """Values that are hidden wherever they stand: masked keys take them from variables."""

    def value(self, key: str, value: Value) -> Value:
        """A property's value for display. An unset property stays recognizable as unset."""
        return _hidden(value) if self.hides(key) else self.by_value(value)

    def plan(self, plan: Plan) -> Plan:
        """A plan for display."""
        shown = replace(
            plan,
            tables=tuple(map(self.table_plan, plan.tables)),
            failures=self.by_value(plan.failures),
            standing=tuple(map(self.linted, plan.standing)),
            besides=tuple(map(self._besides, plan.besides)),
        )
        found: Plan = _mapped(shown, _Secrets(self.values).hidden) if self.values else shown
        return found

    def run(self, report: RunReport) -> RunReport:
        """A run for display."""
        return self.by_value(replace(report, tables=tuple(map(self._table_run, report.tables))))

    def drift(self, drift: Drift) -> Drift:
        """Drift for display."""
        return self.by_value(replace(drift, tables=tuple(map(self._table_drift, drift.tables))))

    def runs(self, found: PastRuns) -> PastRuns:
        """Earlier runs for display."""
        return replace(found, runs=tuple(map(self._past_run, found.runs)), failures=self.by_value(found.failures))

    def undo(self, undo: RunUndo) -> RunUndo:
        """An undo for display."""
        tables = tuple(
            replace(
                each, commits=tuple(map(self._commit, each.commits)), values=tuple(map(self._value_undo, each.values))
            )
            for each in undo.tables
        )
        return self.by_value(replace(undo, run=self._past_run(undo.run), tables=tables))

    def _past_run(self, run: PastRun) -> PastRun:
        tables = tuple(replace(each, commits=tuple(map(self._commit, each.commits))) for each in run.tables)
        return self.by_value(replace(run, tables=tables))

    def _value_undo(self, value: ValueUndo) -> ValueUndo:
        return replace(value, change=self.change(value.change), found=self.shown(value.change, value.found))

    def named(self, difference: str) -> str:
        """``properties.owner.token: declared a, found b`` without the two values. A key may contain ``: declared``, so
        every place where it can end is tried.
        """
        names = [difference[: each.start()] for each in _DECLARED.finditer(difference)]
        hidden = any(self.hides_value(*_attribute_and_key(name)) for name in names)
        return f"{names[0]}: {HIDDEN}" if hidden else difference

    def lint(self, linted: Linted) -> Linted:
        """Lint results for display."""
        return replace(linted, tables=tuple(map(self.linted, linted.tables)))

    def linted(self, table: LintedTable) -> LintedTable:
        """The findings of a table for display."""
        none = _Secrets(())
        return self.by_value(replace(table, findings=tuple(self._finding(each, none) for each in table.findings)))

    def _besides(self, table: BesidesSettings) -> BesidesSettings:
        findings = tuple(self._finding(each, _Secrets(())) for each in table.findings)
        return self.by_value(replace(table, changes=tuple(map(self.change, table.changes)), findings=findings))

    def by_value(self, record: _Record) -> _Record:
        """The record without ``values`` and without credentials in any of its texts."""
        secrets = _Secrets(self.values)
        shown: _Record = _mapped(
            record, lambda text: scrub(secrets.hidden(text)), lambda text: self.sql(secrets.hidden(text))
        )
        return shown

    def text(self, text: str, declarations: Declarations) -> str:
        """A text of policy files without the hidden values, wherever the files declare them."""
        declared = (layer.declared.items() for layer in declarations.layers())
        hidden = [(key, each.value) for items in declared for key, each in items if each.hidden]
        texts = [(key.startswith("properties."), value) for key, value in hidden if isinstance(value, str)]
        secrets = _Secrets((each for own, each in texts if own), (each for own, each in texts if not own))
        return self.by_value(secrets.hidden(text))

    def sql(self, sql: str) -> str:
        """One of our statements for display."""

        def hide(match: re.Match[str]) -> str:
            if match[1] and self.hides(_text(match[1])):
                return f"{match[1]} = '{_dots(_text(match[2]))}'"
            if match[1]:
                return f"{_scrubbed(match[1])} = {_scrubbed(match[2])}"
            return _scrubbed(match[0]) if match[0].startswith("'") else match[0]

        return _PAIR.sub(hide, sql)

    def table_plan(self, table: TablePlan) -> TablePlan:
        """The plan of one table for display."""
        ids = {(each.attribute, each.key) for each in table.changes} | {
            _attribute_and_key(each.about) for each in table.findings
        }
        # The default hides no key that Delta knows, so nothing else of the table can be about a hidden one.
        keyless = self.patterns in {(), SECRET_KEYS} and not any(self.hides_value(*each) for each in ids)
        formless = all(scrub(text) == text for text in _texts(table))
        if keyless and formless:
            return table
        secrets = self._secrets(table.changes)
        shown = replace(
            table,
            changes=tuple(map(self.change, table.changes)),
            statements=tuple(self._statement(each, secrets) for each in table.statements),
            refusals=tuple(_refusal(each, secrets) for each in table.refusals),
            findings=tuple(self._finding(each, secrets) for each in table.findings),
            undo=tuple(map(self.sql, table.undo)),
            basis=replace(
                table.basis,
                stored=tuple((key, _dots(text) if self.hides(key) else text) for key, text in table.basis.stored),
            ),
        )
        return shown if formless else self.by_value(shown)

    def _finding(self, finding: Finding, secrets: _Secrets) -> Finding:
        """The text of a finding about a masked property may contain its value, verbatim or modified."""
        rule = CODES.get(finding.code)
        if self.hides_value(*_attribute_and_key(finding.about)) or (rule and any(map(self.hides, _keys_of(rule)))):
            return replace(finding, message=rule.title if rule else HIDDEN)
        return replace(finding, message=secrets.hidden(finding.message))

    def _table_drift(self, table: TableDrift) -> TableDrift:
        return replace(
            table,
            differences=tuple(map(self._difference, table.differences)),
            applied=self._commit(table.applied) if table.applied else None,
            catalog=tuple(map(self._catalog, table.catalog)),
        )

    def _catalog(self, difference: CatalogDifference) -> CatalogDifference:
        if not self.hides(difference.what.removeprefix("property ")):
            return difference
        return replace(difference, catalog=_hidden(difference.catalog), log=_hidden(difference.log))

    def _difference(self, difference: Difference) -> Difference:
        change, origin = difference.change, difference.origin
        shown = replace(
            origin,
            commit=self._commit(origin.commit) if origin.commit else None,
            was=self._was(change, origin.was),
        )
        return replace(difference, change=self.change(change), origin=shown)

    def _was(self, change: Change, was: Value) -> Value:
        """The value before a difference. It says whether that was the declared one."""
        shown = self.shown(change, was)
        return f"{shown} (as declared)" if shown == HIDDEN and was == change.after else shown

    def change(self, change: Change) -> Change:
        """One change for display."""
        before, after = self.shown(change, change.before), self.shown(change, change.after)
        if after == before and after not in {change.after, HIDDEN, EMPTY} and isinstance(after, str):
            after += " (changed)" if change.after != change.before else " (unchanged)"
        elif change.after == change.before and after == HIDDEN:
            after = "unchanged"
        return replace(change, before=before, after=after, via=tuple(self.shown(change, each) for each in change.via))

    def left(self, wishes: Iterable[AdoptableValue]) -> tuple[AdoptableValue, ...]:
        """The masked ones of some values for policies, for display: people write them themselves."""
        return tuple(
            replace(
                each,
                value=self._shown(each.attribute, each.key, each.value),
                reason=_WRITE_IT if self.hides_value(each.attribute, each.key) else _CREDENTIAL,
            )
            for each in wishes
            if self.withholds(each.attribute, each.key, each.value)
        )

    def withholds(self, attribute: str, key: str, value: Value) -> bool:
        """Whether a value is not written into a file that people commit: its key is masked, or it holds a secret."""
        return self.hides_value(attribute, key) or self.by_value(value) != value

    def shown(self, change: Change, value: Value) -> Value:
        """A value of what a change is about, for display."""
        return self._shown(change.attribute, change.key, value)

    def _shown(self, attribute: str, key: str, value: Value) -> Value:
        return _hidden(value) if self.hides_value(attribute, key) else self.by_value(value)

    def _secrets(self, changes: Iterable[Change]) -> _Secrets:
        """The values of masked keys, and the texts with credentials: a message can repeat them as it quotes them."""
        told = [(each, self.hides_value(each.attribute, each.key)) for each in changes]
        return _Secrets(
            (text for each, hidden in told if each.key for text in _values(each) if hidden or scrub(text) != text),
            (text for each, hidden in told if hidden and not each.key for text in _values(each)),
        )

    def _commit(self, commit: Commit) -> Commit:
        """Commits repeat the properties that they set: only known parameters are shown."""
        return replace(
            commit, parameters={name: self._parameter(name, text) for name, text in commit.parameters.items()}
        )

    def _parameter(self, name: str, text: str) -> str:
        """Delta writes properties as a JSON object. What is neither that nor known to be harmless is hidden."""
        if name in _HARMLESS:
            return text
        try:
            values = read_json(text)
        except ValueError:
            return HIDDEN
        if not isinstance(values, dict):
            return HIDDEN
        shown = {key: HIDDEN if self.hides(key) else self.by_value(each) for key, each in values.items()}
        return write_json(shown, ascii=False, spaces=True)

    def _statement(self, statement: Statement, secrets: _Secrets) -> Statement:
        sets = tuple((key, _dots(value) if self.hides(key) else value) for key, value in statement.effect.sets)
        effect: CommitEffect = replace(statement.effect, sets=sets)
        return replace(
            statement,
            sql=self.sql(statement.sql),
            undo=tuple(map(self.sql, statement.undo)),
            reason=secrets.hidden(statement.reason),
            fails=secrets.hidden(statement.fails),
            undo_note=secrets.hidden(statement.undo_note),
            effect=effect,
            implies=tuple(map(self._implied, statement.implies)),
        )

    def _implied(self, words: str) -> str:
        """``column_mapping: name``."""
        attribute, mark, _ = words.partition(": ")
        return f"{attribute}{mark}{HIDDEN}" if self.hides_value(attribute, "") else words

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
            value = _text(match[2]) if match[1] else ""
            if value and (self.hides(_text(match[1])) or scrub(value) != value):
                yield value

    def _said(self, message: str) -> str:
        """``properties.owner.token was a and is b`` shows values that were not declared: cut before them."""
        for match in re.finditer(r"properties\.", message):
            words = _WAS.search(message, match.end())
            if words and self.hides(message[match.end() : words.start()]):
                return f"{message[: words.start()]}{words[0]}{HIDDEN}"
        return message


class _Secrets:
    """Values to find in prose: an engine repeats the values that it rejects. Short values, and ``words``, are found
    only as whole words.
    """

    def __init__(self, values: Iterable[str], words: Iterable[str] = ()) -> None:
        forms = ((value, printable(value), quote_text(value)[1:-1], span_text(value)) for value in values if value)
        found = {form for each in forms for form in each if form}
        own = {each for each in found if len(each) < _SHORTEST} | {each for each in words if each}
        parts = [
            (rf"(?<!\w){re.escape(each)}(?!\w)" if each in own else re.escape(each))
            for each in sorted(found | own, key=len, reverse=True)
        ]
        self._found = re.compile("|".join(parts)) if parts else None

    def hidden(self, text: str) -> str:
        return self._found.sub(HIDDEN, text) if self._found else text


_WORDS = frozenset({"severity", "code"})
"""Fields with words of ours, which reports look up."""
_STATEMENTS = frozenset({"sql", "undo"})
"""Fields with statements: a credential is looked for in each literal, whose quotes and escapes are those of SQL."""


def _dots(value: str | tuple[str, ...]) -> str:
    """What is shown in place of a masked value. People look for one that is empty by mistake."""
    return HIDDEN if value else EMPTY


def _hidden(value: Value) -> str | None:
    return None if value is None else _dots(value)


def _scrubbed(literal: str) -> str:
    """A literal of SQL without the credentials in its text."""
    text = _text(literal)
    shown = scrub(text)
    return literal if shown == text else quote_text(shown)


def _texts(table: TablePlan) -> Iterator[str]:
    """The texts of a plan with values that strangers wrote. What else a plan holds follows from them."""
    for change in table.changes:
        yield from _values(change)
    yield from (text for _, text in table.basis.stored)
    yield from (each.message for each in table.findings)
    for refusal in table.refusals:
        yield from (refusal.reason, refusal.fix)


def _mapped(value: Any, change: Callable[[str], str], sql: Callable[[str], str] | None = None) -> Any:
    """A record with each text in it changed. ``sql`` changes statements."""
    if type(value) is str:
        return change(value)
    if isinstance(value, tuple):
        return tuple(_mapped(each, change, sql) for each in value)
    if isinstance(value, Mapping):
        return {_mapped(key, change): _mapped(each, change, sql) for key, each in value.items()}
    if is_dataclass(value) and not isinstance(value, type | Policy):  # no report shows a whole policy
        found = ((each.name, getattr(value, each.name)) for each in fields(value) if each.name not in _WORDS)
        changed = {
            name: new
            for name, old in found
            if (new := _mapped(old, (sql or change) if name in _STATEMENTS else change, sql)) != old
        }
        return replace(value, **changed) if changed else value
    return value


def _attribute_and_key(change: str) -> tuple[str, str]:
    """The two parts of the id of a change."""
    attribute, _, key = change.partition(".")
    return attribute, key


def _keys_of(rule: LintRule) -> Iterable[str]:
    """The properties that a rule is about, according to the words of its page."""
    return _KEY.findall(f"{rule.breaks} {rule.why} {rule.fix}")


def _values(change: Change) -> Iterator[str]:
    for value in (change.before, change.after, *change.via):
        if isinstance(value, str):
            yield value
        else:
            yield from value or ()


def _refusal(refusal: Refusal, secrets: _Secrets) -> Refusal:
    return replace(refusal, reason=secrets.hidden(refusal.reason), fix=secrets.hidden(refusal.fix))


def _text(literal: str) -> str:
    """The string of a literal, as ``model.sql.quote_text`` wrote it."""

    def plain(match: re.Match[str]) -> str:
        found = match[1]
        return chr(int(found[1:], 16)) if len(found) > 1 else _CONTROLS.get(found, found)

    return _ESCAPE.sub(plain, literal[1:-1])
