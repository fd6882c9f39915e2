"""``features``: which features the protocol of a table has (delta-1.13, delta-1.15, docs/features.md).

``supported`` adds a feature to the protocol, and uses it for nothing. ``dropped`` removes it by DROP FEATURE, with
everything that Delta has to do before. A feature that an attribute adds or drops belongs to that attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import NO_NEEDS, Attribute, ChangeTarget, Needs, PlannedOperation, against_drop, drop_step
from tablectl.attributes.value_types import Declared, NamedValues, ValueType
from tablectl.delta import keys
from tablectl.delta.databricks_runtimes import capability
from tablectl.delta.dialects import dialect_of
from tablectl.delta.protocol import FEATURES, PROTECTION, SUPPORT, TableFeature, find_feature, leaves, with_needed
from tablectl.model.operations import DropFeature, Operation, SetProperties
from tablectl.model.operations.drop_feature import WIDENED
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions
from tablectl.support.json_text import write_json

FeatureValue = Literal["supported", "dropped"]
_GEO = ("geometry", "geography")
_OWNED = "`features` does not take {}: it has an attribute of its own"
_CATALOG = "catalogManaged"
_ABSENT = "absent"
"""The live value of a feature that the protocol does not have: the log does not say whether it ever had it."""


def _why_not(name: str, value: str) -> tuple[str, str]:
    feature = find_feature(name.replace("_", ""))
    if feature is None:
        return f'"{name}" is not a table feature that tablectl knows', "look for its name in the Delta protocol"
    if feature.attribute:
        line = f"{feature.attribute}: {'dropped' if feature.leaves != 'never' and value == 'dropped' else '…'}"
        return _OWNED.format(name), f"declare `{line}` instead"
    if feature.name != name:
        return f'"{name}" is spelled {feature.name}', f"write `{feature.name}`"
    if value not in get_args(FeatureValue):
        return f'"{value}" is not a value of `features.{name}`', "it takes `supported` or `dropped`"
    if value == "dropped" and feature.leaves == "never" and name != _CATALOG:
        return f"no statement drops {name} from a table", "copy the table without it, or leave it out of the policy"
    if value == "supported" and name == PROTECTION:
        return f"Delta adds {name} by itself, when it drops a feature", "leave it out of the policy"
    return "", ""


class Features(Attribute):
    """The attribute ``features``. Its changes are sorted by name: Delta drops a feature only after those that need it,
    and they come first by name.
    """

    name = "features"
    value_type = ValueType(
        name=name,
        description="Protocol features: `supported` adds one to the table, `dropped` removes it.",
        named=NamedValues(
            takes="features to `supported` or `dropped`",
            example="{typeWidening: dropped}",
            why_not=_why_not,
            names=tuple(each.name for each in FEATURES if not each.attribute),
            words=get_args(FeatureValue),
        ),
    )
    key_contradictions = (
        *(
            (each.name, "dropped", f"properties.{each.switch.key}", each.switch.on)
            for each in FEATURES
            if each.switch and not each.attribute
        ),
        ("domainMetadata", "dropped", "row_tracking", "enabled"),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        return "supported" if live.protocol.has(key) else _ABSENT

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """A table without a feature agrees with its drop."""
        del key
        return found == declared or (found, declared) == (_ABSENT, "dropped")

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Why the table, or the product, cannot take it."""
        found = _against_drop(change, live, target) if change.after == "dropped" else _against_support(change, target)
        return next(found, None)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """One statement. Delta removes the traces of a dropped feature by itself, in commits before the last one."""
        feature = find_feature(change.key)
        if feature is None:  # a plan file names it
            raise ValueError(f"{change.key} is not a table feature")
        if change.after == "supported":
            has = basis.protocol.protocol().has
            stay = [each for each in sorted(with_needed((feature.name,))) if not has(each)]
            stays = (
                "" if feature.leaves == "freely" else f"the protocol feature{'s' * (len(stay) > 1)} {', '.join(stay)}"
            )
            undo = None if feature.leaves in {"never", "truncating"} else DropFeature(feature.name)
            if feature.leaves == "with history":
                stays = f"the protocol feature {PROTECTION}"
            add = SetProperties(((feature.support, "supported"),))
            return (PlannedOperation(change.id, add, undo=undo, undo_note=stays),)
        in_use = (feature.name in WIDENED and basis.widened) or _is_on(feature, basis)
        # The drop itself removes the last use, and history ages from then on.
        due = 0 if in_use else basis.truncation or None
        key = (feature.switch.key,) if feature.switch else ()
        return (drop_step(change.id, feature.name, basis, due=due, needs=key),)

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        """The keys that add features."""
        items = declared.items() if isinstance(declared, Mapping) else ()
        return {f"{SUPPORT}{name}": value for name, value in items if value == "supported"}

    def born(self, declared: Declared) -> Iterable[Operation]:
        """The features that the table has to have."""
        items = declared.items() if isinstance(declared, Mapping) else ()
        added = (find_feature(name) for name, value in sorted(items) if value == "supported")
        values = tuple((each.support, "supported") for each in added if each)
        return (SetProperties(values),) if values else ()

    def birth_refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        """A new table can have every feature: also catalog commits, which open-source Delta gives to no other."""
        return ()

    def restored(self, before: LiveTable, after: LiveTable, declared: Declared | None) -> Iterator[str]:
        """The features that were dropped, and those that the policy added, if Delta can drop them."""
        items = declared.items() if isinstance(declared, Mapping) else ()
        added = {name for name, value in items if value == "supported" and leaves(name) != "never"}
        for each in self.value_type.named.names if self.value_type.named else ():
            if before.protocol.has(each) or (each in added and after.protocol.has(each)):
                yield each

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """How much data a rewrite may touch, and when history may be deleted."""
        if value != "dropped":
            return NO_NEEDS
        return Needs(size=key in WIDENED, truncation=frozenset({key} if options.truncate_history else ()))


