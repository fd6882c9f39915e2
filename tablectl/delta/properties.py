"""The ``delta.*`` properties: their types, who may set them, and the defaults that all engines share.

Source of keys, types and defaults: ``DeltaConfig.scala`` of Delta 4.4.0 (delta-1.8, delta-1.9, delta-1.10).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType

from tablectl.delta import keys
from tablectl.delta.dialects import DATABRICKS, DIALECTS, EVERY_DIALECT, OPEN_SOURCE
from tablectl.delta.names import ColumnPath, NameSyntaxError, fold_column, join_parts, split_parts
from tablectl.delta.protocol import SUPPORT, find_feature, supported_by

DEFAULT_LOG_RETENTION = "interval 30 days"
"""How long Delta keeps the log if no property says it (``DeltaConfig.scala``)."""
DEFAULT_FILE_RETENTION = "interval 1 week"
"""The same of deleted files."""
_UNIT_MICROS = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
_SPACE = r"[ \t\n\x0b\f\r\x1c-\x1f]"
_INTERVAL_PART = re.compile(
    rf"{_SPACE}*(?:([+-]){_SPACE}*)?(?=[0-9.])([0-9]*)(?:(\.)([0-9]{{0,9}}))?{_SPACE}+"
    r"(year|month|week|day|hour|minute|second|millisecond|microsecond)s?"
    rf"(?:{_SPACE}+|\Z)"
)
_LARGEST = 2**63 - 1


def parse_boolean(text: str) -> bool:
    """Parses ``true`` or ``false`` in any letter case, like Scala's ``toBoolean``. Raises ``ValueError`` otherwise."""
    match text.lower():
        case "true":
            return True
        case "false":
            return False
        case _:
            raise ValueError("needs true or false")


_CONTROLS_AND_SPACE = "".join(map(chr, range(33)))


_CACHED = 60
"""Texts of up to so many characters are kept: each text is read many times, and no longer one is an interval."""


def parse_interval(text: str) -> int:
    """Microseconds of an interval as Delta stores one: not negative, and without months and years.

    Raises ``ValueError`` where Delta 4.4.0 refuses to set the text (``parseCalendarInterval`` and
    ``isValidIntervalConfigValue`` in ``DeltaConfig.scala``, ``IntervalUtils.stringToInterval`` of Spark 4.2).
    """
    return _short_interval(text) if len(text) <= _CACHED else _interval(text)


@lru_cache(maxsize=256)
def _short_interval(text: str) -> int:
    return _interval(text)


def _interval(text: str) -> int:
    needs = "needs an interval such as 'interval 7 days'"
    low = text.strip(_CONTROLS_AND_SPACE).lower() if text.isascii() else ""
    low = low.removeprefix("interval ")
    months, days, micros, at = 0, 0, 0, 0
    while at < len(low):
        part = _INTERVAL_PART.match(low, at)
        if part is None:
            raise ValueError(needs)
        sign, whole, point, fraction, unit = part.groups()
        if not (whole or fraction) or (sign and not whole) or (point and unit != "second"):
            raise ValueError(needs if unit == "second" or not point else f"{needs}: a {unit} has no fraction")
        number = int(f"{sign or ''}{whole or 0}")
        if unit in _MONTHS:
            months += number * _MONTHS[unit]
        elif unit in {"day", "week"}:
            days += number * (7 if unit == "week" else 1)
        else:
            fractional = int((fraction or "").ljust(6, "0")[:6])
            micros += number * _UNIT_MICROS[unit] + (-fractional if sign == "-" else fractional)
        if max(abs(number), abs(micros)) > _LARGEST or abs(days) >= 2**31 or abs(months) >= 2**31:
            raise ValueError(f"{needs}, and not so long")
        at = part.end()
    if not low:
        raise ValueError(needs)
    if months:
        raise ValueError("needs an interval in weeks or smaller: months and years have no fixed length")
    total = days * _UNIT_MICROS["day"] + micros
    if not 0 <= total <= _LARGEST:
        raise ValueError("needs an interval that is not negative" if total < 0 else f"{needs}, and not so long")
    return total


_MONTHS: Mapping[str, int] = MappingProxyType({"month": 1, "year": 12})


_READ_BY_ALL = re.compile(rf"\s*interval\s+\+?[0-9]+\s+(?:{'|'.join(_UNIT_MICROS)})s?\s*")


