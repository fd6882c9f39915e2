"""``constraints``: CHECK constraints and NOT NULL (delta-1.12, docs/constraints.md).

A text is the expression of the CHECK constraint with the key's name, ``none`` no such constraint. ``not null`` and
``nullable`` are about the column with the key's name. Delta reads all rows before it adds one, so an apply counts the
rows in the way before it closes the gate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tablectl.attributes.base import NO_NEEDS, Attribute, ChangeTarget, Needs, PlannedOperation
from tablectl.attributes.value_types import Declared, NamedValues, ValueType, no_column
from tablectl.delta import keys
from tablectl.delta.dialects import OPEN_SOURCE, dialect_of
from tablectl.delta.expressions import (
    columns_in,
    equal,
    foreign_functions,
    sent_text,
    why_no_condition,
    why_not_stored,
    why_refused,
)
from tablectl.delta.names import NameSyntaxError, column_sql, column_text, parse_column
from tablectl.delta.sql_tokens import stored_by_delta
from tablectl.model.operations import (
    AddConstraint,
    DropConstraint,
    DropNotNull,
    Operation,
    SetNotNull,
    SetProperties,
    UnsetProperties,
)
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.safe_text import is_cut
from tablectl.model.table import LiveTable
from tablectl.model.table_options import FUNCTIONS, TableOptions

NONE, NOT_NULL, NULLABLE = "none", "not null", "nullable"
WORDS = (NONE, NOT_NULL, NULLABLE)
"""The values that are not expressions."""
_OF_COLUMNS = frozenset({NOT_NULL, NULLABLE})
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}\Z")
_LONGEST_NAME = 255
_DELTAS_OWN = "__char_varchar_length_check_constraint__"


def _why_not(name: str, value: str) -> tuple[str, str]:
    if (word := " ".join(value.lower().split())) in WORDS and word != value:
        return f"`{name}: {value}` is not an expression", f"write `{word}`"
    if value in _OF_COLUMNS:
        try:
            parse_column(name)
        except NameSyntaxError as error:
            return f"`{name}` is not a column: {error}", ""
        return "", ""
    named = _NAME.match(name) or (value == NONE and 0 < len(name) <= _LONGEST_NAME and name.isprintable())
    if not named or name.lower() == _DELTAS_OWN:
        hint = "a name is made of letters, digits and _; only `none` takes a name of another form"
        return f"`{name}` is not a name of a constraint", hint
    wrong = "" if value == NONE else why_refused(value) or why_no_condition(value)
    return (f"the expression of `{name}` {wrong}", "for example `positive: amount > 0`") if wrong else ("", "")


class Constraints(Attribute):
    """The attribute ``constraints``."""

    name = "constraints"
    value_type = ValueType(
        name=name,
        description="CHECK constraints by name, each with its expression or `none`; columns that are `not null` or "
        "`nullable`.",
        named=NamedValues(
            takes="names to expressions, `none`, `not null` or `nullable`",
            example='{positive: "amount > 0", customer_id: not null}',
            why_not=_why_not,
            words=WORDS,
        ),
    )

    def read(self, live: LiveTable, key: str) -> Value:
        """The expression of the CHECK constraint with this name. Without one, ``not null`` or ``nullable`` if there is
        such a column, otherwise ``none``.
        """
        expression = _expression(live, key)
        return expression if expression is not None else _nullability(live, key)

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares expressions by their tokens. A column without a constraint of its name has ``none``."""
        if declared == NONE:
            return found in WORDS
        return found == declared or (isinstance(found, str) and isinstance(declared, str) and equal(found, declared))

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        items = declared.items() if isinstance(declared, Mapping) else ()
        for key, value in sorted(items):
            found = _nullability(live, key) if value in _OF_COLUMNS else _expression(live, key, value or NONE) or NONE
            if not self.agrees(found, value, key):
                replaced = NONE not in {found, value} and value not in _OF_COLUMNS
                via = (NONE, NULLABLE, NOT_NULL) if replaced else ()
                yield Change(attribute=self.name, key=key, before=found, after=value, via=via)

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """A column that is missing, or that is named like a CHECK constraint of the table."""
        if change.after not in _OF_COLUMNS:
            if change.after == NONE:
                return None
            return _foreign(change, target) or _not_stored(change, target) or _missing_column(change, live)
        column = live.schema.find(parse_column(change.key))
        if column is None:
            return replace(no_column(change.key, live.schema), condition="")
        if change.after == NOT_NULL and not dialect_of(target.dialect).sets_not_null:
            return Reason(
                reason="Spark refuses to make a column of an existing Delta table NOT NULL (delta-1.12)",
                fix=f"declare a CHECK constraint, which does the same: `{column[0][-1]}_set: {change.key} IS NOT NULL`",
            )
        if _expression(live, change.key) is not None:
            return Reason(
                reason=f"{change.key} is a column, and the name of a CHECK constraint, too",
                fix="give the constraint another name",
            )
        return None

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """A changed expression is dropped and added: Delta alters no constraint."""
        before, after = str(change.before), str(change.after)
        if after in _OF_COLUMNS:
            if after == NOT_NULL:
                made, back = SetNotNull(change.key), DropNotNull(change.key)
                return (PlannedOperation(change.id, made, undo=back, id=f"not-null-{change.key}"),)
            stays = "the column nullable: Spark does not make it NOT NULL again, and a CHECK constraint does the same"
            allow = DropNotNull(change.key)
            return (PlannedOperation(change.id, allow, undo_note=stays, loses=True, id=f"nullable-{change.key}"),)
        steps = list[PlannedOperation]()
        if before not in WORDS:
            steps += _removals(change, basis)
            lost = is_cut(before) or why_refused(before) or any(why_not_stored(before))
            restored = None if lost else AddConstraint(change.key, sent_text(before))
            note = "" if restored else f"the loss of the constraint {change.key}, whose text no statement repeats"
            steps[-1] = replace(steps[-1], undo=restored, undo_note=note, loses=not restored)
        if after != NONE:
            note = "" if basis.protocol.protocol().has("checkConstraints") else "the protocol feature checkConstraints"
            add = AddConstraint(change.key, sent_text(after))
            key = (f"{keys.CONSTRAINTS}{change.key.lower()}",) if steps else ()
            undo = DropConstraint(change.key)
            steps.append(
                PlannedOperation(
                    change.id, add, needs=key, undo=undo, undo_note=note, id=f"add-constraint-{change.key}"
                )
            )
        return steps

    def born(self, declared: Declared) -> Iterable[Operation]:
        """A CREATE TABLE takes CHECK constraints as properties (``validateConfigurations`` in Delta 4.4.0's
        ``DeltaConfig.scala``), and NOT NULL in its columns.
        """
        items = sorted(declared.items()) if isinstance(declared, Mapping) else ()
        checks = tuple((f"{keys.CONSTRAINTS}{name.lower()}", str(text)) for name, text in items if text not in WORDS)
        if checks:
            yield SetProperties(checks)
        for name, text in items:
            if text in _OF_COLUMNS:
                yield SetNotNull(name) if text == NOT_NULL else DropNotNull(name)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """The CHECK constraints. That a column is not null is part of the schema, which no import declares."""
        for key, value in sorted(live.properties.items()):
            if key.lower().startswith(keys.CONSTRAINTS):
                name = key[len(keys.CONSTRAINTS) :]
                yield name, _expression(live, name) or value

    def restored(self, before: LiveTable, after: LiveTable, declared: Declared | None) -> Iterator[str]:
        """The columns that differ in being nullable."""
        del declared
        for field in before.schema.fields:
            if _nullability(before, field.name) != _nullability(after, field.name) and _NAME.match(field.name):
                yield field.name

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """How much data is read."""
        return NO_NEEDS if value in {NONE, NULLABLE} else Needs(size=True)


