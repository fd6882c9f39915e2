"""The interface of an attribute, and the drop of a feature, which several attributes make. Attributes are stateless:
values and live tables are arguments, records are results.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from tablectl.attributes.value_types import Declared, ValueType, folded, resolved
from tablectl.delta import keys
from tablectl.delta.dialects import DATABRICKS, dialect_of
from tablectl.delta.properties import why_unreadable
from tablectl.delta.protocol import PROTECTION, TableFeature, dependents, find_feature
from tablectl.model.operations import DropFeature, Operation, SetOptimization, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, Change, Phase, Reason, Rewrite, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions


@dataclass(frozen=True, slots=True)
class PlannedOperation:
    """One operation that a change needs. Several of them can become one statement (``planning.derive_statements``)."""

    change: str
    """The id of the change."""
    operation: Operation
    needs: tuple[str, ...] = ()
    """Property keys, domains and ``PARTITIONS``. If the same plan changes them, it changes them before this operation
    or together with it.
    """
    undo: Operation | None = None
    undo_note: str = ""
    """What remains even after ``undo``, as a noun phrase."""
    only_if_vectors: bool = False
    """Run it only if deletion vectors remain when it is due."""
    due: int | None = None
    """As in ``Statement.due``."""
    rewrite: Rewrite | None = None
    """As in ``Statement.rewrite``. Set if the operation alone does not determine it."""
    loses: bool = False
    """Whether nothing brings the old value back: ``undo_note`` says so."""
    id: str = ""
    """Distinguishes two equal operations of one change."""
    also: tuple[str, ...] = ()
    """The ids of other changes that it makes."""
    phase: Phase = Phase.FREE
    """When it runs. Derived from its commits and from what it needs."""


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
        lowered = key.lower()
        return self.properties[lowered] if lowered in self.properties else live.property(key)


def set_or_unset(key: str, value: Value) -> Operation:
    """The operation that gives a property a value, or unsets it for ``None``. Delta refuses to set a text that it
    cannot read, so an undo does not bring one back: the key is not set then.
    """
    if value is None or why_unreadable(key, str(value)):
        return UnsetProperties((key,))
    return SetProperties(((key, str(value)),))


def put_back(key: str, basis: Basis) -> Operation:
    """The operation that restores the stored state of an attribute's property: its text, or not set."""
    return set_or_unset(key, basis.stored_text(key))


@dataclass(frozen=True, slots=True)
class Needs:
    """What a declaration depends on besides the table's state: how deep the log must be read."""

    vectors: bool = False
    """The number of deletion vectors. If no checksum has it, the vectors are counted."""
    size: bool = False
    """The table's files and bytes, on which the cost of the change depends. If no checksum has them, they are
    counted.
    """
    rewrite: bool = False
    """The same, of the version that a rewrite of the whole table starts from."""
    clustering: bool = False
    """How the data is clustered."""
    truncation: frozenset[str] = frozenset()
    """The features whose history must age before it can be deleted."""
    entry: bool = False
    """What the table's catalog says about it besides its state."""
    row_counts: bool = False
    """Whether each file's statistics have its number of rows."""

    def __or__(self, other: Needs) -> Needs:
        """Everything that either of two declarations depends on."""
        return Needs(*(getattr(self, need) | getattr(other, need) for need in self.__match_args__))