def interval_text(text: str) -> str:
    """An interval as every client reads it. delta-rs takes only one number and one unit, in lower case, after the word
    ``interval`` (delta-1.17).
    """
    if _READ_BY_ALL.fullmatch(text):
        return text
    number, unit, *more = text.lower().split()[text.lower().lstrip().startswith("interval") :]
    if number.isdigit() and unit.removesuffix("s") in _UNIT_MICROS and not more:
        return f"interval {number} {unit}"
    micros = parse_interval(text)
    unit = next(unit for unit in reversed(_UNIT_MICROS) if micros % _UNIT_MICROS[unit] == 0)
    return f"interval {micros // _UNIT_MICROS[unit]} {unit}s"


@dataclass(frozen=True, slots=True)
class PropertyValues:
    """The values of a property."""

    parse: Callable[[str], object]
    """Converts text to a value; texts with equal values are equal. Raises ``ValueError`` where Delta rejects
    the text.
    """
    needs: str
    """The texts that it takes; empty for every text."""
    written: Callable[[str], str] = str
    """Converts a text that ``parse`` takes to one with the same value that every client reads. A text that they all
    read is returned unchanged.
    """


def _whole(least: int) -> PropertyValues:
    def parse(text: str) -> int:
        if re.fullmatch(r"[+-]?[0-9]{1,10}", text) is None or not least <= int(text) < 2**31:
            raise ValueError(f"needs a whole number of at least {least}")
        return int(text)

    return PropertyValues(parse, f"a whole number of at least {least}")


def _one_of(*words: str, folds: bool = True) -> PropertyValues:
    def parse(text: str) -> str:
        read = text.lower() if folds else text
        if read not in words:
            raise ValueError(f"needs one of {', '.join(words)}")
        return read

    return PropertyValues(parse, f"one of {', '.join(words)}", str.lower)


def _parse_format_version(text: str) -> tuple[int, ...]:
    """Delta writes by the newest version that it knows up to this one, so the text must name one from 1.0.0 on
    (``ParquetFormatVersion.resolve``).
    """
    match = re.fullmatch(r"([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})", text)
    if match is None or int(match[1]) < 1:
        raise ValueError("needs a version of the Parquet format with three numbers, such as 2.12.0")
    return tuple(map(int, match.groups()))


def parse_columns(text: str) -> frozenset[ColumnPath]:
    """The folded columns of a list such as ``delta.dataSkippingStatsColumns``: ``id, address.city, `a.b```."""
    return frozenset(map(fold_column, split_columns(text)))


def columns_text(columns: Iterable[ColumnPath]) -> str:
    """The list as Delta reads it, with Spark's parser: a name that is not a plain identifier is in backticks."""
    return ",".join(join_parts(path) for path in columns)


def split_columns(text: str) -> tuple[ColumnPath, ...]:
    """The columns of such a list, in order. Raises ``ValueError`` if it is none."""
    return tuple(split_parts(item.strip()) for item in _split_commas(text)) if text.strip() else ()


def _split_commas(text: str) -> Iterator[str]:
    start, quoted = 0, False
    for index, char in enumerate(text):
        quoted ^= char == "`"
        if char == "," and not quoted:
            yield text[start:index]
            start = index + 1
    yield text[start:]


_TEXT = PropertyValues(str, "")
_BOOLEAN = PropertyValues(parse_boolean, "true or false", str.lower)
_INTERVALS = PropertyValues(parse_interval, "an interval such as 'interval 7 days'", interval_text)
_COLUMNS = PropertyValues(parse_columns, "a list of columns")
_FORMAT_VERSION = PropertyValues(_parse_format_version, "a version of the Parquet format such as 2.12.0")


@dataclass(frozen=True, slots=True)
class PropertyType:
    """A ``delta.*`` property that policies may declare under ``properties``."""

    key: str
    values: PropertyValues = _TEXT
    dialects: frozenset[str] = EVERY_DIALECT
    default: str | None = None
    """The value that every engine assumes if the key is not set; ``None`` if engines or sessions differ."""
    feature: str = ""
    """The protocol feature that ``feature_value`` enables."""
    feature_value: str = "true"
    read_by: str = ""
    """The engines that read it, with the source, if Delta Spark does not; empty if it does."""

    @property
    def parse(self) -> Callable[[str], object]:
        """``values.parse``."""
        return self.values.parse

    @property
    def description(self) -> str:
        """The values that a policy may declare, as sentences."""
        takes = f"{f'Needs {self.values.needs}' if self.values.needs else 'Text'}; null unsets it."
        return f"{takes} Read by {self.read_by}." if self.read_by else takes

    def enables(self, value: object) -> bool:
        """Whether this value adds the feature to the protocol."""
        return bool(self.feature) and isinstance(value, str) and value.lower() == self.feature_value


