"""``tablectl rename``: gives the entry of a table another name, in place. Everything else of its file stays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tablectl.commands.output import Output
from tablectl.commands.parameters import Env, Place, PolicyPaths, VarValues, Yes, table_names
from tablectl.commands.policy_changes import hidden_in, write_adoption
from tablectl.delta.names import NameSyntaxError, TableName
from tablectl.model.errors import ExitCode, InputError, UsageError
from tablectl.policies.declared_tables import Specs, TableSpec, effect_of
from tablectl.policies.effective_policy import parse_name
from tablectl.policies.merge_layers import Layer
from tablectl.policies.read_config import FILE
from tablectl.policies.repository import read_bytes
from tablectl.policies.variables import Variables
from tablectl.policies.write_live_values import Adoption, Texts, key_like, key_node
from tablectl.policies.write_yaml import cut, outline, write_key
from tablectl.reports.render import ReportFormat

_MOST_MENTIONS = 50


@dataclass(frozen=True, slots=True)
class Renamed:
    """The changed file, and what the rename did not change."""

    texts: Texts
    notes: tuple[str, ...]
    """What else names the old table, and what its policy declares differently under the new name."""


@dataclass(frozen=True, slots=True)
class Renamer:
    """The inputs of a rename besides the files. ``read`` parses files into specs, in the same way as before."""

    catalog: str
    variables: Variables
    read: Callable[[Texts], Specs]

    def rename(self, files: Texts, others: Mapping[str, str], old: TableName, new: TableName) -> Renamed:
        """Renames the entry of a table. ``others`` are texts that are only searched for the old name.

        Raises ``UsageError`` if the old table has no entry of its own, if the new one has, or if the entry cannot be
        renamed alone.
        """
        before = self.read(files)
        declaration = _entry(before, old)
        taken = next((each for each in before.declarations.named if each.key == new.key), None)
        if taken is not None:
            raise UsageError(f"{new.text} is declared already, at {taken.source}", "remove one of the two entries")
        file = declaration.source.file
        node = key_node(outline(files[file]), declaration.source)
        if node is None or node.shared or node.kind != "scalar":
            raise UsageError(f"{declaration.source}: the key cannot be changed alone", "rename it by hand")
        try:
            key = key_like(new, node.text, self.variables, self.catalog)
        except NameSyntaxError as error:
            raise UsageError(str(error), "use another name") from None
        edited = cut(files[file], [(node.start, node.end, write_key(key))])
        return self._checked(before, {**files, file: edited}, file, others, (old, new, node.text))

    def _checked(
        self, before: Specs, files: Texts, file: str, others: Mapping[str, str], names: tuple[TableName, TableName, str]
    ) -> Renamed:
        old, new, spelled = names
        try:
            after = self.read(files)
        except InputError as error:
            raise UsageError(
                f"{new.text} cannot be declared there: {error.problems[0]}", "nothing was changed"
            ) from None
        was, now = _spec(before, old), _spec(after, new)
        if was is None or now is None or len(after.tables) != len(before.tables):
            raise UsageError("another entry would change", "rename it by hand")
        notes = (
            *_differences(was, now),
            *_location(now),
            *_patterns(after, old),
            *_mentions({**files, **others}, {old.text, spelled, ".".join(old.parts)}),
        )
        return Renamed({file: files[file]}, notes)


def _entry(specs: Specs, name: TableName) -> Layer:
    found = next((each for each in specs.declarations.named if each.key == name.key), None)
    if found is not None:
        return found
    matching = specs.declarations.matching(name)
    if matching:
        patterns = ", ".join(f"{each.text} ({each.source})" for each in matching)
        raise UsageError(f"{name.text} has no entry of its own: it is matched by {patterns}", "rename the pattern")
    raise UsageError(f"no policy declares {name.text}", "`tablectl validate` lists no tables; see the policy files")


def _spec(specs: Specs, name: TableName) -> TableSpec | None:
    return next((each for each in specs.tables if each.name.key == name.key), None)


def _differences(was: TableSpec, now: TableSpec) -> Iterator[str]:
    """Where other patterns apply to the new name."""
    before, after = ({**effect_of(each), "table": ""} for each in (was, now))
    if before != after:
        shown = f"`tablectl explain {now.name.text}` shows it"
        yield f"patterns give {now.name.text} another policy than {was.name.text} had: {shown}"


def _location(now: TableSpec) -> Iterator[str]:
    source = now.sources.get("location")
    if source is not None and now.location is not None:
        yield f"{source}: `location` is still {now.location}: change it if the data moved"


def _patterns(specs: Specs, old: TableName) -> Iterator[str]:
    for each in specs.declarations.matching(old):
        yield f"{each.source}: the pattern {each.text} matches {old.text}, if such a table still exists"


def _mentions(texts: Mapping[str, str], names: set[str]) -> Iterator[str]:
    """The lines that contain one of the names as a whole."""
    spelled = "|".join(re.escape(each) for each in sorted(names, key=len, reverse=True))
    pattern = re.compile(rf"(?<![\w./-])(?:{spelled})(?![\w/-]|\.\w)", re.IGNORECASE)
    found = [
        f"{file}:{number}: still mentions {match[0]}"
        for file, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if (match := pattern.search(line))
    ]
    yield from found[:_MOST_MENTIONS]
    if len(found) > _MOST_MENTIONS:
        yield f"and {len(found) - _MOST_MENTIONS} more lines"


def rename_command(
    ctx: typer.Context,
    old: Annotated[str, typer.Argument(metavar="OLD", help="The table's old name.", autocompletion=table_names)],
    new: Annotated[str, typer.Argument(metavar="NEW", help="Its new name.")],
    paths: PolicyPaths = None,
    *,
    yes: Yes = False,
    variables: VarValues = None,
    env: Env = None,
) -> ExitCode:
    """Give the policy of a table that moved its new name. Keeps comments and layout, and changes no table.

    Example: tablectl rename lake.sales.orders lake.shop.orders
    """
    out: Output = ctx.obj
    project = Place(variables=variables, env=env).open(out.note)
    repository, specs = project.repository(paths)
    before, after = project.named(old, paths), parse_name(new, project.catalog, project.dialect)
    if before.key == after.key:
        raise UsageError(f"both names are {before.text}", "give the old name and the new one")
    renamer = Renamer(project.catalog, project.variables, repository.read)
    renamed = renamer.rename(repository.texts(), _others(), before, after)
    adoption, secret = Adoption(renamed.texts, (), ()), hidden_in(project, specs)
    written = write_adoption(adoption, repository, secret, out, ReportFormat.TEXT, yes=yes)
    for note in renamed.notes:
        out.note(secret(note))
    return ExitCode.DONE if written else ExitCode.ERROR


def _others() -> dict[str, str]:
    data = read_bytes(Path(FILE), [], missing=b"")
    return {FILE: data.decode(errors="replace")} if data else {}
