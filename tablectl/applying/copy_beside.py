"""A rewrite that shuts the gate for seconds: copy the table beside itself, follow its changes, then cut over.

The copy is made in parts. A part holds the rows of some files of the table, each with its deletion vector: what such a
file holds never changes. So to follow a table means to compare two lists of files, whatever the writers did (INSERT,
MERGE, OPTIMIZE, RESTORE): new files are copied, and a part with a file that is gone is made again, in smaller parts,
because more changes are likely there. Each part is compared with its source when it is written, so nothing is left to
compare behind the gate.

No commit names the new files before the cut-over, so a VACUUM may delete them. Parts that come near the age at which it
does are made again, and the files are looked for before the gate shuts, behind it, and after the commit
(docs/copy-beside.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote

from tablectl.applying.copy_records import CopiedPart, delete_part, is_plain_add, save_part, saved_parts
from tablectl.applying.events import RunEvent
from tablectl.applying.row_sums import RowSum, row_sums, unlike
from tablectl.applying.run_context import RunContext, StopTableError, check_answers, check_table_id, interrupted
from tablectl.applying.scheduler import HOUR, LIMIT
from tablectl.applying.vacuum_age import doomed_before, is_vacuum, kept_for
from tablectl.engine.interface import CopiesTables, Engine, MaySend, TableCopy
from tablectl.leases.clock import milliseconds
from tablectl.leases.lease import Lease
from tablectl.model.commit import Commit
from tablectl.model.errors import EngineError, LiveError, is_conflict
from tablectl.model.plan import Statement, TablePlan
from tablectl.model.run_report import RunOutcome
from tablectl.model.safe_text import size_text
from tablectl.model.table import LiveTable
from tablectl.storage.table_log import is_data
from tablectl.support.json_text import read_json, write_json

_LARGEST_PART = 1 << 30
"""Bytes of one part at first. A part becomes as many new files as it has partition values, or more."""
_MOST_FILES = 64
"""Files of one part at first."""
_SHRINK = 4
"""The part of a file that changes is made again in parts that are smaller by this factor."""
_SMALLEST = 4
"""How often parts get smaller: after that, each file has a part of its own."""
_STUCK = 3
"""Rounds without progress after which writers outrun the copy."""
_SLICE = 1.0
"""Seconds between two looks at what may end a wait."""
_UNMEASURED = 10_000_000
"""The assumed rate of a copy, in bytes per second, until a round was measured. Two cores copied about 0.6 GB in 90 s
while others wrote (docs/benchmarks.md, "Other partition columns among writers")."""
_BRIEF = 2.0
"""A round of fewer seconds cannot get much shorter."""
_OLD, _OLDEST = 0.7, 0.8
"""The part of the time for which VACUUM keeps files without a commit, after which a part is made again: while the gate
is open, and behind it. The difference is for the drain of the writers, the rest for clocks that differ.
"""
_LOOKED_BACK = 1000
"""The commits before the copy that are read for the retention of earlier VACUUMs."""
_DECIDED = 3
"""How often the gate shuts for a table whose metadata changes each time."""
_FORMAT = 2
"""Of what a part was made for. Parts of another format are not compared as these are."""


def copies_beside(statement: Statement) -> bool:
    """Whether a statement is carried out as a copy beside the table."""
    return statement.repartition is not None and statement.rewrite is not None and statement.rewrite.copies


def check_copies(engine: Engine, plan: TablePlan) -> None:
    """Raise ``StopTableError`` if a plan needs a copy beside the table, and this run cannot make one."""
    needed = any(copies_beside(each) for each in plan.statements)
    if needed and not (isinstance(engine, CopiesTables) and engine.copies):
        message = "a copy beside the table is committed in the JVM of the driver, to which this engine has no access"
        instead = ", or declare `rewrite: allowed` for a rewrite behind the closed gate" if engine.rewrites else ""
        raise StopTableError(
            RunOutcome.REFUSED,
            message,
            f"apply with a Spark of its own (no `remote`, `thrift` or `warehouse`){instead}",
        )


class OutdatedCopyError(Exception):
    """Columns, properties, features or domains are not those that were decided on: the plan is decided again."""


@dataclass(slots=True)
class _Round:
    """What one round over the outstanding files took."""

    bytes: int
    seconds: float


@dataclass(slots=True)
class BesideCopy:
    """The copy of one table, from its first part to its commit."""

    context: RunContext
    plan: TablePlan
    lease: Lease
    copy: TableCopy
    partitions: tuple[str, ...]
    """The new partition columns."""
    began: float
    """Seconds since the epoch."""
    layout: str = ""
    sums: tuple[RowSum, ...] = ()
    """What is compared: every column of the layout."""
    keys: tuple[str, ...] = ()
    """The physical names of the new partition columns."""
    properties: Mapping[str, str] = field(default_factory=dict)
    version: int = -1
    files: dict[str, int] = field(default_factory=dict)
    """The files of this version, with their bytes."""
    parts: dict[str, CopiedPart] = field(default_factory=dict)
    paths: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """The id of a part → its new files, as a listing has them."""
    written: dict[str, float] = field(default_factory=dict)
    """The id of a part → when the oldest of its files was written, in seconds since the epoch."""
    part_of: dict[str, str] = field(default_factory=dict)
    """File → the id of the part that holds its rows."""
    missing: dict[str, int] = field(default_factory=dict)
    """The files that no part holds yet, with their bytes."""
    changes: dict[str, int] = field(default_factory=dict)
    """How often the part of a file was given up, for files whose part was."""
    rounds: list[_Round] = field(default_factory=list)
    unproven: list[CopiedPart] = field(default_factory=list)
    """Parts that were not compared before the commit."""
    vacuums: list[Commit] = field(default_factory=list)
    """The commits of VACUUMs, in the order of their versions."""
    vacuumed: bool = False
    """Whether the last versions that were followed have such a commit."""
    aged: int = 0
    """Bytes of the parts that were given up for their age, since the table was last followed."""
    look: float = 0.0
    """Seconds that the last look for the copied files took."""
    copied: int = 0
    """Bytes that were copied, whether of use or not."""
    number: int = 0
    repaired: int = -1
    """The version in which files that were gone after the commit were put in place again; -1 without one."""

    def follow(self, old: float = _OLD) -> bool:
        """Read the newest version, and find what the parts do not hold yet. ``old`` is the part of the time for which
        VACUUM keeps files, after which a part is given up.

        Returns whether columns, properties, features or domains are others than before. Then the copy starts again, and
        nothing may be written or committed before the plan is decided again.
        """
        found = self.copy.follow()
        check_table_id(self.plan, found.table_id)
        self.files = {each.key: each.size for each in found.files}
        self._read_vacuums(found.version)
        self.version, self.properties, self.aged = found.version, found.properties, 0
        layout = hashlib.sha256(found.layout.encode()).hexdigest()
        changed = layout != self.layout
        if changed:
            # Another layout: begin again, with those parts of earlier runs that still fit
            for part in list(self.parts.values()):
                self._give_up(part)
            self.layout, self.rounds, self.changes = layout, [], {}
            self.sums, self.keys = row_sums(found.schema, self.partitions), found.partition_keys
            taken = {key.partition(" ")[0] for key in self.files}
            for part in saved_parts(self.lease.store, self._made_for, self.keys):
                self.number = max(self.number, int(part.id.rpartition("-")[2]) + 1)
                paths = [read_json(add)["add"]["path"] for add in part.adds]
                apart = taken.isdisjoint(paths) and len(set(paths)) == len(paths)
                used = self.files.keys() >= set(part.keys) and self.part_of.keys().isdisjoint(part.keys)
                young = not part.adds or _written_at(part, 0.0) >= self._oldest(_OLD)
                whole = self._whole(part) if used and apart and young else None
                if whole is not None:
                    self._keep(whole)
                    taken.update(paths)
                else:
                    delete_part(self.lease.store, part)
        for id_ in dict.fromkeys(id_ for key, id_ in self.part_of.items() if key not in self.files):
            for key in self.parts[id_].keys:
                self.changes[key] = min(self.changes.get(key, 0) + 1, _SMALLEST)
            self._give_up(self.parts[id_])
        self._give_up_old(old)
        self.missing = {key: size for key, size in self.files.items() if key not in self.part_of}
        return changed

    @property
    def longest(self) -> float:
        """Seconds in which the copy must be in place: its first parts are made again after that."""
        return _OLD * kept_for(self.properties, self.vacuums)

    @property
    def outstanding(self) -> int:
        """Bytes of the table that no part holds."""
        return sum(self.missing.values())

    def seconds_for(self, size: int) -> float:
        """The expected time to copy some bytes, by the last rounds. Without any, a copy may have to start again behind
        the gate, or to follow what was written after one that a killed run had finished.
        """
        if not size:
            return 0.0
        if not self.rounds:
            return size / _UNMEASURED
        last = self.rounds[-2:]
        rate = max((each.bytes / each.seconds for each in last if each.seconds), default=0.0)
        shortest = min((each.seconds for each in self.rounds), default=0.0)
        return max(size / rate if rate else 0.0, min(shortest, _BRIEF))

    def copy_missing(self) -> Iterator[int]:
        """Copy what is missing, part by part, and record the parts. Yields the bytes of each."""
        for keys in self._slices():
            part = self._written(keys)
            self._compare(part)
            save_part(self.lease.store, self._made_for, part)
            self._keep(part)
            yield part.size

    def copy_last(self, *, hurry: bool) -> None:
        """Copy what is missing in parts as large as can be. In a ``hurry``, they are compared after the commit, unless
        they may hold a text that a partition column cannot.
        """
        self.changes.clear()
        for keys in self._slices():
            part = self._written(keys)
            if hurry and not any(each.refused for each in self.sums):
                self.unproven.append(part)
            else:
                self._compare(part)
            self._keep(part)

    def check_files(self, old: float = _OLD) -> None:
        """Give up the parts with a file that is gone or too old by the clock of the store, which VACUUM goes by. Raises
        ``LiveError`` if the folder of the table cannot be listed.
        """
        started = self.context.clock.monotonic()
        there = self._there()
        self.look = self.context.clock.monotonic() - started
        for part in list(self.parts.values()):
            known = [there[path] for path in self.paths[part.id] if path in there]
            if len(known) < len(part.adds):
                self._give_up(part)
            else:
                self.written[part.id] = min(known, default=self.written[part.id])
        self._give_up_old(old)

    def lost(self) -> list[CopiedPart]:
        """The parts with a file that is gone. Raises ``LiveError`` as ``check_files``."""
        there = self._there()
        return [part for part in self.parts.values() if not there.keys() >= set(self.paths[part.id])]

    def repair(self, lost: Sequence[CopiedPart]) -> None:
        """Write some parts again from the replaced version, and put them in place. Raises ``EngineError`` if its files
        are gone, too, or if others have changed the parts since.
        """
        for old in lost:
            adds = self.copy.write(old.keys)
            part = replace(old, adds=adds)
            self._compare(part)
            self.lease.prove(self.context.budget)
            self.repaired = self.copy.exchange(old.adds, adds)
            self._know(part)
            self.unproven = [each for each in self.unproven if each is not old]

    def _there(self) -> Mapping[str, float]:
        """When each copied file was written. A listing does not show hidden folders, as of a column ``.x``."""
        written = {path: self.written[id_] for id_ in self.parts for path in self.paths[id_]}
        wanted = {path for path in written if is_data(path)}
        hidden = {path: at for path, at in written.items() if path not in wanted}
        return {**hidden, **self.context.reader.modified(self.plan.location, wanted)}

    def _give_up_old(self, old: float) -> None:
        """Give up the parts that a VACUUM may delete before the commit: by their age, or because it has begun."""
        limit = self._oldest(old)
        for part in list(self.parts.values()):
            if part.adds and self.written[part.id] < limit:
                self.aged += part.size
                self._give_up(part)

    def _oldest(self, old: float) -> float:
        now = milliseconds(self.context.clock.utc()) / 1000
        kept = kept_for(self.properties, self.vacuums)
        return max(now - old * kept, doomed_before(self.properties, self.vacuums))

    def _read_vacuums(self, version: int) -> None:
        """Read what the log says of VACUUMs, up to a version."""
        after = self.version if self.version >= 0 else max(version - _LOOKED_BACK, -1)
        found = self.context.reader.commits(self.plan.location, after=after) if version > after else ()
        new = [each for each in reversed(found) if is_vacuum(each) and each.version <= version]
        self.vacuums += new
        self.vacuumed = bool(new)

    def prove(self) -> str:
        """Compare after the commit what was not compared before it. Returns what differs, in words."""
        sums = [each.sql for each in self.sums]
        wrong = [unlike(self.sums, self.copy.compare(each.keys, each.adds, sums)) for each in self.unproven]
        self.unproven.clear()
        return ", ".join(dict.fromkeys(filter(None, wrong)))

    def tell(self, step: str, words: str) -> None:
        """Emit an event of the table."""
        self.context.notify(RunEvent(self.plan.name, step, words))

    @property
    def _made_for(self) -> str:
        """What a part is made for: another run takes it only if all of this is the same."""
        return write_json([_FORMAT, self.layout, self.partitions, [each.sql for each in self.sums]])

    def _whole(self, part: CopiedPart) -> CopiedPart | None:
        """A part of an earlier run, if it holds the rows of its files, and all of its new files are still there. Its
        record may be a stranger's, so its statistics are taken from its files.
        """
        try:
            if unlike(self.sums, self.copy.compare(part.keys, part.adds, [each.sql for each in self.sums])):
                return None
            return replace(part, adds=self.copy.measure(part.adds))
        except EngineError as error:
            if error.unanswered:
                raise
            return None

    def _written(self, keys: Sequence[str]) -> CopiedPart:
        adds, size = self.copy.write(keys), sum(self.missing[key] for key in keys)
        if not all(is_plain_add(each, self.keys) for each in adds):
            message = f"Delta wrote files without a value for each of {', '.join(self.keys) or 'no partition column'}"
            raise StopTableError(RunOutcome.FAILED, message, "nothing was committed; please report this")
        part = CopiedPart(f"{round(self.began * 1000):014d}-{self.number:06d}", tuple(keys), adds, size)
        self.number += 1
        self.copied += size
        return part

    def _compare(self, part: CopiedPart) -> None:
        sums = [each.sql for each in self.sums]
        if wrong := unlike(self.sums, self.copy.compare(part.keys, part.adds, sums)):
            hint = "nothing was committed; partition by another column, or give such rows another value"
            raise StopTableError(RunOutcome.REFUSED, f"the copy is not what the table holds: {wrong}", hint)

    def _keep(self, part: CopiedPart) -> None:
        self.copy.use(part.adds)
        self._know(part)
        self.part_of |= dict.fromkeys(part.keys, part.id)
        for key in part.keys:
            self.missing.pop(key, None)

    def _know(self, part: CopiedPart) -> None:
        self.parts[part.id] = part
        self.paths[part.id] = tuple(unquote(read_json(add)["add"]["path"]) for add in part.adds)
        self.written[part.id] = _written_at(part, self.began)

    def _give_up(self, part: CopiedPart) -> None:
        self.copy.drop(part.adds)
        del self.parts[part.id]
        if part in self.unproven:
            self.unproven.remove(part)
        for key in part.keys:
            self.part_of.pop(key, None)
            if key in self.files:
                self.missing[key] = self.files[key]
        delete_part(self.lease.store, part)

    def _slices(self) -> list[list[str]]:
        """The missing files in parts: files of one folder together, those that change often in small parts."""
        slices: list[list[str]] = []
        before, bytes_, files = -1, 0, 0
        for changed, key in sorted((self.changes.get(key, 0), key) for key in self.missing):
            size = self.missing[key]
            if changed != before or bytes_ < size or not files:
                slices.append([])
                before, bytes_, files = changed, _LARGEST_PART // _SHRINK**changed, _MOST_FILES // _SHRINK**changed
            slices[-1].append(key)
            bytes_, files = bytes_ - size, files - 1
        return slices


def _written_at(part: CopiedPart, otherwise: float) -> float:
    """When the oldest new file of a part was written, by its action, in seconds since the epoch."""
    return min((read_json(add)["add"]["modificationTime"] / 1000 for add in part.adds), default=otherwise)


def begin_copy(context: RunContext, plan: TablePlan, lease: Lease, statement: Statement, live: LiveTable) -> BesideCopy:
    """The copy that a statement takes. Raises ``StopTableError`` if it cannot be made."""
    check_room(context, plan, live)
    check_copies(context.engine, plan)
    assert isinstance(context.engine, CopiesTables)
    place, partitions = context.target(plan), statement.repartition or ()
    location = place.parts[0] if place.is_path else plan.location
    copy = context.engine.table_copy(location, partitions, context.new_tag())
    began = milliseconds(context.clock.utc()) / 1000
    return BesideCopy(context, plan, lease, copy, partitions, began)


def check_room(context: RunContext, plan: TablePlan, live: LiveTable) -> None:
    """Raise ``StopTableError`` if the disk of a table has no room for its files a second time."""
    free = context.reader.free(plan.location)
    if free is not None and live.bytes is not None and free < live.bytes:
        message = f"the table's {live.bytes:,} bytes are written a second time, and its disk has {free:,} bytes left"
        raise StopTableError(RunOutcome.REFUSED, message, "make room, and run the same command again")


def catch_up(copying: BesideCopy) -> bool:
    """Copy the table while everybody writes, until what is left takes less than ``window.cutover``.

    Returns False if columns, properties, features or domains have changed, or were not known before: the plan must be
    decided again. Raises ``StopTableError`` if writers outrun the copy or VACUUM does, and ``WindowError`` if the lease
    is lost.
    """
    clock, cutover = copying.context.clock, copying.context.config.cutover
    checked, stuck = False, 0
    while True:
        _check(copying)
        if copying.follow():
            return False
        left = copying.seconds_for(copying.outstanding)
        if copying.rounds or not copying.missing:
            if left <= cutover and not (checked and _worth_another(copying, left)):
                if checked:
                    break
                _check_files(copying)
                checked = True
                continue
            stuck = stuck + 1 if _no_progress(copying, left) else 0
            if stuck >= _STUCK:
                taken = sum(each.seconds for each in copying.rounds)
                raise _too_slow(copying, taken) if copying.aged else _outrun(copying, left, cutover)
        started, size = clock.monotonic(), copying.outstanding
        if (taken := _longest_round(copying, size)) > copying.longest:
            raise _too_slow(copying, taken)
        copying.tell("copy", f"copy beside the table: {size_text(size)} to go, {len(copying.missing):,} files")
        for done in copying.copy_missing():
            _pace(copying, done)
            _check(copying)
        copying.rounds.append(_Round(size, clock.monotonic() - started))
    copying.copy.prepare()
    return True


def cut_over(copying: BesideCopy, may_send: MaySend) -> int:
    """Behind the closed gate: follow the last versions, and commit. Goes on as long as ``window.cutover`` allows if a
    writer without a guard commits first. Returns the version of the commit.

    Raises ``EngineError``, ``StopTableError`` if too much has changed while the gate shut, and ``OutdatedCopyError`` if
    what the plan was decided on has.
    """
    clock, longest = copying.context.clock, 2 * copying.context.config.cutover
    until, tries = clock.monotonic() + longest, 0
    while True:
        if copying.follow(_OLDEST):
            raise OutdatedCopyError
        if tries == 0 or copying.vacuumed:
            _check_files(copying, _OLDEST)
        left = copying.seconds_for(copying.outstanding)
        if left > longest:
            raise _grown(copying, left)
        copying.copy_last(hurry=tries > 0)
        may_send()
        try:
            return copying.copy.commit()
        except EngineError as error:
            if not is_conflict(error.condition):
                raise
            tries += 1
            if clock.monotonic() > until:
                message = (
                    f"writers without a guard committed first, {tries} times within twice `window.cutover` "
                    f"({copying.context.config.cutover:.0f} s)"
                )
                hint = "guard or pause them, or raise `window.cutover`; the same command goes on with the copy"
                raise StopTableError(RunOutcome.NO_WINDOW, message, hint) from error


def decided_again(times: int) -> None:
    """Raise ``StopTableError`` if the gate has shut too often for a table whose metadata changed each time."""
    if times >= _DECIDED:
        message = f"columns, properties or features changed each time the gate shut, {times} times"
        hint = "pause who changes them; the same command goes on with the copy"
        raise StopTableError(RunOutcome.NO_WINDOW, message, hint)


def _check(copying: BesideCopy) -> None:
    """Raise if the copy may not go on: the run was stopped, the lease is lost, or the engine is gone."""
    context = copying.context
    if context.stop.is_set():
        raise interrupted()
    copying.lease.prove(context.budget)
    check_answers(context.engine)


def _check_files(copying: BesideCopy, old: float = _OLD) -> None:
    cutover = copying.context.config.cutover
    try:
        copying.check_files(old)
    except LiveError as error:
        message = f"whether a VACUUM has deleted copied files is unknown: {error.message}"
        raise StopTableError(RunOutcome.FAILED, message, error.hint) from error
    if copying.look > cutover:
        message = (
            f"the files of the table are listed once more behind the gate, to find what a VACUUM has deleted: that "
            f"took {copying.look:.0f} s, and the gate may shut for {cutover:.0f} s"
        )
        hint = "raise `window.cutover`, or VACUUM the table first; the same command goes on with the copy"
        raise StopTableError(RunOutcome.NO_WINDOW, message, hint)


def _longest_round(copying: BesideCopy, size: int) -> float:
    """Seconds of the longest round so far, or of the next one if the pace makes it longer."""
    limit = copying.context.pace.limit
    return max([size / limit * HOUR if limit else 0.0, *(each.seconds for each in copying.rounds)])


def _too_slow(copying: BesideCopy, taken: float) -> StopTableError:
    """VACUUM may delete the first files of the copy before its last ones are written."""
    message = (
        f"the copy takes {_span(taken)}, and VACUUM deletes files without a commit after "
        f"{_span(copying.longest / _OLD)}: parts are made again after {_span(copying.longest)}, so it never ends"
    )
    faster = f"raise {LIMIT}, or " if copying.context.pace.limit else ""
    hint = (
        f"{faster}keep deleted files for longer (`retention: {{deleted_files: …}}`), and VACUUM with no shorter RETAIN"
    )
    return StopTableError(RunOutcome.NO_WINDOW, message, hint)


def _span(seconds: float) -> str:
    unit, name = next(
        (each for each in ((86_400, "days"), (HOUR, "hours"), (60, "min")) if seconds >= each[0]), (1, "s")
    )
    return f"{seconds / unit:.1f} {name}"


def _pace(copying: BesideCopy, done: int) -> None:
    """Wait after a part, so that no hour has more bytes than ``window.max_bytes_per_hour``."""
    limit = copying.context.pace.limit
    left = done / limit * HOUR if limit else 0.0
    if left >= _SLICE:
        copying.tell("paced", f"waiting for {LIMIT}; {size_text(copying.copied)} copied so far")
    while left > 0:
        copying.context.clock.sleep(min(left, _SLICE))
        left -= _SLICE
        _check(copying)


def _worth_another(copying: BesideCopy, left: float) -> bool:
    """Whether a further round would make the closed time much shorter."""
    return left > _BRIEF and len(copying.rounds) > 1 and left < copying.rounds[-1].seconds / 2


def _no_progress(copying: BesideCopy, left: float) -> bool:
    return len(copying.rounds) > 1 and left > 0.9 * copying.rounds[-1].seconds


def _outrun(copying: BesideCopy, left: float, cutover: float) -> StopTableError:
    last = copying.rounds[-1]
    message = (
        f"writers outrun the copy: while the last {size_text(last.bytes)} were copied in {last.seconds:.0f} s, they "
        f"changed files with {size_text(copying.outstanding)}, about {left:.0f} s of work, and the gate may shut for "
        f"{cutover:.0f} s of it"
    )
    paced = " or `window.max_bytes_per_hour`" if copying.context.pace.limit else ""
    hint = f"run again when they write less (the copy is kept), or raise `window.cutover`{paced}"
    return StopTableError(RunOutcome.NO_WINDOW, message, hint)


def _grown(copying: BesideCopy, left: float) -> StopTableError:
    message = (
        f"while writers finished, files with {size_text(copying.outstanding)} changed: to copy them would shut the "
        f"gate for about {left:.0f} s"
    )
    hint = "run the same command again: it goes on with the copy; or raise `window.cutover`"
    return StopTableError(RunOutcome.NO_WINDOW, message, hint)
