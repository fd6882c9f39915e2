"""``tablectl drift``."""

from __future__ import annotations

import json
import os

from tablectl.api import Engines
from tablectl.cli.commands import configuration, warn_unmatched
from tablectl.cli.output import Format, Output
from tablectl.cli.request import Request
from tablectl.model.errors import ExitCode
from tablectl.reports.drift_text import drift_json, drift_text
from tablectl.scope import Selection
from tablectl.specs.repository import load_repository
from tablectl.workflow import find_drift, store_options


def drift_command(request: Request, out: Output, form: Format, look_back: int) -> ExitCode:
    """What differs from the policies, and since when."""
    config = configuration(request)
    specs = load_repository(request.paths, config, ".", request.variables, os.environ)
    selection = Selection(request.select, request.tags)
    with Engines(config, on_start=out.note) as engines, out.progress() as on_read:
        found = find_drift(specs, selection, engines.start, store_options(config), on_read, look_back)
    warn_unmatched(specs, found.unmatched, out)
    if form is Format.JSON:
        out.result(json.dumps(drift_json(found), indent=2) + "\n")
    else:
        out.result(drift_text(found, out.style))
    return found.exit_code