_FABRIC = "https://learn.microsoft.com/en-us/fabric/data-engineering/"
_V_ORDER = f"Microsoft Fabric ({_FABRIC}delta-optimization-and-v-order, seen on 2026-11-23)"
_FILE_SIZE = (
    f"Databricks, Microsoft Fabric ({_FABRIC}tune-file-size, seen on 2026-11-23) and delta-rs (its OPTIMIZE, by "
    "table/config.rs)"
)
_OPTIMIZE_WRITE = (
    "Delta Spark since 3.1, Databricks, Microsoft Fabric and Azure Synapse Analytics (https://learn.microsoft.com/en-us/"
    "azure/synapse-analytics/spark/optimize-write-for-apache-spark, seen on 2026-11-23)"
)
_OPEN_SOURCE, _DATABRICKS = frozenset({OPEN_SOURCE.name}), frozenset({DATABRICKS.name})
_PROPERTIES = (
    PropertyType(keys.APPEND_ONLY, _BOOLEAN, default="false", feature="appendOnly"),
    PropertyType("delta.autoOptimize", _BOOLEAN),
    PropertyType(keys.AUTO_COMPACT, _BOOLEAN, _OPEN_SOURCE),
    PropertyType(keys.AUTO_COMPACT, _one_of("true", "false", "auto", "legacy"), _DATABRICKS),
    PropertyType("delta.autoOptimize.optimizeWrite", _BOOLEAN, read_by=_OPTIMIZE_WRITE),
    PropertyType("delta.castIcebergTimeType", _BOOLEAN, _OPEN_SOURCE, default="false"),
    PropertyType("delta.checkpoint.writeStatsAsJson", _BOOLEAN),
    PropertyType("delta.checkpoint.writeStatsAsStruct", _BOOLEAN),
    PropertyType("delta.checkpointInterval", _whole(1)),
    PropertyType(keys.CHECKPOINT_POLICY, _one_of("classic", "v2"), feature="v2Checkpoint", feature_value="v2"),
    PropertyType("delta.checkpointRetentionDuration", _INTERVALS),
    PropertyType(keys.MANIFEST, _BOOLEAN, default="false"),
    PropertyType(keys.INDEXED_COLUMNS, _whole(-1)),
    PropertyType(keys.STATISTICS_COLUMNS, _COLUMNS),
    PropertyType("delta.dataSkippingStringPrefixLength", _whole(0)),
    PropertyType(keys.DELETED_FILE_RETENTION, _INTERVALS),
    PropertyType(keys.TRUNCATION_RETENTION, _INTERVALS),
    PropertyType(keys.CHANGE_DATA_FEED, _BOOLEAN, default="false", feature="changeDataFeed"),
    PropertyType(keys.LOG_CLEANUP, _BOOLEAN),
    PropertyType("delta.enableFullRetentionRollback", _BOOLEAN),
    PropertyType(keys.IN_COMMIT_TIMESTAMPS, _BOOLEAN, feature="inCommitTimestamp"),
    PropertyType(keys.MATERIALIZE_PARTITIONS, _BOOLEAN, _OPEN_SOURCE, feature="materializePartitionColumns"),
    PropertyType(keys.TYPE_WIDENING, _BOOLEAN, feature="typeWidening"),
    # On Databricks from Runtime 17.2 on (learn.microsoft.com/azure/databricks/tables/features/variant-shredding).
    PropertyType("delta.enableVariantShredding", _BOOLEAN, feature="variantShredding-preview"),
    PropertyType("delta.ignoreIcebergBucketPartition", _BOOLEAN, _OPEN_SOURCE, default="false"),
    PropertyType(keys.LOG_RETENTION, _INTERVALS),
    PropertyType("delta.parquet.format.version", _FORMAT_VERSION, _OPEN_SOURCE),
    PropertyType("delta.randomPrefixLength", _whole(1)),
    PropertyType("delta.randomizeFilePrefixes", _BOOLEAN),
    PropertyType("delta.sampleRetentionDuration", _INTERVALS),
    PropertyType(keys.TRANSACTION_RETENTION, _INTERVALS),
    PropertyType("delta.parquet.vorder.enabled", _BOOLEAN, read_by=_V_ORDER),
    PropertyType("delta.targetFileSize", read_by=_FILE_SIZE),
    PropertyType("delta.tuneFileSizesForRewrites", _BOOLEAN, _DATABRICKS),
    PropertyType("delta.writePartitionColumnsToParquet", _BOOLEAN),
    PropertyType("delta.parquet.compression.codec", dialects=_DATABRICKS),
)

