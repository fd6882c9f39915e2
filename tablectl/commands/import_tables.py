"""``tablectl import``: policies of live tables, or of the settings of a dbt project."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.lock import template
from tablectl.commands.output import Output
from tablectl.commands.parameters import Cache, Env, Place, Remote, TextOrJson, VarValues, WholeCatalog, function, texts
from tablectl.commands.project import Project
from tablectl.commands.read_tables import OnRead, ignore_progress, locate_tables, read_tables, sorted_failures
from tablectl.commands.selection import Selection
from tablectl.commands.user_files import check_writable, write_file
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import NameSyntaxError
from tablectl.documents.style import plural
from tablectl.log.reader import Reading
from tablectl.model.errors import ExitCode, InputError, TablectlError, UsageError, one_line
from tablectl.model.plan import TableFailure
from tablectl.model.safe_text import listed, printable
from tablectl.planning.dbt_findings import dbt_entry, taken_lines
from tablectl.planning.diff import depth_for
from tablectl.planning.import_table import policy_of_table
from tablectl.policies.dbt_manifest import DbtTable, property_line, read_manifest
from tablectl.policies.declared_tables import Specs, TableSpec
from tablectl.policies.repository import (
    Repository,
    declared_already,
    read_text,
    requested_tables,
    shown_path,
    whole_catalog,
)
from tablectl.policies.variables import Variables, read_table_key
from tablectl.policies.write_yaml import TableEntry, write_policies
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.mask import Mask
from tablectl.reports.render import ReportFormat


def _output_file(name: str) -> Path | None:
    return None if name == "-" else Path(name)


@dataclass(frozen=True, slots=True)
class _PolicyFile:
    """The file of the imported policies."""

    out: Path | None
    """``None`` for standard output."""
    force: bool
    """Whether an existing file is overwritten."""

    def check_output(self) -> None:
        """Raises ``TablectlError`` if the output file exists and may not be overwritten, or cannot be written."""
        if self.out is not None and self.out.exists() and not self.force:
            hint = "name another file, or write over it with --force"
            raise TablectlError(f"{self.out}: the file exists, and import does not overwrite it", hint)
        if self.out is not None:
            check_writable(self.out)

    def write(self, project: Project, text: str, keys: Collection[str]) -> None:
        """Writes the entries with these keys to the output file.

        Raises ``TablectlError`` if the file that ``--force`` overwrites has more than such entries: other tables,
        patterns, profiles, or comments of people.
        """
        assert self.out is not None
        before = read_text(self.out) if self.out.exists() else ""
        if before and not before.endswith(template("tables.yaml")):  # which is as `init` wrote it
            self._check_kept(project, before, keys)
        head = before.partition("\n")[0]
        write_file(self.out, (f"{head}\n{text}" if head.startswith(_EDITOR) else text).encode())

    def _check_kept(self, project: Project, text: str, keys: Collection[str]) -> None:
        tables = {read_table_key(key, Variables(), project.catalog).text for key in keys}
        file = shown_path(self.out or Path())
        try:
            known = Repository({}, project.variables, project.config).read({file: text}).declarations
        except InputError as error:
            message = f"{file} cannot be read, so that it may hold more than --force may drop: {one_line(error)}"
            raise TablectlError(message, "move it away, or name another file") from None
        others = [each.table.text for each in known.named if each.table and each.table.text not in tables]
        others += [each.pattern.text for each in known.patterns if each.pattern]
        others += [f"the profile {name}" for name in known.profiles]
        lines = [
            number
            for number, line in enumerate(text.splitlines(), 1)
            if line.lstrip().startswith("#") and not line.lstrip().startswith(_OWN_COMMENTS)
        ]
        others += [f"the comment in line {number}" for number in lines]
        if others:
            message = f"{file}: --force would drop what this import does not write: {listed(others, 5)}"
            raise TablectlError(message, "import into another file, and move over what you want")


_EDITOR = "# yaml-language-server: "
_OWN_COMMENTS = ("# Written by `tablectl", "# left out: ", _EDITOR)
"""The comments that tablectl writes into policies."""


@dataclass(frozen=True, slots=True)
class Imported:
    """The policies written from live tables."""

    text: str
    """The text of a policy file; empty if there is no table to write."""
    tables: tuple[str, ...]
    """The keys of the entries."""
    left_out: Mapping[str, tuple[str, ...]]
    """Facts that no policy can declare, by table."""
    skipped: tuple[tuple[str, SourceFile], ...]
    """Tables that already have an entry, with its position."""
    failures: tuple[TableFailure, ...]
    others: tuple[str, ...] = ()
    """Why something that a pattern matches is not a Delta table."""

    @property
    def exit_code(self) -> ExitCode:
        """1 if a table cannot be read, otherwise 0."""
        return ExitCode.ERROR if self.failures else ExitCode.DONE


def import_command(
    ctx: typer.Context,
    tables: Annotated[
        list[str] | None,
        typer.Argument(metavar="TABLES", help="Table identifiers and patterns, as in policies."),
    ] = None,
    *,
    file: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FILE",
            parser=_output_file,
            help="Write the policies to a file. Default: standard output.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
    dbt: Annotated[
        Path | None,
        typer.Option(
            "--dbt", metavar="MANIFEST", help="manifest.json of a dbt project: read it instead of live tables."
        ),
    ] = None,
    everything: WholeCatalog = False,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: TextOrJson = ReportFormat.TEXT,
) -> ExitCode:
    """Write policies from live tables. A plan of these policies has no changes.

    Example: tablectl import 'lake.sales.*' --out policies/sales.yaml
    """
    out: Output = ctx.obj
    place = Place(variables=variables, env=env, remote=remote, cache=cache)
    target = _PolicyFile(file, force)
    if dbt is not None:
        if tables or everything:
            raise UsageError("--dbt goes without tables and --all", "it writes every table of the manifest")
        return _import_dbt(place, dbt, target, form, out)
    project = place.open(out.note)
    asked = _asked(project, tables or (), everything=everything)
    target.check_output()
    besides = shown_path(file) if file else ""
    known = declared_already(project.any_policies(asked=asked), besides)
    with project, out.progress() as on_read:
        found = import_policies(project, asked, known, on_read)
    tell(found, out)
    if form is ReportFormat.JSON:
        out.json_result(_json(found))
    if file is not None and found.text:
        target.write(project, found.text, found.tables)
        out.note(f"wrote {plural(len(found.tables), 'table')} to {file}; `tablectl plan` changes none of them")
    elif form is ReportFormat.TEXT:
        out.result(found.text)
    return found.exit_code


@function
def import_tables(
    tables: Sequence[str] | None = None,
    *,
    everything: bool = False,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> Imported:
    """Policies for live tables, which are given as identifiers and patterns in policy syntax. ``Imported.text`` is a
    file.

    Options as in ``plan``; ``everything`` imports every table of ``engine.catalog``. Tables with an entry in the
    policies of ``directory`` are left out. Raises ``UsageError`` for text that is neither an identifier nor a pattern.
    A table that cannot be read is in ``Imported.failures``.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        asked = _asked(project, texts(tables, "tables"), everything=everything)
        return import_policies(project, asked, declared_already(project.any_policies(asked=asked), besides=""))


