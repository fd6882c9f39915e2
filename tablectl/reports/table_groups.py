"""The tables of a plan in groups of equal changes, the most important group first, and what each group does to others.

Two tables are in one group if they get the same changes from the same values, by the same statements up to the name of
the table, with the same impact. Sizes do not count: they are added up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import lru_cache
from typing import TypeVar

from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.documents.document import Kind
from tablectl.documents.style import plural
from tablectl.model.plan import (
    Backfill,
    Change,
    Phase,
    Plan,
    Rewrite,
    Statement,
    TableFailure,
    TablePlan,
    Verb,
    strictest,
)
from tablectl.model.safe_text import natural_key, size_text
from tablectl.model.table_options import Consent
from tablectl.reports.wording import (
    LOCKOUT,
    PHASE_EFFECTS,
    broken_text,
    everything_text,
    features_text,
    first_rewrites,
    overwritten_text,
    shown_findings,
)

_T = TypeVar("_T")
_NEEDS = ("P001", "P002")
"""The codes of the findings that clients need a newer protocol."""
_RISKS = ("P003", "P005")
_BREAKS = "P006"
"""The code of the finding that a writer which names partition columns fails on every run."""
_NEEDS_CONSENT: Mapping[Consent, str] = {"lockout": LOCKOUT, "partition_writers": _BREAKS}
_TABLE = "\0table\0"
_AMOUNT = re.compile(
    r"(?<![\w.,])[0-9][0-9.,]*(?= ?(?:B|kB|MB|GB|TB|PB|%|bytes?|files?|vectors?|rows?|deletion|commits?)\b)"
)
_PATH = re.compile(r"(?<!\S)[^\s/]*/\S*")
_KINDS: Sequence[Kind] = ("bad", "pending", "good")
_STAYS = frozenset({"never", "truncating", "with history"})
_FULL_REWRITE_REASONS: Mapping[Verb, str] = {
    "DROP FEATURE": "files may have columns in a narrower type",
    "OVERWRITE": "the partition columns of existing data change in no other way",
    "REPLACE PARTITIONED BY": "the partition columns of existing data change in no other way",
    "REMOVE COLUMN MAPPING": "existing files name their columns by the mapping that is removed",
    "UPGRADE UNIFORM": "Iceberg clients may not be able to read existing files",
    "OPTIMIZE": "`optimize: full` clusters all files by the declared columns",
}


class Weight(IntEnum):
    """How much a group of changes matters to a reviewer. Lower matters more."""

    REFUSED = 0
    REWRITE = 1
    """All data of a table is rewritten."""
    LOCKOUT = 2
    """A client that writes the table can no longer do so."""
    IRREVERSIBLE = 3
    """The protocol is upgraded, or history is deleted."""
    BLOCKING = 4
    PARTIAL = 5
    """Some data is rewritten; appends continue."""
    WARNED = 6
    """Writers continue, and a lint rule warns of the values."""
    SAFE = 7

    @property
    def word(self) -> str:
        """What people read."""
        return _WORDS[self]

    def word_of(self, count: int) -> str:
        """The word after a number of tables: 2 ``refused``, 2 ``full rewrites``."""
        noun = self in {Weight.REWRITE, Weight.LOCKOUT, Weight.PARTIAL, Weight.WARNED}
        return f"{self.word}s" if noun and count != 1 else self.word

    @property
    def kind(self) -> Kind:
        """The colour."""
        return "bad" if self <= Weight.LOCKOUT else "pending" if self <= Weight.WARNED else "good"


_WORDS = ("refused", "full rewrite", "lockout", "irreversible", "blocking", "rewrite", "warning", "safe")


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing that a group does to others."""

    text: str
    """A clause that may contain code in backticks."""
    kind: Kind
    lasting: bool = False
    """Whether it is still so after the apply."""
    about: str = ""
    """The id of a change that is refused for this reason."""


@dataclass(frozen=True, slots=True)
class PolicyConsent:
    """An option of the policy that permits an effect of the changes."""

    key: str
    """Its key in the policy, such as ``allow``."""
    text: str
    """Key and value as in the policy: ``allow: [lockout]``."""


