"""What ``tablectl explain`` shows, as documents: the policy of a table, a property, the code of a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tablectl.delta.databricks_runtimes import Capability, Runtime, can
from tablectl.delta.dialects import dialect_of
from tablectl.documents.document import Block, Cell, Document, Facts, Grid, Heading, Paragraph, Row, page
from tablectl.lint_rules.rule import LintRule
from tablectl.model.text import value_text
from tablectl.policies.effective_policy import Explanation
from tablectl.policies.layers import Layer, ResolvedValue
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.frozen import frozen

if TYPE_CHECKING:  # the conflict rules take longer to load than the explanation of a table
    from tablectl.planning.explain_property import PropertyExplanation


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

    def texts(self) -> Iterator[str]:
        """For people."""
        known = self.capability
        if known.since is None:
            yield f"no source says which Databricks Runtime has {known.form} ({known.cited})"
        else:
            lacks = ", which `engine.runtime` is not" if self.fulfilled is False else ""
            yield f"{known.form} needs Databricks Runtime {known.first} or newer{lacks} ({known.cited})"
        more = (
            ("needs", known.needs),
            ("excludes", known.forbids),
            ("protocol", known.protocol),
            ("fails", known.fails),
        )
        yield from (f"{label}: {text}" for label, text in more if text)


Needs = Mapping[str, Sequence[RuntimeNeed]]
"""By the key of a value."""
_NO_NEEDS: Needs = MappingProxyType({})


def document_of_explanation(explanation: Explanation, needs: Needs = _NO_NEEDS) -> Document:
    """The effective policy of a table: each value, the line that sets it, and the lines that it overrides."""
    places = [
        (f"matches {each.pattern.text}" if each.pattern else "declared", f"at {_place(each.source)}")
        for each in explanation.declarations
    ]
    rows = tuple(_row(each, needs.get(each.key, ())) for each in explanation.resolved)
    silent = [("not managed", f"{', '.join(explanation.silent)}: no policy names them")] if explanation.silent else []
    return page(
        explanation.table.text,
        Facts(tuple(places)),
        *([Grid("The values", ("Setting", "Value", "Declared"), rows)] if rows else []),
        *([Facts(tuple(silent))] if silent else []),
        record=_json(explanation, needs),
    )


def _row(resolved: ResolvedValue, needs: Sequence[RuntimeNeed]) -> Row:
    over, key = resolved.over, resolved.key
    values = [Cell(_value_text(each, key), tone="quiet") for each in over]
    places = [Cell(f"over {_by(each, key)}", tone="quiet") for each in over]
    notes = [Cell(text, tone="quiet") for need in needs for text in need.texts()]
    return Row(
        (
            (Cell(key, code=True),),
            (Cell(_value_text(resolved.won, key), code=True), *values),
            (Cell(_by(resolved.won, key)), *places, *notes),
        )
    )


def _value_text(layer: Layer, key: str) -> str:
    given = layer.declared.get(key)
    return value_text(given.shown()) if given else "not managed"


def _by(layer: Layer, key: str) -> str:
    title = layer.title or ("" if key in layer.declared else "unmanaged")
    return _place(layer.place(key) or layer.source) + (f" ({title})" if title else "")


def _place(source: SourceFile) -> str:
    return f"{source.file}:{source.line}"


def _json(explanation: Explanation, needs: Needs) -> dict[str, Any]:
    return {
        "table": explanation.table,
        "declarations": [{"key": each.text, **_at(each.source)} for each in explanation.declarations],
        "values": [
            {
                "name": each.key,
                **_declared_value(each.won, each.key),
                **({"runtime": needs[each.key]} if needs.get(each.key) else {}),
                "over": [_declared_value(layer, each.key) for layer in each.over],
            }
            for each in explanation.resolved
        ],
        "not_named": explanation.silent,
        "format": 2,
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


def document_of_property(about: PropertyExplanation) -> Document:
    """The values that a property accepts, and what a change of it does."""
    return page(about.key, *map(Paragraph, _facts(about)), *_changes(about), record=about)


def _facts(about: PropertyExplanation) -> Iterator[str]:
    if about.refused:
        reason, hint = about.refused
        yield f"No policy can name it: {reason}."
        yield from [f"How to fix: {hint}."] if hint else []
    elif about.attribute:
        yield f"Declared by the attribute `{about.attribute}:`. {about.description}"
        yield from map(_runtime, about.runtimes)
    else:
        yield f"Declared under `properties:`. {about.description}"
        if len(about.dialects) == 1:
            yield f"Only {dialect_of(about.dialects[0]).title} knows it."
        if about.default is not None:
            yield f"Where it is not set, every engine takes {about.default}."
        yield from map(_runtime, about.runtimes)
        if about.feature:
            yield f"It brings the protocol feature {about.feature}, which stays when it is unset."


def _changes(about: PropertyExplanation) -> Iterator[Block]:
    if about.changes:
        yield Heading("On a plain table, among writers with the newest Delta Spark", style="sql")
    for what, verdict in about.changes.items():
        impact = [("impact", verdict.fails)] if verdict.fails else []
        yield Facts(((f"to {what}", f"it is a {verdict.phase.word} commit: {verdict.reason}"), *impact))
    if about.codes:
        yield Paragraph(f"Findings about it: {', '.join(about.codes)} (`tablectl explain {about.codes[0]}`).")


def _runtime(known: Capability) -> str:
    if known.since is None:
        return f"No source says which Databricks Runtime has {known.form} ({known.cited})."
    return f"On Databricks: {known.form}, since Runtime {known.first} ({known.cited})."


@frozen
class CodeExplanation:
    """The code of a finding."""

    rule: LintRule
    here: str
    """Its severity in this repository."""
    reason: str
    """Why the repository ignores it; empty if it does not."""
    format: int = 2


def document_of_code(about: CodeExplanation) -> Document:
    """The page of a code."""
    rule = about.rule
    here = f"; here {about.here}" if about.here != rule.severity else ""
    why = f": {about.reason}" if here and about.reason else ""
    silence = (
        f"in tablectl.yaml: `lint: {{{rule.code}: {{severity: ignore, reason: …}}}}`. Other severities (error, "
        "warning, note) need no reason, and `tables: [glob, …]` limits it to some tables. An error leaves its table "
        "out of the plan."
    )
    facts = (
        ("severity", f"{rule.severity}, checked by {_listed(rule.seen)}{here}{why}"),
        ("breaks", rule.breaks),
        ("why", rule.why),
        ("fix", rule.fix),
        ("change", silence),
        ("source", f"{rule.source}."),
    )
    return page(rule.code, Facts(facts), state=rule.title, record=about)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
