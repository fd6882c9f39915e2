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
    names = max((len(printable(each.key)) for each in explanation.resolved), default=0)
    values = min(max((len(_said(each.won)) for each in explanation.resolved), default=0), _WIDEST_VALUE)
    if explanation.resolved:
        lines.append("")
    for each in explanation.resolved:
        lines += _heard(each, names, values, style)
    if explanation.silent:
        lines += ["", *style.prose("not managed, since no policy names it:", ", ".join(explanation.silent), 2)]
    return "\n".join(lines) + "\n"


def _heard(resolved: ResolvedValue, names: int, values: int, style: Style) -> list[str]:
    value = style.paint(_said(resolved.won).ljust(values), "green" if resolved.won.given else "yellow")
    over = (f"over {_by(declared_value)}: {_said(declared_value)}" for declared_value in resolved.over)
    return [
        f"  {printable(resolved.key).ljust(names)}  {value}  {style.paint(_by(resolved.won), 'dim')}",
        *(f"  {'':{names}}  {style.paint(text, 'dim')}" for text in over),
    ]


def _said(declared_value: DeclaredValue) -> str:
    return value_text(declared_value.given.shown()) if declared_value.given else "not managed"


def _by(declared_value: DeclaredValue) -> str:
    title = declared_value.title or ("" if declared_value.given else "unmanaged")
    return _place(declared_value.source) + (f" ({printable(title)})" if title else "")


def _place(source: SourceFile) -> str:
    return f"{printable(source.file)}:{source.line}"


def explain_json(explanation: Explanation) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "table": explanation.table.text,
        "declarations": [{"key": each.target.text, **_at(each.source)} for each in explanation.declarations],
        "values": [
            {
                "name": each.key,
                **_declared_value(each.won),
                "over": [_declared_value(declared_value) for declared_value in each.over],
            }
            for each in explanation.resolved
        ],
        "not_named": list(explanation.silent),
    }


def _declared_value(declared_value: DeclaredValue) -> dict[str, Any]:
    value = {"value": declared_value.given.shown()} if declared_value.given else {}
    return {
        "managed": declared_value.given is not None,
        **value,
        "by": declared_value.title or "table",
        **_at(declared_value.source),
    }


def _at(source: SourceFile) -> dict[str, Any]:
    return {"file": source.file, "line": source.line, "column": source.column}