@dataclass(frozen=True, slots=True)
class Group:
    """Tables with equal changes."""

    tables: tuple[TablePlan, ...]
    """At least one, in natural order of their names."""
    weight: Weight
    effects: tuple[Effect, ...]
    consents: tuple[PolicyConsent, ...] = ()
    """The options of the policy that permit what the changes do."""

    @property
    def first(self) -> TablePlan:
        """The table that stands for all."""
        return self.tables[0]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the tables."""
        return tuple(table.name for table in self.tables)

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes of each table."""
        return self.first.changes

    @property
    def lost(self) -> str:
        """What a rollback does not restore on each table; empty if it restores everything."""
        return "" if self.weight is Weight.REFUSED else _lost(self.first) or _left(self.first)


@dataclass(frozen=True, slots=True)
class FailureGroup:
    """Tables that cannot be read for the same reason."""

    names: tuple[str, ...]
    failure: TableFailure
    """The failure of the first table."""


def plan_groups(plan: Plan) -> tuple[Group, ...]:
    """The groups of a plan, by weight; within a weight large groups first, then by name."""
    made = [_group(tables) for tables in by_key(plan.tables, lambda each: each.name, _key)]
    return tuple(sorted(made, key=lambda each: (each.weight, -len(each.tables), natural_key(each.first.name))))


def failure_groups(failures: Iterable[TableFailure]) -> tuple[FailureGroup, ...]:
    """Tables that cannot be read, grouped by the reason without paths and names."""

    def key(each: TableFailure) -> Hashable:
        return _PATH.sub("", each.message.replace(each.name, _TABLE)), each.hint.replace(each.name, _TABLE)

    found = by_key(failures, lambda each: each.name, key)
    return tuple(FailureGroup(tuple(each.name for each in group), _of_all(group)) for group in found)


def _of_all(failures: Sequence[TableFailure]) -> TableFailure:
    """What holds for each of them: a message that begins with the path of the first one does so without it."""
    first, _, rest = failures[0].message.partition(": ")
    if len(failures) > 1 and rest and first in failures[0].name:
        return replace(failures[0], message=rest)
    return failures[0]


def shared_effects(groups: Iterable[Group]) -> tuple[Effect, ...]:
    """What all groups that change something do alike, if there are several: it is said once, and not of each group."""
    changing = [each for each in groups if each.weight is not Weight.REFUSED]
    if len(changing) < 2:
        return ()
    return tuple(each for each in changing[0].effects if all(each in other.effects for other in changing))


def sizes_text(tables: Sequence[TablePlan]) -> str:
    """From the smallest to the largest of several tables: ``2 to 40 files, 200 B to 4.1 MB``; empty if not known."""
    files = [each.basis.files for each in tables if each.basis.files is not None]
    sizes = [each.basis.bytes for each in tables if each.basis.bytes is not None]
    if len(tables) < 2 or min(len(files), len(sizes)) < len(tables):
        return ""
    least, most = f"{min(files):,}", plural(max(files), "file")
    smallest, largest = size_text(min(sizes)), size_text(max(sizes))
    return ", ".join(
        (
            most if min(files) == max(files) else f"{least} to {most}",
            largest if smallest == largest else f"{smallest} to {largest}",
        )
    )


def by_key(items: Iterable[_T], name: Callable[[_T], str], key: Callable[[_T], Hashable]) -> list[tuple[_T, ...]]:
    """The items with equal keys together, each group and the groups in natural order of their names."""
    found: dict[Hashable, list[_T]] = {}
    for item in sorted(items, key=lambda each: natural_key(name(each))):
        found.setdefault(key(item), []).append(item)
    return [tuple(group) for group in found.values()]


def _key(table: TablePlan) -> Hashable:
    """What the tables of a group have in common."""
    without = _without_name(table)
    return (
        tuple((each.attribute, each.key, each.before, each.after) for each in table.changes),
        tuple(_statement_key(each, without) for each in table.statements),
        tuple((each.change, _plain(without(each.reason)), _plain(each.fix)) for each in table.refusals),
        tuple((each.code, each.severity, _plain(without(each.message))) for each in shown_findings(table)),
        table.features,
        consents(table),
    )


