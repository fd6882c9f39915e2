"""The changes that ``drift --adopt`` makes to policy files, as text."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

from tablectl.model.text import printable
from tablectl.policies.adopt import Adoption
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.style import Style


def adoption_text(adoption: Adoption, before: Mapping[str, str], style: Style) -> str:
    """The changes to the files as a unified diff, and what stays different and why."""
    lines: list[str] = []
    for file in sorted(adoption.texts):
        old, new = (text.splitlines(keepends=True) for text in (before[file], adoption.texts[file]))
        lines += [_diff_line(line.rstrip("\r\n"), style) for line in unified_diff(old, new, file, file)]
    for wish, why in adoption.left:
        lines += style.prose("skipped", f"{wish.id} of {wish.table.text} ({_at(wish.source)}): {why}", 0)
    return "\n".join(lines) + "\n"


def _diff_line(line: str, style: Style) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return style.paint(printable(line), colour) if colour else printable(line)


def _at(source: SourceFile) -> str:
    return f"{source.file}:{source.line}"
