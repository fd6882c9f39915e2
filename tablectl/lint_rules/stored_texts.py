"""Rules about stored texts that engines do not read, do not find, or read otherwise than they are meant."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from tablectl.attributes.constraints import WORDS, calls
from tablectl.attributes.policy import attribute, declaration_of
from tablectl.delta import keys
from tablectl.delta.expressions import foreign_functions
from tablectl.delta.properties import (
    DEFAULT_FILE_RETENTION,
    DEFAULT_LOG_RETENTION,
    find_anywhere,
    other_spelling,
    parse_interval,
    why_unreadable,
    written_text,
)
from tablectl.lint_rules.rule import Found, LintedState, LintRule, Mend
from tablectl.model.safe_text import cut
from tablectl.model.table import LiveTable
from tablectl.model.table_options import FUNCTIONS


def _written_again(table: LintedState) -> Mend:
    stored = sorted(table.live.properties.items()) if table.live else ()
    wrong = [(key, written_text(key, text)) for key, text in stored if written_text(key, text) != text]
    parts = [(declaration_of(key).partition("."), text) for key, text in wrong]
    return tuple((name, rest, text.removeprefix("interval ")) for (name, _, rest), text in parts if text and rest)


@LintRule(
    code="L022",
    name="TextThatClientsIgnore",
    severity="warning",
    title="A stored value has a text that some clients ignore",
    breaks="delta-rs, and Polars through it, works with its default: `60 days` of retention is 30 days for its "
    "clean-up of the log, and `TRUE` lets it delete rows of an append-only table.",
    why="Delta Spark reads intervals without the word `interval` and booleans in any letter case, and stores them "
    "as typed. delta-rs reads only `interval`, one number and one unit in lower case, and `true` or `false`.",
    fix="Declare the value in `retention` or `properties`: an apply writes the text that every client reads. Write "
    "other keys yourself with ALTER TABLE … SET TBLPROPERTIES.",
    source="delta-1.17",
    harm="data or history at risk",
    mend=_written_again,
)
def text_that_clients_ignore(table: LintedState) -> Found:
    for key, stored in sorted(table.live.properties.items()) if table.live else ():
        written = written_text(key, stored)
        read = not other_spelling(key) and not why_unreadable(key, stored)
        if read and written != stored and _loses(key, stored):
            text = f"delta-rs ignores the stored text of {key}, {cut(stored)}: it reads {written}"
            about = declaration_of(key)
            yield text if "." in about else f"{text}; no plan replaces it", about


_KEPT_BY_DEFAULT = MappingProxyType(
    {keys.LOG_RETENTION: DEFAULT_LOG_RETENTION, keys.DELETED_FILE_RETENTION: DEFAULT_FILE_RETENTION}
)


def _loses(key: str, stored: str) -> bool:
    """Whether a client that ignores the text keeps less than it says: of a retention, one longer than its default."""
    default = _KEPT_BY_DEFAULT.get(key)
    return default is None or parse_interval(stored) > parse_interval(default)


@LintRule(
    code="L035",
    name="ConstraintCallsOtherFunctions",
    severity="error",
    title="A constraint calls a function that is not built into Spark",
    breaks="The plan is refused without `allow: [functions]`. Each write of each engine calls the function with the "
    "rights of the writer: it may read a secret, send rows to a service, or answer each user differently.",
    why="A constraint decides about one row by its columns. Functions such as `secret`, `http_request`, `ai_query`, "
    "`current_catalog` and functions of your own depend on more than that.",
    fix="Use the built-in functions of Spark, or declare `allow: [functions]`.",
    source="FunctionRegistry.scala of Spark 4.2; `tablectl/delta/constraint_functions.json` lists what is taken",
    seen=("validate",),
)
def constraint_calls_other_functions(table: LintedState) -> Found:
    declared = table.declared.constraints
    for name, text in sorted(declared.items()) if isinstance(declared, Mapping) else ():
        called = foreign_functions(str(text)) if text not in WORDS and FUNCTIONS not in table.allow else ()
        if called:
            yield f"the expression of {name} {calls(called)}", f"constraints.{name}"


_ALL_BUT_SELECT = ("INSERT", "ALTER TABLE", "DELETE", "VACUUM")
_CHANGES = ("INSERT", "ALTER TABLE", "DELETE")
_FAILS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = MappingProxyType(
    {
        "delta.checkpoint.writeStatsAsJson": (_ALL_BUT_SELECT, ()),
        "delta.checkpointInterval": (_ALL_BUT_SELECT, ()),
        **dict.fromkeys(
            (keys.DELETED_FILE_RETENTION, keys.TRANSACTION_RETENTION),
            (("INSERT", "ALTER TABLE"), ("SELECT", "DELETE", "VACUUM")),
        ),
        keys.INDEXED_COLUMNS: (("ALTER TABLE", "VACUUM"), ("SELECT", "INSERT", "DELETE")),
        **dict.fromkeys((keys.COLUMN_MAPPING, keys.ROW_TRACKING), ((), ("SELECT", *_CHANGES))),
        **dict.fromkeys((keys.MANIFEST, *keys.ICEBERG_COMPATS, keys.IN_COMMIT_TIMESTAMPS), ((), _ALL_BUT_SELECT)),
        **dict.fromkeys((keys.ISOLATION_LEVEL, "delta.enableVariantShredding"), ((), _ALL_BUT_SELECT)),
        **dict.fromkeys((keys.CHANGE_DATA_FEED, keys.OLD_CHANGE_DATA_FEED), ((), _CHANGES)),
        keys.STATISTICS_COLUMNS: ((), ("SELECT", "INSERT", "DELETE")),
        "delta.autoOptimize.optimizeWrite": ((), ("INSERT", "DELETE")),
        "delta.dataSkippingStringPrefixLength": ((), ("INSERT", "DELETE")),
        "delta.randomizeFilePrefixes": ((), ("INSERT", "DELETE")),
        "delta.parquet.format.version": ((), ("INSERT", "DELETE")),
        keys.APPEND_ONLY: ((), ("ALTER TABLE", "DELETE")),
        keys.TYPE_WIDENING: ((), ("INSERT", "ALTER TABLE")),
        **dict.fromkeys(
            (keys.CHECKPOINT_POLICY, keys.DELETION_VECTORS, keys.MATERIALIZE_PARTITIONS), ((), ("ALTER TABLE",))
        ),
    }
)
"""Key → the statements that are committed and then fail, and those that fail before, with a text that Delta cannot
read. Measured on Delta 4.4.0 (``tests/planning/rules/test_stored_texts_against_spark.py``).
"""
_NEGATIVE_SPAN = r"(?:interval\s+)?-\s*[0-9]+\s+(?!month|year)[a-z]+"
_READ_ALL_THE_SAME = MappingProxyType(
    {
        **dict.fromkeys((keys.DELETED_FILE_RETENTION, keys.TRANSACTION_RETENTION), _NEGATIVE_SPAN),
        **dict.fromkeys((keys.INDEXED_COLUMNS, "delta.checkpointInterval"), "-[0-9]+"),
        "delta.dataSkippingStringPrefixLength": "-[0-9]+",
    }
)
"""The texts of these keys that Delta refuses to set, and with which no statement fails."""
_MENDS = MappingProxyType(
    {
        keys.LOG_RETENTION: ("retention", "log", "default"),
        keys.DELETED_FILE_RETENTION: ("retention", "deleted_files", "default"),
        keys.ISOLATION_LEVEL: ("isolation", "", "default"),
        keys.STATISTICS_COLUMNS: ("data_skipping", "", "default"),
    }
)


def _unreadable(table: LintedState, *, failing: bool) -> Iterator[tuple[str, str, str]]:
    """Key, stored text and the reason of each text that Delta refuses and that the plan leaves as it is."""
    for key, stored in sorted(table.live.properties.items()) if table.live else ():
        why = why_unreadable(key, stored) if not other_spelling(key) else ""
        if why and _breaks(key, stored) is failing and table.value(key) == stored:
            yield key, stored, why


def breaking_keys(live: LiveTable) -> tuple[str, ...]:
    """The keys with a text with which statements of Delta Spark fail, sorted."""
    return tuple(key for key, text in sorted(live.properties.items()) if _breaks(key, text))


def _breaks(key: str, text: str) -> bool:
    harmless = re.fullmatch(_READ_ALL_THE_SAME.get(key, "(?!)"), text.strip(), re.IGNORECASE)
    return key in _FAILS and bool(why_unreadable(key, text)) and not harmless


def _mend_of(key: str) -> tuple[str, str, str | None] | None:
    """What a policy declares instead; ``None`` if no policy changes the text."""
    if key in _MENDS:
        return _MENDS[key]
    return ("properties", key, None) if find_anywhere(key) else None


def _how_to_mend(key: str) -> str:
    mend = _mend_of(key)
    if mend is None:
        return f"run ALTER TABLE … UNSET TBLPROPERTIES ('{key}')"
    name, inner, value = mend
    return f"declare `{name}: {{{inner}: {value or 'null'}}}`" if inner else f"declare `{name}: {value}`"


def _mends(table: LintedState, *, failing: bool) -> Mend:
    found = (_mend_of(key) for key, _, _ in _unreadable(table, failing=failing))
    return tuple(each for each in found if each is not None)


@LintRule(
    code="L034",
    name="TextThatBreaksStatements",
    severity="error",
    title="A stored value that Delta cannot read, so that statements fail",
    breaks="Statements of Delta Spark fail. With a checkpoint interval of 0, or a retention of deleted files such as "
    "`P30D`, `30` or `interval 1 month`, each INSERT is committed and then fails: a job that retries writes its rows "
    "twice.",
    why="Delta checks a value when `SET TBLPROPERTIES` sets it. delta-rs and other writers store any text, and Delta "
    "Spark reads it when it needs it, for some keys after the commit.",
    fix="Declare what the finding names. The ALTER that mends it may itself be committed and then fail: an apply looks "
    "into the log. Until then, stop jobs that retry.",
    source="DeltaConfig.scala of Delta 4.4.0, fromMetaData; measured",
    harm="data or history at risk",
    mend=lambda table: _mends(table, failing=True),
)
def text_that_breaks_statements(table: LintedState) -> Found:
    for key, stored, why in _unreadable(table, failing=True):
        committed, refused = _FAILS[key]
        retried = ", so a job that retries writes its rows twice" if "INSERT" in committed else ""
        after = f"{', '.join(committed)} commit and then fail{retried}; " if committed else ""
        before = f"{', '.join(refused)} {'fail' if len(refused) > 1 else 'fails'}; " if refused else ""
        text = f"Delta Spark cannot read {key}, {cut(stored)!r}: it {why}; {after}{before}{_how_to_mend(key)}"
        yield text, declaration_of(key)


@LintRule(
    code="L036",
    name="TextThatDeltaRefuses",
    severity="warning",
    title="A stored value that Delta would refuse to set",
    breaks="The setting does not hold. With a negative `delta.deletedFileRetentionDuration`, VACUUM deletes the files "
    "of writers that have not committed yet, and of every reader.",
    why="Delta checks a value when `SET TBLPROPERTIES` sets it. delta-rs and other writers store any text. Statements "
    "do not fail with a text of these keys.",
    fix="Declare what the finding names.",
    source="DeltaConfig.scala of Delta 4.4.0, validationFunction; measured",
    properties=(keys.DELETED_FILE_RETENTION,),
    harm="data or history at risk",
    mend=lambda table: _mends(table, failing=False),
)
def text_that_delta_refuses(table: LintedState) -> Found:
    for key, stored, why in _unreadable(table, failing=False):
        yield f"Delta would refuse {key}, {cut(stored)!r}: it {why}; {_how_to_mend(key)}", declaration_of(key)


def _under_the_right_key(table: LintedState) -> Mend:
    stored = sorted(table.live.properties.items()) if table.live else ()
    wrong = [(read, text) for key, text in stored if (read := other_spelling(key)) and table.value(read) is None]
    parts = [(declaration_of(read).partition("."), text) for read, text in wrong if not why_unreadable(read, text)]
    return tuple(
        (name, rest, text) for (name, _, rest), text in parts if rest or attribute(name).value_type.admits(text)
    )


@LintRule(
    code="L033",
    name="KeyInAnotherLetterCase",
    severity="warning",
    title="A key in another letter case, which no engine reads",
    breaks="The setting does not hold: rows of a table with `delta.appendonly` are deleted, files are kept for the "
    "default time.",
    why="Engines look up the keys of a log exactly as Delta spells them. Only `SET` and `UNSET TBLPROPERTIES` of Delta "
    "Spark ignore letter case, and they mean Delta's spelling; other writers store a key as it was typed.",
    fix="Declare the setting: an apply stores it under the key that engines read. The old key stays without effect, as "
    "`UNSET TBLPROPERTIES` does not find it; only CREATE OR REPLACE TABLE removes it.",
    source="DeltaConfig.scala of Delta 4.4.0, fromMetaData, validateConfigurations and normalizeConfigKeys",
    harm="data or history at risk",
    mend=_under_the_right_key,
)
def key_in_another_letter_case(table: LintedState) -> Found:
    for key, stored in sorted(table.live.properties.items()) if table.live else ():
        read = other_spelling(key)
        holds = table.value(read)
        if read and written_text(read, stored) != written_text(read, holds or ""):
            instead = f"{read} is {cut(holds)}" if holds is not None else f"{read} is not set"
            yield f"no engine reads {key}, {cut(stored)}: {instead}", declaration_of(read)
