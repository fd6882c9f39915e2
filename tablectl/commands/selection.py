"""Which tables a command takes: the globs of ``--select`` and ``--exclude``, tags, shards and changed policies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fnmatch import fnmatchcase

from tablectl.delta.names import TableName, matches
from tablectl.model.errors import UsageError
from tablectl.model.patterns import (
    CatalogPattern,
    GlobBeginnings,
    NameGlobs,
    TablePattern,
    index_globs,
)
from tablectl.planning.plan_file import Shard
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import is_word
from tablectl.support.frozen import frozen


@frozen
class ChangedSince:
    """The choice of tables whose policies differ from those at a commit."""

    commit: str
    differ: Callable[[TableSpec], bool]
    """Whether a table's policy does."""
    whole: bool = True
    """Whether the specs are those of all policy files; otherwise a glob can match tables that are not among them."""


@frozen
class Selection:
    """The tables that a command selects: those that match any glob and any tag. An empty selection selects
    all tables.
    """

    globs: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()
    """Globs of tables to exclude. They take precedence."""
    shard: Shard | None = None
    """The part of the selected tables to read; ``None`` for all of them."""
    changed: ChangedSince | None = None
    """``None`` to take tables whose policies did not change, too."""

    def of(self, specs: Specs, *, complete: bool = True) -> tuple[TableSpec, ...]:
        """The selected tables. Raises ``UsageError`` for a glob or tag that matches none: a typo must not look like
        success.

        If the specs are not ``complete``, because a pattern could not be looked up, this check is skipped.
        """
        wanted, unwanted = _matching(self.globs, specs), _matching(self.excluded, specs)
        selected = tuple(
            spec
            for spec, these, others in zip(specs.tables, wanted, unwanted, strict=True)
            if (not self.globs or these) and not others and (not self.tags or set(self.tags) & set(spec.tags))
        )
        if complete and (self.changed is None or self.changed.whole):
            _check_matched("--select", self.globs, wanted)
            _check_matched("--exclude", self.excluded, unwanted)
            self._check(specs, selected)
        return selected if self.changed is None else tuple(filter(self.changed.differ, selected))

    def _check(self, specs: Specs, selected: Sequence[TableSpec]) -> None:
        tagged = {tag for spec in specs.tables for tag in spec.tags}
        for tag in self.tags:
            if tag not in tagged:
                known = ", ".join(sorted(tagged)) or "there are none"
                raise UsageError(f"--tag {tag!r} is on no table", f"tags in these policies: {known}")
        if specs.tables and not selected and self.excluded:
            raise UsageError("--exclude leaves no table", "exclude less, or select other tables")
        if specs.tables and not selected:
            raise UsageError("no table is both in --select and in --tag", "leave one of the two out")

    def concerned(self, patterns: Iterable[TablePattern]) -> list[TablePattern]:
        """The patterns that can yield a selected table. Compares how names begin, so that a plan of one table does not
        list catalogs that cannot contain it.
        """
        if not self.globs:
            return list(patterns)
        globs = ["*" if _is_short(each) else each for each in self.globs]
        paths, names = GlobBeginnings.of(globs), GlobBeginnings.of(glob.casefold() for glob in globs)
        return [
            each
            for each in patterns
            if any(map((names if isinstance(each, CatalogPattern) else paths).may_match, each.prefixes))
        ]


def _matching(globs: Sequence[str], specs: Specs) -> list[frozenset[int]]:
    """The positions of the globs that match each table."""
    index = NameGlobs.of([_glob(each) for each in globs])
    short = [place for place, glob in enumerate(globs) if _is_short(glob)]
    lasts = index_globs([globs[place].casefold() for place in short])
    return [
        index.matching(spec.name).union(
            short[each]
            for each in lasts.candidates_of(spec.name.last.casefold())
            if _calls(globs[short[each]], spec.name)
        )
        for spec in specs.tables
    ]


def selects(glob: str, name: TableName) -> bool:
    """Whether a glob of ``--select`` selects a table."""
    return matches(name, _glob(glob)) or (_is_short(glob) and _calls(glob, name))


def _glob(text: str) -> str:
    """A word alone selects the tables that people call so: by the last part of their names."""
    return f"*[./]{text}" if is_word(text) else text


def _is_short(glob: str) -> bool:
    """Whether a glob can be that of the last part of names: ``or*``."""
    return not any(map(glob.count, "./`"))


def _calls(glob: str, name: TableName) -> bool:
    return fnmatchcase(name.last.casefold(), glob.casefold())


def _check_matched(option: str, globs: Sequence[str], found: Sequence[frozenset[int]]) -> None:
    matched = frozenset[int]().union(*found)
    for place, glob in enumerate(globs):
        if place not in matched:
            hint = "try a glob such as 'lake.sales.*' or '*orders*'"
            raise UsageError(f"{option} {glob!r} matches no table", hint)
