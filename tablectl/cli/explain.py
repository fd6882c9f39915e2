"""``tablectl explain TABLE``. It reads no live table, so it loads few modules."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tablectl.cli.output import Output
from tablectl.cli.request import CommandRequest
from tablectl.delta.properties import OWNED_KEYS, known_keys
from tablectl.model.errors import ExitCode, UsageError
from tablectl.policies.config import load_config
from tablectl.policies.effective_policy import explain
from tablectl.policies.repository import load_repository
from tablectl.policies.suggestions import nearest
from tablectl.reports.explain_text import explain_json, explain_text
from tablectl.reports.formats import ReportFormat


def explain_key_command(key: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """Explain a table property."""
    # The conflict rules take longer to load than the rest of this command.
    from tablectl.planning.explain_property import explain_property  # noqa: PLC0415
    from tablectl.reports.property_text import about_key_json, about_key_text  # noqa: PLC0415

    dialect = load_config(Path(), os.environ, request.env).engine.dialect
    about = explain_property(key, dialect)
    if about is None:
        near = nearest(key, (*OWNED_KEYS, *known_keys(dialect)))
        hint = f"did you mean {near}?" if near else "keys of your own have no meaning to Delta"
        raise UsageError(f"{key} is not a property known to Delta", hint)
    if form is ReportFormat.JSON:
        out.result(json.dumps(about_key_json(about), indent=2) + "\n")
    else:
        out.result(about_key_text(about, out.style))
    return ExitCode.DONE


def explain_command(table: str, request: CommandRequest, out: Output, form: ReportFormat) -> ExitCode:
    """Show what the policies declare for a table."""
    config = load_config(Path(), os.environ, request.env)
    specs = load_repository(request.paths, config, ".", request.variables, os.environ)
    found = explain(specs, table, config.engine.catalog, config.engine.dialect)
    if form is ReportFormat.JSON:
        out.result(json.dumps(explain_json(found), indent=2) + "\n")
    else:
        out.result(explain_text(found, out.style))
    return ExitCode.DONE
