"""Reads which protocol features each release of a client supports, and writes that into the client data.

``python -m tools.client_features FOLDER`` expects the repositories in the folder, as checkouts or bare: ``delta``,
``delta-rs`` and, if it is there, ``trino``. It reads each release tag by ``git show`` and replaces ``reads``,
``writes``, ``whole``, ``open``, ``read_from`` and ``as_of`` of the entries in ``tablectl/delta/clients.json`` that it
knows. ``read_from`` says for each version that a cell names which file of which tag says so. What no source says
is in ``BY_HAND``. Entries that it does not know stay as someone read them.

The files: ``TableFeature.scala`` of Delta Spark, whose set is what it supports; ``TableFeatures.java`` of Delta Kernel,
whose sets (3.3) or ``hasKernelWriteSupport`` (from 4.0) say so; ``INSTANCE`` in ``protocol.rs`` of delta-rs, with the
Cargo features of the Python package; ``DeltaLakeSchemaSupport.java`` of Trino.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tablectl.delta.protocol import FEATURES, READER_FEATURES
from tools.probe_clients import rendered

GIT = shutil.which("git") or "git"
DATA = Path(__file__).parent.parent / "tablectl" / "delta" / "clients.json"
_KNOWN = {each.name for each in FEATURES} | READER_FEATURES


@dataclass(frozen=True)
class Release:
    """What one release supports."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()
    depends: frozenset[str] = frozenset()
    """Features of tables that it writes or not by what their metadata uses."""


@dataclass(frozen=True)
class Client:
    """How a client's releases are read."""

    repository: str
    """``delta-io/delta``: the folder is its last part."""
    tag: str
    """Matches a release tag; the group is the version."""
    file: str
    """Matches the path of the file."""
    read: Callable[[str, str], Release]
    """Reads a release from the file's text, and the text of its Cargo files."""
    first: tuple[int, ...]
    more: str = ""
    """Matches the paths of files that are given as the second text."""
    by_hand: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """``reads`` and ``writes``: feature → version, where the source does not say it."""
    reason: str = ""
    """Why these are by hand."""
    whole: str = ""
    """The first version whose other features are unsupported, if it is not the first that is read."""


def spark(text: str, _: str) -> Release:
    """Delta Spark: the set of supported features before those of tests."""
    names = dict(re.findall(r'object (\w+)\s+extends \w+\(\s*(?:name = )?"([^"]+)"', text))
    found = re.search(r"var features: Set\[TableFeature\] = Set\((.*?)\)\s*if \(", text, re.DOTALL)
    listed = [names[each] for each in re.findall(r"\w+", found[1] if found else "") if each in names]
    supported = frozenset(_KNOWN & set(listed))
    return Release(supported & READER_FEATURES, supported)


def kernel(text: str, _: str) -> Release:
    """Delta Kernel: two sets of names, or a class for each feature."""
    sets = dict(re.findall(r"SUPPORTED_(\w+)_FEATURES =(.*?)\}\);", text, re.DOTALL))
    if sets:
        constants = dict(re.findall(r'String (\w+) = "([^"]+)"', text))
        reads, writes = (_added(sets[each], constants) for each in ("READER", "WRITER"))
        return Release(reads & _KNOWN, writes & _KNOWN)
    classes = dict(re.findall(r"class (\w+) extends [\w.]+[^{]*\{(.*?)\n  \}", text, re.DOTALL))
    bases = dict(re.findall(r"class (\w+) extends ([\w.]+)", text))
    names = {name: found[1] for name, body in classes.items() if (found := re.search(r'super\([^"]*"([^"]+)"', body))}
    made = re.findall(r'new (\w+)\(\s*"([^"]+)"', text)
    release: dict[str, set[str]] = {"yes": set(), "no": set(), "depends": set()}
    for cls, name in [*names.items(), *made]:
        if name in _KNOWN:
            release[_written(classes, bases, cls)].add(name)
    every = {name for _, name in [*names.items(), *made]} & _KNOWN
    # An invariant is no longer made by any client: a table without one is the rule, and Kernel writes it.
    writes = frozenset(release["yes"] | (release["depends"] & {"invariants"}))
    return Release(frozenset(every & READER_FEATURES), writes, frozenset(release["depends"] - {"invariants"}))


def _added(body: str, constants: Mapping[str, str]) -> frozenset[str]:
    body = re.sub(r"//.*", "", body)
    return frozenset(constants.get(each, each) for each in re.findall(r'add\("?([\w-]+)"?\)', body))


