"""Rules about stored texts that engines do not read, do not find, or read otherwise than they are meant."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tablectl.attributes.constraints import WORDS, calls
from tablectl.attributes.policy import declaration_of
from tablectl.delta import keys
from tablectl.delta.expressions import foreign_functions
from tablectl.delta.properties import (
    DEFAULT_FILE_RETENTION,
    DEFAULT_LOG_RETENTION,
    find_anywhere,
    other_spelling,
    parse_interval,
    written_text,
)
from tablectl.lint_rules.rule import Found, LintedState, LintRule, Mend
from tablectl.model.safe_text import cut
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
        if written != stored and _loses(key, stored):
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


def _under_the_right_key(table: LintedState) -> Mend:
    stored = sorted(table.live.properties.items()) if table.live else ()
    wrong = [(read, text) for key, text in stored if (read := other_spelling(key)) and table.value(read) is None]
    parts = [(declaration_of(read).partition("."), text) for read, text in wrong if _is_value(read, text)]
    return tuple((name, rest, text) for (name, _, rest), text in parts if rest)


def _is_value(key: str, text: str) -> bool:
    known = find_anywhere(key)
    try:
        return known is not None and known.parse(text) is not None
    except ValueError:
        return False


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
        if read := other_spelling(key):
            holds = table.value(read)
            instead = f"{read} is {cut(holds)}" if holds is not None else f"{read} is not set"
            yield f"no engine reads {key}, {cut(stored)}: {instead}", declaration_of(read)
