"""``retention``: how long the log and the files that it no longer names are kept (delta-1.9).

``log`` bounds time travel and how long a stream may stop: older commits are deleted at a checkpoint. ``deleted_files``
bounds what VACUUM may delete. A log that is kept for a shorter time than deleted files keeps files that no version
needs; Delta rejects it where its check is on. ``default`` is a table without the property.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from tablectl.attributes.base import Attribute, ChangeTarget, PlannedOperation, put_back, set_or_unset
from tablectl.attributes.value_types import Declared, FieldType, ValueType
from tablectl.delta import keys
from tablectl.delta.properties import DEFAULT_FILE_RETENTION, DEFAULT_LOG_RETENTION, parse_interval
from tablectl.model.operations import Operation, SetProperties
from tablectl.model.plan import Basis, Change, Reason, Value
from tablectl.model.table import LiveTable

DEFAULT = "default"
_DEFAULTS: Mapping[str, str] = MappingProxyType({"log": DEFAULT_LOG_RETENTION, "deleted_files": DEFAULT_FILE_RETENTION})
_FIELDS = tuple(
    FieldType(name=name, key=key, description=about, parse=parse_interval, words=(DEFAULT,), example=example)
    for name, key, about, example in (
        ("log", keys.LOG_RETENTION, "How long commits are kept, for time travel and stopped streams.", "60 days"),
        ("deleted_files", keys.DELETED_FILE_RETENTION, "How long VACUUM keeps removed files.", "2 weeks"),
    )
)
_KEYS: Mapping[str, str] = MappingProxyType({each.name: each.key for each in _FIELDS})
_PAIRS = (("log", "deleted_files"), ("deleted_files", "log"))
_LOST: Mapping[str, str] = MappingProxyType({"log": "history", "deleted_files": "files"})


class Retention(Attribute):
    """The attribute ``retention``."""

    name = "retention"
    value_type = ValueType(
        name=name,
        description="How long history is kept: intervals in weeks or smaller, or `default`.",
        fields=_FIELDS,
    )
    keys = tuple(_KEYS.values())

    def read(self, live: LiveTable, key: str) -> Value:
        stored = live.property(_KEYS[key])
        return DEFAULT if stored is None else stored

    def agrees(self, found: Value, declared: Value, key: str) -> bool:
        """Compares lengths of time: ``interval 7 days`` equals ``interval 1 week``. A text that some client ignores
        equals only itself.
        """
        readable = found == self.value_type.written(key, found) and _micros(found) is not None
        return found == declared or (readable and _micros(found) == _micros(declared))

    def check(self, change: Change, live: LiveTable, target: ChangeTarget) -> Reason | None:
        """Refuses a log that is kept for a shorter time than deleted files. The key that is not declared counts with
        its live value.
        """
        after = {key: target.property(live, name) or _DEFAULTS[key] for key, name in _KEYS.items()}
        log, files = _micros(after["log"]), _micros(after["deleted_files"])
        other = "deleted_files" if change.key == "log" else "log"
        planned = f"{self.name}.{other}" in target.changes
        if log is None or files is None:
            return None
        if log >= files:
            return None
        return Reason(
            reason=f"the log would be kept for {span_text(after['log'])} and deleted files for "
            f"{span_text(after['deleted_files'])}{'' if planned else f' (`{other}` is not changed)'}; "
            "no version needs those files, and Delta rejects it where its check of the two is on",
            fix="declare a `log` that is at least as long as `deleted_files`",
        )

    def rejected_together(self, declared: Mapping[str, Value]) -> tuple[str, ...]:
        """Both keys, if the log is declared shorter than deleted files."""
        lengths = [_micros(_DEFAULTS[key] if declared.get(key) == DEFAULT else declared.get(key)) for key in _KEYS]
        log, files = lengths
        return tuple(_KEYS) if log is not None and files is not None and log < files else ()

    def act(self, change: Change, basis: Basis) -> Iterable[PlannedOperation]:
        """Sets or unsets one property. Nothing is deleted by the change itself."""
        key = _KEYS[change.key]
        operation = set_or_unset(key, None if change.after == DEFAULT else change.after)
        note = f"the loss of {_LOST[change.key]} that was deleted in between"
        return (PlannedOperation(change.id, operation, undo=put_back(key, basis), undo_note=note),)

    def imported(self, live: LiveTable) -> Iterator[tuple[str, Value] | str]:
        for key, name in _KEYS.items():
            if live.property(name) is not None:
                yield key, live.property(name)

    def planned(self, declared: Declared) -> Mapping[str, str | None]:
        items = declared.items() if isinstance(declared, Mapping) else ()
        return {_KEYS[key]: None if value == DEFAULT else value for key, value in items}


def with_other_key(operations: Sequence[PlannedOperation], basis: Basis) -> tuple[PlannedOperation, ...]:
    """The operations, with both keys in one ``ALTER TABLE`` where Delta would reject one alone.

    Delta compares a key that is set alone with the default of the other one, and not with its value in the table
    (``validateTombstoneAndLogRetentionDurationCompatibility`` in ``DeltaConfig.scala`` of Delta 4.4.0). So the other
    key is set to the value that it has.
    """
    sets = [each.operation.values for each in operations if isinstance(each.operation, SetProperties)]
    planned = {key for values in sets for key, _ in values}

    def whole(operation: Operation | None) -> Operation | None:
        if not isinstance(operation, SetProperties):
            return operation
        values = dict(operation.values)
        own = [(name, other) for name, other in _PAIRS if _KEYS[name] in values and _KEYS[other] not in planned]
        for name, other in own:
            stored = basis.stored_text(_KEYS[other])
            lengths = {name: _micros(values[_KEYS[name]]), other: _micros(_DEFAULTS[other])}
            if stored and _micros(stored) is not None and (lengths["log"] or 0) < (lengths["deleted_files"] or 0):
                values[_KEYS[other]] = stored
        return operation if len(values) == len(operation.values) else SetProperties(tuple(sorted(values.items())))

    return tuple(
        replace(each, operation=whole(each.operation) or each.operation, undo=whole(each.undo)) for each in operations
    )


def _micros(value: Value) -> int | None:
    """The length of an interval; ``None`` for ``default`` and for a text that is not an interval."""
    try:
        return parse_interval(value) if isinstance(value, str) else None
    except ValueError:
        return None


def span_text(text: str) -> str:
    """An interval for people: ``60 days``."""
    return re.sub(r"\A\s*interval\s+", "", text, flags=re.IGNORECASE).strip()
