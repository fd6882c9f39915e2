"""Plans of 1, 9, 200 and 10,000 tables in the formats for programs and pages. ``test_groups`` has text and comments.

The files of large plans would have megabytes, so their golden files hold size and digest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable

import pytest

from tablectl.documents.style import Style
from tablectl.model.plan import TablePlan
from tablectl.reports.mask import Mask
from tablectl.reports.render import ReportFormat
from tablectl.reports.report_context import Context
from tests.reports.fleet import fleet
from tests.reports.rendered import render_plan

SUFFIXES = {
    ReportFormat.JSON: "json",
    ReportFormat.SARIF: "sarif",
    ReportFormat.JUNIT: "junit.xml",
    ReportFormat.HTML: "html",
}
_STYLE = re.compile(r"(?s)<(style|script)>.*?</\1>\n?")


@pytest.mark.parametrize("form", SUFFIXES)
@pytest.mark.parametrize(
    ("count", "distinct"), [(1, 1), (9, 7), (200, 1), pytest.param(10_000, 40, marks=pytest.mark.slow)]
)
def test_a_fleet_in_each_format(
    golden: Callable[[str, str], None],
    table_planned: Callable[..., TablePlan],
    count: int,
    distinct: int,
    form: ReportFormat,
) -> None:
    text = _STYLE.sub("", render_plan(fleet(table_planned, count, distinct), form, Style(), Mask(()), Context()))
    name = f"fleet-{count}.{SUFFIXES[form]}"
    if count < 100:
        golden(name, text)
    else:
        data = text.encode()
        golden(f"{name}.digest", f"{len(data)} bytes\nsha256 {hashlib.sha256(data).hexdigest()}\n")