_BY_KEY: Mapping[tuple[str, str], PropertyType] = MappingProxyType(
    {(dialect, known.key.lower()): known for known in _PROPERTIES for dialect in known.dialects}
)
_ANYWHERE: Mapping[str, PropertyType] = MappingProxyType(
    {known.key.lower(): known for each in reversed(DIALECTS) for known in _PROPERTIES if each.name in known.dialects}
)
"""Of several entries of a key, that of the first dialect."""

ALIASES: Mapping[str, str] = MappingProxyType({keys.OLD_CHANGE_DATA_FEED.lower(): keys.CHANGE_DATA_FEED})
"""Folded old names of keys → current names; Delta reads both, the current one first."""
_SPELLINGS: Mapping[str, str] = MappingProxyType(
    {
        key.lower(): key
        for key in (
            *(known.key for known in _PROPERTIES),
            *(
                keys.COLUMN_MAPPING,
                keys.DELETION_VECTORS,
                keys.ISOLATION_LEVEL,
                keys.ROW_TRACKING,
                keys.UNIFORM_FORMATS,
            ),
            *(keys.MAX_COLUMN_ID, keys.MATERIALIZED_ROW_ID, keys.MATERIALIZED_ROW_VERSION, keys.ROW_TRACKING_SUSPENDED),
            *(keys.PROTECTED_BEFORE, keys.TIMESTAMPS_SINCE_TIME, keys.TIMESTAMPS_SINCE_VERSION, keys.UNIFORM_ATOMIC),
            *keys.ICEBERG_COMPATS,
            keys.OLD_CHANGE_DATA_FEED,
        )
    }
)


def other_spelling(stored: str) -> str:
    """The key that engines read, if a stored key is that one in another letter case and has no effect; else empty."""
    read = _SPELLINGS.get(stored.lower(), stored)
    return "" if read == stored else read


def find_text(properties: Mapping[str, str], key: str) -> str | None:
    """The text of a key as engines find it: exactly, then under its old name; ``None`` if they find none."""
    found = properties.get(key)
    return properties.get(keys.OLD_CHANGE_DATA_FEED) if found is None and key == keys.CHANGE_DATA_FEED else found


def in_force(properties: Mapping[str, str]) -> dict[str, str]:
    """The ``delta.*`` properties that engines read, by folded key."""
    read = {
        key: text for key, text in properties.items() if key.lower().startswith("delta.") and not other_spelling(key)
    }
    current = {ALIASES[key.lower()]: text for key, text in read.items() if key.lower() in ALIASES}
    return {key.lower(): text for key, text in {**current, **read}.items()}


_SWITCHES: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        (keys.DELETION_VECTORS.lower(), "true"): "deletionVectors",
        (keys.ROW_TRACKING.lower(), "true"): "rowTracking",
        (keys.COLUMN_MAPPING.lower(), "name"): "columnMapping",
        (keys.COLUMN_MAPPING.lower(), "id"): "columnMapping",
        **{(f"delta.enableicebergcompatv{each}", "true"): f"icebergCompatV{each}" for each in (1, 2, 3)},
    }
)
"""Values of these keys that enable a protocol feature, folded."""

WRITTEN = " is written by Delta itself"
_WRITTEN_BY_DELTA = (
    keys.MAX_COLUMN_ID.lower(),
    "delta.rowtracking.materialized",
    keys.ROW_TRACKING_SUSPENDED.lower(),
    "delta.incommittimestamp",
    keys.PROTECTED_BEFORE.lower(),
    "delta.universalformat.",
    "delta.coordinatedcommits.",
    "delta.redirect",
    "delta.lastupdateversion",
    "delta.lastcommittimestamp",
    "delta.ignoreprotocoldefaults",
    "delta.minreaderversion",
    "delta.minwriterversion",
    keys.UNITY_TABLE_ID.lower(),
)

RESERVED = frozenset(
    {"owner", "location", "provider", "external", "is_managed_location", "comment", "collation", "table_type"}
)
"""Words that Spark reserves among table properties."""


