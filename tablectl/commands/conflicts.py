"""``tablectl conflicts``: which concurrent operations on a table conflict."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.commands.parameters import (
    OF_PAGES,
    Cache,
    Env,
    PageFormat,
    PageReports,
    Place,
    PolicyPaths,
    Remote,
    TableArgument,
    VarValues,
    function,
)
from tablectl.commands.project import Project
from tablectl.commands.report_files import ReportFiles
from tablectl.delta.client_families import find_family
from tablectl.delta.clients import find_client
from tablectl.delta.protocol import Client
from tablectl.documents.document import Document
from tablectl.insight.conflict_context import Assumption
from tablectl.insight.conflict_report import ConflictReport, document_of_conflicts
from tablectl.insight.conflict_report import conflict_report as report_conflicts
from tablectl.insight.table_operations import OPERATIONS
from tablectl.model.errors import ExitCode, UsageError, one_table
from tablectl.model.safe_text import printable
from tablectl.model.table_options import NO_OPTIONS
from tablectl.policies.repository import Paths
from tablectl.policies.spelling_hints import nearest
from tablectl.reports.render import ReportFormat
from tablectl.support.files import read_regular

_MOST_FILES, _MOST_BYTES = 1_000, 1 << 20
_CLIENT = re.compile(r"([a-z-]{1,60})(?:[ /:-]{0,4}(\d{1,4}(?:\.\d{1,4}){0,2})(?:\.x)?)?(?:[ -]+(photon))?\Z")


def _client(text: str) -> tuple[Client, bool | None]:
    """``delta-spark 4.0``, ``databricks 14.2 photon``, ``kernel``: a client, and whether it has Photon, if it says so.

    Raises ``UsageError`` for an unknown client.
    """
    match = _CLIENT.match(text.strip().lower())
    name = match.group(1).rstrip("-") if match else ""
    family = find_family(name)
    if family is None and (known := find_client(name)):
        raise UsageError(
            f"--client {text!r}: no source says which concurrent commits make {known.name} fail",
            "--client unknown asks the strictest rules of all known clients; `clients:` in a policy checks what its "
            "version can read and write",
        )
    if match is None or family is None or (match.group(3) and not family.photon):
        raise UsageError(
            f"--client {text!r} is not a client",
            "for example --client 'delta-spark 4.0', --client 'databricks 14.2 photon', --client kernel, "
            "--client delta-rs",
        )
    version = tuple(map(int, match.group(2).split("."))) if match.group(2) else ()
    photon = None
    if family.photon and version:
        photon = bool(match.group(3))
    return Client(family.name, version), photon


def _operation(text: str) -> str:
    """The key of an operation given by key or by name. Raises ``UsageError`` for an unknown one."""
    for each in OPERATIONS:
        if text.casefold() in {each.key, each.name.casefold()}:
            return each.key
    keys = [each.key for each in OPERATIONS]
    near = nearest(text.casefold(), keys)
    hint = f"did you mean {near}?" if near else f"one of {', '.join(keys)}"
    raise UsageError(f"--operation {text!r} is not known", hint)


@dataclass(frozen=True, kw_only=True)
class _Asked(Place):
    """The table, and what to assume about its writers."""

    table: str
    paths: Paths = None
    assumption: Assumption


AutoCompact = Annotated[
    bool | None,
    typer.Option(
        "--auto-compact/--no-auto-compact",
        help="Whether sessions set spark.databricks.delta.autoCompact.enabled; default: the table's property.",
    ),
]


def conflicts_command(
    ctx: typer.Context,
    table: TableArgument,
    paths: PolicyPaths = None,
    *,
    operation: Annotated[
        str | None,
        typer.Option(
            "--operation",
            metavar="NAME",
            parser=_operation,
            help="Show one operation only: insert, merge, optimize, add-columns …",
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Show every pair of operations, grouped by reason.")
    ] = False,
    between: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--between",
            metavar="SQL SQL | FOLDER",
            help="Compare two SQL statements: whether they conflict, and how to avoid it. Or those of a folder of SQL "
            "files, each pair.",
        ),
    ] = None,
    clients: Annotated[
        list[str] | None,
        typer.Option(
            "--client",
            metavar="CLIENT",
            help="Client to assume instead of those in the table's history: 'delta-spark 4.0', 'databricks 14.2 "
            "photon', kernel, delta-rs. Repeatable.",
        ),
    ] = None,
    auto_compact: AutoCompact = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    cache: Cache = True,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Show which concurrent operations on a table conflict and how to avoid it, now and after its policy is applied.

    Example: tablectl conflicts lake.sales.orders
    """
    assumption = Assumption(tuple(map(_client, clients or ())), auto_compact)
    asked = _Asked(
        table=table,
        paths=paths,
        assumption=assumption,
        variables=variables,
        env=env,
        remote=remote,
        cache=cache,
    )
    if between and (operation or everything):
        raise UsageError("--between cannot be combined with --operation or --all", "leave them out")
    reports = ReportFiles.of(form, report, known=OF_PAGES)
    with one_table(table), asked.open(ctx.obj.note) as project:
        if between:
            reports.show(_compared(project, asked, *between), ctx.obj)
            return ExitCode.DONE
        found = _found(project, asked)
    found = project.mask.by_value(replace(found, changes=tuple(map(project.mask.change, found.changes))))
    with one_table(table):
        reports.show(document_of_conflicts(found, everything=everything, about=operation or ""), ctx.obj)
    return ExitCode.REFUSED if found.refused else ExitCode.DONE