def _statement_key(statement: Statement, without: Callable[[str], str]) -> Hashable:
    rewrite = statement.rewrite
    return (
        without(statement.sql),
        statement.phase,
        _plain(statement.reason),
        statement.only_if,
        statement.due is None,
        _plain(statement.fails),
        statement.readers,
        statement.implies,
        statement.stale_handles,
        (rewrite.clusters, rewrite.everything) if rewrite else None,
        statement.backfill is not None,
        tuple(map(without, statement.undo)),
        _plain(statement.undo_note),
    )


def _without_name(table: TablePlan) -> Callable[[str], str]:
    """Replaces the name and the location of a table in its statements."""
    names = {table.name, table.location}
    try:
        sql = parse_table(table.name).sql
        names |= {sql, ascii(sql)[1:-1]}
    except NameSyntaxError:  # a plan of another version
        pass
    ordered = sorted(filter(None, names), key=len, reverse=True)

    def replaced(text: str) -> str:
        for name in ordered:
            text = text.replace(name, _TABLE)
        return text

    return replaced


@lru_cache(maxsize=4096)
def _plain(text: str) -> str:
    """A text without amounts. Most tables of a plan share their texts."""
    return _AMOUNT.sub("#", text)


def _group(tables: Sequence[TablePlan]) -> Group:
    first = tables[0]
    effects = _refused(first) if first.refusals else sorted(_effects(tables), key=lambda each: _KINDS.index(each.kind))
    return Group(tuple(tables), _weight(first), tuple(effects), consents(first))


def consents(table: TablePlan) -> tuple[PolicyConsent, ...]:
    """The options of the policy without which a table's changes would be refused."""
    if table.refusals:
        return ()
    options, found = table.basis.options, []
    if any(each.rewrite and each.rewrite.everything for each in table.statements):
        how = "{copy: beside}" if options.rewrite == "copy" else options.rewrite
        found.append(PolicyConsent("rewrite", f"rewrite: {how}"))
        if options.max_bytes is not None:
            found.append(PolicyConsent("max_bytes", f"max_bytes: {size_text(options.max_bytes)}"))
    if _truncates(table.statements):
        found.append(PolicyConsent("truncate_history", f"truncate_history: {str(options.truncate_history).lower()}"))
    codes = {each.code for each in table.findings}
    used = [each for each in options.allow if _NEEDS_CONSENT[each] in codes]
    if used:
        found.append(PolicyConsent("allow", f"allow: [{', '.join(used)}]"))
    return tuple(found)


def _weight(table: TablePlan) -> Weight:
    statements = table.statements
    if table.refusals:
        return Weight.REFUSED
    if any(each.rewrite and each.rewrite.everything for each in statements):
        return Weight.REWRITE
    if any(each.code == LOCKOUT for each in shown_findings(table)):
        return Weight.LOCKOUT
    if _lost(table) or _left(table) or _truncates(statements):
        return Weight.IRREVERSIBLE
    phase = _phase(statements)
    if phase is Phase.CLOSED:
        return Weight.BLOCKING
    if phase is Phase.REWRITE or first_rewrites(statements):
        return Weight.PARTIAL
    return Weight.WARNED if any(each.severity == "warning" for each in shown_findings(table)) else Weight.SAFE


def _truncates(statements: Iterable[Statement]) -> bool:
    return any(each.effect.truncates_history for each in statements)


def _phase(statements: Iterable[Statement]) -> Phase:
    """The strictest phase in which writers fail."""
    return strictest(Phase.FREE, *(each.phase for each in statements if each.fails))


def _refused(table: TablePlan) -> list[Effect]:
    found = []
    for each in table.refusals:
        error = f" ({each.condition})" if each.condition else ""
        found += [
            Effect(f"refused: {each.change}: {each.reason}{error}", "bad", about=each.change),
            Effect(f"fix: {each.fix}", "good"),
        ]
    return found


