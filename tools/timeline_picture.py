"""Maintainers: the timeline of an apply in the README, ``docs/images/timeline.svg``.

    python -m tools.timeline_picture RUN.json TABLE    # from the report of a run: tablectl apply … --report RUN.json

It is the picture of the report's page, as a file of its own: it follows the light or dark colours of the reader.
"""

from __future__ import annotations

import re
import sys
from dataclasses import fields
from pathlib import Path

from tablectl.documents.document import Picture, Timeline, page
from tablectl.model.run_report import TableRun
from tablectl.reports.document_html import document_html
from tablectl.reports.report_context import Context
from tablectl.reports.run_document import timeline
from tablectl.support.json_text import read_json, write_json
from tablectl.support.typed_json import read_record

PICTURE = Path(__file__).parents[1] / "docs" / "images" / "timeline.svg"
_WIDTH, _HEIGHT, _LEGEND = 860, 190, 30
_STYLE = """<style>
svg { font: 13px system-ui, "Segoe UI", Roboto, sans-serif; fill: #59636e; --ink: #1f2328; --line: #d1d9e0;
  --free: #1a7f37; --rewrite: #9a6700; --closed: #cf222e; --ours: #0969da; --paper: #ffffff; }
@media (prefers-color-scheme: dark) { svg { fill: #9198a1; --ink: #f0f6fc; --line: #3d444d; --free: #3fb950;
  --rewrite: #d29922; --closed: #f85149; --ours: #4493f8; --paper: #0d1117; } }
line { stroke: var(--line); }
.gate { opacity: .6; }
.gate.no-schema, .step.free { fill: var(--free); }
.gate.appends-only, .step.rewrite { fill: var(--rewrite); }
.gate.closed, .step.closed { fill: var(--closed); }
.commit.ours circle { fill: var(--ours); }
.commit.others circle { fill: var(--paper); stroke: var(--ink); stroke-width: 2; }
.name, .commit text { fill: var(--ink); font-size: 12px; }
</style>"""
_GATES = (
    ("no-schema", "no schema changes"),
    ("appends-only", "appends only"),
    ("closed", "closed to writers with a guard"),
)


def picture(line: Timeline, name: str) -> str:
    """The picture as a file, with a title and a description for people who do not see it."""
    report = document_html(page(name, Picture(line, name), record=None), Context())
    start = report.index(">", report.index("<svg")) + 1
    inside = report[start : report.index("</svg>", start)]
    told = " ".join(f"{each.when}: {each.kind}: {each.text}." for each in line.events)
    used = [each for each in _GATES if each[0] in {bar.kind for bar in line.gates}]
    legend = "".join(
        f'<rect class="gate {kind}" x="{8 + 220 * index}" y="{_HEIGHT + 8}" width="14" height="10"/>'
        f'<text x="{28 + 220 * index}" y="{_HEIGHT + 17}">{text}</text>'
        for index, (kind, text) in enumerate(used)
    )
    box = f'viewBox="0 0 {_WIDTH} {_HEIGHT + _LEGEND}" width="{_WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {box}>'
    title = f"<title>An apply of {name} in {line.length}: gate, statements and commits</title>"
    body = re.sub(r"\n\s*", "\n", inside).strip()
    return f"{head}\n{title}\n<desc>{told}</desc>\n{_STYLE}\n{body}\n{legend}\n</svg>\n"


def main(file: Path, table: str) -> None:
    """Writes the picture."""
    tables = read_json(file.read_bytes())["tables"]
    found = next(each for each in tables if each["name"].rstrip("`").endswith(table))
    kept = {each.name for each in fields(TableRun)}  # a report also has what follows from them
    run = read_record(TableRun, write_json({key: value for key, value in found.items() if key in kept}))
    PICTURE.write_text(picture(timeline(run), table), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
