"""``partitioning``: the partition columns, in order. No ALTER changes them (delta.md 1.5): a difference is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablectl.attributes.base import Action, Target
from tablectl.attributes.shape import Shape
from tablectl.model.live import LiveTable
from tablectl.model.names import NameSyntaxError, column_text, parse_column
from tablectl.model.plan import Basis, Change, Refusal, Value


class Partitioning:
    """See the module."""

    name = "partitioning"
    shape = Shape(
        name=name,
        description="Partition columns, in order. A difference from the live table is refused.",
        words=("none",),
        columns=True,
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """The columns as the table spells them, ``none`` where there are none."""
        return tuple(column_text((column,)) for column in live.partition_columns) or "none"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Equal columns in equal order, which is the order of the directories."""
        return _folded(found) == _folded(declared)

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """At most one change, which ``check`` refuses."""
        found = self.read(live, "")
        if isinstance(declared, str | tuple) and not self.agrees(found, declared, ""):
            yield Change(attribute=self.name, before=found, after=declared)

    def check(self, change: Change, live: LiveTable, target: Target) -> Refusal | None:
        """Always: only a rewrite of the whole table changes its partitions."""
        now = f"partitioned by {', '.join(live.partition_columns)}" if live.partition_columns else "not partitioned"
        return Refusal(
            change=change.id,
            reason=f"the table is {now}; Delta changes that only by rewriting the whole table",
            way_out="declare the partitioning that the table has, or rewrite it yourself: "
            "CREATE OR REPLACE TABLE … PARTITIONED BY (…) AS SELECT, which also resets most settings",
            condition="DELTA_UNSUPPORTED_PARTITION_COLUMN_CHANGE",
        )

    def act(self, change: Change, basis: Basis) -> Action:
        """Never called: ``check`` refuses every change."""
        return Action(change, ())


def _folded(value: Value) -> object:
    if not isinstance(value, tuple):
        return value
    try:
        return tuple(parse_column(text)[0].casefold() if len(parse_column(text)) == 1 else text for text in value)
    except NameSyntaxError:
        return value