def _effects(tables: Sequence[TablePlan]) -> list[Effect]:
    """What the changes do to others, the worst first."""
    first = tables[0]
    findings = shown_findings(first)
    found = _rewrite_effects(tables)
    found += [_lasting(f"locks out a writer: {each.message}", "bad") for each in findings if each.code == LOCKOUT]
    if first.broken:
        found += [_lasting(f"stops working: {broken_text(tables)}", "bad")]
    broken = [each.message for each in findings if each.code == _BREAKS]
    found += [_lasting(f"breaks a writer: {message} ({_BREAKS})", "bad") for message in broken]
    if any("every" in each.readers for each in first.statements):
        found.append(Effect("every stream that reads the table stops and must be started again", "bad"))
    if said := overwritten_text(tables):
        found.append(_lasting(said, "pending"))
    found.append(_undo(first))
    found += [_lasting(each.message, "pending") for each in findings if each.code in _NEEDS]
    codes = {each.code for each in findings}
    if codes.intersection(_NEEDS) and not codes.intersection((LOCKOUT, "P003")):
        found.append(_lasting(_writers(first), "good"))
    shown = {LOCKOUT, _BREAKS, *_NEEDS}
    risks = (each for each in findings if each.severity == "warning" or each.code in _RISKS)
    found += [_lasting(f"{each.code}: {each.message}", "pending") for each in risks if each.code not in shown]
    phase = _phase(first.statements)
    found.append(Effect(PHASE_EFFECTS[phase], "good" if phase is Phase.FREE else "pending"))
    if streams := _streams(first):
        found.append(Effect(streams, "good"))
    if any(each.due is not None for each in first.statements):
        found.append(Effect("ends with a later apply, when history is old enough", "pending"))
    return found


def _undo(table: TablePlan) -> Effect:
    """Whether a rollback restores the table."""
    if lost := _lost(table):
        return _lasting(f"cannot be undone in full: {lost}", "pending")
    if left := _left(table):
        return _lasting(f"a rollback leaves {left}", "pending")
    if any(each.rewrite and each.rewrite.everything for each in table.statements):
        return _lasting("can be undone by another rewrite of all data", "pending")
    return _lasting("can be undone", "good")


def _left(table: TablePlan) -> str:
    """What a rollback leaves of the plan; empty if it restores the table."""
    return "; ".join(filter(None, (_left_protocol(table), _left_values(table))))


def _left_protocol(table: TablePlan) -> str:
    """What a rollback leaves of a protocol upgrade, although it could be dropped; empty without an upgrade."""
    before, after = table.basis.protocol, table.protocol_after
    if table.features:
        names = ", ".join(each.name for each in table.features)
        return f"protocol features that only DROP FEATURE removes: {names}"
    if after.reader > before.reader or after.writer > before.writer:
        return f"the protocol at reader {after.reader}, writer {after.writer}"
    return ""


def _left_values(table: TablePlan) -> str:
    """What statements imply of attributes that the plan does not change, and values that cannot be set again: no
    rollback takes that back.
    """
    changed = {each.attribute for each in table.changes}
    implied = [each for statement in table.statements for each in statement.implies]
    kept = [each for each in implied if each.partition(":")[0] not in changed]
    lost = [f"the change of `{each}`" for statement in table.statements for each in statement.lost]
    return ", ".join([*(f"`{each}`" for each in kept), *lost])


def _lasting(text: str, kind: Kind) -> Effect:
    return Effect(text, kind, lasting=True)


def _writers(table: TablePlan) -> str:
    """Which writers of the log support what the plan adds. Readers, if they need it too, leave no trace in a log."""
    readers = table.protocol_after.protocol().new_to_readers(table.basis.protocol.protocol())
    known = ", ".join(dict.fromkeys(each.text() for each in table.basis.client_list()))
    named = f" ({known})" if known else ""
    others = "the log does not say who reads the table" if readers else "readers need nothing new"
    return f"the writers in the log support it{named}; {others}"


def _streams(table: TablePlan) -> str:
    """Which streams restart, if most of them continue."""
    stopped = {reader for each in table.statements for reader in each.readers}
    if not stopped or "every" in stopped:
        return ""
    ways = ["with a schemaTrackingLocation"] * ("with schema tracking" in stopped)
    ways += ["on Databricks"] * ("on Databricks" in stopped)
    return f"streams {' or '.join(ways)} stop once and must be started again"


