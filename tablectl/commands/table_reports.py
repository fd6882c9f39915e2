"""The reports of a result about many tables: one that cannot be shown costs the others nothing."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from typing import Any

from tablectl.commands.report_files import IncompleteReportError, Render
from tablectl.model.errors import TablectlError
from tablectl.model.one_table import of_table
from tablectl.model.plan import TableFailure
from tablectl.reports.context import Context
from tablectl.reports.document import Document
from tablectl.reports.formats import ReportFormat
from tablectl.reports.render import render
from tablectl.reports.style import Style

_log = logging.getLogger(__name__)


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
