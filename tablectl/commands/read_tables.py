"""How every command finds and reads the tables that it takes: expands patterns, looks up names, reads each table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from tablectl.commands.parameters import Choice
from tablectl.commands.project import Project
from tablectl.commands.selection import ChangedSince, Selection, selects
from tablectl.delta.names import NameSyntaxError, TableName, parse_table
from tablectl.documents.style import plural
from tablectl.log.find_tables import PatternMatches, find_paths, find_tables
from tablectl.log.find_tables import locate_tables as look_up_tables
from tablectl.log.reader import Reading, ReadRequest, read_each
from tablectl.log.worker_processes import in_order, threads_for
from tablectl.model.errors import EngineError, LiveError, MissingError, TablectlError, of_table
from tablectl.model.patterns import (
    ANY_DEPTH,
    CatalogPattern,
    PathPattern,
    TablePattern,
    index_patterns,
)
from tablectl.model.plan import TableFailure
from tablectl.model.table import Depth, LiveTable
from tablectl.planning.plan_file import Shard
from tablectl.policies.changed_policies import policies_at, policies_in
from tablectl.policies.declared_tables import Specs, TableSpec, digest_of_tables, expand
from tablectl.policies.merge_layers import Layer
from tablectl.policies.read_config import BASE
from tablectl.policies.repository import ASKED
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.storage.mounts import own_place

_ALL = Selection()
_RIGHTS = "check the pattern and the rights of the login: a catalog lists only the tables that the login may see"
NO_TABLE = "matches no table"
"""Why a pattern of the command line failed."""
NO_TABLE_BELOW = "holds no Delta table: no folder in it has a _delta_log"
"""The same of a folder or an address."""
_TOO_FEW = f"{_RIGHTS}. If there are none yet, declare `may_be_empty: true` under the pattern"

_Made = TypeVar("_Made")
OnRead = Callable[[int, int], None]
"""Progress callback: the number of tables that were read, and the number of all tables."""


def ignore_progress(_done: int, _all: int) -> None:
    """Does nothing."""


def chosen_tables(
    project: Project, choice: Choice, shard: Shard | None = None, *, compares: bool = False
) -> tuple[Specs, Selection]:
    """The policies that a command reads, and the tables that it selects. The selection has the policies to compare
    with: those of ``--changed-since``; if the command ``compares``, otherwise those of the base branch, next to the
    file that ``TABLECTL_BASE_CONFIG`` names.

    Raises as ``Project.policies``, and ``UsageError`` if Git does not know the commit of ``--changed-since``.
    """
    selection, specs = replace(choice.selection, shard=shard), project.policies(choice.paths)
    base, given = compares and project.environ.get(BASE), (project.config, project.given, project.environ)
    if not choice.changed_since and not base:
        return specs, selection
    if not choice.changed_since:
        return specs, replace(selection, earlier=policies_in(Path(base or "").parent, *given))
    earlier = policies_at(choice.changed_since, project.directory, *given)
    return specs, replace(selection, changed=ChangedSince(earlier.commit, earlier.differ), earlier=earlier)


def locate_tables(project: Project, specs: Specs, selection: Selection) -> LocatedTable:
    """The selected tables with their locations. Policies that name no table are a failure. Raises as ``locate``."""
    located = locate(project, specs, selection)
    if specs.tables or specs.patterns or selection.changed:
        return located
    hint = "declare tables or patterns under `tables:`; `tablectl import` writes policies of live tables"
    nothing = TableFailure(name="*", message="no policy names a table", hint=hint)
    return replace(located, failures=(*located.failures, nothing))


def sorted_failures(failures: Iterable[TableFailure]) -> tuple[TableFailure, ...]:
    """The failures in the order of plans: by table and message."""
    return tuple(sorted(failures, key=lambda failure: (failure.name, failure.message)))


def read_tables(
    project: Project,
    located: LocatedTable,
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    make: Callable[[TableSpec, Reading], _Made],
    on_read: OnRead,
    failures: list[TableFailure],
) -> Iterator[tuple[TableSpec, _Made]]:
    """As ``read_located``, for the tables that can be read. The others are added to ``failures``."""
    for spec, _, made in read_located(project, located.tables, depth_of, make, on_read):
        if isinstance(made, TablectlError):
            failures.append(failure_of(spec.name.text, made))
        else:
            yield spec, made


def read_located(
    project: Project,
    tables: Sequence[tuple[TableSpec, str]],
    depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]],
    make: Callable[[TableSpec, Reading], _Made],
    on_read: OnRead,
) -> Iterator[tuple[TableSpec, str, _Made | TablectlError]]:
    """What ``make`` makes of each located table, in their order; or why it cannot be read. A table is read to the depth
    that ``depth_of`` returns. ``make`` runs where the table was read (``read_each``).
    """
    found = read_each(
        (ReadRequest(spec.name, where, partial(_depth, depth_of, spec)) for spec, where in tables),
        lambda reading: make(tables[reading.position][0], reading),
        cache=project.cache,
        options=project.stores,
    )
    with closing(found):
        for done, ((spec, where), made) in enumerate(zip(tables, found, strict=True), 1):
            on_read(done, len(tables))
            yield spec, where, made


def in_threads(
    project: Project, tables: Sequence[tuple[TableSpec, str]], work: Callable[[TableSpec, str], _Made]
) -> Iterator[tuple[TableSpec, str, _Made | TablectlError]]:
    """What ``work`` makes of each located table, several at a time, in their order; or why it cannot."""

    def one(each: tuple[TableSpec, str]) -> tuple[TableSpec, str, _Made | TablectlError]:
        return *each, of_table(each[0].name.text, lambda: work(*each))

    return in_order(one, tables, threads_for((where for _, where in tables), project.stores))


def _depth(depth_of: Callable[[TableSpec], Callable[[LiveTable], Depth]], spec: TableSpec, live: LiveTable) -> Depth:
    """The depth of a table, found where the table is read: an error there is the table's."""
    return depth_of(spec)(live)