def _asked(project: Project, tables: Sequence[str], *, everything: bool) -> Specs:
    if bool(tables) is everything:
        hint = "for example tablectl import lake.sales.orders 'delta.`/lake/*`', or --all for a whole catalog"
        raise UsageError("--all goes without tables" if tables else "no table is named", hint)
    return requested_tables(tables or (whole_catalog(project.catalog),), project.catalog, project.variables)


def import_policies(
    project: Project, asked: Specs, known: Mapping[str, SourceFile], on_read: OnRead = ignore_progress
) -> Imported:
    """Policies for the tables in ``asked``, except for those in ``known`` (see ``declared_already``).

    Reads no history. Failures as in ``make_plan``; the text names them in comments. A table whose policy cannot be read
    back is a failure of its own. Raises ``InputError`` if no file can hold the policies together.
    """
    located = locate_tables(project, asked, Selection())
    skipped, fresh = list[tuple[str, SourceFile]](), list[tuple[TableSpec, str]]()
    for spec, where in located.tables:
        source = known.get(spec.name.key) or known.get(canonical_location(where))
        if source:
            skipped.append((spec.name.text, source))
        else:
            fresh.append((spec, where))
    failures = list(located.failures)
    entries: list[TableEntry] = []
    chosen, depths = replace(located, tables=tuple(fresh)), partial(depth_for, look_back=0)
    for _, made in read_tables(project, chosen, depths, partial(_imported, project), on_read, failures):
        if isinstance(made, TableFailure):
            failures.append(made)
        else:
            entries.append(made)
    entries = _readable(project, entries, failures)
    without = [f"{each.name}: {each.message}" for each in sorted_failures(failures)]
    return Imported(
        text=write_policies(entries, without=without) if entries else "",
        tables=tuple(sorted(entry.key for entry in entries)),
        left_out={entry.key: entry.left_out for entry in entries if entry.left_out},
        skipped=tuple(skipped),
        failures=sorted_failures(failures),
        others=located.others,
    )


def _readable(project: Project, entries: list[TableEntry], failures: list[TableFailure]) -> list[TableEntry]:
    """The entries that policies can hold together, in a file that is read back. One of ten thousand tables can have a
    value that no policy can hold: it is a failure. Raises ``InputError`` if each can stand alone, but not together.
    """
    read = Repository({}, project.variables, project.config).read

    def problem(some: list[TableEntry]) -> InputError | None:
        try:
            read({"the imported policies": write_policies(some)})
        except InputError as error:
            return error
        return None

    wrong = problem(entries) if entries else None
    if wrong is None:
        return entries
    found = [(entry, problem([entry])) for entry in entries]
    failures += [TableFailure(name=entry.key, message=one_line(error)) for entry, error in found if error is not None]
    good = [entry for entry, error in found if error is None]
    if len(good) == len(entries) or (good and (wrong := problem(good)) is not None):
        raise wrong
    return good


