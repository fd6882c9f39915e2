"""Writes the values of live tables into the policies that differ from them.

Each value goes into its table's own entry. Patterns and ``defaults`` apply to other tables too, so they are never
changed: the table gets an own entry, or its entry gets another key, which takes precedence. Every changed file is
parsed again and checked before it is accepted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import computed_field

from tablectl.attributes.policy import attribute
from tablectl.delta.names import NameSyntaxError, TableName
from tablectl.delta.properties import canonical_key
from tablectl.model.errors import InputError
from tablectl.model.plan import Value
from tablectl.policies.declared_tables import Specs, resolve
from tablectl.policies.merge_layers import Layer
from tablectl.policies.variables import UndefinedVariableError, Variables, read_table, variables_of
from tablectl.policies.write_yaml import Cut, SpliceError, Step, TextEdit, cut, cuts, outline, table_key
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.typed_json import AsText, Omitted, Unwritten

Texts = Mapping[str, str]
"""File name in messages → text of the file."""


@dataclass(frozen=True, slots=True)
class AdoptableValue:
    """A value of a live table that its policy should declare."""

    table: AsText[TableName]
    attribute: str
    key: str
    value: Value
    source: SourceFile
    """The place of the differing declaration."""
    reason: Omitted[str] = ""
    """Why it was not adopted."""

    @property
    def id(self) -> str:
        """As in ``Change.id``."""
        return f"{self.attribute}.{self.key}" if self.key else self.attribute


@dataclass(frozen=True, slots=True)
class Adoption:
    """The changed files, and the values that could not be adopted."""

    texts: Unwritten[Texts]
    """The changed files only."""
    adopted: tuple[AdoptableValue, ...]
    left: tuple[AdoptableValue, ...]
    """Values that could not be adopted."""
    written: bool = False
    """Whether the files were written; else it is a preview."""

    @computed_field
    @property
    def files(self) -> tuple[str, ...]:
        """The names of the changed files."""
        return tuple(sorted(self.texts))


@dataclass(frozen=True, slots=True)
class _Written:
    """The state of the edits so far."""

    originals: Mapping[str, TextEdit]
    """The files before any edit."""
    texts: Texts
    adopted: tuple[AdoptableValue, ...]
    left: tuple[AdoptableValue, ...] = ()


@dataclass(frozen=True, slots=True)
class Adopter:
    """The inputs of an adoption besides the files. ``read`` parses files into specs, in the same way as before."""

    dialect: str
    catalog: str
    variables: Variables
    read: Callable[[Texts], Specs]

    def adopt(self, files: Texts, values: Sequence[AdoptableValue]) -> Adoption:
        """Adopts every value that can be written without changing any other declaration."""
        before = self.read(files)
        declared = _policies(before, values)
        same = [wish for wish in values if _declares(declared.get(wish.table.key, {}), wish)]
        left = tuple(replace(wish, reason=_SAME) for wish in same)
        start = _Written({file: outline(text) for file, text in files.items()}, files, (), left)
        found = self._proven(before, start, [wish for wish in values if wish not in same])
        changed = {file: text for file, text in found.texts.items() if text != files[file]}
        return Adoption(changed, found.adopted, found.left)

    def _proven(self, before: Specs, start: _Written, values: Sequence[AdoptableValue]) -> _Written:
        """Applies the edits in addition to ``start``. If the result is wrong, each half is tried separately. The values
        of one table stay together as long as possible.
        """
        try:
            found = self._fulfilled(before, start, values)
            why = self._why_wrong(before, found.texts, found.adopted)
            if not why:
                return found
        except SpliceError as error:
            why = str(error)
        if len(values) == 1:
            return replace(start, left=(*start.left, replace(values[0], reason=why)))
        tables = list(dict.fromkeys(wish.table.key for wish in values))
        if len(tables) > 1:
            first = frozenset(tables[: len(tables) // 2])
            parts = [[wish for wish in values if (wish.table.key in first) is half] for half in (True, False)]
        else:
            parts = [[wish] for wish in values]
        for part in parts:
            start = self._proven(before, start, part)
        return start

    def _fulfilled(self, before: Specs, start: _Written, values: Sequence[AdoptableValue]) -> _Written:
        """Applies the edits in rounds, with one value of each table per round. These edit different maps, so a file is
        parsed once for all of them.
        """
        own = {each.key: each for each in before.declarations.named}
        texts, adopted, left, rest = dict(start.texts), list(start.adopted), list(start.left), list(values)
        while rest:
            made: dict[str, list[Cut]] = {}
            outlines = {file: outline(text) for file, text in texts.items()}
            now = {wish.table.key: wish for wish in reversed(rest)}
            for wish in [wish for wish in rest if now[wish.table.key] is wish]:
                try:
                    file, path = self._path(own.get(wish.table.key) or _strongest(before, wish.table), start, wish)
                    made.setdefault(file, []).extend(cuts(texts[file], outlines[file], path, wish.value))
                    adopted.append(wish)
                except SpliceError as error:
                    left.append(replace(wish, reason=str(error)))
            rest = [wish for wish in rest if now[wish.table.key] is not wish]
            texts |= {file: cut(texts[file], each) for file, each in made.items()}
        return _Written(start.originals, texts, tuple(adopted), tuple(left))

    def _path(self, declaration: Layer, start: _Written, wish: AdoptableValue) -> tuple[str, list[Step]]:
        """The file that the value goes into, and the keys that lead to it. Raises ``SpliceError``."""
        file = declaration.source.file
        raw = _key_at(start.originals[file], declaration.source)
        name = raw if declaration.pattern is None else self._key_like(wish.table, raw)
        path = [_exactly("tables"), _exactly(name), _exactly(wish.attribute)]
        if wish.key:
            path.append((wish.key, lambda key: canonical_key(key, self.dialect) == wish.key))
        return file, path

    def _key_like(self, name: TableName, pattern: str) -> str:
        try:
            return key_like(name, pattern, self.variables, self.catalog)
        except NameSyntaxError as error:
            raise SpliceError(str(error)) from error

    def _why_wrong(self, before: Specs, texts: Texts, values: Sequence[AdoptableValue]) -> str:
        """Why the edited files are wrong; empty if they declare all adopted values and nothing else changed."""
        try:
            after = self.read(texts)
        except InputError as error:
            problem = error.problems[0]
            return f"the file would be wrong: {problem.message}"
        wished = {(wish.table.key, wish.id): wish for wish in values}
        old, new = _policies(before, values), _policies(after, values)
        if old.keys() != new.keys() or _patterns(before) != _patterns(after):
            return "another entry would change"
        for table, declared in new.items():
            for each in old[table].keys() | declared.keys():
                wish = wished.get((table, each))
                if wish is None and old[table].get(each, _NOTHING) != declared.get(each, _NOTHING):
                    return f"{each} of another entry would change"
                if wish and not _declares(declared, wish):
                    return "the policy would still say otherwise"
        return ""


_NOTHING = object()
_SAME = "the policy declares it already: apply it"


def _declares(declared: Mapping[str, Value], wish: AdoptableValue) -> bool:
    """Whether the effective values of a table already say what a value says."""
    return wish.id in declared and attribute(wish.attribute).agrees(wish.value, declared[wish.id], wish.key)


def _policies(specs: Specs, values: Iterable[AdoptableValue]) -> dict[str, dict[str, Value]]:
    """The effective values of every table named in the files or in ``values``, by the table's key."""
    found = {spec.name.key: spec for spec in specs.tables}
    more = {wish.table: specs.declarations.matching(wish.table) for wish in values if wish.table.key not in found}
    matched = ((name, each) for name, each in more.items() if each)
    found |= {spec.name.key: spec for spec in resolve(matched, specs.declarations.profiles, [])}
    return {
        table: {f"{name}.{key}" if key else name: value for name, key, value in spec.policy.values()}
        for table, spec in found.items()
    }


