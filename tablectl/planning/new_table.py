"""What a new table needs to agree with its policy from its first commit on, and the one CREATE TABLE that makes it.

The attributes say it, in operations (``Attribute.born``). A CREATE TABLE, and each maker of tables
(``planning.table_makers``), writes the same operations in its own words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tablectl.attributes.base import ChangeTarget
from tablectl.attributes.column_mapping import why_needed
from tablectl.attributes.policy import Policy, attribute, basis_of
from tablectl.delta import keys
from tablectl.delta.names import TableName, column_sql, parse_column, quote_text
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import parse_schema
from tablectl.delta.schema_sql import columns_sql, new_schema, with_null
from tablectl.model.operations import (
    ClusterBy,
    DropNotNull,
    Operation,
    Repartition,
    SetNotNull,
    SetProperties,
    UnsetManaged,
)
from tablectl.model.operations.base import clauses
from tablectl.model.operations.layout import clustering_sql
from tablectl.model.plan import Refusal
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tablectl.planning.derive_statements import derive_table, operations_for
from tablectl.planning.diff import diff
from tablectl.planning.locked_out_clients import brought_back, protocol_refusals

_FIRST = Protocol(1, 1)
_SAID = (SetNotNull, DropNotNull, UnsetManaged)
"""What the statement itself says: in its columns, and by its location."""
_MANAGED = "Unity Catalog owns the storage of each table that is created without a location"


@dataclass(frozen=True, slots=True)
class Birth:
    """What a new table is created with."""

    properties: tuple[tuple[str, str], ...] = ()
    """Sorted by key."""
    partitions: tuple[str, ...] = ()
    clustering: ClusterBy | None = None
    later: tuple[Operation, ...] = ()
    """What no clause of a CREATE TABLE says: parts of its columns, and statements for the table that exists."""


def birth_of(policy: Policy) -> Birth:
    """What a policy needs of a new table. If two attributes set one property, the first of them decides."""
    declared = reversed([*policy.declared.items()])
    born = [operation for name, value in declared for operation in attribute(name).born(value)]
    set_ = [pair for each in born if isinstance(each, SetProperties) for pair in each.values]
    properties = {key.lower() if key.lower().startswith("delta.") else key: (key, value) for key, value in set_}
    partitions = [each.columns for each in born if isinstance(each, Repartition)]
    clustering = [each for each in born if isinstance(each, ClusterBy)]
    known = (SetProperties, Repartition, ClusterBy)
    return Birth(
        properties=tuple(sorted(properties.values())),
        partitions=partitions[0] if partitions else (),
        clustering=clustering[0] if clustering else None,
        later=tuple(each for each in born if not isinstance(each, known)),
    )


def partitions_sql(columns: Sequence[str]) -> str:
    """The columns of ``PARTITIONED BY``, in parentheses."""
    return f"({', '.join(column_sql((each,)) for each in columns)})"


def birth_clauses(birth: Birth, location: str = "") -> tuple[str, ...]:
    """The clauses of a CREATE TABLE after its columns."""
    pairs = [f"{quote_text(key)} = {quote_text(value)}" for key, value in birth.properties]
    clustered = birth.clustering and clustering_sql(birth.clustering.columns, automatic=birth.clustering.automatic)
    return (
        "USING DELTA",
        *([f"PARTITIONED BY {partitions_sql(birth.partitions)}"] if birth.partitions else []),
        *([f"CLUSTER BY {clustered}"] if clustered else []),
        *([f"LOCATION {quote_text(location)}"] if location else []),
        *(clauses("TBLPROPERTIES", pairs) if pairs else ()),
    )


@dataclass(frozen=True, slots=True)
class PlannedBirth:
    """The CREATE TABLE of one table."""

    schema: str
    """The schema that the table gets, in Spark's JSON."""
    sql: str
    refusals: tuple[Refusal, ...] = ()
    """Why no table with these columns can have what the policy declares."""
    later: tuple[Operation, ...] = ()
    """Statements for the table that exists, which a plan holds."""


def plan_birth(
    name: TableName,
    schema: str,
    policy: Policy,
    dialect: str,
    options: TableOptions = NO_OPTIONS,
    location: str = "",
) -> PlannedBirth:
    """The CREATE TABLE of a table with these columns. Raises ``ValueError`` for a schema that is not one, or that the
    statement cannot make.
    """
    text = new_schema(schema)
    birth, refused = birth_of(policy), tuple[Refusal, ...]()
    for each in birth.later:
        if isinstance(each, SetNotNull | DropNotNull):
            text = with_null(text, parse_column(each.column), allowed=isinstance(each, DropNotNull))
    columns = ",\n".join(f"  {each}" for each in columns_sql(text))
    sql = "\n".join((f"CREATE TABLE {name.sql} (", columns, ")", *birth_clauses(birth, location)))
    if UnsetManaged() in birth.later:
        refused = () if location else (Refusal(change="managed", reason=_MANAGED, fix="declare its `location`"),)
    refusals = (*refused, *_names(text, birth), *_refusals(name, text, policy, dialect, options))
    later = tuple(each for each in birth.later if not isinstance(each, _SAID))
    return PlannedBirth(text, sql, refusals, later)


def _names(schema: str, birth: Birth) -> tuple[Refusal, ...]:
    """The names that need column mapping."""
    bad = why_needed(parse_schema(schema))
    if not bad or any(key == keys.COLUMN_MAPPING and value != "none" for key, value in birth.properties):
        return ()
    return (Refusal(change="columns", reason=bad, fix="choose another name, or declare `column_mapping: name`"),)


def _refusals(name: TableName, schema: str, policy: Policy, dialect: str, options: TableOptions) -> tuple[Refusal, ...]:
    live = LiveTable(name, "", 0, "", _FIRST, parse_schema(schema))
    changes = diff(policy, live, dialect)
    basis = basis_of(live, options)
    planned = operations_for(changes, basis)
    after = {key.lower(): value for each in planned for key, value in each.operation.properties.items()}
    ids = frozenset(change.id for change in changes)
    target = ChangeTarget(dialect, MappingProxyType(after), options, ids, tuple(each.operation for each in planned))
    found = tuple(
        reason.about(change.id)
        for change in changes
        for reason in attribute(change.attribute).birth_refusals(change, live, target)
    )
    derived = derive_table(changes, basis, name, dialect, planned)
    return found or (*brought_back(policy, derived), *protocol_refusals(derived))
