"""The list of attributes, and what follows from it: policies, the keys that belong to attributes, how deep to read a
table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cached_property, reduce
from operator import or_
from types import MappingProxyType
from typing import Any

from tablectl.attributes.base import NO_NEEDS, Attribute, Needs
from tablectl.attributes.clustering import Clustering
from tablectl.attributes.column_mapping import ColumnMapping
from tablectl.attributes.constraints import Constraints, constraint_keys
from tablectl.attributes.data_skipping import DataSkipping
from tablectl.attributes.deletion_vectors import DeletionVectors
from tablectl.attributes.features import Features
from tablectl.attributes.isolation import Isolation
from tablectl.attributes.managed import Managed
from tablectl.attributes.partitioning import Partitioning
from tablectl.attributes.predictive_optimization import PredictiveOptimization
from tablectl.attributes.properties import Properties
from tablectl.attributes.retention import Retention
from tablectl.attributes.row_tracking import RowTracking
from tablectl.attributes.uniform import Uniform
from tablectl.attributes.value_types import Declared, ValueType
from tablectl.delta import keys
from tablectl.delta.properties import ALIASES, canonical_key, find_known, known_keys, other_spelling, why_never_declared
from tablectl.delta.properties import why_refused as why_refused_by_delta
from tablectl.delta.protocol import SWITCHES
from tablectl.delta.schema import TYPE_CHANGES
from tablectl.model.plan import Basis, Change, ProtocolFact, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.model.writers_in_history import client_facts, partition_writers, writer_evidence

ATTRIBUTES: tuple[Attribute, ...] = (
    Isolation(),
    DeletionVectors(),
    Clustering(),
    Partitioning(),
    RowTracking(),
    ColumnMapping(),
    Uniform(),
    Constraints(),
    Features(),
    DataSkipping(),
    Retention(),
    PredictiveOptimization(),
    Managed(),
    Properties(),
)
"""Every attribute, in the order of plans."""

_BY_NAME: Mapping[str, Attribute] = MappingProxyType({entry.name: entry for entry in ATTRIBUTES})

VALUE_TYPES: Mapping[str, ValueType] = MappingProxyType({entry.name: entry.value_type for entry in ATTRIBUTES})
"""Attribute name → type of its value, in the order of plans."""

EXCLUSIVE = tuple((entry.name, entry.exclusive_with) for entry in ATTRIBUTES if entry.exclusive_with)
"""Pairs of attributes of which only one can list columns."""

CONTRADICTIONS = tuple(
    ((entry.name, value), (other, its)) for entry in ATTRIBUTES for value, other, its in entry.contradictions
) + tuple(
    ((f"{entry.name}.{key}", value), (other, its))
    for entry in ATTRIBUTES
    for key, value, other, its in entry.key_contradictions
)
"""Pairs of attribute values that no table can have at the same time."""

OWNED_KEYS = tuple(key for entry in ATTRIBUTES for key in entry.keys)
"""The properties that belong to an attribute, in Delta's spelling."""

OWNED: Mapping[str, str] = MappingProxyType({key.lower(): entry.name for entry in ATTRIBUTES for key in entry.keys})
"""The same keys, folded, with the name of their attribute."""


def _written(declared: Mapping[str, Any]) -> dict[str, Declared]:
    """The managed values with the texts that every client reads, in the order of plans."""
    managed: dict[str, Declared] = {}
    for name, value_type in VALUE_TYPES.items():
        value = declared.get(name)
        if value is not None:
            mapped = isinstance(value, Mapping)
            managed[name] = {key: value_type.written(key, value[key]) for key in value} if mapped else value
    return managed


