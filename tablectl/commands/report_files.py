"""Where a command's reports go: one to standard output, any number to files."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import Any

from tablectl.commands.output import Output
from tablectl.commands.user_files import check_writable, write_file
from tablectl.documents.document import Document
from tablectl.documents.style import Style
from tablectl.model.errors import TablectlError, UsageError, of_table, one_line
from tablectl.model.plan import TableFailure
from tablectl.model.safe_text import escape_output
from tablectl.reports.render import ReportFormat, format_of, render, suffixes
from tablectl.reports.report_context import Context

_log = logging.getLogger(__name__)
Render = Callable[[ReportFormat, Style], str]


@dataclass(frozen=True, slots=True)
class ReportFiles:
    """The format that is printed, and the files that are written."""

    form: ReportFormat = ReportFormat.TEXT
    files: tuple[tuple[Path, ReportFormat], ...] = ()
    shown: bool = True
    """Whether anything is printed."""
    plan_file: Path | None = None
    """The file of the plan itself."""

    @staticmethod
    def of(
        form: ReportFormat,
        files: Sequence[Path] | None,
        plan: Path | None = None,
        known: Collection[ReportFormat] = tuple(ReportFormat),
    ) -> ReportFiles:
        """Parse the options; ``plan`` is the file of the plan itself, which no report may replace.

        Raises ``UsageError`` for a name whose format is not ``known`` and for a name that is used twice.
        """
        found: dict[Path, ReportFormat] = {}
        for path in files or []:
            asked = format_of(path.name)
            if asked is None:
                raise UsageError(f"--report {path} has no known format", f"use a name that ends in {suffixes(known)}")
            if asked not in known:
                raise UsageError(f"this command has no format {asked}", f"its formats are {', '.join(known)}")
            if path in found or (plan is not None and path.absolute() == plan.absolute()):
                twice = "to be written twice" if path in found else "the plan itself"
                raise UsageError(f"--report {path} is {twice}", "give each report a name of its own")
            found[path] = asked
        return ReportFiles(form, tuple(found.items()), plan_file=plan)

    def without(self, form: ReportFormat) -> ReportFiles:
        """The same reports without one format, neither printed nor written."""
        files = tuple(each for each in self.files if each[1] is not form)
        return replace(self, files=files, shown=self.shown and self.form is not form)

    @property
    def names_lines(self) -> bool:
        """Whether any of them shows lines of the policies."""
        return any(
            form not in {ReportFormat.TEXT, ReportFormat.JSON}
            for form in (self.form, *(form for _, form in self.files))
        )

    def check(self) -> None:
        """Raise ``TablectlError`` if a file cannot be written: call it before tables are read or changed."""
        for path, _ in self.files:
            check_writable(path)

    def write(self, render: Render, out: Output) -> None:
        """Write the files, then print: the reader of the output may close the pipe. If one file fails, the others are
        still written.

        Raises ``TablectlError`` for the first failure, and ``BrokenPipeError``.
        """
        self._write(render, out, show=True)

    def show(self, document: Document, out: Output, *, verbose: bool = False) -> None:
        """Write and print a document. Raises as ``write``."""
        self.write(lambda form, style: render(document, form, style, Context(), verbose=verbose), out)

    def keep(self, render: Render, out: Output) -> None:
        """Write only the files: the report was already printed."""
        self._write(render, out, show=False)

    def _write(self, render: Render, out: Output, *, show: bool) -> None:
        failed: list[TablectlError] = []

        def put(form: ReportFormat, style: Style, write: Callable[[str], None]) -> None:
            try:
                try:
                    text = _made(render, form, style)
                except IncompleteReportError as error:
                    failed.append(error)
                    text = escape_output(error.text, colour=style.colour)
                write(text)
            except TablectlError as error:
                failed.append(error)

        for path, form in self.files:
            put(form, Style(), partial(_write_text, path))
        if show and self.shown:
            put(self.form, out.style, out.result)
        if failed:
            raise failed[0]


class IncompleteReportError(TablectlError):
    """A report lacks tables that cannot be shown. ``text`` has ``rest``, the result without them."""

    def __init__(self, failed: Mapping[str, TablectlError], text: str, rest: Any) -> None:
        error = next(iter(failed.values()))
        super().__init__(f"the report lacks {', '.join(failed)}: {error.message}", error.hint)
        self.text = text
        self.rest = rest


def _write_text(path: Path, text: str) -> None:
    write_file(path, text.encode(errors="backslashreplace"))


def _made(render: Render, form: ReportFormat, style: Style) -> str:
    """A report, inert in a file as on a terminal.

    Raises ``TablectlError`` if rendering fails: what was done matters more than how it is reported.
    """
    try:
        return escape_output(render(form, style), colour=style.colour)
    except TablectlError:
        raise
    except Exception as error:
        hint = "this is a mistake of tablectl: please report it; another --format may do"
        raise TablectlError(f"the {form} report cannot be made: {one_line(error)}", hint) from error


def below_root(directory: Path) -> str:
    """The path of a directory relative to the root of its Git repository; empty for the root itself and outside of
    one.
    """
    root = next((each for each in (directory, *directory.parents) if (each / ".git").exists()), directory)
    return "" if root == directory else directory.relative_to(root).as_posix()


def report_of(result: Any, make: Callable[[Any], Document], context: Context, *, verbose: bool = False) -> Render:
    """The reports of a result with ``tables`` and ``failures``. A table that cannot be shown becomes a failure."""
    whole = cache(lambda: make(result))

    def shown(form: ReportFormat, style: Style, part: Any) -> str:
        return render(make(part), form, style, context, verbose=verbose)

    def report(form: ReportFormat, style: Style) -> str:
        try:
            return render(whole(), form, style, context, verbose=verbose)
        except TablectlError:
            raise
        except Exception as error:
            _log.debug("the report cannot be made at once", exc_info=error)
            alone = {_name(each): replace(result, tables=(each,)) for each in result.tables}
            tried = {name: of_table(name, partial(shown, form, style, part)) for name, part in alone.items()}
            failed = {name: each for name, each in tried.items() if isinstance(each, TablectlError)}
            if not failed:
                raise
            kept = tuple(each for each in result.tables if _name(each) not in failed)
            failures = (TableFailure(name=name, message=each.message, hint=each.hint) for name, each in failed.items())
            rest = replace(result, tables=kept, failures=(*result.failures, *failures))
            raise IncompleteReportError(failed, shown(form, style, rest), rest) from None

    return report


def _name(table: Any) -> str:
    return str(table.spec.name.text if hasattr(table, "spec") else getattr(table, "name", "") or table.table)
