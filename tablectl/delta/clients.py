"""Client support for protocol features: which client supports which feature, and since which version.

The data is ``clients.json`` in this package. It holds only what a client's source or documentation says or what a probe
of the client found. ``tools/client_features.py`` makes the cells that a source says. Each entry names its source and
the day it was read. Entries that ``make probe-clients`` tested also hold the release, the day and the result of each
interface. Where neither source covers a case, the answer is "unknown". A version newer than the newest known one counts
as the newest known one.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Annotated, Literal

from pydantic import BeforeValidator

from tablectl.delta.client_families import DATABRICKS
from tablectl.delta.databricks_runtimes import known_features
from tablectl.delta.protocol import READER_FEATURES, Client, Protocol
from tablectl.support.typed_json import read_record

Version = tuple[int, ...]
Access = Literal["read", "write"]
Outcome = Literal["yes", "no", "wrong rows"]

LISTS = "table features"
"""Pseudo-feature: the protocol lists its features. A client must support this in addition to each listed feature."""
VECTORS_OFF = "vectors off"
"""Pseudo-feature: deletion vectors are disabled, but some remain in the table or in its checkpoint."""
WRITES = "writes"
"""State of ``WrongRows``: the client changes rows of any table."""
WRITES_VECTORS = "writes with vectors"
"""State of ``WrongRows``: the client changes rows of a table with deletion vectors."""
MAX_BYTES = 1024 * 1024
_NOTHING: Mapping[str, str] = MappingProxyType({})


def parse_version(text: str) -> Version:
    """The components of a dotted version: ``4.0.1`` becomes ``(4, 0, 1)``. Raises ``ValueError`` for other text."""
    return tuple(map(int, text.split(".")))


class ClientFeatures(StrEnum):
    """Whether a client supports a feature."""

    YES = "yes"
    NO = "no"
    WRONG = "wrong rows"
    """The client reads or writes without an error, and the result is wrong."""
    UNDOCUMENTED = "undocumented"


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """The results of testing one release of a client on real tables."""

    version: str
    date: str
    """ISO date: ``2026-11-22``."""
    tables: str
    """The writer of the test tables: ``Delta 4.4.0``."""
    reads: Mapping[str, Mapping[str, tuple[Outcome, str]]]
    """Feature → interface → outcome, with the error or a description of the wrong rows."""
    writes: Mapping[str, tuple[Outcome, str]]
    """Feature → outcome of an append, with the error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongRows:
    """A table state in which a client returns wrong rows without an error, or writes them."""

    when: str
    """The state: ``VECTORS_OFF``, ``WRITES``, ``WRITES_VECTORS``."""
    why: str
    source: str
    below: str = ""
    """The release with the fix; empty if none is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientData:
    """One client, as documented and as probed."""

    name: str
    """The name in policies."""
    title: str
    version: str
    """The product that the version number belongs to."""
    reads: Mapping[str, str]
    """Reader feature → first version that reads tables with it; empty if the source names no version."""
    writes: Mapping[str, str] | None
    """Feature → first version that writes tables with it; ``None`` for a client that never writes."""
    never: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Feature that no version supports → reason."""
    partly: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Feature that some interfaces cannot read in any version → which interfaces."""
    whole: tuple[str, str] | None = None
    """First and last version for which every feature that is not listed is unsupported."""
    open: frozenset[str] = frozenset()
    """Features whose support is undocumented even in the range ``whole``."""
    lines: frozenset[Annotated[Version, BeforeValidator(lambda text: parse_version(str(text)))]] = frozenset()
    """The release lines that exist. Set for clients whose version is easily confused with the version of something
    else.
    """
    wrong_rows: tuple[WrongRows, ...] = ()
    probe: Probe | None = None
    engine: str = ""
    """The name in ``Client.engine``, if table histories identify the client."""
    note: str = ""
    read_from: Mapping[str, str] = field(default_factory=lambda: _NOTHING)
    """Version that a cell names → the file that says so, at its tag: ``tools/client_features.py`` read it there."""
    by_hand: str = ""
    """Why a person read the cells that have no such file, and who."""
    source: str
    as_of: str
    """The day the source was read: ``2026-08-31``."""

    @property
    def checked(self) -> str:
        """The newest date of the documentation and the probe."""
        return max(self.as_of, self.probe.date) if self.probe else self.as_of

    @property
    def cited(self) -> str:
        """Source and date, for messages."""
        tried = f"; {self.version} {self.probe.version} was tried on {self.probe.date}" if self.probe else ""
        return f"{self.source}; as of {self.as_of}{tried}"


@dataclass(frozen=True, slots=True)
class ClientAnswer:
    """What is known about a client's support for one feature."""

    knows: ClientFeatures
    since: str = ""
    """The first version that supports the feature, if known."""
    why: str = ""
    """A further explanation, as a clause."""
    newest: str = ""
    """The newest known version, if the requested version is newer and counts as this one."""