class Attribute(ABC):
    """One attribute of a table. ``key`` is the property key for ``properties``, the field for an attribute with fields,
    and empty for all others.

    A new attribute is a subclass in a file of its own, and an entry in ``policy.ATTRIBUTES``.
    """

    name: ClassVar[str]
    """The key in a policy."""
    value_type: ClassVar[ValueType]
    """The values that a policy may declare."""
    keys: ClassVar[tuple[str, ...]] = ()
    """The table properties that belong to the attribute. No policy declares them under ``properties``."""
    in_clear: ClassVar[bool] = True
    """Whether its value is in the protocol and the metadata of a table, which a client reads before it knows the
    features.
    """
    exclusive_with: ClassVar[str] = ""
    """The attribute that cannot list columns in a policy where this one does; empty if there is none."""
    contradictions: ClassVar[tuple[tuple[str, str, str], ...]] = ()
    """Values of the attribute that no table can have together with a value of another one: value, the other attribute,
    its value.
    """

    key_contradictions: ClassVar[tuple[tuple[str, str, str, str], ...]] = ()
    """The same of an attribute with several keys: key, value, the other attribute or property, its value."""
    may_leave_out: ClassVar[tuple[tuple[str, Value], ...]] = ()
    """The changes of other attributes that a plan leaves out where ``leaves_out`` says so: the id, and the value that
    the change leads to; ``None`` for every value.
    """

    @abstractmethod
    def read(self, live: LiveTable, key: str) -> Value:
        """The value in the live table."""

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Whether a live value satisfies a declared one, by meaning and not by text. By default, columns are compared
        in order and without regard to case, and words as they are.
        """
        del key
        return folded(found) == folded(declared)

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        """The changes that a declaration requires; none if the table already agrees. By default one for each key that
        differs, by name, with columns in the table's spelling.
        """
        items = declared.items() if isinstance(declared, Mapping) else (("", declared),)
        for key, value in sorted(items):
            found = self.read(live, key)
            if not self.agrees(found, value, key):
                spelled, facts = resolved(value, live.schema)
                yield Change(attribute=self.name, key=key, before=found, after=spelled, columns=facts)

    def normalized(self, declared: Declared, live: LiveTable, dialect: str) -> Declared:
        """The declaration with the spelling of the live table, where the dialect sees no difference between them."""
        del live, dialect
        return declared

    def leaves_out(self, declared: Declared | None, live: LiveTable) -> bool:
        """Whether a plan leaves the changes in ``may_leave_out`` out, under this declaration of the attribute (``None``
        if no policy declares it): the product makes them by itself, or they have to wait for another apply.
        """
        del declared, live
        return False

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Why the change cannot be made on this table; ``None`` if it can."""
        del change, live, target
        return None

    def refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        """Every reason why the change cannot be made on this table; by default at most the one of ``check``."""
        found = self.check(change, live, target)
        return () if found is None else (found,)

    def rejected_together(self, declared: Mapping[str, Value]) -> tuple[str, ...]:
        """The keys of an attribute with several keys whose declared values Delta rejects together on every table; none
        if it takes them.
        """
        del declared
        return ()

    @abstractmethod
    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """The operations that make the change, in the order of their dependencies. They depend only on the arguments,
        so that a loaded plan can derive them again.
        """

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """What a policy made from a live table declares: pairs of key and value, and sentences about what no policy can
        declare. Only what is set on the table, and no engine defaults.
        """
        del live
        yield from ()

    def restored(self, before: LiveTable, after: LiveTable, declared: Declared | None) -> Iterator[str]:
        """The keys, besides those of ``imported``, whose values the undo of a run restores. ``declared`` is what the
        policy declares today.
        """
        del before, after, declared
        yield from ()

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        """The table properties that follow from a declaration, for rules that look at more than one attribute."""
        del declared
        return NOTHING_PLANNED

    def born(self, declared: Declared) -> Iterable[Operation]:
        """What a new table needs to agree with a declaration from its first commit on: by default the properties that
        follow from it.
        """
        values = tuple((key, value) for key, value in self.planned(declared).items() if value is not None)
        return (SetProperties(values),) if values else ()

    def birth_refusals(self, change: Change, live: LiveTable, target: ChangeTarget) -> Iterable[Reason]:
        """Why no new table can have the value: ``live`` is a table that has its columns, and nothing else."""
        return self.refusals(change, live, target)

    def needs(self, key: str, value: Value, options: TableOptions, live: LiveTable | None) -> Needs:
        """What a value depends on. ``live`` is ``None`` for the value of a change, which differs from the table's."""
        del key, value, options, live
        return NO_NEEDS

    def check_declarable(self, change: Change) -> None:
        """Raises ``ValueError`` for a change that no policy can declare."""
        declared = {change.key: change.after} if self.value_type.mapped else change.after
        if declared is None or bool(change.key) != self.value_type.mapped:
            raise ValueError(f"no policy can ask for {change.id}")
        if not self.value_type.admits(declared):
            raise ValueError(f"no policy can declare {change.after!r} of {change.id}")


