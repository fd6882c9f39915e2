"""Who is locked out by a plan: clients by its protocol upgrade, and writers that name the partition columns that it
changes; and upgrades that the policy does not allow. Derived from changes, statements and basis alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.attributes.features import dropped_features
from tablectl.attributes.policy import Policy
from tablectl.delta import keys
from tablectl.delta.clients import (
    LISTS,
    VECTORS_OFF,
    ClientFeatures,
    LockedOut,
    Unknown,
    find_client,
    judge,
    judge_writer,
    known_clients,
    meant_client,
    newest_version,
    parse_version,
    wrong_rows,
)
from tablectl.delta.protocol import READER_FEATURES, Client, Protocol, leaves
from tablectl.lint_rules.rule import RuleFinding
from tablectl.model.plan import Basis, BrokenWriter, Change, FeatureFact, Refusal, Statement
from tablectl.model.table import LiveTable
from tablectl.model.writers_in_history import PartitionWriter
from tablectl.planning.derive_statements import DerivedTable

DERIVED = frozenset({"P001", "P002", "P003", "P004", "P005", "P006", "P007", "P008", "D001"})
"""The codes of findings that follow from a plan's statements and basis alone."""


def protocol_refusals(derived: DerivedTable) -> tuple[Refusal, ...]:
    """Refusals for features that ``allowed_features`` does not list, for ``clients`` that are locked out or would read
    wrong rows, and, without ``allow: [lockout]``, for an upgrade that locks out every writer of the table.
    """
    before, after, basis, changes = derived.before, derived.after, derived.basis, derived.changes
    new = after.features - before.features
    found = []
    allowed = basis.options.allowed_features
    if allowed is not None and new - set(allowed):
        missing = sorted(new - set(allowed))
        names, those = ", ".join(missing), "them" if len(missing) > 1 else "it"
        found.append(
            Refusal(
                change=_cause(missing[0], derived),
                reason=f"it adds {names} to the protocol, which `allowed_features` does not name",
                fix=f"add {names} to `allowed_features`, or leave out what needs {those}",
            )
        )
    for name, version in basis.options.clients:
        judged = judge(name, version, before, after)
        found += [_locked_out(each, derived) for each in judged if isinstance(each, LockedOut)]
        wrong = _wrong_rows_of(name, version, derived)
        if wrong and basis.vectors != 0:
            change = next((each.id for each in changes if each.attribute == "deletion_vectors"), changes[0].id)
            found.append(
                Refusal(
                    change=change,
                    reason=f"{name} {version} would read wrong rows: {wrong}",
                    fix="purge first, with vectors still on: run REORG TABLE … APPLY (PURGE), let a checkpoint be "
                    f"written, and plan again; or, once no job uses {name}, remove it from `clients`",
                )
            )
    locked = _only_writers(before, after, basis)
    if locked and "lockout" not in basis.options.allow:
        found.append(_lockout(locked, derived))
    return tuple(found)


def brought_back(policy: Policy, derived: DerivedTable) -> tuple[Refusal, ...]:
    """Refusals for features that a policy drops and that its other settings add."""
    added = derived.after.features - derived.before.features
    return tuple(
        Refusal(
            change=_cause(name, derived),
            reason=f"it adds the feature {name}, which the same policy drops",
            fix=f"remove one of the two: {name} cannot be dropped while a setting needs it",
        )
        for name in dropped_features(policy.declared)
        if name in added
    )


def protocol_findings(derived: DerivedTable) -> Iterator[RuleFinding]:
    """The findings P001 to P005 about a protocol upgrade."""
    before, after, basis = derived.before, derived.after, derived.basis
    yield from protocol_raise(before, after)
    yield from protocol_lowered(derived)
    for name, version in basis.options.clients:
        for each in judge(name, version, before, after):
            if isinstance(each, Unknown):
                yield RuleFinding("P003", _unknown_text(each))
        wrong = _wrong_rows_of(name, version, derived)
        if wrong and basis.vectors == 0:
            yield RuleFinding("P005", f"a checkpoint may still hold deletion vectors, and of {name} {version}: {wrong}")
    if _only_writers(before, after, basis) and "lockout" not in basis.options.allow:
        return  # the refusal names them
    for writer, judged in _judged_writers(before, after, basis):
        yield RuleFinding("P004", f"{writer.text()} recently wrote the table, and {_loss(judged)}")


_Judged = tuple[Client, LockedOut | Unknown]


