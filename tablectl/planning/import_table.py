"""Derives a policy entry from a live table. A plan with this entry has no changes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from tablectl.attributes.policy import ATTRIBUTES, owner_of, why_refused
from tablectl.attributes.properties import Properties
from tablectl.attributes.value_types import ValueType
from tablectl.delta.names import DEFAULT_CATALOG, NameSyntaxError
from tablectl.delta.properties import WRITTEN, canonical_key, find_known, other_spelling
from tablectl.model.plan import Value
from tablectl.model.safe_text import LONGEST_VALUE, is_cut, value_text
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.plan_table import FIXED
from tablectl.policies.merge_layers import Layer, LayerKind, effective, exclusive_pairs, merge, policy_of
from tablectl.policies.value_reader import GivenValue
from tablectl.policies.variables import (
    Variables,
    escape_variables,
    read_column,
    read_location,
    why_no_name,
    why_unusable,
)
from tablectl.policies.write_yaml import Declared, TableEntry, table_key
from tablectl.policies.yaml_nodes import SourceFile

MOST_PROPERTIES = 1_000
"""The maximum number of properties in an entry. A table can have 100,000."""
MOST_REASONS = 100
"""The maximum number of reasons why a property is left out."""
MOST_TEXT = 100_000
"""The maximum number of characters of all of them, with values."""
_OF_CATALOG: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        **FIXED,
        ("row_tracking", ""): "enabled",
        ("column_mapping", ""): "name",
        (Properties.name, "delta.randomizeFilePrefixes"): "true",
    }
)
"""What Unity Catalog 0.6.0 sets on a new managed table without being asked (tests/recordings)."""
_NOWHERE = SourceFile("", 0, 0)
_Imported = Declared | str
"""A declaration, or the reason why there is none."""


def policy_of_table(
    live: LiveTable, dialect: str, catalog: str = DEFAULT_CATALOG, *, located: bool = True
) -> TableEntry:
    """The policy entry of a table. It contains what is set on the table, and no engine defaults.

    Keys that Delta writes itself, and facts that no policy can declare, are left out with a reason. Raises
    ``NameSyntaxError`` if no policy can name the table. In names with two parts, ``catalog`` is implied. An entry that
    is not ``located`` leaves the location to the catalog.
    """
    told = list(values_of_table(live, dialect))
    refused = _refused(told, live, dialect)
    told = [refused.get(each[:2], each) if isinstance(each, tuple) else each for each in told]
    if live.catalog is not None:
        # Leaves out, in one line, what the catalog and Delta set on each managed table: a policy without it keeps it
        theirs = [each for each in told if not isinstance(each, str) and _OF_CATALOG.get(each[:2]) == each[2]]
        written = [each for each in told if isinstance(each, str) and each.endswith(WRITTEN)]
        names = [*(key or name for name, key, _ in theirs), *(each.removesuffix(WRITTEN) for each in written)]
        listed_names = ", ".join(each.rpartition(".")[2] for each in names)
        line = f"{len(names)} settings of the catalog or Delta itself: {listed_names}"
        told = [*(each for each in told if each not in {*theirs, *written}), *([line] if names else [])]
    return TableEntry(
        key=table_key(live.name, catalog),
        location=_location(live) if located and not live.name.is_path else None,
        declared=tuple(each for each in told if not isinstance(each, str)),
        left_out=tuple(each for each in told if isinstance(each, str)),
    )


def values_of_table(live: LiveTable, dialect: str) -> Iterator[Declared | str]:
    """What is set on a table: values that a policy can declare each by itself, and reasons why others cannot be."""
    for entry in ATTRIBUTES:
        for found in entry.imported(live):
            yield found if isinstance(found, str) else _declaration(entry.value_type, *found)
    yield from _bounded(_properties(live, dialect))


def _refused(told: Iterable[_Imported], live: LiveTable, dialect: str) -> Mapping[tuple[str, str], str]:
    """The values that a policy cannot declare together with the others, or that a plan would write again, each with
    the reason.
    """
    given = {each[:2]: GivenValue(each[2], _NOWHERE) for each in told if not isinstance(each, str)}
    declared = {f"{name}.{key}" if key else name: each for (name, key), each in given.items()}
    layer = Layer(kind=LayerKind.TABLE, source=_NOWHERE, declared=declared)
    resolved = merge([[layer]])
    why = {
        change.id: f"{change.id} is {value_text(change.before)}, a text that some clients ignore; declare it, and an "
        f"apply writes {value_text(change.after)}"
        for change in diff(policy_of(effective(resolved)), live, dialect)
    }
    for first, second in exclusive_pairs(resolved):
        if first.key not in why:
            why.setdefault(second.key, f"{second.key} excludes {first.key}, and a policy can declare only one of them")
    return {each: why[key] for each in given if (key := f"{each[0]}.{each[1]}" if each[1] else each[0]) in why}


def _location(live: LiveTable) -> str | None:
    """The location for the policy; ``None`` if no policy can declare it, in which case the catalog is asked."""
    try:
        return read_location(escape_variables(live.location), Variables())
    except NameSyntaxError:
        return None


def _declaration(value_type: ValueType, key: str, value: Value) -> _Imported:
    """The declaration of a value, or why no policy can declare it."""
    fits = value is not None and value_type.admits({key: value} if key else value)
    if isinstance(value, str) and fits:
        return value_type.name, key, value
    if isinstance(value, tuple) and fits and all(map(_readable, value)):
        return value_type.name, key, value
    shown = f"[{', '.join(value)}]" if isinstance(value, tuple) else value
    return f"{value_type.name}{key and '.'}{key} is {shown}, which no policy can declare"


def _readable(column: str) -> bool:
    try:
        return read_column(escape_variables(column), Variables()) == column
    except NameSyntaxError:
        return False


def _bounded(properties: Iterator[_Imported]) -> Iterator[_Imported]:
    """The properties and reasons that an entry has room for. It says how many others there are."""
    room, declared, others, said, unsaid = MOST_TEXT, 0, 0, 0, 0
    for each in properties:
        size = len(each) if isinstance(each, str) else len(each[1]) + len(each[2])
        fits = size <= room and (said < MOST_REASONS if isinstance(each, str) else declared < MOST_PROPERTIES)
        if fits:
            room -= size
            said += isinstance(each, str)
            declared += not isinstance(each, str)
            yield each
        else:
            unsaid += isinstance(each, str)
            others += not isinstance(each, str)
    if others:
        yield (
            f"{others:,} more properties: an entry gets {MOST_PROPERTIES:,} properties and {MOST_TEXT:,} characters; "
            "declare by hand what a policy is to manage"
        )
    if unsaid:
        yield f"{unsaid:,} more properties that no policy can declare"


def _properties(live: LiveTable, dialect: str) -> Iterator[_Imported]:
    declared: set[str] = set()
    for stored in sorted(live.properties, key=lambda key: (not key.lower().startswith("delta."), key)):
        if read := other_spelling(stored):
            yield f"{stored} is {read} in another letter case, which no engine reads"
            continue
        if owner_of(stored):
            continue
        key = canonical_key(stored, dialect)
        value = live.property(key) or live.properties[stored]
        why = _why_not(stored, key, value, dialect)
        if why:
            yield why
        elif key not in declared:
            declared.add(key)
            yield Properties.name, key, value


def _why_not(stored: str, key: str, value: str, dialect: str) -> str:
    """Why a property cannot be declared with its stored value; empty if it can."""
    refused = why_refused(stored, dialect)
    if refused:
        return refused[0]
    if is_cut(value):
        return f"{stored} has more than {LONGEST_VALUE:,} characters: copy its value by hand"
    if unusable := why_no_name(stored) or why_unusable(value):
        return f"{stored} cannot be written: {unusable}"
    known = find_known(key, dialect) if key.lower().startswith("delta.") else None
    try:
        if known:
            known.parse(value)
    except ValueError as error:
        return f"{key} is {value!r}, and it {error}"
    return ""
