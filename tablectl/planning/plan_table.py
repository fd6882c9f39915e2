"""Plans one table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tablectl.attributes.policy import Policy, attribute, basis_of
from tablectl.attributes.properties import Properties
from tablectl.conflicts.past_writers import PastWriters, known_jobs, loss_of, past_writers
from tablectl.conflicts.statement_phases import depends_on_writers, phase_of
from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import DOCUMENTED, Capability, Runtime, can, for_property
from tablectl.delta.dialects import dialect_of
from tablectl.lint_rules import DEFAULT_SEVERITIES, Severities
from tablectl.lint_rules.rule import RuleFinding, table_subject
from tablectl.model.catalog_answers import CATALOG_FEATURES
from tablectl.model.commit import Commit
from tablectl.model.expected_loss import (
    DAYS,
    StatementLoss,
    TableLoss,
    failed_writes,
    lost_seconds,
    quietest_hour,
)
from tablectl.model.operations import Operation, Repartition
from tablectl.model.plan import Basis, Change, Overwritten, Phase, ProtocolFact, Refusal, Statement, TablePlan
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.writers_in_history import STAMP
from tablectl.planning.derive_statements import DerivedTable, derive_table, operations_for, refusals_for, refused_table
from tablectl.planning.diff import diff
from tablectl.planning.lint import graded, lint, refused_by
from tablectl.planning.locked_out_clients import (
    added_features,
    broken_writers,
    brought_back,
    partition_findings,
    partition_refusals,
    protocol_findings,
    protocol_refusals,
)
from tablectl.support.json_text import read_json

CONDITION = "DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION"
_MAINTENANCE = "the catalog's owner maintains such tables; leave the setting out of the policy"
_REFUSED = "Delta Spark refuses {} on a catalog-managed table"
_HALF_DROPPED = (
    ", and for deletionVectors only after it has committed UNSET delta.enableDeletionVectors: the table would change "
    "and the feature would stay"
)
_NO_REPLACE = (
    "a catalog-managed table cannot be replaced, and whether an overwrite with other partition columns is allowed is "
    "not documented"
)
_REASONS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "OPTIMIZE": (_REFUSED.format("OPTIMIZE"), _MAINTENANCE),
        "REORG": (_REFUSED.format("REORG"), _MAINTENANCE),
        "UPGRADE UNIFORM": (_REFUSED.format("REORG … UPGRADE UNIFORM"), _MAINTENANCE),
        "DROP FEATURE": (
            _REFUSED.format("DROP FEATURE") + _HALF_DROPPED,
            "leave the setting out of the policy: the catalog's contract wants the feature to stay",
        ),
        "OVERWRITE": (_NO_REPLACE, "create a new table with these partition columns"),
    }
)
"""Verb of a statement → why it is refused, and the fix."""


FIXED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("deletion_vectors", ""): "enabled",
        (Properties.name, keys.CHECKPOINT_POLICY): "v2",
        (Properties.name, keys.IN_COMMIT_TIMESTAMPS): "true",
        (Properties.name, "delta.checkpoint.writeStatsAsJson"): "true",
        (Properties.name, "delta.checkpoint.writeStatsAsStruct"): "true",
    }
)
"""Attribute and key → the value that Unity Catalog requires. It checks them only when a commit carries a protocol, so a
table with another value takes that commit and refuses each later change of its protocol.
"""
_CONTRACT = (
    "Unity Catalog requires `{}` to be {} on every table that it manages. It takes another value, and then refuses "
    "each later change of the table's protocol"
)


def catalog_refusals(
    changes: Sequence[Change], statements: Sequence[Statement], basis: Basis, dialect: str
) -> tuple[Refusal, ...]:
    """One refusal for each change that needs such a statement, about the last one of them, or that the catalog's
    contract forbids; none for a product that runs them.
    """
    protocol = basis.protocol.protocol()
    through_catalog = (protocol.reader_features | protocol.writer_features) & CATALOG_FEATURES
    if not through_catalog or dialect_of(dialect).maintains_managed:
        return ()
    fixed = ((each, FIXED.get((each.attribute, each.key))) for each in changes)
    found = {each.id: _against_contract(each) for each, value in fixed if value not in {None, str(each.after).lower()}}
    for statement in statements:
        if statement.verb in _REASONS:
            reason, fix = _REASONS[statement.verb]
            for change in statement.serves:
                found[change] = Refusal(change=change, reason=reason, fix=fix, condition=CONDITION)
    return tuple(found.values())


def _against_contract(change: Change) -> Refusal:
    reason = _CONTRACT.format(change.key or change.attribute, FIXED[change.attribute, change.key])
    return Refusal(change=change.id, reason=reason, fix="leave the setting out of the policy")


_A_DAY = 86_400.0 - 60
_MOST_JOBS = 5


def fails_writers(policy: Policy, live: LiveTable, dialect: str, options: TableOptions = NO_OPTIONS) -> bool:
    """Whether a statement of a table's plan fails concurrent writes, so that its expected loss matters."""
    changes = diff(policy, live)
    return bool(changes) and changes_fail_writers(changes, live, dialect, options)