_AS_STORED: Mapping[str, PropertyValues] = MappingProxyType(
    {
        **dict.fromkeys((keys.DELETION_VECTORS, keys.ROW_TRACKING, keys.ROW_TRACKING_SUSPENDED), _BOOLEAN),
        **dict.fromkeys((keys.UNIFORM_ATOMIC, *keys.ICEBERG_COMPATS), _BOOLEAN),
        keys.CHECKPOINT_POLICY: _one_of("classic", "v2", folds=False),
        keys.COLUMN_MAPPING: _one_of("none", "name", "id"),
        keys.ISOLATION_LEVEL: _one_of("serializable", "writeserializable", "snapshotisolation"),
    }
)
"""The values that Delta reads of keys that belong to attributes, or of which policies take more spellings."""


def why_unreadable(key: str, text: str) -> str:
    """Why Delta would refuse a stored text of a key, as a clause; empty if it takes it, or if the key is not known."""
    known = find_anywhere(key)
    values = _AS_STORED.get(key) or (known.values if known else None)
    try:
        if values:
            values.parse(text)
    except NameSyntaxError as error:
        return f"needs a list of columns, and {error}"
    except ValueError as error:
        return str(error)
    return ""


def find_known(key: str, dialect: str) -> PropertyType | None:
    """The entry of a ``delta.*`` key in a dialect, found without regard to case and by old names; ``None`` if
    unknown.
    """
    return _BY_KEY.get((dialect, _current(key)))


def find_anywhere(key: str) -> PropertyType | None:
    """The entry of a key in any dialect. The first dialect that has it takes precedence."""
    return _ANYWHERE.get(_current(key))


def written_text(key: str, text: str) -> str:
    """The text with the same value that every client reads; the same text if it is one, or if Delta rejects it."""
    known = find_anywhere(key)
    if known is None:
        return text.lower() if (key.lower(), text.lower()) in _SWITCHES else text
    try:
        known.parse(text)
    except ValueError:
        return text
    return known.values.written(text)


def _current(key: str) -> str:
    """The folded key, under its present name."""
    folded = key.lower()
    return ALIASES.get(folded, folded).lower()


def known_keys(dialect: str) -> tuple[str, ...]:
    """Every known key of a dialect, sorted."""
    return tuple(sorted({known.key for known in _PROPERTIES if dialect in known.dialects}))


def feature_of(key: str, value: str) -> str | None:
    """The protocol feature that a property value enables; ``None`` if it enables none."""
    known = find_anywhere(key)
    if known and known.enables(value):
        return known.feature
    return _SWITCHES.get((key.lower(), value.lower())) or supported_by(key, value) or None


def canonical_key(key: str, dialect: str) -> str:
    """The key as Delta stores it: ``delta.*`` keys in Delta's spelling, user keys unchanged."""
    known = find_known(key, dialect) if key.lower().startswith("delta.") else None
    return known.key if known else key


def why_never_declared(key: str) -> tuple[str, str] | None:
    """Why no policy can set a key as a property in any dialect, and what to do instead; ``None`` if Delta and Spark
    leave it to users.
    """
    folded = key.lower()
    if not key or (not key.isprintable() and any(ord(char) < 32 for char in key)):
        return "a property key needs text without control characters", ""
    if folded.startswith(keys.CONSTRAINTS):
        return f"{key} is a CHECK constraint, not a property", (
            f"declare `constraints: {{{key[len(keys.CONSTRAINTS) :]}: …}}` instead"
        )
    if folded.startswith(SUPPORT):
        feature = find_feature(key[len(SUPPORT) :])
        name = feature.name if feature else "…"
        line = f"{feature.attribute}: …" if feature and feature.attribute else f"features: {{{name}: supported}}"
        return f"{key} raises the protocol", f"declare `{line}` instead"
    if folded.startswith(_WRITTEN_BY_DELTA):
        return f"{key}{WRITTEN}", "remove it from the policy"
    if folded in RESERVED:
        return f"{key} is reserved by Spark", "choose a key with a prefix of your own, for example `owner.team`"
    return None


def why_refused(key: str, dialect: str) -> tuple[str, str] | None:
    """Why no policy can set a key as a property, and what to do instead; ``None`` if Delta does not prevent it."""
    never = why_never_declared(key)
    if never or not key.lower().startswith("delta.") or find_known(key, dialect):
        return never
    other = next((each.name for each in DIALECTS if find_known(key, each.name)), "")
    if other:
        return f"{key} exists only in the {other} dialect", "remove it, or set engine.dialect in tablectl.yaml"
    return f"{key} is not known to Delta", ""


def how_to_declare(key: str) -> str:
    """How a policy declares a key that no dialect knows."""
    return f"if another engine reads it, write `{key}: {{value: …, engine: NAME}}`"
