"""``tablectl conflicts``: which concurrent operations on a table conflict."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace

from tablectl.commands.command import command, function
from tablectl.commands.options import PlaceOptions, Reported, policy_paths
from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.delta.client_families import find_family
from tablectl.delta.clients import find_client
from tablectl.delta.protocol import Client
from tablectl.insight.conflict_context import Assumption
from tablectl.insight.conflict_report import ConflictReport, document_of_conflicts
from tablectl.insight.conflict_report import conflict_report as report_conflicts
from tablectl.insight.table_operations import OPERATIONS
from tablectl.model.errors import ExitCode, UsageError, one_table
from tablectl.model.table_options import NO_OPTIONS
from tablectl.policies.declare_setting import REQUIRED, setting
from tablectl.policies.field_types import ListOf, Text, flag
from tablectl.policies.repository import Paths
from tablectl.policies.spelling_hints import nearest

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


@dataclass(frozen=True)
class ConflictOptions(PlaceOptions):
    """The table, and what to assume about its writers."""

    table: str = setting(REQUIRED, Text(description="Table identifier, as in policies."), metavar="TABLE")
    paths: Paths = policy_paths()
    _: KW_ONLY
    clients: Sequence[tuple[Client, bool | None]] = setting(
        (),
        ListOf(
            of=Text(parse=_client),
            description="Client to assume instead of those in the table's history: 'delta-spark 4.0', "
            "'databricks 14.2 photon', kernel, delta-rs. Repeatable.",
        ),
        "--client",
        metavar="CLIENT",
    )
    """Each with whether it has Photon, ``None`` if unknown."""
    auto_compact: bool | None = setting(
        None,
        flag("Whether sessions set spark.databricks.delta.autoCompact.enabled; default: the table's property."),
        "--auto-compact/--no-auto-compact",
    )

    @property
    def assumption(self) -> Assumption:
        """What to assume about the writers."""
        return Assumption(tuple(self.clients), self.auto_compact)


@dataclass(frozen=True, kw_only=True)
class ConflictCommandOptions(ConflictOptions, Reported):
    """The options of ``conflicts``."""

    operation: str = setting(
        "",
        Text(parse=_operation, description="Show one operation only: insert, merge, optimize, add-columns …"),
        "--operation",
        metavar="NAME",
    )
    everything: bool = setting(False, flag("Show every pair of operations, grouped by reason."), "--all")
    between: tuple[str, str] | None = setting(
        None,
        ListOf(of=Text(), description="Compare two SQL statements: whether they conflict, and how to avoid it."),
        "--between",
        metavar="SQL SQL",
        values=2,
    )


@command(ConflictCommandOptions)
def conflicts_command(options: ConflictCommandOptions, out: Output) -> ExitCode:
    """Show which concurrent operations on a table conflict and how to avoid it, now and after its policy is applied.

    Example: tablectl conflicts lake.sales.orders
    """
    with one_table(options.table):
        return _compare(options, *options.between, out) if options.between else _show(options, out)


@function(ConflictOptions)
def conflict_report(options: ConflictOptions) -> ConflictReport:
    """Conflicts between writers of a live table, in its current and in its planned state (``tablectl conflicts``).

    ``clients`` replace those of the table's history, each with whether it has Photon, ``None`` if unknown;
    ``auto_compact`` is whether sessions set ``spark.databricks.delta.autoCompact.enabled``. Other options as in
    ``plan``. A table without a policy is analysed in its current state only. Without ``paths``, a directory without
    policies is valid. Raises ``LiveError`` if the table cannot be read.
    """
    with options.open() as project:
        return _found(project, options)


def _found(project: Project, options: ConflictOptions) -> ConflictReport:
    name, spec = project.find(options.table, options.paths)
    live = project.read(name, spec)
    if spec is None:
        return report_conflicts(live, None, project.dialect, options.assumption)
    # The table's size was not read: it matters for the rewrite, but not for conflicts.
    limits = replace(spec.options, max_bytes=None)
    return report_conflicts(live, spec.policy, project.dialect, options.assumption, limits)


def _show(options: ConflictCommandOptions, out: Output) -> ExitCode:
    with options.open(out.note) as project:
        found = _found(project, options)
    found = project.mask.by_value(replace(found, changes=tuple(map(project.mask.change, found.changes))))
    document = document_of_conflicts(found, everything=options.everything, about=options.operation)
    options.reports().show(document, out)
    return ExitCode.REFUSED if found.refused else ExitCode.DONE


def _compare(options: ConflictCommandOptions, one: str, other: str, out: Output) -> ExitCode:
    from tablectl.insight.statements.compare import (  # noqa: PLC0415  # it loads sqlglot
        compare_statements,
        document_of_pair,
    )

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that are refused anyway
    if options.operation or options.everything:
        raise UsageError("--between cannot be combined with --operation or --all", "leave them out")
    with options.open(out.note) as project:
        name, spec = project.find(options.table, options.paths)
        live = project.read(name, spec)
    declared = spec.options if spec else NO_OPTIONS
    found = compare_statements(live, one, other, project.dialect, options.assumption, declared)
    options.reports().show(document_of_pair(found), out)
    return ExitCode.DONE
