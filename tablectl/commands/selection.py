"""Which tables a command takes: the globs of ``--select`` and ``--exclude``, tags, shards and changed policies."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from tablectl.delta.names import TableName, matches, name_texts
from tablectl.model.errors import UsageError
from tablectl.model.patterns import MAGIC, CatalogPattern, TablePattern
from tablectl.planning.plan_file import Shard
from tablectl.policies.changed_policies import EarlierPolicies
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.effective_policy import is_word


@dataclass(frozen=True, slots=True)
class ChangedSince:
    """The choice of tables whose policies differ from those at a commit."""

    commit: str
    differ: Callable[[TableSpec], bool]
    """Whether a table's policy does."""


@dataclass(frozen=True, slots=True)
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
    earlier: EarlierPolicies | None = None
    """The policies that a plan is compared with: of ``changed``, or of the base branch; ``None`` if unknown."""

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
        if complete:
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
        begins = tuple({_beginning(each) for each in self.globs})
        folded = tuple({each.casefold() for each in begins})

        def concerns(pattern: TablePattern) -> bool:
            texts = folded if isinstance(pattern, CatalogPattern) else begins
            return any(_may_match(texts, prefix) for prefix in pattern.prefixes)

        return list(filter(concerns, patterns))


def _matching(globs: Sequence[str], specs: Specs) -> list[set[int]]:
    """The positions of the globs that match each table. The plan of an undo gives thousands of whole names, which are
    looked up. Other globs are compared with each table: people write a few.
    """
    names = [spec.name for spec in specs.tables]
    called = defaultdict[str, list[int]](list)
    for table, name in enumerate(names):
        for text in name_texts(name):
            called[text.casefold()].append(table)
    found: list[set[int]] = [set() for _ in names]
    for place, glob in enumerate(globs):
        for table in called.get(glob.casefold(), ()) if _is_whole(glob) else range(len(names)):
            if selects(glob, names[table]):
                found[table].add(place)
    return found


def _beginning(glob: str) -> str:
    """The text with which every matching name begins; empty for a glob of last parts."""
    return "" if _is_short(glob) else re.split(r"[*?\[]", glob, maxsplit=1)[0]


def _may_match(begins: tuple[str, ...], prefix: str) -> bool:
    """Whether a name that begins with one of the texts can also begin with the prefix."""
    return prefix.startswith(begins) or any(each.startswith(prefix) for each in begins)


def selects(glob: str, name: TableName) -> bool:
    """Whether a glob of ``--select`` selects a table."""
    return matches(name, _glob(glob)) or (_is_short(glob) and _calls(glob, name))


def _glob(text: str) -> str:
    """A word alone selects the tables that people call so: by the last part of their names."""
    return f"*[./]{text}" if is_word(text) else text


def _is_short(glob: str) -> bool:
    """Whether a glob can be that of the last part of names: ``or*``."""
    return not any(map(glob.count, "./`"))


def _is_whole(glob: str) -> bool:
    """Whether a glob is a whole name, without wildcards."""
    return not _is_short(glob) and not any(map(_glob(glob).count, MAGIC))


def _calls(glob: str, name: TableName) -> bool:
    return fnmatchcase(name.last.casefold(), glob.casefold())


def _check_matched(option: str, globs: Sequence[str], found: Sequence[set[int]]) -> None:
    matched = set[int]().union(*found)
    for place, glob in enumerate(globs):
        if place not in matched:
            hint = "try a glob such as 'lake.sales.*' or '*orders*'"
            raise UsageError(f"{option} {glob!r} matches no table", hint)
