"""Findings: facts about a table that a reviewer should know in addition to its statements. ``lint_rules`` has the
rules.

``validate`` checks policies alone, ``lint`` all tables. ``plan`` checks tables that change, and names errors on others.
Findings that follow from the protocol are derived again when a plan is loaded. Findings that follow from a table's
history are not: like refusals, they are protected by the plan's digest.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from types import MappingProxyType

from pydantic import computed_field

from tablectl.delta.names import TableName, column_text
from tablectl.lint_rules import DEFAULT_SEVERITIES, RULES, Severities
from tablectl.lint_rules.rule import LintedState, RuleFinding, Seen
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Change, Finding, LintedTable, Refusal, TableFailure
from tablectl.model.safe_text import printable
from tablectl.model.table import LiveTable
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.own_rules import FAILED, OwnRule, TableToLint


@dataclass(frozen=True, slots=True)
class Linted:
    """The result of ``tablectl lint``."""

    tables: tuple[LintedTable, ...]
    """Every checked table, by name."""
    failures: tuple[TableFailure, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    format: int = 2

    @computed_field
    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 3 if a finding is an error, otherwise 0."""
        wrong = any(each.severity == "error" for table in self.tables for each in table.findings)
        return ExitCode.ERROR if self.failures else ExitCode.REFUSED if wrong else ExitCode.DONE


def lint(
    state: LintedState, table: TableName, seen: Seen, severities: Severities = DEFAULT_SEVERITIES
) -> tuple[Finding, ...]:
    """The findings of a command on a table or on its policy."""
    checks = ((rule.code, rule.check) for rule in RULES.values() if rule.check and seen in rule.seen)
    found = [RuleFinding(code, *each) for code, check in checks for each in check(state)]
    if state.live is not None:
        found += [RuleFinding(code, message) for code, message in severities.own(state.live)]
    return graded(found, table, severities)


def graded(found: Iterable[RuleFinding], table: TableName, severities: Severities) -> tuple[Finding, ...]:
    """The findings with the severities that the repository configures."""
    made = []
    for each in found:
        severity, reason = severities.of(each.code, table)
        made.append(Finding(code=each.code, severity=severity, message=each.message, about=each.about, reason=reason))
    return tuple(made)


_OWN_FIX = "change the table or its policy as the rule says, or set another severity in `lint:`"


def _clause(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:].removesuffix('.')}"


def refused_by(findings: Sequence[Finding], changes: Sequence[Change]) -> tuple[Refusal, ...]:
    """A refusal for each finding with severity error. Its table is left out of the apply."""
    return tuple(
        Refusal(
            change=each.about or changes[0].id,
            reason=each.message,
            fix=_clause(RULES[each.code].fix) if each.code in RULES else _OWN_FIX,
            condition=each.code,
        )
        for each in findings
        if each.severity == "error"
    )


MOST_FINDINGS = 20
"""The findings of one rule on one table. Further ones are left out."""
LONGEST = 500


def with_own_rules(severities: Severities, rules: Sequence[OwnRule], spec: TableSpec) -> Severities:
    """The severities of a table's findings, with the rules that check it."""
    return replace(severities, own=partial(own_findings, rules, spec))


def own_findings(rules: Sequence[OwnRule], spec: TableSpec, live: LiveTable) -> Iterator[tuple[str, str]]:
    """The code and the message of each finding of the rules on a table."""
    table = table_to_lint(spec, live)
    for rule in rules:
        yield from _findings(rule, table)


def table_to_lint(spec: TableSpec, live: LiveTable) -> TableToLint:
    """The table as rules see it. It cannot be changed."""
    declared = {f"{name}.{key}" if key else name: value for name, key, value in spec.policy.values()}
    return TableToLint(
        name=spec.name.text,
        location=live.location,
        declared=MappingProxyType(declared),
        properties=MappingProxyType(dict(live.properties)),
        columns=MappingProxyType({each.name: each.type for each in live.schema.fields}),
        partitioned_by=tuple(live.partition_columns),
        clustered_by=tuple(map(column_text, live.clustering or ())),
        features=frozenset(live.protocol.features),
        owner=spec.owner,
        tags=tuple(spec.tags),
    )


def _findings(rule: OwnRule, table: TableToLint) -> Iterator[tuple[str, str]]:
    if rule.check is None:
        yield FAILED, _message(f"the rule {rule.code} of {rule.package} cannot be loaded: {rule.trouble}")
        return
    try:
        found = rule.check(table)
        texts = [found] if isinstance(found, str) else list(islice(found or (), MOST_FINDINGS + 1))
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of others: whatever it raises is reported
        yield FAILED, _message(f"the rule {rule.code} of {rule.package} failed: {type(error).__name__}: {error}")
        return
    unchecked: list[object] = list(texts[:MOST_FINDINGS])
    for text in unchecked:
        if isinstance(text, str):
            yield rule.code, _message(text)
        else:
            yield FAILED, f"the rule {rule.code} of {rule.package} returned {type(text).__name__} instead of text"
    if len(texts) > MOST_FINDINGS:
        yield rule.code, f"more than {MOST_FINDINGS} findings; further ones are left out"


def _message(text: str) -> str:
    shown = printable(" ".join(text.split()))
    return shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
