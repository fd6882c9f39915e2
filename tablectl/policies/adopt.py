"""What live tables have, written into the policies that say otherwise: each value where its table's own entry is.

A pattern and ``defaults`` speak for other tables too, so they are never written: the table gets an entry of its own, or
its entry a key more, which outweighs them. Every file is read again before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from tablectl.attributes.policy import attribute
from tablectl.delta.names import NameSyntaxError, TableName
from tablectl.delta.properties import canonical_key
from tablectl.model.errors import InputError
from tablectl.model.plan import Value
from tablectl.policies.declarations import Declaration
from tablectl.policies.identifiers import read_table
from tablectl.policies.resolve import resolve
from tablectl.policies.spec import Specs
from tablectl.policies.variables import UndefinedVariableError, Variables, variables_of
from tablectl.policies.yaml_edits import Cut, SpliceError, Step, TextEdit, cut, cuts, outline
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.policies.yaml_text import table_key

Texts = Mapping[str, str]
"""The text of each file, by its name in messages."""


@dataclass(frozen=True, slots=True)
class AdoptableValue:
    """One value that a table has and that its policy shall say."""

    table: TableName
    attribute: str
    key: str
    value: Value
    source: SourceFile
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
    adopted: tuple[AdoptableValue, ...]
    left: tuple[tuple[AdoptableValue, str], ...]
    """Each with the reason."""


@dataclass(frozen=True, slots=True)
class _Written:
    """How far the writing is."""

    originals: Mapping[str, TextEdit]
    """The files as they were."""
    texts: Texts
    adopted: tuple[AdoptableValue, ...]
    left: tuple[tuple[AdoptableValue, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Adopter:
    """The inputs of an adoption besides the files. ``read`` parses files into specs, in the same way as before."""

    dialect: str
    catalog: str
    variables: Variables
    read: Callable[[Texts], Specs]

    def adopt(self, files: Texts, wishes: Sequence[AdoptableValue]) -> Adoption:
        """All wishes that can be fulfilled without changing anything else."""
        before = self.read(files)
        found = self._proven(before, _Written({file: outline(text) for file, text in files.items()}, files, ()), wishes)
        changed = {file: text for file, text in found.texts.items() if text != files[file]}
        return Adoption(changed, found.adopted, found.left)

    def _proven(self, before: Specs, start: _Written, wishes: Sequence[AdoptableValue]) -> _Written:
        """The wishes fulfilled behind those that were. Where one spoils the files, each half is tried by itself, and
        the values of one table go together as long as they can.
        """
        found = self._fulfilled(before, start, wishes)
        why = self._why_wrong(before, found.texts, found.adopted)
        if not why:
            return found
        if len(wishes) == 1:
            return replace(start, left=(*start.left, (wishes[0], why)))
        tables = list(dict.fromkeys(wish.table.key for wish in wishes))
        if len(tables) > 1:
            first = frozenset(tables[: len(tables) // 2])
            parts = [[wish for wish in wishes if (wish.table.key in first) is half] for half in (True, False)]
        else:
            parts = [[wish] for wish in wishes]
        for part in parts:
            start = self._proven(before, start, part)
        return start

    def _fulfilled(self, before: Specs, start: _Written, wishes: Sequence[AdoptableValue]) -> _Written:
        """One value of each table at a time: those are in maps of their own, so that a file is read once for all."""
        own = {each.target.key: each for each in before.declarations.named}
        texts, adopted, left, rest = dict(start.texts), list(start.adopted), list(start.left), list(wishes)
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
                    left.append((wish, str(error)))
            rest = [wish for wish in rest if now[wish.table.key] is not wish]
            texts |= {file: cut(texts[file], each) for file, each in made.items()}
        return _Written(start.originals, texts, tuple(adopted), tuple(left))

    def _path(self, declaration: Declaration, start: _Written, wish: AdoptableValue) -> tuple[str, list[Step]]:
        """The file that a wish goes into, and the keys that lead there. Raises ``SpliceError``."""
        file = declaration.source.file
        raw = _key_at(start.originals[file], declaration.source)
        name = raw if declaration.pattern is None else self._named_like(wish.table, raw)
        path = [_exactly("tables"), _exactly(name), _exactly(wish.attribute)]
        if wish.key:
            path.append((wish.key, lambda key: canonical_key(key, self.dialect) == wish.key))
        return file, path

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

    def _why_wrong(self, before: Specs, texts: Texts, wishes: Sequence[AdoptableValue]) -> str:
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


def _policies(specs: Specs, wishes: Iterable[AdoptableValue]) -> dict[str, dict[str, Value]]:
    """What holds for every table named in the files, and for those that the wishes are about: by key of the table."""
    found = {spec.name.key: spec for spec in specs.tables}
    more = {wish.table: specs.declarations.matching(wish.table) for wish in wishes if wish.table.key not in found}
    found |= {spec.name.key: spec for spec in resolve(((name, each) for name, each in more.items() if each), [])}
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


def _strongest(specs: Specs, name: TableName) -> Declaration:
    """The pattern whose file receives the entry of a table without one."""
    return specs.declarations.matching(name)[0]


def _exactly(wanted: str) -> Step:
    return wanted, lambda key: key == wanted


def _key_at(root: TextEdit, source: SourceFile) -> str:
    """The key of ``tables`` at a place, as the file holds it. Raises ``SpliceError``."""
    tables = (node for key, node in root.entries() if key.text == "tables")
    keys = (key for node in tables if node.kind == "map" for key, _ in node.entries())
    raw = next((key.text for key in keys if (key.line, key.column) == (source.line - 1, source.column - 1)), None)
    if raw is None:
        raise SpliceError(f"its entry at {source} cannot be told from others")
    return raw
