"""Findings: what a reviewer should know of a table beyond its statements. Codes and their pages are in ``model.lint``.

A policy alone is looked at by ``validate``, tables that change by ``plan``, all tables by ``lint``. What follows from
the protocol is derived again when a plan is loaded; what follows from a table's history is not, and stands under the
plan's digest like its refusals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from tablectl.delta.names import TableName
from tablectl.model.errors import ExitCode
from tablectl.model.lint_rules import DEFAULT_SEVERITIES, RULES, Seen, Severities
from tablectl.model.plan import Change, Finding, Refusal, TableFailure
from tablectl.planning.lint_rules import clients, partitions, settings, writers
from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding


@dataclass(frozen=True, slots=True)
class LintedTable:
    """One table, and what was found on it."""

    name: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Linted:
    """What ``tablectl lint`` found."""

    tables: tuple[LintedTable, ...]
    """Every table that was looked at, by name."""
    failures: tuple[TableFailure, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""

    @property
    def exit_code(self) -> ExitCode:
        """1 with tables that cannot be read, 3 with a finding that is an error."""
        wrong = any(each.severity == "error" for table in self.tables for each in table.findings)
        return ExitCode.ERROR if self.failures else ExitCode.REFUSED if wrong else ExitCode.DONE


Rule = Callable[[LintedState], Iterator[RuleFinding]]

CHECKS: Sequence[Rule] = (
    settings.clustering_beside_partitioning,
    settings.vectors_beside_manifests,
    settings.vectors_beside_uniform,
    settings.statistics_miss_clustering,
    settings.log_shorter_than_tombstones,
    settings.tombstones_short,
    partitions.partition_cardinality,
    partitions.tiny_partitions,
    writers.serializable_under_appends,
    writers.identity_beside_writers,
    writers.append_only_under_deletes,
    writers.streams_forgotten,
    writers.overwrites_clear_clustering,
    writers.isolation_means_two_things,
    writers.auto_compaction_beside_rewrites,
    settings.log_never_cleaned,
    settings.clustering_rewrites_nothing,
    clients.data_is_old,
)
"""Every rule, in the order of the codes."""


def lint(
    subject: LintedState, table: TableName, seen: Seen, severities: Severities = DEFAULT_SEVERITIES
) -> tuple[Finding, ...]:
    """What a command finds on a table, or in its policy."""
    found = (each for rule in CHECKS for each in rule(subject) if seen in RULES[each.code].seen)
    return graded(found, table, severities)


def graded(found: Iterable[RuleFinding], table: TableName, severities: Severities) -> tuple[Finding, ...]:
    """What was found, as grave as the repository takes it."""
    made = []
    for each in found:
        severity, reason = severities.of(each.code, table)
        made.append(Finding(code=each.code, severity=severity, message=each.message, about=each.about, reason=reason))
    return tuple(made)


def _clause(sentence: str) -> str:
    return f"{sentence[:1].lower()}{sentence[1:].removesuffix('.')}"


def refused_by(findings: Sequence[Finding], changes: Sequence[Change]) -> tuple[Refusal, ...]:
    """A refusal for each finding that the repository takes for an error: its table is left out."""
    return tuple(
        Refusal(
            change=each.about or changes[0].id,
            reason=each.message,
            way_out=_clause(RULES[each.code].way_out),
            condition=each.code,
        )
        for each in findings
        if each.severity == "error"
    )