def changes_fail_writers(changes: Sequence[Change], live: LiveTable, dialect: str, options: TableOptions) -> bool:
    """As ``fails_writers``, for known changes. False if they are refused anyway."""
    basis = basis_of(live, options)
    planned = operations_for(changes, basis)
    if refusals_for(changes, live, dialect, options, basis, planned):
        return False
    operations = (each.operation for each in planned)
    return any(phase_of(each.commits(basis), basis, dialect).phase is not Phase.FREE for each in operations)


def _without_writes(commits: Sequence[Commit], past: PastWriters | None) -> str:
    """Why no expected loss is known of a table without writers. A writer did not make the first commit."""
    if past is None:
        return "its commits do not say when they were made"
    first = past.period.start * 1000
    made = any(each.version == 0 and each.changes_data and each.timestamp >= first for each in commits)
    return "no writes but the one that made the table" if made else f"no writes in {DAYS} days"


def table_loss(derived: DerivedTable, live: LiveTable, dialect: str) -> TableLoss | None:
    """The expected loss of a table's statements; ``None`` if none of them fails a write, or if its commits were not
    read.
    """
    history = live.writes or live.past
    made = derived.commits() if history else {}
    failing = {each.id: made[each.id] for each in derived.statements if each.fails and each.id in made}
    if history is None or not failing:
        return None
    past = past_writers(history.commits, derived.basis, dialect)
    if past is None or not past.writes:
        return TableLoss(writes=0, since=_since(past), unknown=_without_writes(history.commits, past))
    week = loss_of(past, failing.values())
    return TableLoss(
        writes=past.writes,
        since=_since(past),
        quietest=quietest_hour(week) if past.period.seconds >= _A_DAY else None,
        failed=failed_writes(week),
        seconds=lost_seconds(week),
        jobs=tuple(each.text for each in known_jobs(past, failing.values()))[:_MOST_JOBS],
        statements=tuple(
            StatementLoss(statement=name, failed=failed_writes(alone), seconds=lost_seconds(alone))
            for name, alone in ((name, loss_of(past, [commits])) for name, commits in failing.items())
        ),
    )


def _since(past: PastWriters | None) -> int:
    return round(past.period.start * 1000) if past else 0


def writers_matter(
    policy: Policy, live: LiveTable, dialect: str, options: TableOptions = NO_OPTIONS, *, refused: bool = False
) -> bool:
    """Whether the plan of a table depends on who else writes it: a phase could be another one, or writers that name the
    partition columns could exist. ``refused`` asks for refusals alone.
    """
    changes = diff(policy, live, dialect)
    return bool(changes) and changes_depend_on_writers(changes, live, dialect, options, refused=refused)


def changes_depend_on_writers(
    changes: Sequence[Change], live: LiveTable, dialect: str, options: TableOptions, *, refused: bool = False
) -> bool:
    """As ``writers_matter``, for known changes. False if they are refused anyway."""
    basis = basis_of(live, options)
    planned = operations_for(changes, basis)
    if refusals_for(changes, live, dialect, options, basis, planned):
        return False
    operations = [each.operation for each in planned]
    if any(isinstance(each, Repartition) for each in operations):
        return True
    return not refused and any(depends_on_writers(each.commits(basis), basis, dialect) for each in operations)


def plan_table(
    policy: Policy,
    live: LiveTable,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    severities: Severities = DEFAULT_SEVERITIES,
    runtime: Runtime | None = None,
) -> TablePlan | None:
    """The changes that a policy requires on a live table; ``None`` if there are none. ``runtime`` is the Databricks
    Runtime that makes them, if it is known.

    A table with a refusal keeps its changes, for the reviewer, but has no statements: it is left out as a whole.
    """
    changes = diff(policy, live, dialect)
    if not changes:
        return None
    basis = basis_of(live, options, runtime.text if runtime else "")
    operations = operations_for(changes, basis)
    refusals = (*lock_refusals(changes, options), *refusals_for(changes, live, dialect, options, basis, operations))
    known = (changes, basis, live.name, dialect, operations)
    derived = refused_table(changes, basis, operations, dialect) if refusals else derive_table(*known)
    refusals += (*consent_refusals(derived, dialect), *brought_back(policy, derived))
    subject = table_subject(policy, live, changes, dialect, options=options, runtime=runtime)
    found = graded(derived_findings(derived), live.name, severities) + lint(subject, live.name, "plan", severities)
    refused = {refusal.change for refusal in refusals}
    findings = tuple(each for each in found if not each.about or each.about not in refused)
    refusals += refused_by(findings, changes)
    if refusals:
        derived = derived.refused()
    loss = table_loss(derived, live, dialect)
    if runtime and not refusals and (refusals := runtime_refusals(derived, runtime)):
        derived = derived.refused()
    return TablePlan(
        name=live.name.text,
        location=live.location,
        table_id=live.table_id,
        version=live.version,
        basis=basis,
        changes=changes,
        statements=derived.statements,
        refusals=refusals,
        findings=findings,
        protocol_after=ProtocolFact.of(derived.after),
        features=added_features(derived.before, derived.after),
        undo=derived.undo(live.name),
        loss=loss,
        broken=() if refusals else broken_writers(derived, live),
        overwrites=() if refusals else overwritten(changes, live),
    )


