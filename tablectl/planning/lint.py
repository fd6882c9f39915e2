"""Findings: facts about a table that a reviewer should know in addition to its statements. ``model.lint_rules`` has the
codes and their documentation.

``validate`` checks policies alone, ``plan`` checks tables that change, ``lint`` checks all tables. Findings that follow
from the protocol are derived again when a plan is loaded. Findings that follow from a table's history are not: like
refusals, they are protected by the plan's digest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.json_text import in_json
from tablectl.model.errors import ExitCode
from tablectl.model.lint_rules import DEFAULT_SEVERITIES, RULES, Seen, Severities
from tablectl.model.plan import Change, Finding, Refusal, TableFailure
from tablectl.planning.lint_rules import clients, partitions, runtimes, settings, writers
from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding


@frozen
class LintedTable:
    """The findings on one table."""

    name: str
    findings: tuple[Finding, ...]


@frozen
class Linted:
    """The result of ``tablectl lint``."""

    tables: tuple[LintedTable, ...]
    """Every checked table, by name."""
    failures: tuple[TableFailure, ...] = ()
    unmatched: tuple[str, ...] = ()
    """Patterns that match no live table."""
    format: int = 2

    @property
    @in_json
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 3 if a finding is an error, otherwise 0."""
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
    settings.indexed_count_ignored,
    settings.time_travel_shorter_than_log,
    settings.log_short_for_streams,
    settings.text_that_clients_ignore,
    runtimes.runtime_too_old,
    runtimes.runtime_unknown,
    runtimes.left_to_optimization,
    runtimes.waits_for_managed,
)
"""Every rule, in the order of the codes."""


def lint(
    subject: LintedState, table: TableName, seen: Seen, severities: Severities = DEFAULT_SEVERITIES
) -> tuple[Finding, ...]:
    """The findings of a command on a table or on its policy."""
    found = [each for rule in CHECKS for each in rule(subject) if seen in RULES[each.code].seen]
    if subject.live is not None:
        found += [RuleFinding(code, message) for code, message in severities.own(subject.live)]
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
