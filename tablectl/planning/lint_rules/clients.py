"""The age of the data about a table's clients."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from tablectl.delta.clients import ClientData, find_client, find_engine
from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding

OLD_DAYS = 180
_DAY = 86_400_000
_EPOCH = date(1970, 1, 1)


def data_is_old(subject: LintedState) -> Iterator[RuleFinding]:
    """L018: the data about a client is old. The newest commit's timestamp is the current time, so that equal logs give
    equal findings.
    """
    now = max((each.timestamp for each in subject.history), default=0) // _DAY
    for data in _clients(subject):
        age = now - (date.fromisoformat(data.checked) - _EPOCH).days
        if age > OLD_DAYS:
            yield RuleFinding(
                "L018", f"what is known of {data.name} is of {data.checked}, {age} days before the last commit"
            )


def _clients(subject: LintedState) -> list[ClientData]:
    named = [find_client(name) for name in subject.clients]
    seen = [find_engine(each.client.engine) for each in subject.history]
    return sorted({each.name: each for each in (*named, *seen) if each}.values(), key=lambda data: data.name)