def _judged_writers(before: Protocol, after: Protocol, basis: Basis) -> list[_Judged]:
    """The clients in the history that an upgrade locks out, and those of unknown kind. If ``clients`` names a client's
    kind, the version there counts, so the client is left out here.
    """
    named = {data.engine for name, _ in basis.options.clients if (data := find_client(name)) and data.engine}
    found = ((each, judge_writer(each, before, after)) for each in basis.client_list() if each.engine not in named)
    # Whether the result counts as locked out. For a known kind, undocumented support does not.
    return [
        (each, judged) for each, judged in found if judged and (isinstance(judged, LockedOut) or judged.data is None)
    ]


def _only_writers(before: Protocol, after: Protocol, basis: Basis) -> list[_Judged]:
    """The writers of the table if an upgrade locks out every one of them; empty if one of them keeps working."""
    writers = {Client(each.engine, each.version) for each in basis.clients if each.writes}
    locked = [(each, judged) for each, judged in _judged_writers(before, after, basis) if each in writers]
    return locked if writers and len(locked) == len(writers) else []


def broken_writers(derived: DerivedTable, live: LiveTable) -> tuple[BrokenWriter, ...]:
    """The writers of the table's known commits that fail on every run after the statements."""
    locked = {client for client, _ in _judged_writers(derived.before, derived.after, derived.basis)}
    naming = {each.version for each in derived.basis.partition_writers} if _changed(derived.changes) else set()
    found: dict[tuple[str, str], BrokenWriter] = {}
    for commit in live.known_commits:
        if (commit.client in locked and commit.changes_data) or commit.version in naming:
            client = commit.client.text()
            writer = BrokenWriter(client=client, who=commit.source, last=commit.timestamp, version=commit.version)
            found.setdefault((client, commit.source), writer)
    return tuple(found.values())[:_MOST_BROKEN]


def _lockout(locked: Sequence[_Judged], derived: DerivedTable) -> Refusal:
    names = " and ".join(client.text() for client, _ in locked)
    judged = locked[0][1]
    feature = judged.feature if isinstance(judged, LockedOut) else judged.features[0]
    cited = f" (source: {judged.data.cited})" if isinstance(judged, LockedOut) else ""
    only = "the only client that" if len(locked) == 1 else "the only clients that"
    does = judged.access if isinstance(judged, LockedOut) else "write"
    return Refusal(
        change=_cause(feature, derived),
        reason=f"it locks out {names}, {only} recently wrote the table: {_loss(judged)}{cited}",
        fix=f"leave out what needs {feature}, move its jobs to a client that {does}s such tables, or, if they may "
        "stop, allow that with `allow: [lockout]`",
    )


def _loss(judged: LockedOut | Unknown) -> str:
    if isinstance(judged, LockedOut):
        return _lack(judged)
    return f"it is unknown whether it writes tables with {' and '.join(judged.features)}"


def _turns_vectors_off(statements: Sequence[Statement], basis: Basis) -> bool:
    key = keys.DELETION_VECTORS.lower()
    off = any(
        any(name.lower() == key and value.lower() == "false" for name, value in each.effect.sets)
        or any(name.lower() == key for name in each.effect.removes)
        for each in statements
    )
    return off and basis.writes_vectors


def _wrong_rows_of(name: str, version: str, derived: DerivedTable) -> str:
    """Why a client reads wrong rows after the statements; empty if no source says that it does."""
    data = find_client(name)
    if data is None or not _turns_vectors_off(derived.statements, derived.basis):
        return ""
    return wrong_rows(data, parse_version(version), VECTORS_OFF)


def protocol_lowered(derived: DerivedTable) -> Iterator[RuleFinding]:
    """P007: who can read and write the table after features are dropped, and could not before."""
    before, after = derived.before, derived.after
    gone = sorted(before.features - after.features)
    if not gone:
        return
    newest = {data.name: ".".join(map(str, newest_version(data))) for data in known_clients()}
    asked = {*newest.items(), *derived.basis.options.clients}
    opened = [
        f"{each.client} {each.version} can {each.access} it"
        for name, version in sorted(asked)
        for each in judge(name, version, after, before)
        if isinstance(each, LockedOut)
    ]
    shown = ", ".join(opened[:_SHOWN]) + (f", and {len(opened) - _SHOWN} more" if len(opened) > _SHOWN else "")
    yield RuleFinding("P007", f"the table no longer needs {', '.join(gone)}" + (f": {shown}" if opened else ""))