def _imported(project: Project, spec: TableSpec, reading: Reading) -> TableEntry | TableFailure:
    try:
        directed = project.catalogs is not None and project.catalogs.directs(spec.name)
        entry = policy_of_table(reading.table, project.dialect, project.catalog, located=not directed)
    except NameSyntaxError as error:
        return TableFailure(name=spec.name.text, message=str(error))
    return _unmasked(entry, project.mask)


def _unmasked(entry: TableEntry, mask: Mask) -> TableEntry:
    """The entry without the values that reports hide, because a policy is committed to Git."""
    hidden = tuple(each for each in entry.declared if mask.withholds(*each))
    told = (
        f"{key or name}: `reports.mask` hides its value"
        if mask.hides_value(name, key)
        else f"{key or name}: its value holds a credential; declare it with a variable"
        for name, key, _ in hidden
    )
    kept = tuple(each for each in entry.declared if each not in hidden)
    return replace(entry, declared=kept, left_out=(*entry.left_out, *told))


def _unmasked_dbt(table: DbtTable, mask: Mask) -> DbtTable:
    """The settings of dbt for display: what to remove is also printed in the log of a job."""
    properties = {key: str(mask.value(key, value)) for key, value in table.properties.items()}
    lines = {**table.lines, **{key: property_line(key, value) for key, value in properties.items()}}
    return replace(table, properties=properties, lines=lines)


def tell(found: Imported, out: Output) -> None:
    """Report what the file does not contain, and why."""
    for name, source in found.skipped:
        out.note(f"{name} is declared at {source.file}:{source.line} already: left out")
    for other in found.others:
        out.note(f"{other}: left out")
    for failure in found.failures:
        out.error(TablectlError(f"{failure.name}: {failure.message}", failure.hint))


def _json(found: Imported) -> dict[str, object]:
    return {
        "policies": found.text,
        "tables": list(found.tables),
        "left_out": {name: list(what) for name, what in found.left_out.items()},
        "skipped": [{"table": name, "file": at.file, "line": at.line} for name, at in found.skipped],
        "failures": [{"name": each.name, "message": each.message, "hint": each.hint} for each in found.failures],
        "not_delta": list(found.others),
    }


def _import_dbt(place: Place, manifest: Path, target: _PolicyFile, form: ReportFormat, out: Output) -> ExitCode:
    """Writes policies to standard output or a file, and the lines to remove from dbt to standard error. Reads no table.

    Raises ``UsageError`` for a file that is not a manifest.
    """
    target.check_output()
    with place.open(out.note) as project:
        tables = read_manifest(manifest, project.catalog)
        made, unnamed = _entries(tables, project.catalog, project.dialect)
        entries = [(_unmasked(entry, project.mask), _unmasked_dbt(table, project.mask)) for entry, table in made]
    for problem in unnamed:
        out.error(TablectlError(problem))
    if not entries:
        out.note("the manifest sets nothing on a Delta table that a policy can declare")
    text = write_policies([entry for entry, _ in entries]) if entries else ""
    taken = [(table, *taken_lines(table, entry, project.dialect)) for entry, table in entries]
    if form is ReportFormat.JSON:
        lines = [
            {"model": table.model, "file": table.file, "lines": list(gone), "left_out": list(stays)}
            for table, gone, stays in taken
        ]
        out.json_result({"policies": text, "tables": [entry.key for entry, _ in entries], "remove": lines})
    elif target.out is None:
        out.result(text)
    if target.out is not None and text:
        target.write(project, text, [entry.key for entry, _ in entries])
        out.note(f"wrote {plural(len(entries), 'table')} to {target.out}; look at `tablectl plan` before you apply")
    for table, gone, stays in taken:
        out.note(f"remove from {table.file} ({table.model}):")
        for line in gone:
            out.note(f"  {line}")
        if stays:
            out.note(f"  the policy does not declare {', '.join(map(printable, stays))}: leave that in dbt")
    return ExitCode.ERROR if unnamed else ExitCode.DONE


def _entries(
    tables: tuple[DbtTable, ...], catalog: str, dialect: str
) -> tuple[list[tuple[TableEntry, DbtTable]], list[str]]:
    """The entries, one for each table, and why others have none."""
    entries: dict[str, tuple[TableEntry, DbtTable]] = {}
    unnamed: list[str] = []
    for table in tables:
        try:
            entry = dbt_entry(table, catalog, dialect)
        except NameSyntaxError as error:
            unnamed.append(f"{table.model}: {error}")
            continue
        if entry.key in entries:
            other = entries[entry.key][1].model
            unnamed.append(f"{table.model}: {other} makes the same table, {table.name.text}")
        elif entry.declared:
            entries[entry.key] = entry, table
    return list(entries.values()), unnamed
