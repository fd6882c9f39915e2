"""``deletion_vectors``: whether new ones are written, and whether old ones are left (delta.md 1.3).

``enabled``  the property is on. ``disabled``  it is off, vectors may remain. ``purged``  it is off and no vector is
left in the current version. A purged table satisfies ``disabled``; nothing but a purged one satisfies ``purged``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import Action, Step, Target, put_back
from tablectl.attributes.shape import Shape
from tablectl.model.live import LiveTable
from tablectl.model.operations import Purge, SetProperties
from tablectl.model.plan import Basis, Change, Refusal, Value

DeletionVectorsValue = Literal["enabled", "disabled", "purged"]

KEY = "delta.enableDeletionVectors"
MANIFEST_KEY = "delta.compatibility.symlinkFormatManifest.enabled"
BESIDE_MANIFEST = (
    "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED.PERSISTENT_DELETION_VECTORS_WITH_INCREMENTAL_MANIFEST_GENERATION"
)
_FEATURE = "deletionVectors"


class DeletionVectors:
    """See the module."""

    name = "deletion_vectors"
    shape = Shape(
        name=name,
        description="`enabled`: new deletes may write deletion vectors. `disabled`: no new ones. "
        "`purged`: no new ones, and none left in the current version.",
        words=get_args(DeletionVectorsValue),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """``enabled``, ``disabled`` or ``purged``.

        A table whose protocol never had the feature holds no vector; with the feature and an unknown number of
        vectors it reads ``disabled``, since a REORG with nothing to purge makes no commit (delta.md 5).
        """
        if (live.property(KEY) or "false").lower() == "true":
            return "enabled"
        return "purged" if live.vectors == 0 or not live.protocol.has(_FEATURE) else "disabled"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """``disabled`` asks less than ``purged``."""
        return found == declared or (declared == "disabled" and found == "purged")

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """At most one change."""
        found = self.read(live, "")
        if isinstance(declared, str) and not self.agrees(found, declared, ""):
            # To turn vectors on, it does not matter whether old ones are left.
            before = "disabled" if declared == "enabled" else found
            via = ("disabled",) if declared == "purged" and found == "enabled" else ()
            yield Change(attribute=self.name, before=before, after=declared, via=via)

    def check(self, change: Change, live: LiveTable, target: Target) -> Refusal | None:
        """Symlink manifests list whole files, so Delta refuses vectors beside them (delta.md 1.3)."""
        manifest = target.property(live, MANIFEST_KEY) or "false"
        if change.after == "enabled" and manifest.lower() == "true":
            return Refusal(
                change=change.id,
                reason="the table writes symlink manifests, which cannot say that a row is deleted",
                way_out=f"declare {MANIFEST_KEY}: false under `properties`, or leave deletion vectors off",
                condition=BESIDE_MANIFEST,
            )
        return None

    def act(self, change: Change, basis: Basis) -> Action:
        """On is one property. To purge: REORG while the writers of new vectors wait, off, REORG what slipped in."""
        on = SetProperties(((KEY, "true"),))
        off = SetProperties(((KEY, "false"),))
        if change.after == "enabled":
            note = "" if basis.protocol.protocol().has(_FEATURE) else "the protocol feature deletionVectors"
            return Action(change, (Step(on, needs=(MANIFEST_KEY,), undo=put_back(KEY, basis), undo_note=note),))
        rewritten = "the files as rewritten, with the same rows"
        steps: list[Step] = []
        if change.before == "enabled":
            if change.after == "purged" and basis.vectors != 0:
                steps.append(Step(Purge(), undo_note=rewritten, only_if_vectors=True, id="purge-before"))
            steps.append(Step(off, undo=put_back(KEY, basis)))
        if change.after == "purged":
            steps.append(Step(Purge(), needs=(KEY,), undo_note=rewritten, only_if_vectors=True, id="purge"))
        return Action(change, tuple(steps))
