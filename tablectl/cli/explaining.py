"""``tablectl explain TABLE``. No live table is looked at, so little is loaded."""

from __future__ import annotations

import json
import os
from pathlib import Path

from tablectl.cli.output import Format, Output
from tablectl.cli.request import Request
from tablectl.model.errors import ExitCode
from tablectl.reports.explain_text import explain_json, explain_text
from tablectl.specs.config import load_config
from tablectl.specs.explain import explain
from tablectl.specs.repository import load_repository


def explain_command(table: str, request: Request, out: Output, form: Format) -> ExitCode:
    """What the policies say about a table."""
    config = load_config(Path(), os.environ, request.env)
    specs = load_repository(request.paths, config, ".", request.variables, os.environ)
    found = explain(specs, table, config.engine.catalog, config.engine.dialect)
    if form is Format.JSON:
        out.result(json.dumps(explain_json(found), indent=2) + "\n")
    else:
        out.result(explain_text(found, out.style))
    return ExitCode.DONE
