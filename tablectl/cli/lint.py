"""``tablectl lint``, and the pages of its codes."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tablectl.api import Engines
from tablectl.cli.commands import configuration, context_here, mask_of, warn_unmatched
from tablectl.cli.output import Output
from tablectl.cli.report_files import below_root
from tablectl.cli.request import CommandRequest
from tablectl.model.errors import ExitCode, UsageError
from tablectl.model.lint_rules import RULES
from tablectl.planning.lint import Linted
from tablectl.policies.config import load_config
from tablectl.policies.policy_lines import policy_lines_of
from tablectl.policies.repository import load_repository
from tablectl.policies.spec import Specs
from tablectl.policies.suggestions import nearest
from tablectl.reports.formats import ReportFormat
from tablectl.reports.lint_page_text import code_json, code_text
from tablectl.reports.lint_text import lint_json, lint_text
from tablectl.selection import Selection
from tablectl.workflow import lint_tables, store_options


def lint_command(request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """``tablectl lint``. Returns the exit code."""
    config = configuration(request)
    specs = load_repository(request.paths, config, ".", request.variables, os.environ)
    selection = Selection(request.select, request.tags, request.excluded)
    with Engines(config, on_start=out.note) as engines, out.progress() as on_read:
        linted = lint_tables(
            specs, selection, config.engine.dialect, engines.start, store_options(config), on_read, config.severities
        )
    linted = mask_of(config).lint(linted)
    match form:
        case ReportFormat.JSON:
            out.result(json.dumps(lint_json(linted), indent=2) + "\n")
        case ReportFormat.SARIF:
            from tablectl.reports.context import Context  # noqa: PLC0415  # loads many modules, needed only here
            from tablectl.reports.sarif import lint_sarif  # noqa: PLC0415

            sources = policy_lines_of(specs, [table.name for table in linted.tables])
            out.result(lint_sarif(linted, Context(root=below_root(Path().absolute()), sources=sources)))
        case ReportFormat.MARKDOWN | ReportFormat.HTML:
            out.result(_document(linted, specs, form))
        case _:
            out.result(lint_text(linted, out.style))
    warn_unmatched(specs, linted.unmatched, out)
    return linted.exit_code


def _document(linted: Linted, specs: Specs, form: ReportFormat) -> str:
    from tablectl.reports.lint_document import lint_document  # noqa: PLC0415  # loads many modules, as above

    sources = policy_lines_of(specs, [table.name for table in linted.tables])
    context = replace(context_here(), sources=sources)
    document = lint_document(linted, context)
    if form is ReportFormat.MARKDOWN:
        from tablectl.reports.document_markdown import document_markdown  # noqa: PLC0415

        where = "<code>tablectl lint</code> prints all of it."
        return document_markdown(document, "<!-- tablectl lint -->", where)
    from tablectl.reports.document_html import document_html  # noqa: PLC0415

    return document_html(document, context)


def explain_code_command(word: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """``tablectl explain L004``. Returns the exit code."""
    rule = RULES.get(word.upper())
    if rule is None:
        near = nearest(word.upper(), tuple(RULES))
        raise UsageError(
            f"{word} is not a finding code", f"did you mean {near}?" if near else _every_code(tuple(RULES))
        )
    setting = load_config(Path(), os.environ, request.env).lint.get(rule.code)
    here = setting.severity if setting and setting.severity else rule.severity
    reason = setting.reason if setting else ""
    if form is ReportFormat.JSON:
        out.result(json.dumps(code_json(rule, here, reason), indent=2) + "\n")
    else:
        out.result(code_text(rule, here, reason, out.style))
    return ExitCode.DONE


def _every_code(codes: Sequence[str]) -> str:
    return f"codes are {', '.join(codes)}"