class WordAttribute(Attribute):
    """An attribute whose value is one of several words. The first of its ``keys`` says whether it is set."""

    off: ClassVar[str] = ""
    """The word of a table that does not use the attribute's feature, if ``dropped`` removes that. A table that has the
    feature and does not use it reads ``supported``.
    """

    def diff(self, declared: Declared, live: LiveTable) -> Iterable[Change]:
        """Yields at most one change."""
        found = self.read(live, "")
        if isinstance(declared, str) and not self.agrees(found, declared, ""):
            if found == SUPPORTED and declared != "dropped":
                found = self.off
            yield Change(attribute=self.name, before=found, after=declared, via=self.between(found, declared))

    def between(self, found: Value, declared: str) -> tuple[Value, ...]:
        """The values that the change's own statements leave on the way."""
        del found, declared
        return ()

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        """The value, if the property is set."""
        if live.property(self.keys[0]) is not None:
            found = self.read(live, "")
            yield "", self.off if found == SUPPORTED else found


SUPPORTED = "supported"
NO_NEEDS = Needs()
NOTHING_PLANNED: Mapping[str, str | None] = MappingProxyType({})


def is_true(value: str | None) -> bool:
    """Whether a boolean property is set to true."""
    return (value or "false").lower() == "true"


UNKNOWN = "unknown"
"""The value of a setting that no catalog told. No policy can declare it."""


def why_no_catalog_setting(change: Change, live: LiveTable, target: ChangeTarget, statement: str) -> Reason | None:
    """Why a statement for managed tables of Unity Catalog cannot run on a table; ``None`` if nothing prevents it.

    What the catalog does not say prevents nothing.
    """
    if wrong := why_no_dialect(target, statement):
        return wrong
    entry = live.entry
    if entry is None or entry.managed is not False:
        # ``CLUSTER BY AUTO`` needs predictive optimization
        off = live.entry is not None and live.entry.optimized is False
        if change.attribute != "clustering" or not off or SetOptimization("ENABLE") in target.operations:
            return None
        return Reason(
            reason="predictive optimization is off for the table, and CLUSTER BY AUTO needs it",
            fix="declare `predictive_optimization: enabled` too, or name the columns",
        )
    return Reason(
        reason=f"the catalog lists an external table, and {statement} needs a managed one",
        fix="declare `managed: true` too, and apply twice; or leave it out",
    )


def why_no_dialect(target: ChangeTarget, statement: str) -> Reason | None:
    """Why a product does not have a statement of Unity Catalog; ``None`` if it has."""
    dialect = dialect_of(target.dialect)
    if dialect.catalog_settings:
        return None
    return Reason(
        reason=f"{dialect.title} has no {statement}",
        fix=f"leave it out, or set `engine.dialect: {DATABRICKS.name}` in tablectl.yaml",
    )


LOST = (
    f"truncated history: no time travel or RESTORE to versions older than {keys.TRUNCATION_RETENTION}, a day unless set"
)


def truncated(feature: TableFeature, basis: Basis) -> bool:
    """Whether its drop deletes history: only a feature that leaves traces there needs it."""
    return basis.options.truncate_history and feature.leaves in {"with history", "truncating"}