def _written(classes: Mapping[str, str], bases: Mapping[str, str], cls: str) -> str:
    found = re.search(r"hasKernelWriteSupport\([^)]*\) \{(.*?)\n    \}", classes.get(cls, ""), re.DOTALL)
    if found is None:
        return _written(classes, bases, bases[cls]) if bases.get(cls) in classes else "yes"
    returned = set(re.findall(r"return ([^;]+);", found[1]))
    return "yes" if returned == {"true"} else "no" if returned == {"false"} else "depends"


_RUST = {"TimestampWithoutTimezone": "timestampNtz", "ClusteredTable": "clustering"}


def delta_rs(text: str, cargo: str) -> Release:
    """delta-rs: what its protocol checker is made with; a part under ``cfg`` only if the Python package is built so."""
    body = text[text.index("pub static INSTANCE") :]
    body = re.sub(r"//.*", "", body[: body.index("\n});")])
    for name in set(re.findall(r'#\[cfg\(feature = "([\w-]+)"\)\]', body)):
        if not re.search(rf'"(?:[\w-]+/)?{re.escape(name)}"', cargo):
            body = re.sub(rf'#\[cfg\(feature = "{re.escape(name)}"\)\]\s*(\{{.*?\}}|[^;]*;)', "", body, flags=re.DOTALL)
    reads, writes = (
        frozenset(_of_rust(each) for each in re.findall(rf"{kind}_features\.insert\(\w+::(\w+)\)", body)) & _KNOWN
        for kind in ("reader", "writer")
    )
    return Release(reads, writes)


def _of_rust(name: str) -> str:
    plain = _RUST.get(name, name[0].lower() + name[1:])
    return f"{plain.removesuffix('Preview')}-preview" if plain.endswith("Preview") else plain


def trino(text: str, _: str) -> Release:
    """Trino: two sets of names."""
    sets = dict(re.findall(r"SUPPORTED_(\w+)_FEATURES = (.*?);\n", text, re.DOTALL))
    constants = dict(re.findall(r'String (\w+) = "([^"]+)"', text))
    found = {
        kind: {constants.get(each, each) for each in re.findall(r'add\("?([\w-]+)"?\)', sets[kind])} for kind in sets
    }
    reads, writes = (frozenset(found.get(each, set()) & _KNOWN) for each in ("READER", "WRITER"))
    return Release(reads, writes)


_DELTA, _RS = "delta-io/delta", "delta-io/delta-rs"
_TAG = r"v(\d+\.\d+\.\d+)"
_KERNEL_FILE = r"kernel/kernel-api/src/main/java/.*/TableFeatures\.java"
_PYTHON = r"python-v(\d+\.\d+\.\d+)"
_PROTOCOL = r"crates/(deltalake-)?core/src/(operations|kernel)/transaction/protocol\.rs"
_CARGO = r"python/Cargo\.toml|crates/(deltalake-)?core/Cargo\.toml|crates/deltalake/Cargo\.toml"
_LISTS = {"table features": "0.14.0"}
CLIENTS: Mapping[str, Client] = {
    "spark": Client(
        _DELTA,
        _TAG,
        r"(core|spark)/src/main/scala/org/apache/spark/sql/delta/TableFeature\.scala",
        spark,
        (2, 3),
        by_hand={
            "reads": {"columnMapping": "1.2.0", "catalogManaged": "4.1.0"},
            "writes": {
                "appendOnly": "",
                "invariants": "",
                "checkConstraints": "0.8.0",
                "generatedColumns": "1.0.0",
                "columnMapping": "1.2.0",
                "changeDataFeed": "2.0.0",
                "table features": "2.3.0",
                "deletionVectors": "2.4.0",
                "identityColumns": "3.3.0",
                "catalogManaged": "4.1.0",
            },
        },
        reason="docs.delta.io/versioning: what is older than table features, and what it says later than the source",
        whole="0.8.0",
    ),
    "kernel": Client(
        _DELTA,
        _TAG,
        _KERNEL_FILE,
        kernel,
        (3, 3),
        by_hand={"writes": {"table features": "3.3.0", "invariants": "3.3.0"}},
        reason="validateWriteSupportedTable of 3.3 writes tables of version 2 that have no invariant",
    ),
    "deltalake": Client(_RS, _PYTHON, _PROTOCOL, delta_rs, (0, 14), more=_CARGO, by_hand={"writes": _LISTS}),
    "deltalake-querybuilder": Client(
        _RS, _PYTHON, _PROTOCOL, delta_rs, (0, 14), more=_CARGO, by_hand={"writes": _LISTS}
    ),
    "flink": Client(
        _DELTA,
        _TAG,
        _KERNEL_FILE,
        kernel,
        (4, 2),
        by_hand={"writes": {"table features": "4.2.0", "appendOnly": "", "invariants": ""}},
        reason="the sink in flink/ of Delta 4.2.0 and newer writes through Kernel; Standalone wrote version 2",
        whole="0.4.0",
    ),
    "trino": Client(
        "trinodb/trino",
        r"(\d{3})",
        r"plugin/trino-delta-lake/src/main/java/.*/DeltaLakeSchemaSupport\.java",
        trino,
        (440,),
        by_hand={"writes": {"table features": "427"}},
    ),
}


