"""An index over table patterns. It finds the patterns that may match a name without testing each one.

Each pattern is filed under one text that it requires: a prefix, a suffix, or three characters anywhere in the name. The
index picks the text that the fewest other patterns require. A lookup tries all the texts of a name, so every matching
pattern is among the results.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tablectl.delta.names import TableName, matches, name_texts
from tablectl.frozen import frozen
from tablectl.model.patterns import CatalogPattern, TablePattern, escape_glob, literal_characters

_GRAM = 3
_Key = tuple[str, str]
_EVERY: _Key = ("every", "")


@frozen
class PatternIndex:
    """Patterns filed by a text that they require."""

    filed: dict[_Key, tuple[int, ...]]
    lengths: dict[str, tuple[int, ...]]
    """The lengths of the prefixes and suffixes in ``filed``."""

    def candidates(self, name: TableName) -> tuple[int, ...]:
        """The positions of the patterns that may match a name, sorted."""
        return self.candidates_of(_subject(name)) if self.filed else ()

    def candidates_of(self, text: str) -> tuple[int, ...]:
        """The positions of the globs that may match a text, sorted."""
        starts = (("start", text[:length]) for length in self.lengths["start"] if length <= len(text))
        ends = (("end", text[-length:]) for length in self.lengths["end"] if length <= len(text))
        grams = (("gram", gram) for gram in set(_grams(text)))
        keys = (_EVERY, *starts, *ends, *grams)
        return tuple(sorted(place for key in keys for place in self.filed.get(key, ())))


def index_patterns(patterns: Sequence[TablePattern]) -> PatternIndex:
    """Builds the index. Patterns are identified by their positions in the sequence."""
    return index_globs([_glob(each) for each in patterns])


def index_globs(globs: Sequence[str]) -> PatternIndex:
    """Builds the index of globs alone. Letter case counts."""
    offered = [tuple(_required(each)) for each in globs]
    counts = Counter(key for keys in offered for key in keys)
    filed = defaultdict[_Key, list[int]](list)
    for place, keys in enumerate(offered):
        filed[min(keys, key=lambda key: (counts[key], -len(key[1])), default=_EVERY)].append(place)
    lengths = {kind: tuple(sorted({len(text) for name, text in filed if name == kind})) for kind in ("start", "end")}
    return PatternIndex({key: tuple(places) for key, places in filed.items()}, lengths)


@frozen
class NameGlobs:
    """Globs of table names as ``delta.names.matches`` reads them: ten thousand of them for as many tables."""

    globs: tuple[str, ...]
    exact: PatternIndex
    folded: PatternIndex
    classes: tuple[int, ...]
    """The globs with ``[``, which are always compared: one may also be the name itself."""

    @staticmethod
    def of(globs: Sequence[str]) -> NameGlobs:
        """Builds both indexes: of paths letter case counts, of catalog names not."""
        classes = tuple(place for place, glob in enumerate(globs) if "[" in glob)
        return NameGlobs(tuple(globs), index_globs(globs), index_globs([each.casefold() for each in globs]), classes)

    def matching(self, name: TableName) -> frozenset[int]:
        """The positions of the globs that match a name."""
        if not self.globs:
            return frozenset()
        index = self.exact if name.is_path else self.folded
        asked = {place for text in name_texts(name) for place in index.candidates_of(text)}.union(self.classes)
        return frozenset(place for place in asked if matches(name, self.globs[place]))


@frozen
class GlobBeginnings:
    """How globs begin: which often says which names they may match."""

    begins: tuple[str, ...]
    """Sorted."""
    known: frozenset[str]

    @staticmethod
    def of(globs: Iterable[str]) -> GlobBeginnings:
        """The literal text before the first special character of each."""
        known = frozenset(re.split(r"[*?\[]", glob, maxsplit=1)[0] for glob in globs)
        return GlobBeginnings(tuple(sorted(known)), known)

    def may_match(self, prefix: str) -> bool:
        """Whether a glob may match a name that begins with this text."""
        if any(prefix[:length] in self.known for length in range(len(prefix) + 1)):
            return True
        place = bisect_left(self.begins, prefix)
        return place < len(self.begins) and self.begins[place].startswith(prefix)


def _subject(name: TableName) -> str:
    if name.is_path:
        return f"p{name.key}"
    return "\0".join(("c" + name.catalog, *name.parts)).casefold()


def _glob(pattern: TablePattern) -> str:
    if isinstance(pattern, CatalogPattern):
        return "\0".join((escape_glob("c" + pattern.catalog), pattern.schema, pattern.table)).casefold()
    return f"p{pattern.key}"


def _required(glob: str) -> Iterator[_Key]:
    """The texts in every text that the glob matches. A text can occur twice."""
    runs = [(known, "".join(char or "" for char in run)) for known, run in _runs(glob)]
    texts = [text for known, text in runs if known]
    if runs and runs[0][0]:
        yield "start", runs[0][1]
    if runs and runs[-1][0]:
        yield "end", runs[-1][1]
    for gram in {gram for text in texts for gram in _grams(text)}:
        yield "gram", gram


def _runs(glob: str) -> Iterator[tuple[bool, list[str | None]]]:
    return ((known, list(run)) for known, run in groupby(literal_characters(glob), key=lambda char: char is not None))


def _grams(text: str) -> Iterator[str]:
    return (text[start : start + _GRAM] for start in range(len(text) - _GRAM + 1))