@dataclass(frozen=True, slots=True)
class LocatedTable:
    """The selected tables with their locations."""

    tables: tuple[tuple[TableSpec, str], ...]
    failures: tuple[TableFailure, ...]
    """Tables that could not be located, and patterns that could not be looked up or match too few tables."""
    unmatched: tuple[str, ...]
    """Patterns that match no live table, and may."""
    others: tuple[str, ...] = ()
    """Why something that a pattern matches is not a Delta table."""
    missing: frozenset[str] = frozenset()
    """The names among the failures that no table has."""
    policies: str = ""
    """``Plan.policies``."""
    changed_since: str = ""
    """``Plan.changed_since``."""


def locate(project: Project, specs: Specs, selection: Selection = _ALL) -> LocatedTable:
    """Expands patterns, selects tables, and locates them. An engine is started only if the policies do not locate a
    table. Raises as ``expand`` and ``Selection.of``.
    """
    patterns = selection.concerned(specs.patterns)
    found = _one_case_each(_without_ignored(_find(project, patterns), project.config.ignore, specs))
    selected = selection.of(expand(specs, found.tables), complete=not found.failures)
    declared = {each.pattern: each for each in specs.declarations.patterns}
    places = {each.text: declared[each].source for each in patterns if declared[each].source.file == ASKED}
    failures = _one_each(places, found.failures)
    failed = {name for name, _ in found.failures}
    lost = {places[name] for name in failed & places.keys()}
    index = index_patterns(patterns)
    counts = Counter(at for name in found.tables for at in index.candidates(name) if patterns[at].matches(name))
    counted = _counted((declared[each], counts[at]) for at, each in enumerate(patterns) if each.text not in failed)
    if not (selection.globs or selection.tags):  # a glob or tag that selects nothing is an error of its own
        looked = ((each, count) for each, count in counted if each.source not in lost)
        failures += [_too_few(each, count) for each, count in looked if not _fits(each, count)]
    unmatched = (each.text for each, count in counted if not count and _fits(each, count))
    locations = _locations(project, selected)
    failures += [failure_of(name.text, where) for name, where in locations.items() if not isinstance(where, str)]
    known = ((spec, locations[spec.name]) for spec in selected)
    placed, shared = _one_name_each([(spec, where) for spec, where in known if isinstance(where, str)])
    # Only now, so that every shard notices a table with two names.
    mine = tuple(each for each in placed if selection.shard is None or selection.shard.has(each[0].name.key))
    return LocatedTable(
        tables=mine,
        failures=(*failures, *shared),
        unmatched=tuple(sorted(unmatched)),
        others=tuple(sorted(found.others)),
        missing=frozenset(name.text for name, where in locations.items() if isinstance(where, MissingError)),
        policies=digest_of_tables(selected) if selection.changed else specs.digest,
        changed_since=selection.changed.commit if selection.changed else "",
    )


def _one_each(places: Mapping[str, SourceFile], failures: Sequence[tuple[str, TablectlError]]) -> list[TableFailure]:
    """The failures of patterns. The patterns of one place on the command line fail together."""
    found: dict[tuple[SourceFile | str, str], TableFailure] = {}
    for name, error in failures:
        found.setdefault((places.get(name, name), error.message), failure_of(name, error))
    return list(found.values())


def _counted(counts: Iterable[tuple[Layer, int]]) -> list[tuple[Layer, int]]:
    """How many tables each pattern matches. Those of one place on the command line are counted together."""
    found: dict[SourceFile, tuple[Layer, int]] = {}
    for layer, count in counts:
        first, before = found.get(layer.source, (layer, 0))
        found[layer.source] = first, before + count
    return list(found.values())


def _fits(pattern: Layer, count: int) -> bool:
    return count >= pattern.min_tables or (count == 0 and pattern.may_be_empty)