def _lost(table: TablePlan) -> str:
    """What stays after a rollback."""
    kept = replace(table, features=tuple(each for each in table.features if each.leaves in _STAYS))
    notes = [each.undo_note for each in table.statements if each.effect.truncates_history and each.undo_note]
    return "; ".join(dict.fromkeys(filter(None, [features_text(kept), *notes])))


def _rewrite_effects(tables: Sequence[TablePlan]) -> list[Effect]:
    found = []
    per_table = [first_rewrites(table.statements) for table in tables]
    for index, part in enumerate(per_table[0]):
        amount = _amount([parts[index] for parts in per_table])
        of = f" of {len(tables)} tables" if len(tables) > 1 else ""
        if part.everything:
            why = f", because {reason}" if (reason := _full_rewrite_reason(tables[0], part)) else ""
            found.append(Effect(f"{everything_text(part)}{of}: {amount}{why}", "pending" if part.copies else "bad"))
        elif part.clusters:
            found.append(Effect(f"clusters the files that OPTIMIZE chooses{of}, from {amount}", "pending"))
        else:
            found.append(Effect(_vectors_text(tables, [parts[index] for parts in per_table]), "pending"))
    backfills = [each.backfill for table in tables for each in table.statements if each.backfill]
    if backfills:
        found.append(Effect(_backfilled(backfills), "pending"))
    if scanned := [table for table in tables if any(each.effect.scans for each in table.statements)]:
        found.append(Effect(_scanned(scanned), "pending"))
    return found


def _scanned(tables: Sequence[TablePlan]) -> str:
    sizes = [table.basis.bytes for table in tables]
    known = [size for size in sizes if size is not None]
    amount = size_text(sum(known)) if len(known) == len(sizes) else "an unknown number of bytes"
    return f"reads all rows while writers wait: {amount}; an apply counts the rows in the way before"


def _amount(rewrites: Sequence[Rewrite]) -> str:
    """Files and bytes together; which are not known is said."""
    files = [each.files_at_most for each in rewrites if each.files_at_most is not None]
    sizes = [each.bytes_at_most for each in rewrites if each.bytes_at_most is not None]
    if not sizes and not files:
        return "an unknown number of files"
    missing = len(rewrites) - min(len(files), len(sizes))
    parts = [f"{sum(files):,} file{'s' * (sum(files) != 1)}"] * bool(files) + [size_text(sum(sizes))] * bool(sizes)
    unknown = f" and what {plural(missing, 'table')} of unknown size {'hold' if missing > 1 else 'holds'}"
    return ", ".join(parts) + unknown * bool(missing and len(rewrites) > 1)


def _backfilled(backfills: Sequence[Backfill]) -> str:
    files = sum(each.files_at_most for each in backfills)
    entries = f"{files:,} file{'s' * (files != 1)}"
    return f"commits the log entries of {entries} again, if they have no row ids yet; the files do not change"


def _vectors_text(tables: Sequence[TablePlan], rewrites: Sequence[Rewrite]) -> str:
    """The files with deletion vectors are fewer than the vectors; which files they are is not read, nor their size."""
    counts = [each.files_at_most for each in rewrites]
    known = [each for each in counts if each is not None]
    which = f"{plural(sum(known), 'file')} or fewer" if len(known) == len(counts) else "an unknown number"
    sizes = [each.bytes_at_most for each in rewrites if each.bytes_at_most is not None]
    of = f"all files of {plural(len(tables), 'table')}" if len(tables) > 1 else "all files of the table"
    size = f" ({of} have {size_text(sum(sizes))})" if len(sizes) == len(rewrites) else ""
    return f"rewrites only files with deletion vectors: {which}{size}"


def _full_rewrite_reason(table: TablePlan, part: Rewrite) -> str:
    """Why a statement of a table rewrites all its data, as a clause; empty if no reason is known."""
    verb = next(each.verb for each in table.statements if each.rewrite is part)
    return _FULL_REWRITE_REASONS.get(verb, "")
