"""``deletion_vectors``: whether deletes write deletion vectors, and whether old ones remain (delta-1.3).

``enabled``: the property is on. ``disabled``: it is off, and vectors may remain. ``purged``: it is off, and the current
version has no vectors. ``dropped``: the protocol does not have the feature. ``purged`` satisfies ``disabled``, and
``dropped`` satisfies both. A table reads ``protected`` if the feature was removed, its checkpoints are protected
instead, and the policy requires history to be deleted, which also ends the protection.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import (
    LOST,
    ChangeTarget,
    Needs,
    PlannedOperation,
    WordAttribute,
    drop_step,
    is_true,
    put_back,
)
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.keys import MANIFEST
from tablectl.delta.protocol import PROTECTION
from tablectl.model.operations import DropFeature, Purge, SetProperties
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

DeletionVectorsValue = Literal["enabled", "disabled", "purged", "dropped"]

BESIDE_MANIFEST = (
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION"
)
FEATURE = "deletionVectors"
PROTECTED = "protected"
_OFF = ("disabled", "purged", PROTECTED, "dropped")
"""The values of a table that writes no vectors, the weakest first. Each satisfies the preceding ones."""
_ICEBERG_KEYS = (keys.iceberg_compat(1), keys.iceberg_compat(2))
"""The versions of Iceberg compatibility that allow no deletion vectors. V3 allows them (delta-1.3)."""


class DeletionVectors(WordAttribute):
    """The attribute ``deletion_vectors``."""

    name = "deletion_vectors"
    value_type = ValueType(
        name=name,
        description="`enabled`: new deletes may write deletion vectors. `disabled`: no new ones. "
        "`purged`: no new ones, and none left in the current version. `dropped`: readers do not need to support them.",
        words=get_args(DeletionVectorsValue),
    )
    keys = (keys.DELETION_VECTORS,)
    contradictions = (("enabled", f"properties.{MANIFEST}", "true"),)

    def read(self, live: LiveTable, key: str) -> Value:
        """``enabled``, ``disabled``, ``purged``, ``protected`` or ``dropped``.

        A table whose protocol never had the feature reads ``dropped``. A table with the feature and an unknown number
        of vectors reads ``disabled``, because a REORG with nothing to purge makes no commit (delta-5).
        """
        if is_true(live.property(keys.DELETION_VECTORS)):
            return "enabled"
        if live.protocol.has(FEATURE):
            return "purged" if live.vectors == 0 else "disabled"
        return PROTECTED if live.truncation and live.protocol.has(PROTECTION) else "dropped"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """``dropped`` satisfies ``purged``, and both satisfy ``disabled``."""
        off = found in _OFF and declared in _OFF and _OFF.index(found) >= _OFF.index(declared)
        return found == declared or off

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        found = self.read(live, "")
        if isinstance(found, str) and isinstance(declared, str) and not self.agrees(found, declared, ""):
            # Whether old vectors remain does not matter for enabling.
            before = "disabled" if declared == "enabled" else found
            # The values of the table between the statements of a change
            states = ("enabled", *_OFF)
            last = {"purged": "disabled", "dropped": PROTECTED if _protected(live) else "purged"}.get(declared)
            yield Change(
                attribute=self.name,
                before=before,
                after=declared,
                via=states[states.index(before) + 1 : states.index(last) + 1] if last else (),
            )

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Readers of symlink manifests and of Iceberg do not support vectors, so Delta rejects vectors there
        (delta-1.3).
        """
        if change.after == "enabled" and is_true(target.property(live, keys.MANIFEST)):
            return Reason(
                reason="the table writes symlink manifests, which cannot say that a row is deleted",
                fix=f"declare {keys.MANIFEST}: false under `properties`, or leave deletion vectors off",
                condition=BESIDE_MANIFEST,
            )
        if change.after == "enabled" and any(is_true(target.property(live, key)) for key in _ICEBERG_KEYS):
            return Reason(
                reason="the table is, or would be, readable as Iceberg, whose readers do not know deletion vectors",
                fix="declare `uniform: none` too, or leave deletion vectors off",
                condition="DELTA_ICEBERG_COMPAT_VIOLATION.DELETION_VECTORS_SHOULD_BE_DISABLED",
            )
        formats = (target.property(live, keys.UNIFORM_FORMATS) or "").lower().split(",")
        if change.after == "enabled" and "hudi" in {each.strip() for each in formats}:
            return Reason(
                reason="the table is readable as Hudi, whose readers do not know deletion vectors",
                fix=f"take hudi out of {keys.UNIFORM_FORMATS} yourself, or leave deletion vectors off",
                condition="DELTA_UNIVERSAL_FORMAT_VIOLATION",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """Enabling sets one property. A purge runs REORG while the writers of new vectors wait, disables the property,
        and runs REORG again if vectors were written in between.
        """
        on = SetProperties(((keys.DELETION_VECTORS, "true"),))
        off = SetProperties(((keys.DELETION_VECTORS, "false"),))
        if change.after == "enabled":
            note = "" if basis.protocol.protocol().has(FEATURE) else "the protocol feature deletionVectors"
            needs = (keys.MANIFEST, *_ICEBERG_KEYS)
            undo = put_back(keys.DELETION_VECTORS, basis)
            return (PlannedOperation(change.id, on, needs=needs, undo=undo, undo_note=note),)
        rewritten = "the rewritten files, with the same rows"
        purges = change.after in {"purged", "dropped"}
        steps: list[PlannedOperation] = []
        if change.before == "enabled":
            if purges and basis.vectors != 0:
                steps.append(
                    PlannedOperation(change.id, Purge(), undo_note=rewritten, only_if_vectors=True, id="purge-before")
                )
            steps.append(PlannedOperation(change.id, off, undo=put_back(keys.DELETION_VECTORS, basis)))
        if purges and change.before in {"enabled", "disabled"}:
            steps.append(
                PlannedOperation(
                    change.id,
                    Purge(),
                    needs=(keys.DELETION_VECTORS,),
                    undo_note=rewritten,
                    only_if_vectors=True,
                    id="purge",
                )
            )
        if change.after == "dropped":
            steps += _drops(change, basis)
        return steps

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """``enabled`` or ``disabled``: the weakest value of a table that writes no vectors."""
        if live.property(keys.DELETION_VECTORS) is not None:
            yield "", "enabled" if self.read(live, "") == "enabled" else "disabled"

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        return {keys.DELETION_VECTORS: "true" if declared == "enabled" else "false"}

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """Whether vectors remain, and when history may be deleted."""
        truncation = frozenset({FEATURE, PROTECTION} if value == "dropped" and options.truncate_history else ())
        return Needs(vectors=value in {"purged", "dropped"}, truncation=truncation)


def _protected(live: LiveTable) -> bool:
    return live.truncation is not None and live.protocol.has(PROTECTION)


def _drops(change: Change, basis: Basis) -> Iterable[PlannedOperation]:
    """Drops the feature, with or without its history. With history, also drops the protection that an earlier drop
    left.
    """
    truncate = basis.options.truncate_history
    due = None
    if truncate:
        # The purge of the same plan has not run yet, so the waiting time is still unknown.
        due = 0 if change.before in {"enabled", "disabled"} else basis.truncation or None
    if change.before != PROTECTED:
        yield drop_step(change.id, FEATURE, basis, due=due, needs=(keys.DELETION_VECTORS,))
    if truncate and basis.protocol.protocol().has(PROTECTION):
        yield PlannedOperation(
            change.id, DropFeature(PROTECTION, truncate_history=True), undo_note=LOST, due=due, id="drop-protection"
        )
