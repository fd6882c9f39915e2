"""``uniform``: whether Iceberg readers can read the table, and by which version of Delta's Iceberg compatibility
(delta-1.10, docs/uniform.md).

REORG … UPGRADE UNIFORM makes several commits: first the compatibility with its prerequisites, for V2 the rewritten
files, and last the format. ``iceberg_v2 begun`` is a table with the first commit and without the last.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, get_args

from tablectl.attributes.base import Action, ChangeTarget, Step
from tablectl.attributes.rewrite_limits import why_too_large
from tablectl.attributes.value_types import ValueType
from tablectl.delta.names import column_text
from tablectl.model.operations import (
    FORMATS_KEY,
    MAPPING_KEY,
    VECTORS_KEY,
    Operation,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
    compat_key,
)
from tablectl.model.plan import Basis, Change, Refusal, Value
from tablectl.model.table import LiveTable

UniformValue = Literal["iceberg_v1", "iceberg_v2", "none"]

COMPAT_KEYS = tuple(compat_key(version) for version in (1, 2, 3))
_BEGUN = " begun"
_MANIFEST_KEY = "delta.compatibility.symlinkFormatManifest.enabled"
_VIOLATION = "DELTA_ICEBERG_COMPAT_VIOLATION"
_NOT_IN_V1 = frozenset({"array", "map", "void"})
_IN_V2 = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp"}
    | {"timestamp_ntz", "array", "map", "struct"}
)


class Uniform:
    """The attribute ``uniform``."""

    name = "uniform"
    shape = ValueType(
        name=name,
        description="`iceberg_v1`, `iceberg_v2`: readable as Iceberg; maps columns by name and turns deletion vectors "
        "off, and V2 rewrites all files. `none`: not readable as Iceberg.",
        words=get_args(UniformValue),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """``iceberg_v1``, ``iceberg_v2``, ``iceberg_v3``, each of them with or without ``begun``, or ``none``."""
        version = next((each for each in (1, 2, 3) if _is_true(live.property(compat_key(each)))), 0)
        if not version:
            return "none"
        return f"iceberg_v{version}" if "iceberg" in _formats(live) else f"iceberg_v{version}{_BEGUN}"

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares the values. A state ``begun`` satisfies neither the old nor the new declaration."""
        return found == declared

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """Yields at most one change, with the states between its commits."""
        found = self.read(live, "")
        if isinstance(declared, str) and not self.agrees(found, declared, ""):
            between = [] if declared == "none" else [f"{declared}{_BEGUN}"]
            if (found, declared) == ("iceberg_v1", "iceberg_v2"):
                between.insert(0, f"{found}{_BEGUN}")
            yield Change(attribute=self.name, before=found, after=declared, via=tuple(between))

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
        """Refuses what Delta would reject, and what Delta would not notice."""
        problems = _against_any(change, live) if change.after == "none" else _against_upgrade(change, live, target)
        return next(problems, None)

    def act(self, change: Change, basis: Basis) -> Action:
        """One statement for all commits, which continues after an interruption; or the properties unset."""
        before, after = _version(change.before), _version(change.after)
        begun = str(change.before).endswith(_BEGUN)
        if not after:
            keys = (compat_key(before),) if begun else (compat_key(before), FORMATS_KEY)
            undo = None if begun else UpgradeUniform(before)
            stays = (
                f"the protocol features icebergCompatV{before} and columnMapping, the column mapping, "
                "and deletion vectors off"
            )
            return Action(change, (Step(UnsetProperties(keys), undo=undo, undo_note=stays),))
        steps: list[Step] = []
        if change.before == "iceberg_v1" and after > before:
            # Without this, a run that stops before the files are rewritten would look complete.
            iceberg = SetProperties(((FORMATS_KEY, "iceberg"),))
            steps.append(Step(UnsetProperties((FORMATS_KEY,)), undo=iceberg))
        needs = (FORMATS_KEY, VECTORS_KEY, MAPPING_KEY, _MANIFEST_KEY)
        undo_up = _undo(before, after, begun=begun)
        steps.append(Step(UpgradeUniform(after), needs=needs, undo=undo_up, undo_note=_stays(after, basis)))
        return Action(change, tuple(steps))