def _patterns(specs: Specs) -> list[object]:
    """The declarations of patterns and of the defaults below them."""
    return [
        (
            each.key,
            *({key: given.value for key, given in part.declared.items()} for part in each.with_defaults()),
        )
        for each in specs.declarations.patterns
    ]


def _strongest(specs: Specs, name: TableName) -> Layer:
    """The pattern whose file receives the entry of a table without one."""
    return specs.declarations.matching(name)[0]


def _exactly(wanted: str) -> Step:
    return wanted, lambda key: key == wanted


def key_like(name: TableName, written: str, variables: Variables, catalog: str) -> str:
    """The key of ``tables`` for a table. It keeps the variables of another key where they have the same value.

    Raises ``NameSyntaxError`` for a table that no key can name.
    """
    text = table_key(name, catalog)
    for variable in variables_of(written):
        value = variables.expand(f"${{{variable}}}")
        tried = text.replace(value, f"${{{variable}}}", 1) if value else text
        try:
            if read_table(tried, variables, catalog) == name:
                text = tried
        except (NameSyntaxError, UndefinedVariableError):
            continue
    return text


def key_node(root: TextEdit, source: SourceFile) -> TextEdit | None:
    """The key of ``tables`` at a position; ``None`` if it looks like others."""
    tables = (node for key, node in root.entries() if key.text == "tables")
    keys = (key for node in tables if node.kind == "map" for key, _ in node.entries())
    return next((key for key in keys if (key.line, key.column) == (source.line - 1, source.column - 1)), None)


def _key_at(root: TextEdit, source: SourceFile) -> str:
    """The key of ``tables`` at a position, as the file spells it. Raises ``SpliceError``."""
    node = key_node(root, source)
    if node is None:
        raise SpliceError(f"its entry at {source} looks like another one")
    return node.text
