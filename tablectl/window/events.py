"""What a run tells whoever watches it: one event for each step of each table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """A step of a run on one table. It is also where a test stops a run."""

    table: str
    """Its name; empty for what is about the whole run."""
    step: str
    """For machines: ``leased``, ``fresh``, ``gate closed``, ``before <id>``, ``after <id>``, ``verify``, …"""
    words: str = ""
    """For people; empty where nobody needs to be told."""
    waited: float | None = None
    """Seconds waited so far, of something that goes on: such an event comes again and again while it lasts."""


Notify = Callable[[Event], None]


def nobody_watches(_event: Event) -> None:
    """The ``Notify`` of a run that nobody watches."""
