"""What ``tablectl explain`` shows, as documents: the policy of a table, a property, the code of a finding."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from tablectl.delta.databricks_runtimes import Capability, Runtime, can
from tablectl.delta.dialects import dialect_of
from tablectl.delta.names import TableName
from tablectl.documents.document import Block, Cell, Document, Facts, Grid, Heading, Paragraph, Row, page
from tablectl.lint_rules.rule import LintRule
from tablectl.model.plan import Value
from tablectl.model.safe_text import value_text
from tablectl.policies.effective_policy import Explanation
from tablectl.policies.merge_layers import Layer, ResolvedValue
from tablectl.support.typed_json import AsText, Omitted, Unwritten

if TYPE_CHECKING:  # the conflict rules take longer to load than the explanation of a table
    from tablectl.planning.explain_property import PropertyExplanation


@dataclass(frozen=True, slots=True)
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
_OWN = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyLine:
    """A line of a policy."""

    file: str
    line: int
    column: int

    @property
    def text(self) -> str:
        """The file and the line."""
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedDeclaration(PolicyLine):
    """An entry or a pattern that applies to the table."""

    key: str
    is_pattern: Unwritten[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredValue(PolicyLine):
    """What one layer of the policies says about a setting."""

    managed: bool
    value: Value
    """``None`` also if the layer says that the setting is not managed."""
    by: str
    """``table``, a pattern, a profile or ``defaults``."""

    @classmethod
    def of(cls, layer: Layer, key: str, **more: Any) -> Self:
        """What a layer says about a key; ``more`` are the other fields of the class."""
        given, source = layer.declared.get(key), layer.place(key) or layer.source
        return cls(
            managed=given is not None,
            value=given.shown() if given else None,
            by=layer.title or _OWN,
            file=source.file,
            line=source.line,
            column=source.column,
            **more,
        )

    @property
    def shown(self) -> str:
        """The value, for people."""
        return value_text(self.value) if self.managed else "not managed"

    @property
    def place(self) -> str:
        """The line, and what it is part of."""
        title = self.by if self.by != _OWN else "" if self.managed else "unmanaged"
        return f"{self.text} ({title})" if title else self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedValue(DeclaredValue):
    """The effective value of a setting, and what it overrides."""

    name: str
    over: tuple[DeclaredValue, ...]
    runtime: Omitted[tuple[RuntimeNeed, ...]] = ()


@dataclass(frozen=True, slots=True)
class ExplainedTable:
    """The effective policy of a table."""

    table: AsText[TableName]
    declarations: tuple[ExplainedDeclaration, ...]
    values: tuple[ExplainedValue, ...]
    not_named: tuple[str, ...]
    """The attributes that no policy names. They are not managed."""
    format: int = 2

    @classmethod
    def of(cls, explanation: Explanation, needs: Needs) -> ExplainedTable:
        """An explanation in plain values, with what the values need of the Databricks Runtime."""
        return cls(
            explanation.table,
            tuple(_declaration(each) for each in explanation.declarations),
            tuple(_value(each, needs.get(each.key, ())) for each in explanation.resolved),
            explanation.silent,
        )


def _declaration(layer: Layer) -> ExplainedDeclaration:
    at = layer.source
    pattern = layer.pattern is not None
    return ExplainedDeclaration(key=layer.text, is_pattern=pattern, file=at.file, line=at.line, column=at.column)


def _value(resolved: ResolvedValue, needs: Sequence[RuntimeNeed]) -> ExplainedValue:
    key = resolved.key
    over = tuple(DeclaredValue.of(layer, key) for layer in resolved.over)
    return ExplainedValue.of(resolved.won, key, name=key, over=over, runtime=tuple(needs))


def document_of_explanation(found: ExplainedTable) -> Document:
    """The effective policy of a table: each value, the line that sets it, and the lines that it overrides."""
    places = [
        (f"matches {each.key}" if each.is_pattern else "declared", f"at {each.text}") for each in found.declarations
    ]
    silent = ", ".join(found.not_named)
    rows = tuple(map(_row, found.values))
    return page(
        found.table.text,
        Facts(tuple(places)),
        *([Grid("The values", ("Setting", "Value", "Declared"), rows)] if rows else []),
        *([Facts((("not managed", f"{silent}: no policy names them"),))] if silent else []),
        record=found,
    )


def _row(explained: ExplainedValue) -> Row:
    values = [Cell(each.shown, tone="quiet") for each in explained.over]
    places = [Cell(f"over {each.place}", tone="quiet") for each in explained.over]
    notes = [Cell(text, tone="quiet") for need in explained.runtime for text in need.texts()]
    return Row(
        (
            (Cell(explained.name, code=True),),
            (Cell(explained.shown, code=True), *values),
            (Cell(explained.place), *places, *notes),
        )
    )


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


@dataclass(frozen=True, slots=True)
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
