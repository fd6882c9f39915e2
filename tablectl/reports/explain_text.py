"""The effective policy of a table, as text and JSON: each value, the line that set it, and the lines that it
overrides.
"""

from __future__ import annotations

from typing import Any

from tablectl.model.text import printable, value_text
from tablectl.policies.effective_policy import Explanation
from tablectl.policies.precedence import DeclaredValue, ResolvedValue
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.style import Style

_WIDEST_VALUE = 32


def explain_text(explanation: Explanation, style: Style) -> str:
    """The places that apply to the table, then one line per value and one per overridden value."""
    lines = [style.paint(printable(explanation.table.text), "bold")]
    for declaration in explanation.declarations:
        what = f"matches {declaration.pattern.text}" if declaration.pattern else "declared"
        lines.append(f"  {printable(what)} {style.paint(f'at {_place(declaration.source)}', 'dim')}")
    names = max((len(printable(each.key)) for each in explanation.heard), default=0)
    values = min(max((len(_said(each.won)) for each in explanation.heard), default=0), _WIDEST_VALUE)
    if explanation.heard:
        lines.append("")
    for each in explanation.heard:
        lines += _heard(each, names, values, style)
    if explanation.silent:
        lines += ["", *style.prose("not managed, since no policy names it:", ", ".join(explanation.silent), 2)]
    return "\n".join(lines) + "\n"


def _heard(heard: ResolvedValue, names: int, values: int, style: Style) -> list[str]:
    value = style.paint(_said(heard.won).ljust(values), "green" if heard.won.given else "yellow")
    over = (f"over {_by(voice)}: {_said(voice)}" for voice in heard.over)
    return [
        f"  {printable(heard.key).ljust(names)}  {value}  {style.paint(_by(heard.won), 'dim')}",
        *(f"  {'':{names}}  {style.paint(text, 'dim')}" for text in over),
    ]


def _said(voice: DeclaredValue) -> str:
    return value_text(voice.given.shown()) if voice.given else "not managed"


def _by(voice: DeclaredValue) -> str:
    title = voice.title or ("" if voice.given else "unmanaged")
    return _place(voice.source) + (f" ({printable(title)})" if title else "")


def _place(source: SourceFile) -> str:
    return f"{printable(source.file)}:{source.line}"


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "table": explanation.table.text,
        "declarations": [{"key": each.target.text, **_at(each.source)} for each in explanation.declarations],
        "values": [
            {"name": each.key, **_voice(each.won), "over": [_voice(voice) for voice in each.over]}
            for each in explanation.heard
        ],
        "not_named": list(explanation.silent),
    }


def _voice(voice: DeclaredValue) -> dict[str, Any]:
    value = {"value": voice.given.shown()} if voice.given else {}
    return {"managed": voice.given is not None, **value, "by": voice.title or "table", **_at(voice.source)}


def _at(source: SourceFile) -> dict[str, Any]:
    return {"file": source.file, "line": source.line, "column": source.column}
