"""How old a file may get that no commit names yet, before a VACUUM may delete it.

VACUUM lists the folder of a table, and deletes what its version does not name and what was written longer ago than the
retention. Where it logs, it commits ``VACUUM START`` between the two, and ``VACUUM END`` at the end
(``VacuumCommand.scala`` of Delta 4.4.0).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablectl.delta.keys import DELETED_FILE_RETENTION
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, parse_interval
from tablectl.model.commit import Commit

_START, _END = "VACUUM START", "VACUUM END"
_SPECIFIED = "specifiedRetentionMillis"
_SHORTEST = 3600.0
"""A copy cannot outrun a VACUUM that keeps files for less than these seconds: its files are looked for instead."""


def is_vacuum(commit: Commit) -> bool:
    """Whether a commit is one of the two that a VACUUM makes."""
    return commit.operation in {_START, _END}


def kept_for(properties: Mapping[str, str], vacuums: Iterable[Commit]) -> float:
    """Seconds for which VACUUM keeps a file that no commit names: by the property of the table, or shorter by the
    ``RETAIN`` of a VACUUM in its log.
    """
    kept = _by_property(properties)
    retained = [_retained(each, kept) for each in vacuums if each.operation == _START]
    return min([kept, *(each for each in retained if each >= _SHORTEST)])


def doomed_before(properties: Mapping[str, str], vacuums: Iterable[Commit]) -> float:
    """The time, in seconds since the epoch, before which files are deleted by a VACUUM that has begun and not ended; 0
    without one. ``vacuums`` are in the order of their versions.
    """
    begun, ended = list[float](), 0
    for each in vacuums:
        if each.operation == _START:
            begun.append(each.timestamp / 1000 - _retained(each, _by_property(properties)))
        elif begun:
            ended += 1
        if ended == len(begun):  # of two at a time, nothing tells which one has ended
            begun, ended = [], 0
    return max(begun, default=0.0)


def _retained(start: Commit, kept: float) -> float:
    text = start.parameters.get(_SPECIFIED, "")
    return int(text) / 1000 if text.isascii() and text.isdigit() and len(text) < len(str(2**63)) else kept


def _by_property(properties: Mapping[str, str]) -> float:
    """Delta takes property names in any case, and VACUUM itself fails for a value that it cannot parse."""
    found = next((text for key, text in properties.items() if key.casefold() == DELETED_FILE_RETENTION.casefold()), "")
    try:
        return parse_interval(found or DEFAULT_FILE_RETENTION) / 1e6
    except ValueError:
        return parse_interval(DEFAULT_FILE_RETENTION) / 1e6