def _too_few(pattern: Layer, count: int) -> TableFailure:
    """A catalog lists only what the login may see. So fewer tables than declared can mean a lost right."""
    if isinstance(pattern.target, PathPattern) and pattern.target.steps == (ANY_DEPTH,):
        return TableFailure(name=pattern.target.base, message=NO_TABLE_BELOW)
    if pattern.source.file == ASKED:
        return TableFailure(name=pattern.text, message=NO_TABLE, hint=_RIGHTS)
    least, place = pattern.min_tables, f"{pattern.source.file}:{pattern.source.line}"
    message = f"matches {plural(count, 'table')}, and `min_tables` is {least}" if count else "matches no table"
    return TableFailure(name=pattern.text, message=f"{message} ({place})", hint=_TOO_FEW)


def _find(project: Project, patterns: Sequence[TablePattern]) -> PatternMatches:
    found = find_paths([each for each in patterns if isinstance(each, PathPattern)], project.stores)
    named = [each for each in patterns if isinstance(each, CatalogPattern)]
    if not named:
        return found
    try:
        return PatternMatches.all((found, find_tables(named, project.open_catalog())))
    except EngineError as error:  # the engine does not start
        return PatternMatches.all((found, PatternMatches(failures=tuple((each.text, error) for each in named))))


def _without_ignored(found: PatternMatches, ignored: Sequence[str], specs: Specs) -> PatternMatches:
    """Without the tables that ``ignore`` of ``tablectl.yaml`` leaves out, and without what failed about them: a table
    that a job makes and drops again can be gone when it is looked at. A table that is named is never left out.
    """
    if not ignored:
        return found
    named = {spec.name.key for spec in specs.tables}

    def kept(name: TableName) -> bool:
        return name.key in named or not any(selects(glob, name) for glob in ignored)

    def counts(text: str) -> bool:
        try:
            return kept(parse_table(text))
        except NameSyntaxError:  # a pattern
            return True

    tables = {name: where for name, where in found.tables.items() if kept(name)}
    return PatternMatches(tables, tuple(each for each in found.failures if counts(each[0])), found.others)


def _one_case_each(found: PatternMatches) -> PatternMatches:
    """The tables whose names differ in more than letter case. Policies, like Spark, take such names for one table, and
    a catalog that keeps the case can hold both.
    """
    names: dict[str, list[TableName]] = {}
    for name in found.tables:
        if not name.is_path:  # a directory has several spellings
            names.setdefault(name.key, []).append(name)
    several = [each for each in names.values() if len({found.tables[name] for name in each}) > 1]
    told = [(one, other) for each in several for one, other in zip(each, [*each[1:], each[0]], strict=True)]
    hint = "give one of them another name"
    errors = [
        (one.text, LiveError(f"its name differs from {other.text} in letter case alone", hint)) for one, other in told
    ]
    twice = {one for one, _ in told}
    tables = {name: where for name, where in found.tables.items() if name not in twice}
    return PatternMatches(tables, (*found.failures, *errors), found.others)


def _locations(project: Project, specs: Sequence[TableSpec]) -> Mapping[TableName, str | TablectlError]:
    known = {spec.name: spec.name.parts[0] if spec.name.is_path else spec.location for spec in specs}
    asked = [name for name, where in known.items() if not where]
    try:
        looked = look_up_tables(asked, project.open_catalog()) if asked else {}
    except EngineError as error:  # as above
        looked = dict.fromkeys(asked, error)
    return {name: where or looked[name] for name, where in known.items()}


def _one_name_each(placed: Sequence[tuple[TableSpec, str]]) -> tuple[list[tuple[TableSpec, str]], list[TableFailure]]:
    """The tables to which only one name refers. Two policies for one table would undo each other in every run."""
    places = [of_table(spec.name.text, partial(own_place, location)) for spec, location in placed]
    names: dict[str, list[TableName]] = {}
    for (spec, _), where in zip(placed, places, strict=True):
        if isinstance(where, str):
            names.setdefault(where, []).append(spec.name)
    alone, shared = list[tuple[TableSpec, str]](), list[TableFailure]()
    for (spec, location), where in zip(placed, places, strict=True):
        if not isinstance(where, str):
            shared.append(failure_of(spec.name.text, where))
            continue
        others = [name.text for name in names[where] if name != spec.name]
        if others:
            message = f"the policies name this table twice: {' and '.join(others)} lies in {location} too"
            hint = "declare it under one name, and match it by no pattern under another"
            shared.append(TableFailure(name=spec.name.text, message=message, hint=hint))
        else:
            alone.append((spec, location))
    return alone, shared


def failure_of(name: str, error: TablectlError) -> TableFailure:
    """The plan's record of a failed table."""
    create = (
        "if it has another name now, `tablectl rename` gives that to its policy; if no job has made it yet, "
        "`tablectl create` makes it with its policy"
    )
    hints = (error.hint, create if isinstance(error, MissingError) else "")
    return TableFailure(name=name, message=error.message, hint="; ".join(filter(None, hints)))