def with_folder(args: Sequence[str]) -> Sequence[str]:
    """``--between FOLDER`` has one value, ``--between SQL SQL`` two: an empty one follows a folder."""
    at = next((place for place, word in enumerate(args[:-1]) if word == "--between"), None)
    if args[:1] != ["conflicts"] or at is None or len(args[at + 1]) > 4_096 or not Path(args[at + 1]).is_dir():
        return args
    return [*args[: at + 2], "", *args[at + 2 :]]


@function
def conflict_report(
    table: str,
    paths: Paths = None,
    *,
    clients: Sequence[tuple[Client, bool | None]] = (),
    auto_compact: AutoCompact = None,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> ConflictReport:
    """Conflicts between writers of a live table, in its current and in its planned state (``tablectl conflicts``).

    ``clients`` replace those of the table's history, each with whether it has Photon, ``None`` if unknown;
    ``auto_compact`` is whether sessions set ``spark.databricks.delta.autoCompact.enabled``. Other options as in
    ``plan``. A table without a policy is analysed in its current state only. Without ``paths``, a directory without
    policies is valid. Raises ``LiveError`` if the table cannot be read.
    """
    asked = _Asked(
        table=table,
        paths=paths,
        assumption=Assumption(tuple(clients), auto_compact),
        variables=variables,
        env=env,
        remote=remote,
        cache=cache,
        directory=directory,
        spark=spark,
    )
    with asked.open() as project:
        return _found(project, asked)


def _found(project: Project, asked: _Asked) -> ConflictReport:
    name, spec = project.find(asked.table, asked.paths)
    live = project.read(name, spec)
    if spec is None:
        return report_conflicts(live, None, project.dialect, asked.assumption)
    # The table's size was not read: it matters for the rewrite, but not for conflicts.
    limits = replace(spec.options, max_bytes=None)
    return report_conflicts(live, spec.policy, project.dialect, asked.assumption, limits)


def _compared(project: Project, asked: _Asked, one: str, other: str) -> Document:
    from tablectl.insight.statements.compare import (  # noqa: PLC0415  # it loads sqlglot
        compare_statements,
        document_of_pair,
    )
    from tablectl.insight.statements.folder import compare_folder, document_of_folder  # noqa: PLC0415

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that are refused anyway
    name, spec = project.find(asked.table, asked.paths)
    live = project.read(name, spec)
    declared = spec.options if spec else NO_OPTIONS
    if not other and Path(one).is_dir():
        return document_of_folder(
            compare_folder(live, _sql_files(Path(one)), project.dialect, asked.assumption, declared)
        )
    return document_of_pair(compare_statements(live, one, other, project.dialect, asked.assumption, declared))


def _sql_files(folder: Path) -> Iterator[tuple[str, str, str]]:
    """The files below a folder: name and text, or why it is not read."""
    for number, file in enumerate(sorted(each for each in folder.rglob("*") if not each.is_dir())):
        name = printable(file.as_posix())
        if number == _MOST_FILES:
            yield name, "", f"this and what follows: at most {_MOST_FILES:,} files are read"
            return
        if file.suffix.lower() != ".sql":
            yield name, "", "its name does not end in .sql"
            continue
        try:
            yield name, read_regular(file, _MOST_BYTES).decode("utf-8"), ""
        except (OSError, ValueError) as error:
            yield name, "", printable(str(error))