@dataclass(frozen=True, slots=True)
class Policy:
    """The declared attributes of one table: ``Policy({"isolation": "Serializable"}).isolation``.

    An attribute that is not given, or ``None``, is not managed. Texts become those that every client reads. Raises
    ``TypeError`` for a name that is not an attribute, and ``ValueError`` for a value that an attribute's ``value_type``
    does not admit.
    """

    declared: Mapping[str, Any] = field(default_factory=dict)
    """The managed attributes and their declared values, in the order of plans."""

    def __post_init__(self) -> None:
        for name, value in self.declared.items():
            if name not in _BY_NAME:
                raise TypeError(f"{name} is not an attribute")
            if value is not None and not VALUE_TYPES[name].admits(value):
                raise ValueError(f"no policy can declare {value!r} of {name}")
        object.__setattr__(self, "declared", _written(self.declared))

    @classmethod
    def of_read(cls, declared: Mapping[str, Any]) -> Policy:
        """The policy of values that were read from a file, and so are admitted."""
        made = object.__new__(cls)
        object.__setattr__(made, "declared", _written(declared))
        return made

    def __getattr__(self, name: str) -> Any:
        """The declared value of an attribute; ``None`` if it is not managed."""
        if name in _BY_NAME:
            return self.declared.get(name)
        raise AttributeError(name)

    def values(self) -> Iterator[tuple[str, str, Value]]:
        """Each managed value: attribute, key (empty for an attribute that has one value), value. Each property is a
        separate item.
        """
        for name, value in self.declared.items():
            if isinstance(value, Mapping):
                yield from ((name, key, text) for key, text in value.items())
            else:
                yield name, "", value


def needs_of(values: Iterable[tuple[str, str, Value]], options: TableOptions, live: LiveTable | None = None) -> Needs:
    """What values depend on. Each is an attribute, a key and a value: those of a policy with the live table, or those
    that changes lead to.
    """
    return reduce(or_, (attribute(name).needs(key, value, options, live) for name, key, value in values), NO_NEEDS)


def changed_values(changes: Iterable[Change]) -> Iterator[tuple[str, str, Value]]:
    """The values that changes lead to, as ``needs_of`` takes them."""
    return ((each.attribute, each.key, each.after) for each in changes)


def planned_properties(policy: Policy) -> dict[str, str | None]:
    """The properties that a policy sets, including those of attributes, by folded key. If two attributes set one
    property, the first of them decides.
    """
    return {
        key.lower(): value
        for name, declared in reversed([*policy.declared.items()])
        for key, value in attribute(name).planned(declared).items()
    }


def check_declarable(change: Change, dialect: str, options: TableOptions = NO_OPTIONS) -> None:
    """Raises ``ValueError`` for a change that no policy with these options can declare. A plan file must not contain
    one either.
    """
    if change.attribute not in _BY_NAME:
        raise ValueError(f"no policy can ask for {change.id}")
    entry = _BY_NAME[change.attribute]
    entry.check_declarable(change)
    meant = change.key in dict(options.engine_properties) and is_foreign(change.key, dialect)
    if entry.value_type.keyed and not meant:
        key = change.key
        refused = why_refused(key, dialect)
        if refused or canonical_key(key, dialect) != key:
            raise ValueError(refused[0] if refused else f"{key} is spelled {canonical_key(key, dialect)}")
        known = find_known(key, dialect)
        if known and isinstance(change.after, str):
            known.parse(change.after)


def owner_of(key: str) -> str:
    """The id of the declaration that owns a property, as in ``Change.id``: ``isolation``, ``retention.log``; empty if
    the property belongs to no attribute.
    """
    if key.lower().startswith(keys.CONSTRAINTS):
        return f"{Constraints.name}.{key[len(keys.CONSTRAINTS) :]}"
    name = OWNED.get(key.lower(), "")
    fields = attribute(name).value_type.fields if name else ()
    field = next((each.name for each in fields if each.key.lower() == key.lower()), "")
    return f"{name}.{field}" if field else name


def declaration_of(key: str) -> str:
    """The id of the declaration that sets a property: ``retention.log``, ``properties.owner.team``."""
    return owner_of(key) or f"properties.{key}"


