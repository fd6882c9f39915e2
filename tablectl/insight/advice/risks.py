"""What is wrong or risky in a table: the findings of lint, the clients that are locked out, and the advice, each with
the policy that mends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tablectl.delta.clients import newest_locked_out
from tablectl.delta.protocol import Protocol
from tablectl.insight.advice.advise import advise, planned_with
from tablectl.insight.advice.facts import Advice, Benefit, Declared, TableFacts
from tablectl.lint_rules import RULES
from tablectl.lint_rules.rule import HARMS, Harm, LintedState
from tablectl.model.errors import ExitCode
from tablectl.model.plan import Finding, Severity, TableFailure, TablePlan
from tablectl.model.report_methods import ReportMethods
from tablectl.model.text import listed, size_text
from tablectl.support.frozen import frozen

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


@frozen(kw_only=True)
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


@frozen(kw_only=True)
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
) -> tuple[Risk, ...]:
    """The risks of a table, the worst first. ``findings`` are those of lint on ``state``."""
    advice, _ = advise(facts, masked)
    found = [
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