def violated_by(change: Change) -> str:
    """The SQL condition of the rows that violate what a change adds: false and NULL violate a CHECK constraint. It has
    the text that will be stored.
    """
    if change.after == NOT_NULL:
        return f"{column_sql(parse_column(change.key))} IS NULL"
    text = str(change.after)
    stored = text if any(why_not_stored(text)) else stored_by_delta(sent_text(text))
    return f"NOT coalesce(({stored}), false)"


def _foreign(change: Change, target: ChangeTarget) -> Reason | None:
    called = () if FUNCTIONS in target.options.allow else foreign_functions(str(change.after))
    return Reason(reason=f"the expression {calls(called)}", fix=WITHOUT_OTHERS) if called else None


def calls(functions: Sequence[str]) -> str:
    """That an expression calls functions which need a consent, as a clause."""
    return f"calls {', '.join(functions)}: not a built-in function of Spark that depends on its arguments alone"


WITHOUT_OTHERS = f"use built-in functions of Spark, or consent with `allow: [{FUNCTIONS}]`"


def _not_stored(change: Change, target: ChangeTarget) -> Reason | None:
    """Databricks has another parser, of which nothing of this kind is known."""
    wrong, hint = why_not_stored(str(change.after)) if target.dialect == OPEN_SOURCE.name else ("", "")
    return Reason(reason=f"the expression {wrong}", fix=hint, condition="PARSE_SYNTAX_ERROR") if wrong else None


