"""Turns declarations into the specs of tables: those named in the files, and live tables that patterns match."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tablectl.delta.names import TableName
from tablectl.frozen import frozen
from tablectl.model.errors import InputError, Problem
from tablectl.policies.declarations import MOST_MATCHING, Declaration, Declarations, Profile, rank
from tablectl.policies.policy_fields import options_of, window_of
from tablectl.policies.precedence import (
    DeclaredValue,
    LayerKind,
    ResolvedValue,
    check_exclusive,
    effective,
    merge,
    policy_of,
)
from tablectl.policies.spec import Specs, TableSpec, in_order
from tablectl.policies.suggestions import shown
from tablectl.policies.yaml_nodes import SourceFile


def expand(specs: Specs, found: Mapping[TableName, str]) -> Specs:
    """The specs, with those of live tables that patterns match. ``found`` maps each table to its location.

    A table named in the files keeps its spec, and gets its location from ``found`` if the files do not declare one.
    Raises ``InputError`` if patterns contradict each other about a table, or give it both clustering and partitioning.
    """
    named = {spec.name.key: spec for spec in specs.tables}
    fresh: dict[str, TableName] = {}
    for name in sorted(found, key=lambda name: (name.key, name.text)):
        spec = named.get(name.key)
        if spec is None:
            fresh.setdefault(name.key, name)
        elif spec.location is None and not spec.name.is_path:
            named[name.key] = replace(spec, location=found[name])
    problems: list[Problem] = []
    matched = ((name, specs.declarations.matching(name)) for name in fresh.values())
    applying = ((name, patterns) for name, patterns in matched if patterns)
    added = resolve(applying, specs.declarations.profiles, problems)
    if problems:
        raise InputError(tuple(dict.fromkeys(problems)))
    placed = (spec if spec.name.is_path else replace(spec, location=found[spec.name]) for spec in added)
    return replace(specs, tables=in_order((*named.values(), *placed)))


def resolve(
    tables: Iterable[tuple[TableName, Sequence[Declaration]]], profiles: Mapping[str, Profile], problems: list[Problem]
) -> list[TableSpec]:
    """The spec of each table from the declarations that apply to it, which are sorted with the highest precedence
    first.
    """
    ties: dict[tuple[str, SourceFile, SourceFile], _Tie] = {}
    crowded = False
    specs: list[TableSpec] = []
    for name, declarations in tables:
        if sum(each.pattern is not None for each in declarations) > MOST_MATCHING:
            if not crowded:
                problems.append(_crowded(name, declarations[-1]))
            crowded = True
            continue
        resolved = merge(rank(declarations, profiles))
        exclusive = check_exclusive(resolved)
        if exclusive:
            problems.append(exclusive)
        for each in resolved:
            if each.tie:
                place = (each.key, each.won.source, each.tie.source)
                ties.setdefault(place, _Tie(each, each.tie, [])).tables.append(name)
        specs.append(_spec(name, resolved, declarations[0].source))
    problems.extend(tie.problem() for tie in ties.values())
    return specs


def _crowded(name: TableName, last: Declaration) -> Problem:
    message = f"{shown(name.text)} is matched by more than {MOST_MATCHING} patterns, of which this is one"
    return last.source.problem(message, "write fewer patterns that overlap")


def _spec(name: TableName, resolved: Sequence[ResolvedValue], declared: SourceFile) -> TableSpec:
    values = effective(resolved)
    location, tags = values.get("location"), values.get("tags")
    return TableSpec(
        name=name,
        policy=policy_of(values),
        options=options_of(values),
        window=window_of(values),
        owner=str(values["owner"].value) if "owner" in values else "",
        location=str(location.value) if location else None,
        tags=tuple(tags.value or ()) if tags else (),
        sources={key: given.source for key, given in values.items() if key not in {"tags", "profiles"}},
        declared=declared,
    )


def check_patterns(declarations: Declarations) -> Iterator[Problem]:
    """Problems of patterns that do not depend on the tables they match."""
    for each in declarations.patterns:
        exclusive = check_exclusive(merge(rank((each,), declarations.profiles)))
        if exclusive:
            yield exclusive


@frozen
class _Tie:
    """Two layers of one rank with different declarations for a key, and the affected tables."""

    resolved: ResolvedValue
    other: DeclaredValue
    tables: list[TableName]

    def problem(self) -> Problem:
        """The problem, at the later of the two positions. It names the other one."""
        one, other = self.other, self.resolved.won
        more = f" and {len(self.tables) - 1} more" if len(self.tables) > 1 else ""
        message = (
            f"`{self.resolved.key}` of {shown(self.tables[0].text)}{more} is {_value_text(one)} {_where(one)} here "
            f"and {_value_text(other)} {_where(other)} at {other.source}, and neither outweighs the other"
        )
        return one.source.problem(message, _OUTWEIGHS.get(one.kind, ""))


def _value_text(declared_value: DeclaredValue) -> str:
    match declared_value.given and declared_value.given.shown():
        case str() as text:
            return shown(text)
        case tuple() as items:
            return f"[{', '.join(items)}]"
        case _:
            return "null" if declared_value.given else "unmanaged"


def _where(declared_value: DeclaredValue) -> str:
    if declared_value.kind is LayerKind.DEFAULTS:
        return "in the defaults"
    return f"by the {declared_value.kind} {shown(declared_value.name)}"


_OUTWEIGHS = {
    LayerKind.PATTERN: "of patterns the one with more literal characters wins, and a table's own entry wins over all "
    "of them",
    LayerKind.PROFILE: "attach one of the two profiles, or declare the value at the table or its pattern",
    LayerKind.DEFAULTS: "declare the value at the table, at its pattern or in a profile",
}
"""What to do about two layers of one rank that contradict each other."""
