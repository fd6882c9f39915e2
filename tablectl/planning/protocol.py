"""Whom a plan's protocol locks out, and what of it the policy does not allow. All follows from statements and basis."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tablectl.attributes.clients import LISTS, LockedOut, Unknown, judge, judge_writer
from tablectl.conflicts.effects import effect_of
from tablectl.model.live import Protocol
from tablectl.model.plan import Basis, Change, ProtocolFact, Refusal, Statement
from tablectl.planning.decide import actions_for
from tablectl.planning.rules.subject import Found

DERIVED = frozenset({"P001", "P002", "P003", "P004"})
"""The codes that follow from a plan's statements and basis alone."""


def protocol_after(statements: Sequence[Statement], basis: Basis) -> ProtocolFact:
    """The protocol once all statements ran. Their order counts: a numbered protocol implies more than it names."""
    protocol = basis.protocol.protocol()
    for statement in statements:
        protocol = protocol.raised(frozenset(statement.effect.features)).lowered(frozenset(statement.effect.drops))
    return ProtocolFact.of(protocol)


def protocol_refusals(changes: Sequence[Change], statements: Sequence[Statement], basis: Basis) -> tuple[Refusal, ...]:
    """Features that ``allowed_features`` leaves out, and ``clients`` that the raise locks out."""
    before, after = basis.protocol.protocol(), protocol_after(statements, basis).protocol()
    new = after.features - before.features
    found = []
    allowed = basis.options.allowed_features
    if allowed is not None and new - set(allowed):
        missing = sorted(new - set(allowed))
        names, those = ", ".join(missing), "them" if len(missing) > 1 else "it"
        found.append(
            Refusal(
                change=_cause(missing[0], changes, basis),
                reason=f"it adds {names} to the protocol, which `allowed_features` does not name",
                way_out=f"add {names} to `allowed_features`, or leave out what needs {those}",
            )
        )
    for name, version in basis.options.clients:
        judged = judge(name, version, before, after)
        found += [_locked_out(each, changes, basis) for each in judged if isinstance(each, LockedOut)]
    return tuple(found)


def protocol_findings(before: Protocol, after: Protocol, basis: Basis) -> Iterator[Found]:
    """P001 to P004."""
    yield from protocol_raise(before, after)
    for name, version in basis.options.clients:
        for each in judge(name, version, before, after):
            if isinstance(each, Unknown):
                yield Found("P003", _unknown_text(each))
    for client in basis.client_list():
        locked = judge_writer(client, before, after)
        if locked and not any(name == locked.client for name, _ in basis.options.clients):
            yield Found("P004", f"{client.text()} wrote the table lately, and {_lack(locked)}")


def protocol_raise(before: Protocol, after: Protocol) -> Iterator[Found]:
    """P001, P002: clients that do not know the new protocol can no longer read, or write, the table (delta.md 1.0)."""
    read = sorted(feature for feature in after.reader_features if not before.has(feature))
    if after.reader > before.reader or read:
        needs = f" with {', '.join(read)}" if read else ""
        yield Found("P001", f"readers need protocol {after.reader}{needs}")
    written = sorted(feature for feature in after.writer_features if not before.has(feature))
    if after.writer > before.writer or written:
        needs = f" with {', '.join(written)}" if written else ""
        yield Found("P002", f"writers need protocol {after.writer}{needs}")


def _locked_out(found: LockedOut, changes: Sequence[Change], basis: Basis) -> Refusal:
    data, since = found.data, found.answer.since
    upgrade = f"upgrade it to {since} and say so under `clients`, " if since else ""
    return Refusal(
        change=_cause(found.feature, changes, basis),
        reason=f"{found.client} {found.version} could no longer {found.access} the table: {_lack(found)} "
        f"(source: {data.source}; as of {data.as_of})",
        way_out=f"{upgrade}leave out what needs {found.feature}, or take {found.client} off `clients`",
    )


def _lack(found: LockedOut) -> str:
    """``it writes tables with deletionVectors only since Trino 454``."""
    if found.answer.why:
        return found.answer.why
    what = "protocols that list their features" if found.feature == LISTS else f"tables with {found.feature}"
    does = f"{found.access}s"
    if found.answer.since:
        return f"it {does} {what} only since {found.data.version} {found.answer.since}"
    known = f", up to {found.data.version} {found.data.whole[1]}" if found.data.whole else ""
    return f"it {does} no {what}{known}"


def _unknown_text(found: Unknown) -> str:
    what = " and ".join(found.features)
    if found.data is None:
        return f"nothing is documented here of {found.client}: whether it knows {what} was not checked"
    why = f": {found.why}" if found.why else ""
    return f"whether {found.client} {found.version} knows {what} is not documented{why}"


def _cause(feature: str, changes: Sequence[Change], basis: Basis) -> str:
    """The change that brings a feature; where none names it, the first that raises the protocol."""
    raising = [
        (action.change.id, features)
        for action in actions_for(changes, basis)
        for step in action.steps
        if (features := effect_of(step.operation, basis).features)
    ]
    named = [change for change, features in raising if feature in features]
    return (named or [change for change, _ in raising])[0]