def overwritten(changes: Sequence[Change], live: LiveTable) -> tuple[Overwritten, ...]:
    """The changes of properties that a statement of others set or unset last, by the known commits."""
    found = []
    for change in changes:
        wanted = {key.lower() for key in (change.key, *attribute(change.attribute).keys) if "." in key}
        last = next((each for each in live.known_commits if wanted & set(_named(each))), None)
        if last and not last.user_metadata.startswith(STAMP):
            who = last.source or last.client.text()
            found.append(Overwritten(change=change.id, who=who, at=last.timestamp, version=last.version))
    return tuple(found)


def _named(commit: Commit) -> Iterator[str]:
    """The keys that a ``SET`` or ``UNSET TBLPROPERTIES`` names, in lower case."""
    if commit.operation not in {"SET TBLPROPERTIES", "UNSET TBLPROPERTIES"}:
        return
    try:
        named = read_json(commit.parameters.get("properties", "{}"))
    except ValueError:
        return
    yield from (str(key).lower() for key in named)


def refused_plan(table: TablePlan, refusals: tuple[Refusal, ...]) -> TablePlan:
    """The plan of a table that is refused after all: it keeps its changes, for the reviewer."""
    before = ProtocolFact.of(table.basis.protocol.protocol())
    return replace(
        table, refusals=refusals, statements=(), undo=(), features=(), protocol_after=before, loss=None, broken=()
    )


def lock_refusals(changes: tuple[Change, ...], options: TableOptions) -> tuple[Refusal, ...]:
    """A refusal of each change of a locked table."""
    lock = options.locked
    if lock is None:
        return ()
    fix = f"wait until the lock has ended, or ask {lock.owner} to take `locked` out of the policy"
    return tuple(Refusal(change=change.id, reason=f"the table is {lock.text}", fix=fix) for change in changes)


def consent_refusals(derived: DerivedTable, dialect: str) -> tuple[Refusal, ...]:
    """Refusals that follow from the statements: of what the policy's options do not allow or consent to, and of what
    the product refuses on a catalog-managed table.
    """
    asked = protocol_refusals(derived) + partition_refusals(derived.changes, derived.basis)
    return asked + catalog_refusals(derived.changes, derived.statements, derived.basis, dialect)


def derived_findings(derived: DerivedTable) -> tuple[RuleFinding, ...]:
    """The findings that follow from changes, statements and basis alone: those of ``DERIVED``."""
    found = (*protocol_findings(derived), *partition_findings(derived.changes, derived.basis))
    return (*found, *_unknown_properties(derived), *_unverified(derived))


def _unknown_properties(derived: DerivedTable) -> Iterator[RuleFinding]:
    """P008: keys that tablectl does not know, and that the policy declares all the same."""
    engines = dict(derived.basis.options.engine_properties)
    for change in derived.changes:
        if change.attribute == "properties" and change.key in engines:
            yield RuleFinding(
                "P008", f"unknown to tablectl: {change.key}, which {engines[change.key]} reads", change.id
            )


def _unverified(derived: DerivedTable) -> Iterator[RuleFinding]:
    """D001: forms of statements that are not known to have been run on the product."""
    verbs = list(dict.fromkeys(each.verb for each in derived.statements if each.evidence == DOCUMENTED))
    if verbs:
        yield RuleFinding("D001", f"{DOCUMENTED}: {', '.join(verbs)}")


def runtime_refusals(derived: DerivedTable, runtime: Runtime) -> tuple[Refusal, ...]:
    """A refusal for each change that a runtime cannot make. A capability of which nothing is known refuses nothing."""
    found: dict[str, Refusal] = {}
    for statement, operation in zip(derived.statements, derived.sent, strict=True):
        for known in _needed(operation, statement.effect.sets):
            if can(runtime, known) is False:
                about = [change for change in statement.serves if change.partition(".")[0] == known.feature]
                for change in about or statement.serves:
                    found.setdefault(change, _refusal(change, known, runtime))
    return tuple(found.values())


def _needed(operation: Operation, sets: tuple[tuple[str, str], ...]) -> Iterator[Capability]:
    if operation.form and operation.form.capability:
        yield operation.form.capability
    for key, value in sets:
        yield from for_property(key, value)


def _refusal(change: str, known: Capability, runtime: Runtime) -> Refusal:
    keeps_history = (known.feature, known.action) == ("features", "drop without loss of history")
    other = "; or accept the loss of history with `truncate_history: true`" if keeps_history else ""
    return Refusal(
        change=change,
        reason=f"Databricks Runtime {runtime.text} cannot run it: {known.form} needs {known.first} ({known.cited})",
        fix=f"run it with runtime {known.first} or newer (`engine.runtime`), or leave the setting out{other}",
    )
