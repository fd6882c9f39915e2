"""Policies from live tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from tablectl.delta.names import NameSyntaxError, canonical_location
from tablectl.frozen import frozen
from tablectl.log.reader import Reading
from tablectl.model.errors import ExitCode
from tablectl.model.plan import TableFailure
from tablectl.planning.import_table import policy_of_table
from tablectl.policies.repository import Repository
from tablectl.policies.spec import Specs, TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.policies.yaml_text import TableEntry, write_policies
from tablectl.project import Project
from tablectl.reports.mask import Mask
from tablectl.selection import Selection, depth_for
from tablectl.workflow.tables import OnRead, ignore_progress, locate_tables, read_tables, sorted_failures


@frozen
class Imported:
    """The policies written from live tables."""

    text: str
    """The text of a policy file; empty if there is no table to write."""
    tables: tuple[str, ...]
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


def import_policies(
    project: Project, asked: Specs, known: Mapping[str, SourceFile], on_read: OnRead = ignore_progress
) -> Imported:
    """Policies for the tables in ``asked``, except for those in ``known`` (see ``declared_already``).

    Reads no history. Failures as in ``make_plan``. Raises ``InputError`` if no file can hold the policies together.
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
    text = write_policies(entries) if entries else ""
    if text:
        Repository({}, project.variables, project.config).read({"the imported policies": text})
    return Imported(
        text=text,
        tables=tuple(sorted(entry.key for entry in entries)),
        left_out={entry.key: entry.left_out for entry in entries if entry.left_out},
        skipped=tuple(skipped),
        failures=sorted_failures(failures),
        others=located.others,
    )


def _imported(project: Project, spec: TableSpec, reading: Reading) -> TableEntry | TableFailure:
    try:
        directed = project.catalogs is not None and project.catalogs.directs(spec.name)
        entry = policy_of_table(reading.table, project.dialect, project.catalog, located=not directed)
    except NameSyntaxError as error:
        return TableFailure(name=spec.name.text, message=str(error))
    return _unmasked(entry, project.mask)


def _unmasked(entry: TableEntry, mask: Mask) -> TableEntry:
    """The entry without the values that reports hide, because a policy is committed to Git."""
    hidden = tuple(each[:2] for each in entry.declared if mask.hides_value(each[0], each[1]))
    return replace(
        entry,
        declared=tuple(each for each in entry.declared if each[:2] not in hidden),
        left_out=(*entry.left_out, *(f"{key or name}: `reports.mask` hides its value" for name, key in hidden)),
    )
