"""The phase of a statement, and which concurrent writes fail: both follow from the commits it makes (docs/window.md).

The conflict rules are asked for every writer that the table's commits and policy give reason to expect. A commit is
free when all of them continue; it belongs to the rewrite phase when it rewrites files and every append continues.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tablectl.conflicts.delta_spark_rules import RELEASES
from tablectl.conflicts.expected_writers import (
    ExpectedWriters,
    WriterProfile,
    declared_clients,
    evidence_text,
    expected_writers,
    expects_unknown,
)
from tablectl.conflicts.rules import decide_all
from tablectl.conflicts.transactions import ConflictOutcome
from tablectl.delta.client_families import UNKNOWN
from tablectl.delta.dialects import dialect_of
from tablectl.delta.protocol import Client
from tablectl.model.commit_contents import CommittedTransaction
from tablectl.model.plan import Basis, Phase

_NO_WRITER = "the table's history names no writer, so every concurrent write may conflict"
_MORE_WRITERS = (
    "not all commits of the last 30 days were read, so that another client may write this table, and tablectl assumes "
    "the strictest conflict checks; to change that, declare its clients under `clients`"
)
_IN_CATALOG = "it changes the catalog's entry of the table, which no documented rule about conflicts covers"
_NOBODY_SAYS = "unknown: no source says whether concurrent writes fail"
_UNDOCUMENTED = "an undocumented error"


@dataclass(frozen=True, slots=True)
class PhaseVerdict:
    """A phase, why, and which concurrent writes would fail if they did not wait."""

    phase: Phase
    reason: str
    fails: str = ""


@dataclass(frozen=True, slots=True)
class Forecast:
    """The outcome of one writer that is in flight while a statement runs."""

    writer: WriterProfile
    outcome: ConflictOutcome


def phase_of(made: Sequence[CommittedTransaction], basis: Basis, dialect: str) -> PhaseVerdict:
    """The phase in which a statement with these commits may run on a table."""
    if not made:
        return PhaseVerdict(Phase.CLOSED, _IN_CATALOG, _NOBODY_SAYS)
    forecasts = forecast(made, basis, dialect)
    failing = [each for each in forecasts if not each.outcome.succeeds]
    phase = _phase(made, forecasts)
    if phase is Phase.FREE:
        return PhaseVerdict(phase, _why_free(made, basis))
    # Who fails and how: ``all concurrent writes except OPTIMIZE fail once (MetadataChangedException)``
    ways: dict[str, list[str]] = {each.writer.name: [] for each in forecasts}
    for each in forecasts:
        if not each.outcome.succeeds:
            conflict, client = each.outcome.conflict, each.writer.current.client
            ways[each.writer.name].append(conflict.raised_by(client) if conflict else _UNDOCUMENTED)
    groups: dict[str, list[str]] = {}
    for name, ends in ways.items():
        if ends:
            groups.setdefault(" or ".join(dict.fromkeys(ends)), []).append(name)
    fails = "; ".join(f"{_who(names, list(ways))} once ({ends})" for ends, names in groups.items())
    if phase is Phase.REWRITE:
        return PhaseVerdict(phase, "it rewrites data files without changing rows: appends do not conflict", fails)
    return PhaseVerdict(phase, _why_closed(made, failing, basis, dialect), fails)


def depends_on_writers(made: Sequence[CommittedTransaction], basis: Basis, dialect: str) -> bool:
    """Whether the phase could be another one if further clients wrote the table, or wrote it in other ways."""
    known = ExpectedWriters.of(basis, dialect)
    return _phase(made, _forecast(tuple(made), known)) is not _phase(made, _forecast(tuple(made), known.strictest()))


def _phase(made: Sequence[CommittedTransaction], forecasts: Sequence[Forecast]) -> Phase:
    failing = [each for each in forecasts if not each.outcome.succeeds]
    if not failing:
        return Phase.FREE
    if any(each.removed for each in made) and not any(each.writer.appends for each in failing):
        return Phase.REWRITE
    return Phase.CLOSED


def forecast(made: Sequence[CommittedTransaction], basis: Basis, dialect: str) -> tuple[Forecast, ...]:
    """What a statement with these commits does to each writer that may be in flight on the table, client by client."""
    return _forecast(tuple(made), ExpectedWriters.of(basis, dialect))


@lru_cache(maxsize=1024)
def _forecast(made: tuple[CommittedTransaction, ...], expected: ExpectedWriters) -> tuple[Forecast, ...]:
    """Computed once for all similar tables of a lake: the rules take longer than the rest of planning a table."""
    return tuple(Forecast(writer, decide_all(made, writer.current)) for writer in expected_writers(expected))


def _why_free(made: Sequence[CommittedTransaction], basis: Basis) -> str:
    """The condition under which a statement is safe: it holds for the writers that are known."""
    known = evidence_text(basis)
    if all(committed.metadata is None and committed.protocol is None for committed in made):
        return f"only the clustering domain changes, which conflicts with no write by the known writers: {known}"
    return f"the known writers adopt this change and continue: {known}"


def _why_closed(made: Sequence[CommittedTransaction], failing: Sequence[Forecast], basis: Basis, dialect: str) -> str:
    """The most telling failure: the dialect's, one of every client, one of this table, one of a client."""
    first = failing[0]
    client = first.writer.current.client
    if client.family is dialect_of(dialect).runtime:
        return first.outcome.reason
    if expects_unknown(basis):
        known = replace(basis, evidence=replace(basis.evidence, cut=False))
        if all(each.outcome.succeeds for each in _forecast(tuple(made), ExpectedWriters.of(known, dialect))):
            return _MORE_WRITERS
    telling = {each.writer.because: each.writer for each in reversed(failing)}
    for because in sorted(telling):
        newest = decide_all(made, replace(telling[because].current, client=RELEASES[-1]))
        if not newest.succeeds:
            return f"{because}: {newest.reason}" if because else newest.reason
    if not basis.clients and not basis.options.clients:
        return _NO_WRITER
    if client in declared_clients(basis) and client not in basis.client_list():
        return f"{_declared_text(client)}: {first.outcome.reason}"
    if client.family is UNKNOWN:
        return "an unknown client writes this table; tablectl assumes the strictest conflict checks"
    return f"{client.text()} writes this table: {first.outcome.reason}"


def _declared_text(client: Client) -> str:
    who = "a client whose conflict checks are not documented" if client.family is UNKNOWN else client.text()
    return f"{who} may write this table by the policy's `clients`"


def _who(names: list[str], everyone: list[str]) -> str:
    others = [name for name in everyone if name not in names]
    if not others:
        return "all concurrent writes fail"
    if len(others) == 1 and len(names) > 1:
        return f"all concurrent writes except {others[0]} fail"
    if len(names) == 1:
        return f"concurrent {names[0]} fails"
    return f"concurrent {', '.join(names[:-1])} and {names[-1]} fail"