def why_refused(key: str, dialect: str) -> tuple[str, str] | None:
    """Why a key must not be declared under ``properties``, and what to do instead; ``None`` if it may be."""
    owner, _, field = owner_of(key).partition(".")
    if owner:
        inner = f"{owner}: {{{field}: …}}" if field else f"{owner}:"
        return f"{key} has an attribute of its own", f"declare `{inner}` instead"
    return why_refused_by_delta(key, dialect)


def is_foreign(key: str, dialect: str) -> bool:
    """Whether a key is one of Delta's form that a dialect does not know, and that no attribute and not Delta itself
    sets.
    """
    free = key.lower().startswith("delta.") and why_never_declared(key) is None and not owner_of(key)
    return free and find_known(key, dialect) is None


def declarable_keys(dialect: str) -> tuple[str, ...]:
    """Every ``delta.*`` key that policies may declare under ``properties`` in a dialect, sorted."""
    return tuple(key for key in known_keys(dialect) if key.lower() not in OWNED)


def attribute(name: str) -> Attribute:
    """The attribute with this name. Raises ``KeyError`` if there is none."""
    return _BY_NAME[name]


_STORED = OWNED.keys() | SWITCHES | ALIASES.keys()


def _is_stored(key: str, properties: Mapping[str, str]) -> bool:
    """Whether the basis of a table names a property."""
    if key.lower().startswith(keys.CONSTRAINTS):
        return constraint_keys(properties, key[len(keys.CONSTRAINTS) :]) != (key.lower(),)
    return key.lower() in _STORED and not other_spelling(key)


def basis_of(live: LiveTable, options: TableOptions = NO_OPTIONS, runtime: str = "") -> Basis:
    """The basis of a live table under the options of its policy, for a Databricks Runtime if it is known."""
    return Basis(
        protocol=ProtocolFact.of(live.protocol),
        partitioned=bool(live.partition_columns),
        clustered=live.clustering is not None,
        identity=live.schema.has_identity(),
        schema_writers=live.schema_writers,
        overwrites=live.overwrites,
        clients=client_facts(live),
        partition_writers=partition_writers(live),
        evidence=writer_evidence(live),
        vectors=live.vectors,
        files=live.files,
        bytes=live.bytes,
        nested=any(each.fields or each.within for each in live.schema.fields),
        stored=tuple(sorted(pair for pair in live.properties.items() if _is_stored(pair[0], live.properties))),
        widened=TYPE_CHANGES in live.schema.text,
        marks=live.marks,
        truncation=live.truncation.due if live.truncation else 0,
        options=options,
        metadata_version=live.catalog.metadata_version if live.catalog else None,
        runtime=runtime,
    )


HIDDEN = "••••••"
_BEFORE_KEY = ("access", "account", "api", "auth", "encrypt", "master", "private", "service", "shared", "sign")
SECRET_KEYS = (
    *("*password*", "*passwd*", "*passphrase*", "*secret*", "*token*", "*credential*"),
    *(f"*{word}*key*" for word in _BEFORE_KEY),
)
"""The default of ``reports.mask``: keys that look like secrets. No key that Delta knows is among them, and no key whose
name is that of columns, such as ``primary_key`` or ``partition.keys``.
"""
_OWNERS = frozenset(OWNED.values())


@dataclass(frozen=True)
class MaskedKeys:
    """Globs over property keys (``*password*``, ``owner.*``), without regard to letter case."""

    patterns: tuple[str, ...] = ()

    @cached_property
    def _keys(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(each) for each in self.patterns), re.IGNORECASE)

    @cached_property
    def _attributes(self) -> frozenset[str]:
        return frozenset(attribute for key, attribute in OWNED.items() if self.hides(key))

    def hides(self, key: str) -> bool:
        """Whether the values of a property are hidden."""
        return bool(self.patterns) and self._keys.match(key) is not None

    def hides_value(self, attribute: str, key: str) -> bool:
        """Whether the values of an attribute are hidden. ``key`` is that of a change."""
        of_property = key and attribute not in _OWNERS
        return bool(self.patterns) and (self.hides(key) if of_property else attribute in self._attributes)


NO_MASK = MaskedKeys()
