"""How often something happens that happens regularly."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

LATE = 2
"""What happens regularly is late after so many of its usual gaps."""
_LEAST_TIMES = 3
"""Fewer times have no usual gap."""
_USUAL = 0.9
"""The share of the gaps that are not longer than the usual one: a nightly pause is not unusual."""


def usual_gap(times: Iterable[float]) -> float | None:
    """The gap that nine in ten gaps between some moments do not exceed; ``None`` if there are too few moments."""
    ordered = sorted(times)
    gaps = sorted(later - earlier for earlier, later in pairwise(ordered))
    return gaps[int(len(gaps) * _USUAL)] if len(ordered) >= _LEAST_TIMES else None
