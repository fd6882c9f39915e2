"""The phase of a statement, and who in flight loses to it: both follow from the commits it makes (docs/window.md).

The conflict rules are asked for every writer that the table's history gives reason to expect. A commit is free when
all of them survive; it belongs to the rewrite phase when it writes files anew and every append survives.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from tablectl.conflicts.expected_writers import ExpectedWriters, WriterProfile, expected_writers
from tablectl.conflicts.rules.decide import decide_all
from tablectl.conflicts.rules.delta_spark import RELEASES
from tablectl.conflicts.statement_commits import commits_of
from tablectl.conflicts.transactions import CommittedTransaction, ConflictOutcome
from tablectl.model.plan import Basis, CommitEffect, Phase

_NO_WRITER = "the table's history names no writer, so none is known to survive it"
_UNDOCUMENTED = "an error that nobody documents"


@dataclass(frozen=True, slots=True)
class PhaseVerdict:
    """A phase, why, and who in flight would fail if nobody waited."""

    phase: Phase
    reason: str
    fails: str = ""


@dataclass(frozen=True, slots=True)
class Forecast:
    """What becomes of one writer that is in flight while a statement runs."""

    writer: WriterProfile
    outcome: ConflictOutcome


def phase_of(effect: CommitEffect, basis: Basis, dialect: str) -> PhaseVerdict:
    """When a commit of this effect may run on a table of this basis."""
    forecasts = forecast(effect, basis, dialect)
    made = commits_of(effect, basis)
    failing = [each for each in forecasts if not each.outcome.survives]
    if not failing:
        return PhaseVerdict(Phase.FREE, _why_free(made, basis))
    casualties = _casualties(forecasts)
    if effect.rewrites_files and not any(each.writer.appends for each in failing):
        return PhaseVerdict(
            Phase.REWRITE, "it writes data files anew, rows unchanged: no append loses to that", casualties
        )
    return PhaseVerdict(Phase.CLOSED, _why_closed(made, failing, basis, dialect), casualties)


def forecast(effect: CommitEffect, basis: Basis, dialect: str) -> tuple[Forecast, ...]:
    """What a statement of this effect does to each writer that may be in flight on the table, client by client."""
    return _forecast(commits_of(effect, basis), ExpectedWriters.of(basis, dialect))


@lru_cache(maxsize=1024)
def _forecast(made: tuple[CommittedTransaction, ...], traffic: ExpectedWriters) -> tuple[Forecast, ...]:
    """Asked once for all tables of a lake that are alike: the rules take longer than all else that plans a table."""
    return tuple(Forecast(writer, decide_all(made, writer.loser)) for writer in expected_writers(traffic))


def _why_free(made: Sequence[CommittedTransaction], basis: Basis) -> str:
    if all(winner.metadata is None and winner.protocol is None for winner in made):
        return "only the clustering domain changes, which no data write in flight loses to"
    clients = ", ".join(client.text() for client in basis.client_list())
    return f"writes in flight adopt this change and go on; its latest writers: {clients}"


def _why_closed(made: Sequence[CommittedTransaction], failing: Sequence[Forecast], basis: Basis, dialect: str) -> str:
    """The most telling of the failures: the dialect's, what nobody survives, what this table adds, what a client is."""
    first = failing[0]
    client = first.writer.loser.client
    if client.engine == dialect:
        return first.outcome.reason
    telling = {each.writer.because: each.writer for each in reversed(failing)}
    for because in sorted(telling):
        newest = decide_all(made, replace(telling[because].loser, client=RELEASES[-1]))
        if not newest.survives:
            return f"{because}: {newest.reason}" if because else newest.reason
    if not basis.clients:
        return _NO_WRITER
    if client.engine == "unknown":
        return "an unknown client writes this table, and counts as the strictest"
    return f"{client.text()} writes this table: {first.outcome.reason}"


def _casualties(forecasts: Sequence[Forecast]) -> str:
    """Who fails and how, in one line: ``every other write in flight but OPTIMIZE, once, with …Exception``."""
    ways: dict[str, list[str]] = {each.writer.name: [] for each in forecasts}
    for each in forecasts:
        if not each.outcome.survives:
            ways[each.writer.name].append(each.outcome.conflict.exception if each.outcome.conflict else _UNDOCUMENTED)
    groups: dict[str, list[str]] = {}
    for name, ends in ways.items():
        if ends:
            groups.setdefault(" or ".join(dict.fromkeys(ends)), []).append(name)
    return "; ".join(f"{_who(names, list(ways))}, once, with {ends}" for ends, names in groups.items())


def _who(names: list[str], everyone: list[str]) -> str:
    others = [name for name in everyone if name not in names]
    if not others:
        return "every other write in flight"
    if len(others) == 1 and len(names) > 1:
        return f"every other write in flight but {others[0]}"
    listed = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    return f"{listed} in flight"
