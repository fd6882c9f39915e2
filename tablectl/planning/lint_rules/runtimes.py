"""What the engine's Databricks Runtime has, and what predictive optimization does by itself."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.attributes.clustering import CLUSTERED_DATA
from tablectl.delta.databricks_runtimes import can
from tablectl.delta.dialects import dialect_of
from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding
from tablectl.planning.runtime_needs import needs_of_policy


def runtime_too_old(subject: LintedState) -> Iterator[RuleFinding]:
    """D002: a declaration needs a newer runtime than the engine's."""
    if subject.runtime is None:
        return
    for about, known in needs_of_policy(subject.declared, truncates=subject.truncates):
        if can(subject.runtime, known) is False:
            text = f"{known.form} needs Databricks Runtime {known.first}, and the engine has {subject.runtime.text}"
            yield RuleFinding("D002", f"{text} ({known.cited})", about)


def runtime_unknown(subject: LintedState) -> Iterator[RuleFinding]:
    """D003: no source says which runtime has what a declaration needs."""
    if not dialect_of(subject.dialect).catalog_settings:
        return
    for about, known in needs_of_policy(subject.declared, truncates=subject.truncates):
        if known.since is None:
            yield RuleFinding("D003", f"no source says which Databricks Runtime has {known.form}", about)


def waits_for_managed(subject: LintedState) -> Iterator[RuleFinding]:
    """D005: the table becomes a managed one, and what only managed tables have is left to the next plan."""
    declared = subject.declared.declared()
    if "managed" not in subject.changed or declared.get("managed") != "true":
        return
    waiting = [name for name in ("predictive_optimization", "clustering") if _waits(subject, name)]
    if waiting:
        text = f"after the table has moved, the next plan makes the change of {' and '.join(waiting)}"
        yield RuleFinding("D005", text, waiting[0])


def _waits(subject: LintedState, name: str) -> bool:
    declared = subject.declared.declared().get(name)
    return declared is not None and name not in subject.changed and (name != "clustering" or declared == "auto")


def left_to_optimization(subject: LintedState) -> Iterator[RuleFinding]:
    """D004: the policy asks for OPTIMIZE, and predictive optimization runs it."""
    if subject.optimize == "never" or subject.clustering in {None, "none"}:
        return
    entry = subject.live.entry if subject.live else None
    own = subject.declared.predictive_optimization
    if own == "enabled" or (own != "disabled" and entry is not None and entry.optimized is True):
        text = "no OPTIMIZE is planned: predictive optimization clusters the data of this table"
        yield RuleFinding("D004", text, CLUSTERED_DATA.partition(".")[0])
