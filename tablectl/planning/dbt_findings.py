"""What a dbt project sets on a table, next to what a policy declares: entries, and findings B001 to B003.

dbt's settings are read as the state of a table, by the attributes themselves. So both sides are compared as a plan
compares a policy with a table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tablectl.attributes.policy import declaration_of
from tablectl.delta import keys
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.keys import NOTHING_SET
from tablectl.delta.names import parse_column
from tablectl.delta.properties import canonical_key
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Schema
from tablectl.lint_rules.rule import RuleFinding
from tablectl.model.commit import Commit
from tablectl.model.plan import Change, Value
from tablectl.model.stamp import read_stamp
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.import_table import policy_of_table, values_of_table
from tablectl.policies.dbt_manifest import DbtTable
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.write_yaml import TableEntry
from tablectl.support.json_text import read_json

_FEATURES: Mapping[str, str] = {
    keys.DELETION_VECTORS: "deletionVectors",
    keys.ROW_TRACKING: "rowTracking",
    keys.COLUMN_MAPPING: "columnMapping",
}
_CLUSTERING_PARAMETERS = ("newClusteringColumns", "clusterBy")


def dbt_entry(table: DbtTable, catalog: str, dialect: str = DEFAULT_DIALECT) -> TableEntry:
    """The policy entry that declares what dbt sets. Raises ``NameSyntaxError`` if no policy can name the table."""
    return policy_of_table(_state(table), dialect, catalog, located=False)


def taken_lines(table: DbtTable, entry: TableEntry, dialect: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The lines of dbt's configuration that the entry declares, and what the other lines set: they stay in dbt."""
    declared = {f"{name}.{key}" if key else name for name, key, _ in entry.declared}
    taken = {about for about in table.lines if {about, declaration_of(canonical_key(about, dialect))} & declared}
    lines = tuple(line for about, line in table.lines.items() if about in taken)
    return lines, tuple(about for about in table.lines if about not in taken)


def _state(table: DbtTable, spelled: Mapping[str, str] = NOTHING_SET) -> LiveTable:
    """A table without columns that is as dbt's settings say. ``spelled`` is the spelling of columns, by the name in
    lower case: Spark finds a column in any letter case, and the table has its own.
    """

    def columns(texts: tuple[str, ...] | None) -> tuple[tuple[str, ...], ...] | None:
        return None if texts is None else tuple(parse_column(spelled.get(each.lower(), each)) for each in texts)

    clustering, partitioning = columns(table.clustering), columns(table.partitioning)
    features = {feature for key, feature in _FEATURES.items() if key in table.properties}
    features |= {"clustering", "domainMetadata"} if table.clustering is not None else set()
    readers = frozenset(features & {"deletionVectors", "columnMapping"})
    return LiveTable(
        name=table.name,
        location="",
        version=0,
        table_id="",
        protocol=Protocol(3, 7, readers, frozenset(features)),
        schema=Schema(),
        partition_columns=tuple(".".join(each) for each in partitioning or ()),
        clustering=clustering,
        properties=dict(table.properties),
    )


def dbt_findings(
    spec: TableSpec, tables: Sequence[DbtTable], history: Sequence[Commit], dialect: str
) -> Iterator[RuleFinding]:
    """What both the policy and a dbt project set on a table. ``history`` are its recent commits, newest first."""
    policy = (spec.policy.clustering, spec.policy.partitioning)
    spelled = {column.lower(): column for columns in policy if isinstance(columns, tuple) for column in columns}
    for table in tables:
        state = _state(table, spelled)
        told = (each for each in values_of_table(state, dialect) if not isinstance(each, str))
        theirs = {f"{name}.{key}" if key else name for name, key, _ in told}
        changes = {each.id: each for each in diff(spec.policy, state, dialect)}
        for about in sorted(theirs & spec.sources.keys()):
            source = spec.sources[about]
            places = f"{source.file}:{source.line} and {table.file} ({table.model})"
            change = changes.get(about)
            if change is None:
                yield RuleFinding("B001", f"{about} is set in two places, alike: {places}", about)
            else:
                yield RuleFinding("B002", f"{_apart(change)}: {places}", about)
            alternating = tuple(_values(about, history))
            if len(alternating) > 2:
                yield RuleFinding("B003", f"{about} alternates: {_story(alternating)}", about)


def _apart(change: Change) -> str:
    return f"the policy declares {change.id} as {_shown(change.after)}, dbt sets {_shown(change.before)}"


def _shown(value: Value) -> str:
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else str(value)


def _values(about: str, history: Sequence[Commit]) -> Iterator[tuple[int, str, str]]:
    """Version, value and author of each commit that changed a property or the clustering columns, oldest first."""
    last = None
    for commit in reversed(history):
        value = _value(about, commit.parameters)
        if value is not None and value != last:
            last = value
            who = "tablectl" if read_stamp(commit.user_metadata) else commit.client.text()
            yield commit.version, value, who


def _value(about: str, parameters: Mapping[str, str]) -> str | None:
    if about == "clustering":
        return next((parameters[each] for each in _CLUSTERING_PARAMETERS if parameters.get(each)), None)
    try:
        found = read_json(parameters.get("properties", "{}"))
    except ValueError:
        return None
    values = found.items() if isinstance(found, dict) else ()
    return next((each for key, each in values if isinstance(each, str) and declaration_of(key) == about), None)


def _story(values: Sequence[tuple[int, str, str]]) -> str:
    told = [f"{value} by {who} in version {version}" for version, value, who in values[-4:]]
    return ", then ".join(told)
