"""How to avoid a conflict: the rules are applied to the same pair again, with one fact changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tablectl.conflicts.rules import rules_of
from tablectl.conflicts.rules.databricks import NOT_DOCUMENTED, row_level
from tablectl.conflicts.transactions import Level
from tablectl.insight.matrix.context import LEVEL, VECTORS, ConflictContext
from tablectl.insight.matrix.matrix import MatrixCell, decide_pair
from tablectl.insight.matrix.operations import OPERATIONS, OperationGroup, TableOperation, operation

BY_APPLY = "run it with `tablectl apply`: guarded writers wait for it"
IN_TURN = "run one after the other, or retry the one that fails (tablectl.retry_on_conflict)"
"""The fix that always works; it is not repeated for each pair."""
_BY_TABLECTL = frozenset(
    each.key
    for each in OPERATIONS
    if each.key in {"set", "unset", "isolation", "vectors-on", "vectors-off", "cluster", "purge"}
    or each.key.startswith(("checkpoints-", "timestamps-"))
)
"""Changes that a policy can declare, so that an apply makes them in its window."""


def fixes_for(cell: MatrixCell, setting: ConflictContext) -> tuple[str, ...]:
    """The changes with which the current transaction would commit, the least intrusive first.

    Empty if it commits already, and if only running one after the other helps.
    """
    return () if cell.overlapping.succeeds else tuple(_found(cell, setting))


def _found(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    if cell.separate.succeeds:
        yield _separate(cell, setting)
    elif not setting.partitioned and not setting.clustered:
        split = replace(setting, partitioned=True)
        if _fit(cell, split) and decide_pair(split, cell.committed, cell.current).separate.succeeds:
            yield "partition by a column that both filter by, and name it with literals in both conditions"
    plain = (_without_zorder(cell.committed), _without_zorder(cell.current))
    if plain != (cell.committed, cell.current) and decide_pair(setting, *plain).overlapping.succeeds:
        yield "remove ZORDER BY"
    yield from _newer(cell, setting)
    if setting.client.family.row_level:
        yield from _on_databricks(cell, setting)
    if cell.committed.key in _BY_TABLECTL:
        yield BY_APPLY


def _separate(cell: MatrixCell, setting: ConflictContext) -> str:
    if cell.current.key == cell.committed.key == "stream":
        return "never run two queries on one checkpoint"
    if "restore" in (cell.current.key, cell.committed.key):
        return "restore a version with the same schema and settings"
    if setting.partitioned:
        return "name the partition columns with literals in both conditions, so that they use different partitions"
    return "make the two use different files"


def _without_zorder(each: TableOperation) -> TableOperation:
    return operation("optimize") if each.key == "zorder" else each


def _newer(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    rules = rules_of(setting.client)
    for release in rules.releases if rules else ():
        if release.version > setting.client.version[:2]:
            then = replace(setting, client=release)
            if decide_pair(then, cell.committed, cell.current).overlapping.succeeds:
                yield f"upgrade the writer that fails to {release.text()}"
                return


def _on_databricks(cell: MatrixCell, setting: ConflictContext) -> Iterator[str]:
    if setting.level is Level.SERIALIZABLE:
        weaker = setting.with_property(LEVEL, "WriteSerializable")
        if decide_pair(weaker, cell.committed, cell.current).overlapping.succeeds:
            yield "isolation: WriteSerializable"
    if setting.vectors is not True:
        marked = setting.with_property(VECTORS, "true")
        if decide_pair(marked, cell.committed, cell.current).overlapping.succeeds:
            yield "deletion_vectors: enabled"
        elif _by_rows(cell, marked) and not _by_rows(cell, setting):
            yield "deletion_vectors: enabled, after which only rows that both touch conflict"


def _by_rows(cell: MatrixCell, setting: ConflictContext) -> bool:
    if (
        cell.current.group is not OperationGroup.ROWS
        or cell.committed.group is not OperationGroup.ROWS
        or cell.separate.conflict is None
    ):
        return False
    if cell.overlapping.source.startswith(NOT_DOCUMENTED):
        return False  # no rule says that rows would count there
    return all(row_level(each.current(setting))[0] for each in cell.current.transactions(setting, "a"))


def _fit(cell: MatrixCell, setting: ConflictContext) -> bool:
    return cell.current.fits(setting) and cell.committed.fits(setting)