def git(folder: Path, *words: str) -> str:
    """The output of a Git command."""
    return subprocess.run([GIT, "-C", str(folder), *words], check=True, capture_output=True, text=True).stdout


def releases(folder: Path, client: Client) -> dict[str, tuple[Release, str]]:
    """Each version with what it supports and where that was read, oldest first."""
    tags = {found[1]: tag for tag in git(folder, "tag").split() if (found := re.fullmatch(client.tag, tag))}
    read: dict[str, tuple[Release, str]] = {}
    for version in sorted(tags, key=_numbers):
        if _numbers(version) < client.first:
            continue
        paths = git(folder, "ls-tree", "-r", "--name-only", tags[version]).split("\n")
        path = next((each for each in paths if re.fullmatch(client.file, each)), None)
        if path is None:
            continue
        more = [each for each in paths if client.more and re.fullmatch(client.more, each)]
        text, others = (
            "\n".join(git(folder, "show", f"{tags[version]}:{each}") for each in group) for group in ([path], more)
        )
        read[version] = (client.read(text, others), f"{client.repository}@{tags[version]}:{path}")
    return read


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def since(found: Mapping[str, tuple[Release, str]], what: Callable[[Release], frozenset[str]]) -> dict[str, str]:
    """For each feature of the newest release, the first version from which on each release has it.

    A release of an older line that comes later (3.3.3 after 4.0.0) does not count for newer ones: versions are in order
    of their numbers.
    """
    versions = list(found)
    cells = {}
    for feature in sorted(what(found[versions[-1]][0])):
        lacks = [place for place, version in enumerate(versions) if feature not in what(found[version][0])]
        cells[feature] = versions[lacks[-1] + 1 if lacks else 0]
    return cells


def entry(client: Client, found: Mapping[str, tuple[Release, str]], before: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of a client with the cells of its releases."""
    cells = {
        "reads": since(found, lambda each: each.reads) | dict(client.by_hand.get("reads", {})),
        "writes": since(found, lambda each: each.writes) | dict(client.by_hand.get("writes", {})),
    }
    versions = {version for each in cells.values() for version in each.values()}
    newest = list(found)[-1]
    last = ".".join(newest.split(".")[:2]) if client.repository == _DELTA else newest
    made = {
        **before,
        **{
            name: dict(sorted(each.items(), key=lambda cell: (_order(cell[1]), cell[0])))
            for name, each in cells.items()
        },
        "whole": [client.whole or next(iter(found)), last],
        "open": sorted(found[newest][0].depends),
        "read_from": {version: found[version][1] for version in found if version in versions},
        "as_of": datetime.now(UTC).date().isoformat(),
    }
    if client.reason:
        made["by_hand"] = client.reason
    return {name: value for name, value in made.items() if value != [] or name == "reads"}


def _order(version: str) -> tuple[int, ...]:
    return _numbers(version) if version else ()


def main(words: Sequence[str]) -> int:
    """Rewrite the entries of the clients whose repository is in the folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--check", action="store_true", help="write nothing; 1 if a cell differs")
    asked = parser.parse_args(words)
    text = DATA.read_text(encoding="utf-8")
    body = json.loads(text)
    changed = False
    for number, before in enumerate(body["clients"]):
        client = CLIENTS.get(before["name"])
        folder = asked.folder / client.repository.rpartition("/")[2] if client else asked.folder
        if client is None or not folder.exists():
            if client is None:
                before.setdefault("by_hand", "read by a maintainer of tablectl on that day")
            continue
        made = entry(client, releases(folder, client), before)
        for name in ("reads", "writes", "whole", "open"):
            if made.get(name, {}) != before.get(name, {}):
                changed = True
                sys.stdout.write(f"{before['name']} {name}: {_difference(before.get(name), made.get(name))}\n")
        body["clients"][number] = made
    if not asked.check:
        DATA.write_text(rendered(body), encoding="utf-8")
    return int(changed and asked.check)


def _difference(before: Any, after: Any) -> str:
    if isinstance(before, dict) and isinstance(after, dict):
        names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
        return ", ".join(f"{name} {before.get(name, '-')} → {after.get(name, '-')}" for name in names)
    return f"{before} → {after}"


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
