"""The statements that add and drop a protocol feature, for ``features`` and the attributes that own a feature."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.attributes.base import ChangeTarget, PlannedOperation
from tablectl.delta import keys
from tablectl.delta.protocol import PROTECTION, TableFeature, dependents, find_feature
from tablectl.model.operations import DropFeature, SetProperties
from tablectl.model.plan import Basis, Change, Refusal
from tablectl.model.table import LiveTable

LOST = (
    f"truncated history: no time travel or RESTORE to versions older than {keys.TRUNCATION_RETENTION}, a day unless set"
)


def truncated(feature: TableFeature, basis: Basis) -> bool:
    """Whether its drop deletes history: only a feature that leaves traces there needs it."""
    return basis.options.truncate_history and feature.leaves in {"with history", "truncating"}


def drop_step(
    change: str, name: str, basis: Basis, *, due: int | None, needs: tuple[str, ...] = (), undo_note: str = ""
) -> PlannedOperation:
    """The drop of a feature, with its undo. ``due`` is when its history may be deleted."""
    feature = find_feature(name)
    assert feature is not None
    truncates = truncated(feature, basis)
    stays = {
        "with history": f"the protocol feature {PROTECTION} and {keys.PROTECTED_BEFORE}",
    }.get(feature.leaves, "")
    note = LOST if truncates else stays
    return PlannedOperation(
        change,
        DropFeature(name, truncates),
        needs=needs,
        undo=None if name == PROTECTION else SetProperties(_restored(feature, basis)),
        undo_note="; ".join(filter(None, (note, undo_note))),
        due=due if truncates else None,
        id="drop" if name == "deletionVectors" else f"drop-{name}",
    )


def _restored(feature: TableFeature, basis: Basis) -> tuple[tuple[str, str], ...]:
    """The feature, and the property that used it, as it was stored."""
    stored = basis.stored_text(feature.switch.key) if feature.switch else None
    used = () if feature.switch is None or stored is None else ((feature.switch.key, stored),)
    return ((feature.support, "supported"), *used)


def against_drop(change: Change, name: str, live: LiveTable, target: ChangeTarget) -> Iterator[Refusal]:
    """Why Delta refuses to drop a feature of this table. A feature that the plan drops, too, goes first."""
    going = {each.name for each in target.operations if isinstance(each, DropFeature)}
    others = tuple(each for each in dependents(name, live.protocol) if each not in going)
    if others:
        names = ", ".join(others)
        every = [find_feature(each) for each in others]
        stay = [each.name for each in every if each and each.leaves == "never"]
        fix = (
            f"leave it in: no statement drops {', '.join(stay)}"
            if stay
            else f"apply {_drops(others)} first: Delta drops one feature after the other"
        )
        yield Refusal(
            change=change.id,
            reason=f"the table has {names}, which needs {name}",
            fix=fix,
            condition="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        )


def _drops(names: tuple[str, ...]) -> str:
    return " and ".join(f"`{policy_line(each)}`" for each in names)


def policy_line(name: str) -> str:
    """The line of a policy that drops a feature; empty if none does."""
    feature = find_feature(name)
    if feature is None or feature.leaves == "never":
        return ""
    return f"{feature.attribute}: dropped" if feature.attribute else f"features: {{{name}: dropped}}"