def _undo(before: int, after: int, *, begun: bool) -> Operation:
    if begun:
        return UnsetProperties((FORMATS_KEY,))
    return UpgradeUniform(before) if before else UnsetProperties((compat_key(after), FORMATS_KEY))


def _stays(version: int, basis: Basis) -> str:
    missing = [
        each for each in (f"icebergCompatV{version}", "columnMapping") if not basis.protocol.protocol().has(each)
    ]
    parts = [f"the protocol feature{'s' * (len(missing) > 1)} {' and '.join(missing)}"] if missing else []
    if basis.mapping == "none":
        parts.append("the column mapping")
    if basis.writes_vectors:
        parts.append("deletion vectors off")
    if version > 1:
        parts.append("the rewritten files, with the same rows")
    return ", ".join(parts)


def _version(value: Value) -> int:
    """The version in a value: 3 for ``iceberg_v3 begun``, 0 for ``none``."""
    text = str(value).removesuffix(_BEGUN)
    return int(text.removeprefix("iceberg_v")) if text != "none" else 0


def _formats(live: LiveTable) -> set[str]:
    return {each.strip().lower() for each in (live.property(FORMATS_KEY) or "").split(",")} - {""}


def _against_any(change: Change, live: LiveTable) -> Iterator[Refusal]:
    if _version(change.before) == len(COMPAT_KEYS):
        yield Refusal(
            change=change.id,
            reason="the table has Iceberg compatibility V3, which Delta does not turn off again",
            fix="leave `uniform` out of the policy",
        )
    others = sorted(_formats(live) - {"iceberg"})
    if others:
        yield Refusal(
            change=change.id,
            reason=f"the table is readable as {', '.join(others)} too, and Delta keeps all formats in one property",
            fix=f"change {FORMATS_KEY} yourself, or leave `uniform` out of the policy",
        )


def _against_upgrade(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Refusal]:
    yield from _against_any(change, live)
    version = _version(change.after)
    if (live.property(MAPPING_KEY) or "").lower() == "id":
        yield Refusal(
            change=change.id,
            reason="the table maps its columns by id, and the upgrade would set `name`",
            fix=f"set {compat_key(version)} and {FORMATS_KEY} yourself; Iceberg takes the mapping by id as well",
            condition="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    if _is_true(target.property(live, _MANIFEST_KEY)):
        yield Refusal(
            change=change.id,
            reason="the table writes symlink manifests, whose readers do not know the mapped names in the data files",
            fix=f"declare {_MANIFEST_KEY}: false under `properties`, or leave `uniform` out",
            condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )
    bad = next((each for each in live.schema.every_field() if not _readable(each[1].type, version)), None)
    if bad:
        yield Refusal(
            change=change.id,
            reason=f"column {column_text(bad[0])} is of type {bad[1].type}, which Iceberg compatibility V{version} "
            "does not take",
            fix="`uniform: iceberg_v2` takes arrays and maps" if version == 1 else "leave `uniform` out",
            condition=f"{_VIOLATION}.UNSUPPORTED_DATA_TYPE",
        )
    if version == 1 and live.vectors != 0:
        count = "an unknown number of" if live.vectors is None else str(live.vectors)
        yield Refusal(
            change=change.id,
            reason=f"the table has {count} deletion vectors: V1 rewrites no file, and readers of Iceberg would see "
            "the deleted rows; Delta 4.4 does not notice",
            fix="declare `deletion_vectors: purged` and apply that first; or `uniform: iceberg_v2`",
            condition=f"{_VIOLATION}.DELETION_VECTORS_NOT_PURGED",
        )
    if version > 1:
        refused = why_too_large(change.id, "the upgrade", live, target)
        if refused:
            yield refused


def _readable(kind: str, version: int) -> bool:
    if version == 1:
        return kind not in _NOT_IN_V1
    return kind in _IN_V2 or kind.startswith(("decimal", "char", "varchar", "string"))


def _is_true(value: str | None) -> bool:
    return (value or "false").lower() == "true"
