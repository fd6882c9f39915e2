"""Kinds of lakes, each with what an engineer would sign and what would do harm.

``python -m tests.insight.advice.kinds`` prints what is advised for each; ``benchmarks/advise.py --kinds`` does, too.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.insight.advice.advice_records import Advice
from tablectl.model.file_layout import PartitionLayout
from tablectl.model.table_options import NO_OPTIONS, TableOptions
from tests.insight.advice.job_log import GB, MINUTE, SECOND, JobLog, advised

_WEEK = 604_800
_DATABRICKS: dict[str, Any] = {
    "engineInfo": "Databricks-Runtime/15.4.x-scala2.12",
    "isolationLevel": "WriteSerializable",
}
_ORDERED: dict[str, Any] = {**_DATABRICKS, "isolationLevel": "Serializable"}
_DUCKDB: dict[str, Any] = {"engineInfo": "Kernel-4.4.0/DuckDB"}
_CONFLICTS = frozenset({"A01", "A02", "A03", "A04", "A05", "A06"})
Found = tuple[Sequence[Advice], Sequence[str]]


@dataclass(frozen=True)
class Kind:
    """A lake: its log, its state, and what is right."""

    name: str
    make: Callable[[Path], JobLog]
    expected: frozenset[str]
    """The codes that an engineer signs. Another code than these is harmful if it is in ``harmful``."""
    harmful: frozenset[str] = frozenset()
    dialect: str = "oss"
    declared: Mapping[str, Any] = field(default_factory=dict)
    options: TableOptions = NO_OPTIONS
    state: Mapping[str, Any] = field(default_factory=dict)
    also: Callable[[Found], bool] = lambda found: True
    """What else must hold of the advice."""

    def advice(self, folder: Path) -> Found:
        """The advice for it."""
        return advised(
            self.make(folder / "t"), Policy(dict(self.declared)), self.dialect, self.options, **dict(self.state)
        )

    def verdict(self, found: Found) -> str:
        """``signed``, ``harmful`` or ``not signed``."""
        codes = {each.code for each in found[0]}
        if codes & self.harmful:
            return "harmful"
        return "signed" if codes == self.expected and self.also(found) else "not signed"


def services(at: Path, conditions: Sequence[str], operation: str = "UPDATE", *, scan: int = 0, **given: Any) -> JobLog:
    """Services that never rest, each with a condition of its own, one commit right after the other."""
    info: dict[str, Any] = {
        each: given.pop(each) for each in ("engineInfo", "isolationLevel", "blind") if each in given
    }
    parts: list[dict[str, str]] = given.pop("parts", [{} for _ in conditions])
    pause: int = given.pop("pause", 8 * SECOND)
    log = JobLog(at, **given)
    metrics: dict[str, str] = {"scanTimeMs": str(scan)} if scan else {}
    for _ in range(30):
        for number, (condition, partition) in enumerate(zip(conditions, parts, strict=True)):
            log.wait(pause)
            more: dict[str, Any] = {"userName": f"service {number}", "metrics": metrics, **info}
            log.write(operation, condition, took=8 * SECOND, partition=partition, size=100_000_000, **more)
    return log


def _keys(at: Path, **given: Any) -> JobLog:
    return services(at, [f"(id#13L = {number})" for number in range(3)], **given)


def _regions(at: Path, **given: Any) -> JobLog:
    return services(at, [f"((region#12 = r{number}) AND (id#13L > 0))" for number in range(3)], **given)


def _appending(at: Path, *, blind: bool, properties: dict[str, str] | None = None, **info: Any) -> JobLog:
    """A MERGE and appends."""
    log = JobLog(at, properties=properties or {})
    for _ in range(40):
        log.wait(MINUTE)
        log.write("WRITE", took=10 * SECOND, blind=blind, **info)
        log.wait(MINUTE)
        log.write("MERGE", "(s.id#1 = id#2)", took=MINUTE, **info)
    return log


def _one_serial_job(at: Path) -> JobLog:
    """A MERGE of an hour, and a stream of updates that leaves it no chance."""
    log = JobLog(at)
    for _ in range(40):
        for _ in range(10):
            log.wait(8 * MINUTE)
            log.write("UPDATE", "(id#2 > 3)", took=MINUTE, userName="fast")
        log.write("MERGE", "(s.id#1 = id#2)", took=60 * MINUTE, userName="slow")
    return log


def _regions_and_scans(at: Path) -> JobLog:
    log = _regions(at)
    for _ in range(30):
        log.wait(40 * SECOND)
        log.write("MERGE", "(s.id#1L = id#2L)", took=30 * SECOND, metrics={"scanTimeMs": "25000"}, userName="m")
    return log


def _told(text: str) -> Callable[[Found], bool]:
    return lambda found: any(text in each for each in _texts(found))


def _never(text: str) -> Callable[[Found], bool]:
    return lambda found: not any(text in each for each in _texts(found))


def _texts(found: Found) -> list[str]:
    return [*found[1], *(text for each in found[0] for text in (each.title, each.do, *each.evidence, *each.cost))]


def _all_saved(most: float) -> Callable[[Found], bool]:
    return lambda found: sum(each.amount for each in found[0] if each.code in _CONFLICTS) <= most


_BIG = {"files": 2000, "bytes": 200 * GB}
_MANY = {"region": ("a", "z"), "id": (0, 4_040_000_000)}
_SERIALIZABLE = {"delta.isolationLevel": "Serializable"}
_NONE: frozenset[str] = frozenset()
_UNUSED = ("deletionVectors",)

KINDS: tuple[Kind, ...] = (
    Kind(
        "Databricks, services by key, no vectors",
        lambda at: _keys(at, **_DATABRICKS),
        frozenset({"A05"}),
        frozenset({"A01", "A02"}),
        "databricks",
        also=lambda found: found[0][0].leaves == 0,
    ),
    Kind(
        "Databricks, MERGE by key, no vectors",
        lambda at: services(at, ["(s.id#1L = id#2L)"] * 3, "MERGE", **_DATABRICKS),
        frozenset({"A05"}),
        frozenset({"A01"}),
        "databricks",
    ),
    Kind(
        "Databricks, services by key, with vectors",
        lambda at: _keys(at, properties={"delta.enableDeletionVectors": "true"}, features=_UNUSED, **_DATABRICKS),
        _NONE,
        frozenset({"A01", "A05"}),
        "databricks",
    ),
    Kind(
        "Databricks, two services on one key",
        lambda at: services(at, ["(id#13L = 7)"] * 2, **_DATABRICKS),
        frozenset({"A01"}),
        frozenset({"A05"}),
        "databricks",
    ),
    Kind(
        "Databricks, partitions name the services apart",
        lambda at: _regions(at, partitions=("region",), parts=[{"region": f"r{n}"} for n in range(3)], **_DATABRICKS),
        _NONE,
        frozenset({"A05", "A11"}),
        "databricks",
    ),
    Kind("open source, services by key", _keys, frozenset({"A01"}), frozenset({"A05"}), also=_never("A05")),
    Kind("one serial job that hardly ever succeeds", _one_serial_job, frozenset({"A01"}), also=_all_saved(2 * _WEEK)),
    Kind(
        "services of Delta Kernel on one of 6,841 files each",
        lambda at: _keys(at, **_DUCKDB),
        _NONE,
        frozenset({"A01"}),
        state={"files": 6841, "bytes": 6841 * GB},
    ),
    Kind(
        "services of Delta Kernel on one file",
        lambda at: _keys(at, **_DUCKDB),
        frozenset({"A01"}),
        state={"files": 1, "bytes": GB},
    ),
    Kind(
        "regions, with scans of all files",
        lambda at: _regions(at, scan=5 * SECOND),
        frozenset({"A02"}),
        frozenset({"A01"}),
        state=_BIG,
        also=lambda found: bool(found[0][0].declare),
    ),
    Kind(
        "regions in conflict, and a MERGE by id that scans all files",
        _regions_and_scans,
        frozenset({"A02", "A07"}),
        state=_BIG,
        also=lambda found: [bool(each.declare) for each in found[0]].count(True) == 1,
    ),
    Kind(
        "one job that scans all files",
        lambda at: services(at, ["(s.id#1L = id#2L)"], "MERGE", scan=7 * SECOND, pause=MINUTE),
        frozenset({"A07"}),
        frozenset({"A01", "A02"}),
        state=_BIG,
    ),
    Kind(
        "unused vectors, clients not declared",
        lambda at: JobLog(at, features=_UNUSED),
        _NONE,
        frozenset({"A12"}),
        also=_told("declare `clients`"),
    ),
    Kind(
        "unused vectors, and a declared client gains",
        lambda at: JobLog(at, features=_UNUSED),
        frozenset({"A12"}),
        options=replace(NO_OPTIONS, clients=(("redshift", "1"),)),
    ),
    Kind(
        "unused vectors, and a declared client loses",
        lambda at: JobLog(at, features=_UNUSED),
        _NONE,
        frozenset({"A12"}),
        options=replace(NO_OPTIONS, clients=(("redshift", "1"), ("spark", "3.2.1"))),
    ),
    Kind(
        "unused vectors that the policy keeps",
        lambda at: JobLog(at, features=_UNUSED),
        _NONE,
        frozenset({"A12"}),
        declared={"deletion_vectors": "purged"},
        options=replace(NO_OPTIONS, clients=(("redshift", "1"),)),
    ),
    Kind(
        "partitions that may be right",
        lambda at: _regions(at, ranges={}),
        frozenset({"A01"}),
        also=lambda found: _told("tried: partitions by region would save")(found) and not found[1],
    ),
    Kind(
        "billions of keys",
        lambda at: _keys(at, ranges=_MANY, rows=4_040_000_000),
        frozenset({"A01"}),
        also=_never("4,040,000,000"),
    ),
    Kind(
        "6,841 small files in 3,000 partitions",
        lambda at: _regions(
            at, partitions=("region",), parts=[{"region": f"r{n}"} for n in range(3)], pause=10 * MINUTE
        ),
        frozenset({"A09"}),
        state={
            "files": 6841,
            "bytes": 6_841_000_000,
            "layout": PartitionLayout(3000, 100_000_000, (("region", 3000),)),
        },
        also=lambda found: found[0][0].amount == 3841,
    ),
    Kind(
        "3,100 small files in 3,000 partitions",
        lambda at: _regions(
            at, partitions=("region",), parts=[{"region": f"r{n}"} for n in range(3)], pause=10 * MINUTE
        ),
        _NONE,
        frozenset({"A09"}),
        state={
            "files": 3100,
            "bytes": 3_100_000_000,
            "layout": PartitionLayout(3000, 100_000_000, (("region", 3000),)),
        },
    ),
    Kind(
        "scans by another column than the policy clusters by",
        lambda at: services(at, ["(s.id#1L = id#2L)"], "MERGE", scan=7 * SECOND, pause=MINUTE),
        _NONE,
        frozenset({"A07"}),
        state=_BIG,
        declared={"clustering": ("region",)},
        also=_told("the policy declares another value of clustering"),
    ),
    Kind(
        "Databricks at Serializable, appends that read nothing",
        lambda at: _appending(at, blind=True, properties=_SERIALIZABLE, **_ORDERED),
        frozenset({"A04"}),
        frozenset({"A01"}),
        "databricks",
    ),
    Kind(
        "the same, and the policy says Serializable",
        lambda at: _appending(at, blind=True, properties=_SERIALIZABLE, **_ORDERED),
        frozenset({"A05"}),
        frozenset({"A04"}),
        "databricks",
        declared={"isolation": "Serializable"},
    ),
    Kind(
        "Databricks, appends that read the table",
        lambda at: _appending(at, blind=False, **_DATABRICKS),
        frozenset({"A06"}),
        frozenset({"A01"}),
        "databricks",
    ),
    Kind(
        "Databricks, appends that read nothing",
        lambda at: _appending(at, blind=True, **_DATABRICKS),
        _NONE,
        _CONFLICTS,
        "databricks",
    ),
    Kind(
        "partitions that the conditions do not name",
        lambda at: services(
            at,
            ["(s.id#1L = id#2L)"] * 3,
            "MERGE",
            partitions=("region",),
            parts=[{"region": f"r{n}"} for n in range(3)],
        ),
        frozenset({"A03"}),
        frozenset({"A01", "A11"}),
    ),
    Kind(
        "partitions that the conditions name",
        lambda at: _regions(at, partitions=("region",), parts=[{"region": f"r{n}"} for n in range(3)]),
        _NONE,
        _CONFLICTS,
    ),
)


def results() -> list[tuple[Kind, Found]]:
    """Each kind with its advice."""
    found = []
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            found.append((kind, kind.advice(Path(folder))))
    return found


def text() -> str:
    """What is advised for each kind, and how many an engineer signs."""
    lines, verdicts = [], []
    for kind, found in results():
        verdicts.append(kind.verdict(found))
        given = "; ".join(f"{each.code} {each.amount:,.0f} {each.benefit}" for each in found[0]) or "nothing"
        lines.append(f"{verdicts[-1]:<10}  {kind.name}: {given}")
    signed, harmful = verdicts.count("signed"), verdicts.count("harmful")
    return "\n".join([*lines, f"\n{signed} of {len(KINDS)} kinds signed, {harmful} harmful\n"])


if __name__ == "__main__":
    sys.stdout.write(text())
