"""``uniform``: whether Iceberg readers can read the table, and by which version of Delta's Iceberg compatibility
(delta-1.10, docs/uniform.md).

REORG … UPGRADE UNIFORM makes several commits: first the compatibility with its prerequisites, for V2 the rewritten
files, and last the format. ``iceberg_v2 begun`` is a table with the first commit and without the last.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from decimal import ROUND_HALF_UP, Context
from typing import Literal, get_args

from tablectl.attributes.base import (
    ChangeTarget,
    Needs,
    PlannedOperation,
    WordAttribute,
    against_left_names,
    against_uncounted,
    is_true,
    policy_line,
)
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.dialects import dialect_of
from tablectl.delta.keys import MANIFEST
from tablectl.delta.names import column_text
from tablectl.delta.protocol import with_needed
from tablectl.delta.type_changes import FEATURES as WIDENING
from tablectl.delta.type_changes import type_changes
from tablectl.model.operations import (
    Operation,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.safe_text import value_text
from tablectl.model.table import LiveTable
from tablectl.model.table_options import TableOptions

UniformValue = Literal["iceberg_v1", "iceberg_v2", "iceberg_v3", "none"]

_BEGUN = " begun"
_NEWEST = 3
_VIOLATION = "DELTA_ICEBERG_COMPAT_VIOLATION"
_NOT_IN_V1 = ("array", "map", "void", "geometry", "geography")
_IN_V2 = frozenset(
    {"byte", "short", "integer", "long", "float", "double", "string", "binary", "boolean", "date", "timestamp"}
    | {"timestamp_ntz", "array", "map", "struct"}
)
_ONLY_IN_V3 = ("variant", "geometry", "geography")
_INTEGERS = {"byte": 31, "short": 31, "integer": 31, "long": 63}
"""The bits that Delta reads the default of a column into."""
_FLOAT = re.compile(r"\s*[+-]?(NaN|Infinity|(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?[fFdD]?)\s*")
_HOUR = r"([01]\d|2[0-3]):[0-5]\d"
_LOCAL_TIME = re.compile(rf"[\d-]{{10}}( {_HOUR}:[0-5]\d|T{_HOUR}(:[0-5]\d(\.\d{{1,9}})?)?)", re.ASCII)
_OFFSET = re.compile(r"(Z|[+-]\d\d:\d\d(:\d\d)?)(\[[\w/]+\])?$")


class Uniform(WordAttribute):
    """The attribute ``uniform``."""

    name = "uniform"
    value_type = ValueType(
        name=name,
        description="`iceberg_v1`, `iceberg_v2`: readable as Iceberg; maps columns by name and turns deletion vectors "
        "off, and V2 rewrites all files. `iceberg_v3`: keeps deletion vectors, and turns row tracking on; Delta does "
        "not turn it off again. `none`: not readable as Iceberg.",
        words=get_args(UniformValue),
    )
    keys = (keys.UNIFORM_FORMATS, *keys.ICEBERG_COMPATS)
    may_leave_out = (("row_tracking", None), ("column_mapping", None))
    contradictions = tuple(
        (version, *other)
        for version in ("iceberg_v1", "iceberg_v2", "iceberg_v3")
        for other in (
            ("row_tracking", "disabled") if version == "iceberg_v3" else ("deletion_vectors", "enabled"),
            ("column_mapping", "none"),
            ("column_mapping", "dropped"),
            (f"properties.{MANIFEST}", "true"),
            *((("row_tracking", "dropped"),) if version == "iceberg_v3" else ()),
        )
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """``iceberg_v1``, ``iceberg_v2``, ``iceberg_v3``, each of them with or without ``begun``, or ``none``."""
        version = next((each for each in (1, 2, 3) if is_true(live.property(keys.iceberg_compat(each)))), 0)
        if not version:
            return "none"
        return f"iceberg_v{version}" if "iceberg" in _formats(live) else f"iceberg_v{version}{_BEGUN}"

    def between(self, found: Value, declared: str) -> tuple[Value, ...]:
        """The states between the commits. A state ``begun`` satisfies neither the old nor the new declaration."""
        between = () if declared == "none" else (f"{declared}{_BEGUN}",)
        return (f"{found}{_BEGUN}", *between) if (found, declared) == ("iceberg_v1", "iceberg_v2") else between

    def leaves_out(self, declared: Declared | None, live: LiveTable) -> bool:
        """V3 maps columns and turns row tracking on in its own statement: Delta refuses it after row tracking."""
        return declared == "iceberg_v3" and not is_true(live.property(keys.iceberg_compat(3)))

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        problems = _against_any(change, live) if change.after == "none" else _against_upgrade(change, live, target)
        return next(problems, None)

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """One statement for all commits, which continues after an interruption; or the properties unset."""
        before, after = _version(change.before), _version(change.after)
        begun = str(change.before).endswith(_BEGUN)
        if not after:
            unset = (keys.iceberg_compat(before),) if begun else (keys.iceberg_compat(before), keys.UNIFORM_FORMATS)
            undo = None if begun else UpgradeUniform(before)
            stays = (
                f"the protocol features icebergCompatV{before} and columnMapping, the column mapping, "
                "and deletion vectors off"
            )
            return (PlannedOperation(change.id, UnsetProperties(unset), undo=undo, undo_note=stays),)
        if after == _NEWEST:
            return (_to_v3(change, basis),)
        steps: list[PlannedOperation] = []
        if change.before == "iceberg_v1" and after > before:
            # Without this, a run that stops before the files are rewritten would look complete.
            iceberg = SetProperties(((keys.UNIFORM_FORMATS, "iceberg"),))
            steps.append(PlannedOperation(change.id, UnsetProperties((keys.UNIFORM_FORMATS,)), undo=iceberg))
        needs = (keys.UNIFORM_FORMATS, keys.DELETION_VECTORS, keys.COLUMN_MAPPING, keys.MANIFEST)
        undo_up = _undo(before, after, begun=begun)
        steps.append(
            PlannedOperation(
                change.id, UpgradeUniform(after), needs=needs, undo=undo_up, undo_note=_stays(after, basis)
            )
        )
        return steps

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """The value, unless it is ``none``. Other formats in the same property cannot be declared."""
        if self.read(live, "") != "none":
            yield "", self.read(live, "")
        formats = live.property(keys.UNIFORM_FORMATS)
        if formats and formats.strip().lower() != "iceberg":
            yield f"{keys.UNIFORM_FORMATS} is {formats}, which no policy can declare"

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        """The compatibility. The upgrade also disables deletion vectors and maps columns by name."""
        found = {keys.iceberg_compat(each): "true" if declared == f"iceberg_v{each}" else None for each in (1, 2, 3)}
        if declared == "iceberg_v3":
            return {**found, keys.ROW_TRACKING: "true"}
        return found if declared == "none" else {**found, keys.DELETION_VECTORS: "false"}

    def born(self, declared: Declared) -> Iterable[Operation]:
        """The compatibility with what it requires, and the format, which an upgrade sets in steps."""
        if declared == "none":
            return ()
        more = ((keys.COLUMN_MAPPING, "name"), (keys.UNIFORM_FORMATS, "iceberg"))
        set_ = tuple((key, value) for key, value in self.planned(declared).items() if value is not None)
        return (SetProperties((*set_, *more)),)

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """V1 rewrites no file and needs a table without vectors; V2 rewrites all files, and V3 commits them again."""
        rewrites = value in {"iceberg_v2", "iceberg_v3"}
        return Needs(vectors=value == "iceberg_v1", size=rewrites, row_counts=value == "iceberg_v3")


def _to_v3(change: Change, basis: Basis) -> PlannedOperation:
    """One SET: Delta gives the files row ids, and then commits all keys at once, another version off (delta-1.10)."""
    before = _version(change.before)
    formats = (keys.UNIFORM_FORMATS, "iceberg")
    hidden = UnsetProperties((keys.UNIFORM_FORMATS,))
    if before == _NEWEST:
        return PlannedOperation(change.id, SetProperties((formats,)), undo=hidden)
    mapped = () if basis.mapping != "none" else ((keys.COLUMN_MAPPING, "name"),)
    off = ((keys.iceberg_compat(before), "false"),) if before else ()
    values = (*mapped, *off, (keys.ROW_TRACKING, "true"), (keys.iceberg_compat(_NEWEST), "true"), formats)
    shown = before and not str(change.before).endswith(_BEGUN)
    undo = None if shown else hidden
    return PlannedOperation(
        change.id, SetProperties(values), needs=(keys.MANIFEST,), undo=undo, undo_note=_stays(3, basis)
    )


def _undo(before: int, after: int, *, begun: bool) -> Operation:
    if begun:
        return UnsetProperties((keys.UNIFORM_FORMATS,))
    return UpgradeUniform(before) if before else UnsetProperties((keys.iceberg_compat(after), keys.UNIFORM_FORMATS))


def _stays(version: int, basis: Basis) -> str:
    has = basis.protocol.protocol().has
    missing = sorted((each for each in with_needed((f"icebergCompatV{version}",)) if not has(each)), reverse=True)
    parts = ["Iceberg compatibility V3, which Delta does not turn off, with row tracking"] if version == _NEWEST else []
    if missing:
        names = " and ".join(missing) if len(missing) < 3 else ", ".join(missing)
        parts.append(f"the protocol feature{'s' * (len(missing) > 1)} {names}")
    if basis.mapping == "none":
        parts.append("the column mapping")
    if basis.writes_vectors and version != _NEWEST:
        parts.append("deletion vectors off")
    if version == 2:
        parts.append("the rewritten files, with the same rows")
    return ", ".join(parts)


def _version(value: Value) -> int:
    """The version in a value: 3 for ``iceberg_v3 begun``, 0 for ``none``."""
    text = str(value).removesuffix(_BEGUN)
    return int(text.removeprefix("iceberg_v")) if text != "none" else 0


def _formats(live: LiveTable) -> set[str]:
    return {each.strip().lower() for each in (live.property(keys.UNIFORM_FORMATS) or "").split(",")} - {""}


def _against_any(change: Change, live: LiveTable) -> Iterator[Reason]:
    if _version(change.before) == _NEWEST != _version(change.after):
        yield Reason(
            reason="the table has Iceberg compatibility V3, which Delta does not turn off again",
            fix="leave `uniform` out of the policy",
        )
    others = sorted(_formats(live) - {"iceberg"})
    if others:
        yield Reason(
            reason=f"the table is readable as {', '.join(others)} too, and Delta keeps all formats in one property",
            fix=f"change {keys.UNIFORM_FORMATS} yourself, or leave `uniform` out of the policy",
        )


def _against_upgrade(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    yield from _against_any(change, live)
    version = _version(change.after)
    if version == _NEWEST:
        yield from _against_v3(change, live, target)
    elif (live.property(keys.COLUMN_MAPPING) or "").lower() == "id":
        yield Reason(
            reason="the table maps its columns by id, and the upgrade would set `name`",
            fix=f"set {keys.iceberg_compat(version)} and {keys.UNIFORM_FORMATS} yourself; "
            "Iceberg takes the mapping by id as well",
            condition="DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
        )
    yield from against_left_names(live, "leave `uniform` out")
    if is_true(target.property(live, keys.MANIFEST)):
        yield Reason(
            reason="the table writes symlink manifests, whose readers do not know the mapped names in the data files",
            fix=f"declare {keys.MANIFEST}: false under `properties`, or leave `uniform` out",
            condition="DELTA_UNSUPPORTED_MANIFEST_GENERATION_WITH_COLUMN_MAPPING",
        )
    bad = next(((path, kind) for path, kind in live.schema.every_type() if not _readable(kind, version)), None)
    if bad:
        yield Reason(
            reason=f"column {column_text(bad[0])} is of type {bad[1]}, which Iceberg compatibility V{version} "
            "does not take",
            fix="`uniform: iceberg_v2` takes arrays and maps" if version == 1 else "leave `uniform` out",
            condition=f"{_VIOLATION}.UNSUPPORTED_DATA_TYPE",
        )
    yield from _against_widened(live, version)
    decimals = [field.name for field in live.schema.fields if field.type.startswith("decimal")]
    decimal = next((name for name in decimals if name in live.partition_columns), None)
    if decimal and version > 1 and dialect_of(target.dialect).iceberg_faults:
        yield Reason(
            reason=f"the table is partitioned by the column {column_text((decimal,))} of type decimal, which Iceberg "
            f"compatibility V{version} of Delta 4.4.0 refuses",
            fix="leave `uniform` out",
            condition=f"{_VIOLATION}.UNSUPPORTED_PARTITION_DATA_TYPE",
        )
    if version == 1 and live.vectors != 0:
        count = "an unknown number of" if live.vectors is None else str(live.vectors)
        yield Reason(
            reason=f"the table has {count} deletion vectors: V1 rewrites no file, and readers of Iceberg would see "
            "the deleted rows; Delta 4.4 does not notice",
            fix="declare `deletion_vectors: purged` and apply that first; or `uniform: iceberg_v2`",
            condition=f"{_VIOLATION}.DELETION_VECTORS_NOT_PURGED",
        )


def _against_widened(live: LiveTable, version: int) -> Iterator[Reason]:
    """Iceberg has no such promotion of types, and old data files keep the narrower type (``CheckTypeWideningSupported``
    in ``IcebergCompat.scala`` of Delta 4.4.0, for all versions).
    """
    feature = next((name for name in WIDENING if live.protocol.has(name)), None)
    if feature is None:
        return
    bad = next((each for each in type_changes(live.schema.text) if each.iceberg_refuses), None)
    if bad:
        yield Reason(
            reason=f"column {column_text(bad.path)} was widened from {bad.before} to {bad.after}, which Iceberg "
            f"compatibility V{version} does not take",
            fix=f"apply `{policy_line(feature)}` with `rewrite: allowed` first, which rewrites the files of the older "
            "type; or leave `uniform` out",
            condition=f"{_VIOLATION}.UNSUPPORTED_TYPE_WIDENING",
        )


def _against_v3(change: Change, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    if _version(change.before) == _NEWEST:
        return
    variant = next((path for path, kind in live.schema.every_type() if kind == "variant"), None)
    if variant is not None and dialect_of(target.dialect).iceberg_faults:
        yield Reason(
            reason=f"column {column_text(variant)} is of type variant: Delta 4.4.0 turns V3 on, and then fails every "
            "INSERT into the table with INVALID_FIELD_NAME",
            fix="leave `uniform` out",
            condition="INVALID_FIELD_NAME",
        )
    computed = next(
        (each for each in live.schema.fields if each.default and not is_plain_literal(each.default, each.type)), None
    )
    if computed:
        column = column_text((computed.name,))
        yield Reason(
            reason=f"column {column} has the default {value_text(computed.default)}, and Iceberg "
            f"compatibility V3 takes only plain literals of the type {computed.type} as defaults",
            fix=f"drop the default yourself first: ALTER TABLE … ALTER COLUMN {column} DROP DEFAULT",
            condition=f"{_VIOLATION}.UNSUPPORTED_DATA_TYPE",
        )
    if reason := against_uncounted(live, "leave `uniform` out"):
        yield reason
    if is_true(live.property(keys.ROW_TRACKING_SUSPENDED)):
        yield Reason(
            reason="row tracking is suspended, as a drop of it that broke off leaves it, and V3 turns it on",
            fix="declare `row_tracking: enabled` first, which ends the suspension, and `uniform` once that is applied",
        )
    if is_true(live.property(keys.ROW_TRACKING)):
        yield Reason(
            reason="the table has row tracking, and Delta turns on Iceberg compatibility V3 only together with it",
            fix="apply `row_tracking: disabled` first: the rows get new ids then",
        )


def is_plain_literal(text: str, kind: str) -> bool:
    """Whether Delta takes the default of a column as a literal: it reads the text by the column's type, without SQL
    (``isLiteral`` of ``DeltaColumnDefaults.scala`` of Delta 4.4.0). So ``DATE'2020-01-01'``, ``NULL`` and ``1 + 1`` are
    none.
    """
    digits = re.sub("[lL]$", "", text) if kind == "long" else text
    quoted = text[1:-1] if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"" else None
    match kind.partition("(")[0]:
        case "string" | "char" | "varchar":
            return quoted is not None and (len(quoted) - len(quoted.rstrip("\\"))) % 2 == 0
        case "byte" | "short" | "integer" | "long":
            bits = _INTEGERS[kind]
            return bool(re.fullmatch(r"[+-]?\d{1,19}", digits, re.ASCII)) and -(1 << bits) <= int(digits) < 1 << bits
        case "float" | "double":
            return bool(_FLOAT.fullmatch(text))
        case "decimal":
            return _is_decimal(text, *map(int, re.findall(r"\d+", kind)))
        case "boolean":
            return True  # Java reads any other text as false
        case "binary":
            return text[:1] not in {"x", "X"} or bool(re.fullmatch(r"('[0-9a-fA-F]*'|\"[0-9a-fA-F]*\")", text[1:]))
        case "date":
            return quoted is not None and _is_date(quoted)
        case "timestamp" | "timestamp_ntz":
            local = _OFFSET.sub("", quoted or "") if kind == "timestamp" and "T" in text else quoted or ""
            return bool(_LOCAL_TIME.fullmatch(local)) and _is_date(local[:10])
    return False


def _is_decimal(text: str, precision: int, scale: int) -> bool:
    """Whether the number fits without rounding, after it was rounded to the precision."""
    if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,9})?", text, re.ASCII):
        return False
    exponent = Context(prec=precision, rounding=ROUND_HALF_UP).create_decimal(text).normalize().as_tuple().exponent
    return isinstance(exponent, int) and -exponent <= scale


def _is_date(text: str) -> bool:
    try:
        return len(text) == len("2020-01-01") and date.fromisoformat(text) is not None
    except ValueError:
        return False


def _readable(kind: str, version: int) -> bool:
    if version == 1:
        return not kind.startswith(_NOT_IN_V1)
    more = _ONLY_IN_V3 if version == _NEWEST else ()
    return kind in _IN_V2 or kind.startswith(("decimal", "char", "varchar", "string", *more))