def drop_step(
    change: str, name: str, basis: Basis, *, due: int | None, needs: tuple[str, ...] = (), undo_note: str = ""
) -> PlannedOperation:
    """The drop of a feature, with its undo. ``due`` is when its history may be deleted."""
    feature = find_feature(name)
    assert feature is not None
    truncates = truncated(feature, basis)
    stays = {
        "with history": f"the protocol feature {PROTECTION} and {keys.PROTECTED_BEFORE}",
    }.get(feature.leaves, "")
    note = LOST if truncates else stays
    return PlannedOperation(
        change,
        DropFeature(name, truncates),
        needs=needs,
        undo=None if name == PROTECTION else SetProperties(_restored(feature, basis)),
        undo_note="; ".join(filter(None, (note, undo_note))),
        due=due if truncates else None,
        id="drop" if name == "deletionVectors" else f"drop-{name}",
    )


def _restored(feature: TableFeature, basis: Basis) -> tuple[tuple[str, str], ...]:
    """The feature, and the property that used it, as it was stored."""
    stored = basis.stored_text(feature.switch.key) if feature.switch else None
    used = () if feature.switch is None or stored is None else ((feature.switch.key, stored),)
    return ((feature.support, "supported"), *used)


_MAPPING_METADATA = '"delta.columnMapping.'
"""How the keys of a mapped column begin in the text of a schema."""


def against_left_names(live: LiveTable, otherwise: str) -> Iterator[Reason]:
    """Why Delta does not map the columns of a table whose schema has ids although no column is mapped."""
    if (live.property(keys.COLUMN_MAPPING) or "none").lower() == "none" and _MAPPING_METADATA in live.schema.text:
        yield Reason(
            reason="columns of the table already have ids or physical names, although its columns are not mapped: "
            "an old version of Delta left them there, and mapping by them could read the wrong columns",
            fix=f"copy the table (CREATE TABLE … AS SELECT), or {otherwise}",
            condition="DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS",
        )


def against_uncounted(live: LiveTable, instead: str) -> Reason | None:
    """Why no file can get row ids, if so: Delta derives them from the number of rows in each file's statistics
    (``RowId.assignFreshRowIds`` in ``RowId.scala`` of Delta 4.4.0), and fails after it has upgraded the protocol.
    """
    if not live.uncounted or live.protocol.has("rowTracking"):
        return None
    files = f"{live.uncounted:,} files have" if live.uncounted > 1 else "a file has"
    return Reason(
        reason=f"{files} no number of rows in the log, from which Delta derives the ids of rows: it would upgrade the "
        "protocol, and then fail",
        fix=f"write such files again with Spark first, for example with UPDATE or OPTIMIZE, or {instead}",
        condition="DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
    )


def against_drop(name: str, live: LiveTable, target: ChangeTarget) -> Iterator[Reason]:
    """Why Delta refuses to drop a feature of this table. A feature that the plan drops, too, goes first."""
    going = {each.name for each in target.operations if isinstance(each, DropFeature)}
    others = tuple(each for each in dependents(name, live.protocol) if each not in going)
    if others:
        names = ", ".join(others)
        every = [find_feature(each) for each in others]
        stay = [each.name for each in every if each and each.leaves == "never"]
        fix = (
            f"leave it in: no statement drops {', '.join(stay)}"
            if stay
            else f"apply {_drops(others)} first: Delta drops one feature after the other"
        )
        yield Reason(
            reason=f"the table has {names}, which needs {name}",
            fix=fix,
            condition="DELTA_FEATURE_DROP_DEPENDENT_FEATURE",
        )


def _drops(names: tuple[str, ...]) -> str:
    return " and ".join(f"`{policy_line(each)}`" for each in names)


def policy_line(name: str) -> str:
    """The line of a policy that drops a feature; empty if none does."""
    feature = find_feature(name)
    if feature is None or feature.leaves == "never":
        return ""
    return f"{feature.attribute}: dropped" if feature.attribute else f"features: {{{name}: dropped}}"
