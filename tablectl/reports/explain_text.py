"""The effective policy of a table, as text and JSON: each value, the line that set it, and the lines that it
overrides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tablectl.delta.databricks_runtimes import Capability, Runtime, can
from tablectl.frozen import frozen
from tablectl.model.text import printable, value_text
from tablectl.policies.effective_policy import Explanation
from tablectl.policies.layers import Layer, ResolvedValue
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.style import Style, wrapped

_WIDEST_VALUE = 32


@frozen
class RuntimeNeed:
    """What a value needs of the Databricks Runtime, if the table does not have the value yet."""

    capability: Capability
    fulfilled: bool | None
    """Whether the engine's runtime has it; ``None`` if that is unknown, or if the engine's runtime is not stated."""

    @classmethod
    def of(cls, known: Capability, runtime: Runtime | None) -> RuntimeNeed:
        """What an engine with a runtime, or one whose runtime is not stated, says about a capability."""
        return cls(known, can(runtime, known) if runtime else None)

    def text(self) -> str:
        """For people."""
        known = self.capability
        if known.since is None:
            return f"no source says which Databricks Runtime has {known.form} ({known.cited})"
        lacks = ", which `engine.runtime` is not" if self.fulfilled is False else ""
        return f"{known.form} needs Databricks Runtime {known.first} or newer{lacks} ({known.cited})"

    def more(self) -> list[str]:
        """What else is known about it."""
        known = self.capability
        said = (
            ("needs", known.needs),
            ("excludes", known.forbids),
            ("protocol", known.protocol),
            ("fails", known.fails),
        )
        return [f"{label}: {text}" for label, text in said if text]


_Needs = Mapping[str, Sequence[RuntimeNeed]]
"""By the key of a value."""
_NO_NEEDS: _Needs = MappingProxyType({})


def explain_text(explanation: Explanation, style: Style, needs: _Needs = _NO_NEEDS) -> str:
    """The places that apply to the table, then one line per value and one per overridden value."""
    lines = [style.paint(printable(explanation.table.text), "bold")]
    for declaration in explanation.declarations:
        what = f"matches {declaration.pattern.text}" if declaration.pattern else "declared"
        lines.append(f"  {printable(what)} {style.paint(f'at {_place(declaration.source)}', 'dim')}")
    names = max((len(printable(each.key)) for each in explanation.resolved), default=0)
    values = min(max((len(_value_text(each.won, each.key)) for each in explanation.resolved), default=0), _WIDEST_VALUE)
    if explanation.resolved:
        lines.append("")
    for each in explanation.resolved:
        lines += _resolved_lines(each, names, values, style)
        for need in needs.get(each.key, ()):
            for text in (need.text(), *need.more()):
                lines += [style.paint(line, "dim") for line in wrapped(printable(text), names + 4, style)]
    if explanation.silent:
        lines += ["", *style.prose("not managed, since no policy names it:", ", ".join(explanation.silent), 2)]
    return "\n".join(lines) + "\n"


def _resolved_lines(resolved: ResolvedValue, names: int, values: int, style: Style) -> list[str]:
    key = resolved.key
    value = style.paint(_value_text(resolved.won, key).ljust(values), "green" if resolved.given else "yellow")
    over = (f"over {_by(layer, key)}: {_value_text(layer, key)}" for layer in resolved.over)
    return [
        f"  {printable(key).ljust(names)}  {value}  {style.paint(_by(resolved.won, key), 'dim')}",
        *(f"  {'':{names}}  {style.paint(text, 'dim')}" for text in over),
    ]


def _value_text(layer: Layer, key: str) -> str:
    given = layer.declared.get(key)
    return value_text(given.shown()) if given else "not managed"


def _by(layer: Layer, key: str) -> str:
    title = layer.title or ("" if key in layer.declared else "unmanaged")
    return _place(layer.place(key) or layer.source) + (f" ({printable(title)})" if title else "")


def _place(source: SourceFile) -> str:
    return f"{printable(source.file)}:{source.line}"


def explain_json(explanation: Explanation, needs: _Needs = _NO_NEEDS) -> dict[str, Any]:
    """The same as plain values."""
    return {
        "table": explanation.table.text,
        "declarations": [{"key": each.text, **_at(each.source)} for each in explanation.declarations],
        "values": [
            {
                "name": each.key,
                **_declared_value(each.won, each.key),
                **({"runtime": [_need_json(need) for need in needs[each.key]]} if needs.get(each.key) else {}),
                "over": [_declared_value(layer, each.key) for layer in each.over],
            }
            for each in explanation.resolved
        ],
        "not_named": list(explanation.silent),
    }


def _need_json(need: RuntimeNeed) -> dict[str, Any]:
    known = need.capability
    return {
        "id": known.id,
        "since": known.first or None,
        "fulfilled": need.fulfilled,
        "sql": known.form,
        "needs": known.needs,
        "forbids": known.forbids,
        "protocol": known.protocol,
        "fails": known.fails,
        "evidence": known.evidence,
        "source": known.source,
        "seen": known.date,
    }


def _declared_value(layer: Layer, key: str) -> dict[str, Any]:
    given = layer.declared.get(key)
    return {
        "managed": given is not None,
        **({"value": given.shown()} if given else {}),
        "by": layer.title or "table",
        **_at(layer.place(key) or layer.source),
    }


def _at(source: SourceFile) -> dict[str, Any]:
    return {"file": source.file, "line": source.line, "column": source.column}