def ask(data: ClientData, version: Version, feature: str, access: Access) -> ClientAnswer:
    """Whether a version of a client can read (or write) a table that has a feature."""
    if feature in data.never:
        return ClientAnswer(ClientFeatures.NO, why=data.never[feature])
    if access == "read" and feature in data.partly:
        return ClientAnswer(ClientFeatures.NO, why=data.partly[feature])
    if data.lines and version[:2] not in data.lines and version <= max(data.lines):
        return ClientAnswer(ClientFeatures.UNDOCUMENTED, why=f"there is no {data.version} {_text(version)}")
    return _probed(data, version, feature, access) or _documented(data, version, feature, access)


def _probed(data: ClientData, version: Version, feature: str, access: Access) -> ClientAnswer | None:
    """The probe's result. It applies to the probed release and to newer ones; ``None`` if the probe does not
    cover it.
    """
    probe = data.probe
    if probe is None or _padded(version) < _padded(parse_version(probe.version)):
        return None
    found = (
        probe.reads.get(feature, {})
        if access == "read"
        else {"": probe.writes[feature]}
        if feature in probe.writes
        else {}
    )
    if not found:
        return None
    newest = probe.version if _padded(version) > _padded(parse_version(probe.version)) else ""
    outcomes = {outcome for outcome, _ in found.values()}
    if outcomes == {"yes"}:
        return ClientAnswer(ClientFeatures.YES, newest=newest)
    names = sorted(name for name, (outcome, _) in found.items() if name and outcome != "yes")
    good = sorted(name for name, (outcome, _) in found.items() if name and outcome == "yes")
    by = f" by {_and(names)}" if names and good else ""
    but = f", only by {_and(good)}" if good else ""
    on, tried = _tables(feature), f"{data.version} {probe.version} was tried and"
    if "wrong rows" in outcomes:
        return ClientAnswer(
            ClientFeatures.WRONG,
            why=f"{tried} {access}s wrong rows{by} of {on}{but and f'; right ones{but}'}",
            newest=newest,
        )
    return ClientAnswer(ClientFeatures.NO, why=f"{tried} does not {access} {on}{by}{but}", newest=newest)


def _documented(data: ClientData, version: Version, feature: str, access: Access) -> ClientAnswer:
    listed = data.reads if access == "read" else data.writes or _NOTHING
    if feature in listed:
        since = listed[feature]
        if not since or _padded(version) >= _padded(parse_version(since)):
            return ClientAnswer(ClientFeatures.YES, since)
        if data.whole and since == data.whole[0]:  # the data does not say what older versions support
            return ClientAnswer(
                ClientFeatures.UNDOCUMENTED, since, f"what versions before {since} know is not documented"
            )
        return ClientAnswer(ClientFeatures.NO, since)
    if data.whole and feature not in data.open and _padded(version) >= _padded(parse_version(data.whole[0])):
        last = parse_version(data.whole[1])
        return ClientAnswer(ClientFeatures.NO, newest=data.whole[1] if version[: len(last)] > last else "")
    return ClientAnswer(ClientFeatures.UNDOCUMENTED)


def wrong_writes(data: ClientData, version: Version, *, vectors: bool) -> Iterator[WrongRows]:
    """What a version writes wrong, by its own issues and release notes, with deletion vectors or without."""
    states = {WRITES, WRITES_VECTORS} if vectors else {WRITES}
    for each in data.wrong_rows:
        if each.when in states and (not each.below or _padded(version) < _padded(parse_version(each.below))):
            yield each


def wrong_rows(data: ClientData, version: Version, when: str) -> str:
    """Why a version returns wrong rows for a table in state ``when``; empty if no source says that it does."""
    probed = _probed(data, version, when, "read")
    if probed is not None:
        return probed.why if probed.knows is ClientFeatures.WRONG else ""
    return next((f"{each.why} (source: {each.source})" for each in data.wrong_rows if each.when == when), "")