def protocol_raise(before: Protocol, after: Protocol) -> Iterator[RuleFinding]:
    """P001, P002: clients that do not support the new protocol can no longer read, or write, the table (delta-1.0)."""
    if after.new_to_readers(before):
        read = sorted(after.read_features - before.read_features)
        needs = f" with {', '.join(read)}" if read else ""
        yield RuleFinding("P001", f"readers need protocol {after.reader}{needs}")
    written = sorted(after.features - before.features)
    if after.writer > before.writer or written:
        needs = f" with {', '.join(written)}" if written else ""
        yield RuleFinding("P002", f"writers need protocol {after.writer}{needs}")


def _locked_out(found: LockedOut, derived: DerivedTable) -> Refusal:
    data, since = found.data, found.answer.since
    upgrade = f"upgrade it to {since} and change its version under `clients`, " if since else ""
    wrong = found.answer.knows is ClientFeatures.WRONG
    loss = f"would {found.access} wrong rows" if wrong else f"could no longer {found.access} the table"
    return Refusal(
        change=_cause(found.feature, derived),
        reason=f"{found.client} {found.version} {loss}: {_lack(found)} (source: {data.cited})",
        fix=f"{upgrade}leave out what needs {found.feature}, or, once no job uses {found.client}, "
        "remove it from `clients`",
    )


def _lack(found: LockedOut) -> str:
    """``it writes tables with deletionVectors only since Trino 454``."""
    data, answer = found.data, found.answer
    newest = f"; {data.version} {found.version} is newer than the known versions, and counts as {answer.newest}"
    newer = newest if answer.newest else ""
    if answer.why:
        return answer.why + newer
    what = "protocols that list their features" if found.feature == LISTS else f"tables with {found.feature}"
    does = f"{found.access}s"
    if answer.since:
        return f"it {does} {what} only since {data.version} {answer.since}"
    known = f", up to {data.version} {data.whole[1]}" if data.whole else ""
    return f"it {does} no {what}{known}{newer}"


def _unknown_text(found: Unknown) -> str:
    what = " and ".join(found.features)
    if found.data is None:
        meant = meant_client(found.client)
        hint = f"; did you mean {meant}?" if meant else ""
        return f"{found.client} is not in the table of clients: whether it knows {what} was not checked{hint}"
    why = f": {found.why}" if found.why else ""
    return f"whether {found.client} {found.version} knows {what} is not documented{why}"


def _cause(feature: str, derived: DerivedTable) -> str:
    """The change that brings a feature; if none names it, the first change that upgrades the protocol."""
    raising = [
        (each.change, features)
        for each in derived.operations
        if (features := each.operation.effect(derived.basis).features)
    ]
    named = [change for change, features in raising if feature in features]
    return (named or [change for change, _ in raising])[0]


CONSENT = "partition_writers"
_SHOWN = 5
_MOST_BROKEN = 20


def partition_refusals(changes: Sequence[Change], basis: Basis) -> tuple[Refusal, ...]:
    """A refusal if the history has such writers and the policy does not consent."""
    change, writers = _changed(changes), basis.partition_writers
    if change is None or not writers or CONSENT in basis.options.allow:
        return ()
    return (
        Refusal(
            change=change.id,
            reason=f"existing writers of the table would fail on every run: {_text(writers)}",
            fix="take `partitionBy` out of their code (a write that names no columns takes those of the table), "
            f"then consent with `allow: [{CONSENT}]`; commits made before the fix still count",
            condition="DELTA_METADATA_MISMATCH",
        ),
    )


def partition_findings(changes: Sequence[Change], basis: Basis) -> Iterator[RuleFinding]:
    """P006: the same, if the policy consents."""
    if _changed(changes) is not None and basis.partition_writers and CONSENT in basis.options.allow:
        yield RuleFinding(
            "P006", f"existing writers of the table will fail on every run: {_text(basis.partition_writers)}"
        )


def _changed(changes: Sequence[Change]) -> Change | None:
    return next((each for each in changes if each.attribute == "partitioning"), None)


def _text(writers: Sequence[PartitionWriter]) -> str:
    shown = "; ".join(map(_one, writers[:_SHOWN]))
    return f"{shown}; and {len(writers) - _SHOWN} more" if len(writers) > _SHOWN else shown


def _one(writer: PartitionWriter) -> str:
    who = f" ({writer.who})" if writer.who else ""
    does = (
        "names the partition columns"
        if writer.certain
        else "may name the partition columns, which the log does not tell"
    )
    return f"{writer.operation} by {writer.client}{who}, last in version {writer.version}, {does}"


def added_features(before: Protocol, after: Protocol) -> tuple[FeatureFact, ...]:
    """The features that a plan adds, by name, and how each can be removed."""
    new = sorted(after.features - before.features)
    return tuple(FeatureFact(name=each, reader=each in READER_FEATURES, leaves=leaves(each)) for each in new)