def _missing_column(change: Change, live: LiveTable) -> Reason | None:
    """Fields are looked up within structs; what is inside arrays and maps, Spark checks when it adds the constraint."""
    for column in columns_in(str(change.after)):
        for length in range(1, len(column) + 1):
            above = live.schema.find(column[: length - 1])
            if (length == 1 or (above and above[1].fields)) and live.schema.find(column[:length]) is None:
                missing = no_column(column_text(column), live.schema)
                return replace(missing, reason=f"{missing.reason}, which the expression names")
    return None


def constraint_keys(properties: Mapping[str, str], name: str) -> tuple[str, ...]:
    """The keys under which a table stores the CHECK constraints of a name, sorted. Delta enforces each of them, in any
    letter case (``getCheckConstraints`` in ``Constraints.scala`` of Delta 4.4.0).
    """
    key = f"{keys.CONSTRAINTS}{name}".lower()
    return tuple(sorted(each for each in properties if each.lower() == key))


def _removals(change: Change, basis: Basis) -> Iterator[PlannedOperation]:
    """``DROP CONSTRAINT`` finds a key in lower case only. ``UNSET TBLPROPERTIES`` takes any other, as it is stored."""
    stored = constraint_keys(dict(basis.stored), change.key)
    others = tuple(key for key in stored if key != key.lower())
    if others:
        yield PlannedOperation(change.id, UnsetProperties(others), id=f"unset-constraint-{change.key}")
    if len(others) == len(stored) > 0:
        return
    yield PlannedOperation(change.id, DropConstraint(change.key), id=f"drop-constraint-{change.key}")


def _expression(live: LiveTable, name: str, declared: str = NONE) -> str | None:
    """The expression of a constraint. If keys of other letter case hold several, the first that is not the declared
    one. One whose text is a word of policies gets parentheses, which do not matter.
    """
    texts = [live.properties[key] for key in constraint_keys(live.properties, name)]
    text = next((each for each in texts if not equal(each, declared)), texts[0] if texts else None)
    return f"({text})" if text in WORDS else text


def _nullability(live: LiveTable, column: str) -> str:
    try:
        found = live.schema.find(parse_column(column))
    except NameSyntaxError:
        return NONE
    if found is None:
        return NONE
    return NULLABLE if found[1].nullable else NOT_NULL
