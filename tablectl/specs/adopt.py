"""What live tables have, written into the policies that say otherwise: each value where its table's own entry is.

A pattern and ``defaults`` speak for other tables too, so they are never written: the table gets an entry of its own, or
its entry a key more, which outweighs them. Every file is read again before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from tablectl.attributes.catalogue import canonical_key
from tablectl.attributes.policy import attribute
from tablectl.model.errors import InputError
from tablectl.model.names import NameSyntaxError, TableName
from tablectl.model.plan import Value
from tablectl.specs.declarations import Declaration
from tablectl.specs.explain import spec_for
from tablectl.specs.identifiers import read_table
from tablectl.specs.spec import Specs
from tablectl.specs.splice import SpliceError, Step, outline, put
from tablectl.specs.tree import Source
from tablectl.specs.variables import UndefinedVariableError, Variables, variables_of
from tablectl.specs.writing import table_key

Texts = Mapping[str, str]
"""The text of each file, by its name in messages."""


@dataclass(frozen=True, slots=True)
class Wish:
    """One value that a table has and that its policy shall say."""

    table: TableName
    attribute: str
    key: str
    value: Value
    source: Source
    """Where the policy says otherwise."""

    @property
    def id(self) -> str:
        """As ``Change.id``."""
        return f"{self.attribute}.{self.key}" if self.key else self.attribute


@dataclass(frozen=True, slots=True)
class Adoption:
    """The files as they would be, and what stays as it is."""

    texts: Texts
    """Those that change."""
    adopted: tuple[Wish, ...]
    left: tuple[tuple[Wish, str], ...]
    """Each with the reason."""


@dataclass(frozen=True, slots=True)
class Adopter:
    """What the writing depends on beside the files. ``read`` makes specs of files, as they were made before."""

    dialect: str
    catalog: str
    variables: Variables
    read: Callable[[Texts], Specs]

    def adopt(self, files: Texts, wishes: Sequence[Wish]) -> Adoption:
        """All wishes that can be fulfilled without changing anything else."""
        before = self.read(files)
        found = self._fulfilled(files, before, wishes, each=False)
        if self._why_wrong(before, {**files, **found.texts}, found.adopted):
            # One of them spoils the file: each is tried behind those that were right.
            found = self._fulfilled(files, before, wishes, each=True)
        return found

    def _fulfilled(self, files: Texts, before: Specs, wishes: Sequence[Wish], *, each: bool) -> Adoption:
        """The files with the wishes in them; with ``each``, every one is proven before the next."""
        texts, adopted, left = dict(files), list[Wish](), list[tuple[Wish, str]]()
        for wish in wishes:
            try:
                tried = self._written(texts, files, before, wish)
                why = self._why_wrong(before, tried, [*adopted, wish]) if each else ""
            except SpliceError as error:
                why = str(error)
            if why:
                left.append((wish, why))
            else:
                texts = tried
                adopted.append(wish)
        changed = {file: text for file, text in texts.items() if text != files[file]}
        return Adoption(changed, tuple(adopted), tuple(left))

    def _written(self, texts: Texts, files: Texts, before: Specs, wish: Wish) -> dict[str, str]:
        """The files with one wish in them. Raises ``SpliceError``."""
        declaration = _speaker(before, wish.table)
        file = declaration.source.file
        raw = _key_at(files[file], declaration.source)
        name = raw if declaration.pattern is None else self._named_like(wish.table, raw)
        path = [_exactly("tables"), _exactly(name), _exactly(wish.attribute)]
        if wish.key:
            path.append((wish.key, lambda key: canonical_key(key, self.dialect) == wish.key))
        return {**texts, file: put(texts[file], path, wish.value)}

    def _named_like(self, name: TableName, pattern: str) -> str:
        """The key for a table that a pattern matches, with the pattern's variables where they stand for the same."""
        try:
            text = table_key(name, self.catalog)
        except NameSyntaxError as error:
            raise SpliceError(str(error)) from error
        for variable in variables_of(pattern):
            value = self.variables.expand(f"${{{variable}}}")
            tried = text.replace(value, f"${{{variable}}}", 1) if value else text
            try:
                if read_table(tried, self.variables, self.catalog) == name:
                    text = tried
            except (NameSyntaxError, UndefinedVariableError):
                continue
        return text

    def _why_wrong(self, before: Specs, texts: Texts, wishes: Sequence[Wish]) -> str:
        """Why the files may not be so; empty where they say all that is wished for, and nothing else is new."""
        try:
            after = self.read(texts)
        except InputError as error:
            problem = error.problems[0]
            return f"the file would be wrong: {problem.message}"
        wished = {(wish.table.key, wish.id): wish for wish in wishes}
        old, new = _policies(before, wishes), _policies(after, wishes)
        if old.keys() != new.keys() or _patterns(before) != _patterns(after):
            return "another entry would change"
        for table, values in new.items():
            for each in old[table].keys() | values.keys():
                wish = wished.get((table, each))
                if wish is None and old[table].get(each, _NOTHING) != values.get(each, _NOTHING):
                    return f"{each} of another entry would change"
                if wish and not (
                    each in values and attribute(wish.attribute).agrees(wish.value, values[each], wish.key)
                ):
                    return "the policy would still say otherwise"
        return ""


_NOTHING = object()


def _policies(specs: Specs, wishes: Iterable[Wish]) -> dict[str, dict[str, Value]]:
    """What holds for every table named in the files, and for those that the wishes are about: by key of the table."""
    found = {spec.name.key: spec for spec in specs.tables}
    for name in {wish.table for wish in wishes if wish.table.key not in found}:
        spec = spec_for(specs, name)
        if spec:
            found[name.key] = spec
    return {
        table: {f"{name}.{key}" if key else name: value for name, key, value in spec.policy.values()}
        for table, spec in found.items()
    }


def _patterns(specs: Specs) -> list[object]:
    """What patterns declare, and the defaults below them."""
    return [
        (
            each.target.key,
            *({key: given.value for key, given in part.declared.items()} for part in (each.block, each.defaults)),
        )
        for each in specs.declarations.patterns
    ]


def _speaker(specs: Specs, name: TableName) -> Declaration:
    """The entry that a value goes into, or for want of one the strongest pattern. Some policy speaks for the table."""
    own = (each for each in specs.declarations.named if each.target.key == name.key)
    return next(iter((*own, *specs.declarations.matching(name))))


def _exactly(wanted: str) -> Step:
    return wanted, lambda key: key == wanted


def _key_at(text: str, source: Source) -> str:
    """The key of ``tables`` at a place, as the file holds it. Raises ``SpliceError``."""
    lines = text.split("\n")
    place = sum(len(line) + 1 for line in lines[: source.line - 1]) + source.column - 1
    tables = (node for key, node in outline(text).entries() if key.text == "tables")
    found = (key.text for node in tables if node.kind == "map" for key, _ in node.entries() if key.start == place)
    raw = next(found, None)
    if raw is None:
        raise SpliceError(f"its entry at {source} cannot be told from others")
    return raw