def _and(names: list[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def _tables(feature: str) -> str:
    return "tables whose protocol lists its features" if feature == LISTS else f"tables with {feature}"


def _padded(version: Version) -> Version:
    return (*version, 0, 0, 0)[:4]


def _text(version: Version) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class LockedOut:
    """A client that a protocol upgrade locks out, or that reads wrong rows after it."""

    client: str
    version: str
    access: Access
    """The kind of access that is lost."""
    feature: str
    answer: ClientAnswer
    data: ClientData


@dataclass(frozen=True, slots=True)
class Unknown:
    """A client for which no source says whether it supports the features that a protocol upgrade adds."""

    client: str
    version: str
    features: tuple[str, ...]
    why: str = ""
    data: ClientData | None = None
    """``None`` for a client without an entry."""


def judge(name: str, version: str, before: Protocol, after: Protocol) -> Iterator[LockedOut | Unknown]:
    """The effect of a protocol upgrade on a version of a client. Yields at most one ``LockedOut``.

    Access that the client lacked under the old protocol does not count as lost.
    """
    new = _needs(after) - _needs(before)
    if not new:
        return
    data = find_client(name)
    if data is None:
        yield Unknown(name, version, _shown(new))
        return
    yield from _judged(data, parse_version(version), before, after)


def _judged(data: ClientData, number: Version, before: Protocol, after: Protocol) -> Iterator[LockedOut | Unknown]:
    new, version, undocumented = _needs(after) - _needs(before), _text(number), dict[str, str]()
    for access in _ACCESSES if data.writes is not None else _ACCESSES[:1]:
        if any(_fails(ask(data, number, each, access)) for each in _wanted(_needs(before), access)):
            continue
        for feature in sorted(_wanted(new, access)):
            answer = ask(data, number, feature, access)
            if _fails(answer):
                yield LockedOut(data.name, version, access, feature, answer, data)
                return
            if answer.knows is ClientFeatures.UNDOCUMENTED:
                undocumented.setdefault(feature, answer.why)
    if undocumented:
        why = next(filter(None, undocumented.values()), "")
        yield Unknown(data.name, version, _shown(frozenset(undocumented)), why, data)


def in_the_way(name: str, version: str, protocol: Protocol) -> Iterator[tuple[str, Access]]:
    """Each feature of a protocol that a version of a client cannot read, or write, tables with."""
    data = find_client(name)
    if data is None:
        return
    for access in _ACCESSES if data.writes is not None else _ACCESSES[:1]:
        for feature in sorted(_wanted(protocol.features, access)):
            if _fails(ask(data, parse_version(version), feature, access)):
                yield feature, access


_ACCESSES: tuple[Access, ...] = ("read", "write")


def _fails(answer: ClientAnswer) -> bool:
    return answer.knows in {ClientFeatures.NO, ClientFeatures.WRONG}


def judge_writer(client: Client, before: Protocol, after: Protocol) -> LockedOut | Unknown | None:
    """The effect of a protocol upgrade on a client from the history; ``None`` if it keeps working, as far as is known.

    The result for an unidentified client is ``Unknown`` without data. A client without a version, or with one newer
    than the newest known, counts as the newest known version. So does a version that
    may be that of the crate or that of the Python package.
    """
    new = _needs(after) - _needs(before)
    if not new:
        return None
    data = find_engine(client.engine)
    if data is None:
        return Unknown(client.text(), "", _shown(new))
    number = client.version
    if not number or number < client.family.crate_versions_below:
        number = newest_version(data)
    return next(_judged(data, number, before, after), None)


def newest_locked_out(before: Protocol, after: Protocol) -> tuple[LockedOut, ...]:
    """The known clients that a protocol upgrade locks out in their newest known version."""
    judged = (each for data in known_clients() for each in _judged(data, newest_version(data), before, after))
    return tuple(each for each in judged if isinstance(each, LockedOut))


def newest_version(data: ClientData) -> Version:
    """The newest version that the entry says anything about."""
    told = [*data.reads.values(), *(data.writes or {}).values(), *(data.whole or ())]
    told += [data.probe.version] if data.probe else []
    return max((parse_version(each) for each in told if each), default=(0,), key=_padded)


def _needs(protocol: Protocol) -> frozenset[str]:
    return protocol.features | ({LISTS} if protocol.lists_features else frozenset())


def _wanted(features: frozenset[str], access: Access) -> frozenset[str]:
    """The features that matter for the access: all of them for writing, the reader features for reading."""
    return features if access == "write" else features & READER_FEATURES


def _shown(features: frozenset[str]) -> tuple[str, ...]:
    """The names of the features. The ``LISTS`` pseudo-feature appears only if no other feature is new."""
    return tuple(sorted(features - {LISTS})) or tuple(features)


def find_client(name: str) -> ClientData | None:
    """The entry of a client by its name in policies; ``None`` if there is no entry."""
    return next((each for each in known_clients() if each.name == name), None)


def meant_client(name: str) -> str:
    """The name in policies of the client that a name without an entry most likely means; empty if none is similar."""
    by_engine = find_engine(name)
    near = difflib.get_close_matches(name[:100], [each.name for each in known_clients()], n=1, cutoff=0.7)
    return by_engine.name if by_engine else next(iter(near), "")


def find_engine(engine: str) -> ClientData | None:
    """The entry of a client by its name in table histories; ``None`` if there is no entry."""
    return next((each for each in known_clients() if engine and each.engine == engine), None)


@cache
def known_clients() -> tuple[ClientData, ...]:
    """All known clients, the most common first."""
    listed = read_clients((files("tablectl.delta") / "clients.json").read_bytes())
    return tuple(_with_runtimes(each) if each.engine == DATABRICKS.name else each for each in listed)


def _with_runtimes(data: ClientData) -> ClientData:
    """The entry of Databricks with what ``databricks_runtimes.py`` says: no feature has a version in both files."""
    known = known_features()
    reads = {feature: since for feature, since in known.items() if feature in READER_FEATURES}
    return replace(data, reads={**data.reads, **reads}, writes={**(data.writes or {}), **known})


def read_clients(data: bytes) -> tuple[ClientData, ...]:
    """The entries of the data file. Raises ``ValueError`` if the file is too large or malformed."""
    if len(data) > MAX_BYTES:
        raise ValueError(f"the client data is larger than {MAX_BYTES} bytes")
    try:
        return read_record(_ClientFile, data).clients
    except ValueError as error:
        raise ValueError(f"the client data is not of its form: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientFile:
    format: Literal[1]
    clients: tuple[ClientData, ...]
