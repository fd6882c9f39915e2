"""The interface of an attribute. Attributes are stateless: values and live tables are arguments, records are
results.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from tablectl.attributes.value_types import ValueType
from tablectl.model.operations import Operation, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Refusal, Rewrite, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions

PARTITIONS = "(partitions)"
"""Used in ``Step.needs``: the step runs after a change of the partition columns. No property has this key."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation of an action."""

    operation: Operation
    needs: tuple[str, ...] = ()
    """Property keys, domains and ``PARTITIONS``. If the same plan changes them, it changes them before this step or
    together with it.
    """
    undo: Operation | None = None
    undo_note: str = ""
    """What remains even after ``undo``, as a noun phrase."""
    only_if_vectors: bool = False
    """Run the step only if deletion vectors remain when it is due."""
    due: int | None = None
    """As in ``Statement.due``."""
    rewrite: Rewrite | None = None
    """As in ``Statement.rewrite``. Set if the operation alone does not determine it."""
    id: str = ""
    """Distinguishes two equal operations of one action."""


@dataclass(frozen=True, slots=True)
class Action:
    """The steps of a change, in the order of their dependencies."""

    change: Change
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """The planned state of the table, for checks that look at more than one attribute."""

    dialect: str
    properties: Mapping[str, str | None]
    """Properties by folded key with their values after the plan. Keys that no policy names are missing."""
    options: TableOptions = NO_OPTIONS
    """The policy's options, as opposed to its attributes."""
    changes: frozenset[str] = frozenset()
    """The ids of all pending changes of the plan."""
    operations: tuple[Operation, ...] = ()
    """All operations that the plan runs on the table."""

    def property(self, live: LiveTable, key: str) -> str | None:
        """The value of a property after the plan; ``None`` if it is not set."""
        folded = key.lower()
        return self.properties[folded] if folded in self.properties else live.property(key)


def put_back(key: str, basis: Basis) -> Operation:
    """The operation that restores the stored state of an attribute's property: its text, or not set."""
    text = basis.stored_text(key)
    return UnsetProperties((key,)) if text is None else SetProperties(((key, text),))


class Attribute(Protocol):
    """One attribute of a table. ``key`` is the property key for ``properties`` and empty for all other attributes."""

    @property
    def name(self) -> str:
        """The field of ``Policy``."""
        ...

    @property
    def shape(self) -> ValueType:
        """The values that a policy may declare."""
        ...

    def read(self, live: LiveTable, key: str) -> Value:
        """The value in the live table."""
        ...

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Whether a live value satisfies a declared one, by meaning and not by text."""
        ...

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """The changes that a declaration requires; none if the table already agrees."""
        ...

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
        """Why the change cannot be made on this table; ``None`` if it can."""
        ...

    def act(self, change: Change, basis: Basis) -> Action:
        """The action that makes the change. It depends only on the arguments, so that a loaded plan can derive it
        again.
        """
        ...