def _quoted(name: str) -> str:
    """A name in YAML: other clients take every character."""
    return name if name.isascii() and name.isidentifier() else write_json(name, ascii=False)


def dropped_features(declared: Mapping[str, Declared]) -> Iterator[str]:
    """The features that declarations drop, by whichever attribute."""
    for feature in FEATURES:
        found = declared.get(feature.attribute or Features.name)
        if (found.get(feature.name) if isinstance(found, Mapping) else found) == "dropped":
            yield feature.name


def _is_on(feature: TableFeature, basis: Basis) -> bool:
    switch = feature.switch
    return switch is not None and (basis.stored_text(switch.key) or "").lower() == switch.on


def _against_support(change: Change, target: ChangeTarget) -> Iterator[Reason]:
    if change.key == _CATALOG and not dialect_of(target.dialect).maintains_managed:
        known = capability("catalog_commits", "switch on an existing table")
        yield Reason(
            reason="open-source Delta gives catalog commits to a new table only: Unity Catalog creates it with them "
            f"(delta-1.11). On Databricks, `{known.form}` needs runtime {known.first} ({known.cited})",
            fix="run it on Databricks (`engine.dialect: databricks`), or create the table again in Unity Catalog with "
            f"'{change.key}' and copy the rows",
            condition="DELTA_UNSUPPORTED_CATALOG_MANAGED_TABLE_OPERATION",
        )


def _against_drop(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    name = change.key
    if name == _CATALOG and not dialect_of(target.dialect).maintains_managed:
        yield Reason(
            reason="open-source Delta cannot take a table out of its catalog's commits (delta-1.11)",
            fix="run it on Databricks Runtime 18.0 or newer, or leave it out of the policy",
            condition="DELTA_FEATURE_DROP_UNSUPPORTED_CLIENT_FEATURE",
        )
    if name == PROTECTION and not target.options.truncate_history:
        yield Reason(
            reason=f"Delta drops {name} only together with the history that it protects",
            fix="consent with `truncate_history: true`, or leave it in: it locks out no reader",
            condition="DELTA_FEATURE_CAN_ONLY_DROP_CHECKPOINT_PROTECTION_WITH_HISTORY_TRUNCATION",
        )
    yield from against_drop(name, live, target)
    if name == "checkConstraints":
        going = {key for each in target.operations for key, value in each.properties.items() if value is None}
        stays = (key for key in live.properties if key.lower().startswith(keys.CONSTRAINTS) and key not in going)
        left = sorted(key[len(keys.CONSTRAINTS) :] for key in stays)
        if left:
            yield Reason(
                reason=f"the table has the CHECK constraint{'s' * (len(left) > 1)} {', '.join(left)}, and Delta drops "
                "no constraint with the feature",
                fix=f"declare `constraints: {{{', '.join(f'{_quoted(each)}: none' for each in left)}}}`",
                condition="DELTA_CANNOT_DROP_CHECK_CONSTRAINT_FEATURE",
            )
    if name == "geospatial":
        bad = next((path for path, kind in live.schema.every_type() if kind.startswith(_GEO)), None)
        if bad:
            yield Reason(
                reason=f"column {'.'.join(bad)} has a geospatial type, and Delta drops no column with the feature",
                fix="drop the column yourself first, or leave the feature in",
                condition="DELTA_CANNOT_DROP_GEOSPATIAL_FEATURE",
            )
