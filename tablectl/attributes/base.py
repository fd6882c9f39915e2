"""What every attribute answers. An attribute is stateless: values and live tables come in, records go out."""

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
"""What a step needs that must come after a change of the partition columns; no property has such a key."""


@dataclass(frozen=True, slots=True)
class Step:
    """One operation an action consists of."""

    operation: Operation
    needs: tuple[str, ...] = ()
    """Property keys, domains and ``PARTITIONS``: where the same plan changes them, they change before this step or
    with it.
    """
    undo: Operation | None = None
    undo_note: str = ""
    """What stays even after ``undo``, as a noun phrase."""
    only_if_vectors: bool = False
    """Run only where deletion vectors remain when its turn comes."""
    due: int | None = None
    """As ``Statement.due``."""
    rewrite: Rewrite | None = None
    """As ``Statement.rewrite``, where the operation alone does not tell."""
    id: str = ""
    """Tells two equal operations of one action apart."""


@dataclass(frozen=True, slots=True)
class Action:
    """What is done about a change: steps in the order they need each other."""

    change: Change
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class ChangeTarget:
    """What else the plan makes of the table, for checks that look beyond one attribute."""

    dialect: str
    properties: Mapping[str, str | None]
    """Properties by folded key as they will read after the plan; absent where no policy names them."""
    options: TableOptions = NO_OPTIONS
    """What the policy says beside its attributes."""
    changes: frozenset[str] = frozenset()
    """The ids of all changes of the plan that are not made yet."""
    operations: tuple[Operation, ...] = ()
    """Everything that the plan does to the table."""

    def property(self, live: LiveTable, key: str) -> str | None:
        """A property as it will read after the plan."""
        folded = key.lower()
        return self.properties[folded] if folded in self.properties else live.property(key)


def put_back(key: str, basis: Basis) -> Operation:
    """What makes a property that an attribute speaks for read as it was stored: its text, or not set at all."""
    text = basis.stored_text(key)
    return UnsetProperties((key,)) if text is None else SetProperties(((key, text),))


class Attribute(Protocol):
    """One attribute of a table. ``key`` is the property key for ``properties`` and empty for all others."""

    @property
    def name(self) -> str:
        """The field of ``Policy`` it answers for."""
        ...

    @property
    def shape(self) -> ValueType:
        """What a policy may declare of it."""
        ...

    def read(self, live: LiveTable, key: str) -> Value:
        """The attribute as the live table has it."""
        ...

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Whether a live value satisfies a declared one, by meaning and not by text."""
        ...

    def diff(self, declared: Value | Mapping[str, str | None], live: LiveTable) -> Iterable[Change]:
        """The changes that a declaration asks for; none where the table already agrees."""
        ...

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Refusal | None:
        """Why the change cannot be made on this table, or ``None``."""
        ...

    def act(self, change: Change, basis: Basis) -> Action:
        """What makes the change. It follows from change and basis alone, so that a loaded plan derives it again."""
        ...
