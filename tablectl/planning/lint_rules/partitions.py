"""Rules about too many or too small partitions. They need the layout, and reading it takes the whole log."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.planning.lint_rules.linted_state import LintedState, RuleFinding

MANY_VALUES = 10_000
FEW_PARTITIONS = 50
SMALL = 100_000_000
"""A partition with fewer bytes is tiny. Delta's guide recommends ten times as much."""


def partition_cardinality(subject: LintedState) -> Iterator[RuleFinding]:
    """L007: a partition column has too many values."""
    layout = subject.live and subject.live.layout
    for column, count in layout.values if layout else ():
        if count >= MANY_VALUES:
            yield RuleFinding("L007", f"the partition column {column} has {count:,} values", "partitioning")


def tiny_partitions(subject: LintedState) -> Iterator[RuleFinding]:
    """L008: the table has many tiny partitions."""
    layout = subject.live and subject.live.layout
    if layout and layout.partitions >= FEW_PARTITIONS and layout.median < SMALL:
        size = f"{layout.median / 1e6:.1f} MB" if layout.median >= 100_000 else f"{layout.median / 1e3:.1f} kB"
        yield RuleFinding(
            "L008", f"{layout.partitions:,} partitions, half of which hold at most {size}", "partitioning"
        )
