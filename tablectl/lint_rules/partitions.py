"""Rules about too many or too small partitions. They need the layout, and reading it takes the whole log."""

from __future__ import annotations

from tablectl.lint_rules.rule import Found, LintedState, LintRule

MANY_VALUES = 10_000
FEW_PARTITIONS = 50
SMALL = 100_000_000
"""A partition with fewer bytes is tiny. Delta's guide recommends ten times as much."""
_BEST_PRACTICES = "docs.delta.io/best-practices, as of Delta 4.4"


def _partition_cardinality(table: LintedState) -> Found:
    layout = table.live and table.live.layout
    for column, count in layout.values if layout else ():
        if count >= MANY_VALUES:
            yield f"the partition column {column} has {count:,} values", "partitioning"


PARTITION_CARDINALITY = LintRule(
    code="L007",
    name="PartitionCardinality",
    severity="warning",
    title="A partition column of high cardinality",
    breaks="Each value is a directory with files of its own: planning, listing and the log grow with the values, "
    "and every write makes at least one file for each value that it touches.",
    why="10,000 values and more were found in the log.",
    fix="Partition by something coarser (a date instead of an id), or cluster by the column instead: "
    "`partitioning: none` and `clustering: [...]` with `rewrite: allowed`.",
    source=f"{_BEST_PRACTICES}; D60",
    seen=("lint",),
    check=_partition_cardinality,
)


def _tiny_partitions(table: LintedState) -> Found:
    layout = table.live and table.live.layout
    if layout and layout.partitions >= FEW_PARTITIONS and layout.median < SMALL:
        size = f"{layout.median / 1e6:.1f} MB" if layout.median >= 100_000 else f"{layout.median / 1e3:.1f} kB"
        yield f"{layout.partitions:,} partitions, half of which hold at most {size}", "partitioning"


TINY_PARTITIONS = LintRule(
    code="L008",
    name="TinyPartitions",
    severity="warning",
    title="Tiny partitions",
    breaks="Many small files: queries spend their time in opening them, and OPTIMIZE cannot join files of two "
    "partitions.",
    why="Of at least 50 partitions, half hold less than 100 MB each. Delta's guide asks for 1 GB a partition.",
    fix="Partition by something coarser, or cluster instead of partitioning.",
    source=_BEST_PRACTICES,
    seen=("lint",),
    check=_tiny_partitions,
)
