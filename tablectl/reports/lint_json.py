"""The findings of lint as JSON."""

from __future__ import annotations

from typing import Any

from tablectl.json_text import json_form
from tablectl.planning.lint import Linted


def lint_json(linted: Linted) -> dict[str, Any]:
    """The findings as plain values, including findings that the repository ignores, with the reasons."""
    return {
        "tables": [
            {"table": each.name, "findings": [json_form(found) for found in each.findings]} for each in linted.tables
        ],
        "failures": [json_form(each) for each in linted.failures],
        "unmatched": list(linted.unmatched),
    }
