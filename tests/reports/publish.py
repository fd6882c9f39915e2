"""Write ``docs/generated/lint.md`` from the rules and the table of clients: ``python -m tests.reports.publish``."""

from __future__ import annotations

from pathlib import Path

from tests.reports.lint_page import codes_page

PAGE = Path(__file__).parents[2] / "docs" / "generated" / "lint.md"

if __name__ == "__main__":
    PAGE.write_text(codes_page(), encoding="utf-8")
