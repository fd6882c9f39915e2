"""The lines of the policies that declare the changes of a plan. They are derived from the policies and not stored in
the plan file.

The bytes of a plan depend on the declarations and the live tables, not on the layout of files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tablectl.delta.names import NameSyntaxError, TableName, canonical_location, parse_table
from tablectl.policies.resolve import resolve
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile

Sources = Mapping[str, Mapping[str, SourceFile]]
"""By table and change id. The empty id is the table's own key, or the key of a pattern that matches it."""


def policy_lines_of(specs: Specs, tables: Iterable[str]) -> Sources:
    """The positions for tables by name. Tables to which no policy applies (any more) are missing."""
    named = {spec.name.key: spec for spec in specs.tables}
    placed = {canonical_location(spec.location): spec for spec in specs.tables if spec.location}
    found: dict[str, Mapping[str, SourceFile]] = {}
    for text in tables:
        try:
            name = parse_table(text)
        except NameSyntaxError:  # a plan of another version
            continue
        spec = named.get(name.key) or placed.get(name.key) or _by_pattern(specs, name)
        if spec is not None:
            found[text] = {**spec.sources, "": spec.declared}
    return found


def _by_pattern(specs: Specs, name: TableName) -> TableSpec | None:
    patterns = specs.declarations.matching(name)
    return resolve([(name, patterns)], specs.declarations.profiles, [])[0] if patterns else None
