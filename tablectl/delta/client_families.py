"""The families of clients that write Delta tables: how a commit names them, and what holds for every version of one.

Which protocol features a version supports is in ``clients.py``. Which concurrent commits make a client fail is in
``conflicts/rules.py`` and, for Delta Spark and Databricks, in a file each. No other module compares the name of a
family: a difference between families is a field here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

UnsetLevel = Literal["Serializable", "WriteSerializable"]

_NUMBERS = r"([0-9]{1,9}(?:\.[0-9]{1,9}){0,3})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFamily:
    """The clients that share a log writer and its conflict checks."""

    name: str
    """The value of ``Client.engine``, and the name on the command line."""
    title: str
    """For people: ``Delta Spark``."""
    aliases: tuple[str, ...] = ()
    """Other names on the command line."""
    engine_info: tuple[re.Pattern[str], ...] = ()
    """Patterns of ``commitInfo.engineInfo``. The first group is the version; it may be missing."""
    runs_sql: bool = True
    """Whether it runs SQL statements. A client without SQL writes rows and changes no settings."""
    records_blind_appends: bool = True
    """Whether its commits say that an append read nothing. If they do not, WriteSerializable does not protect other
    writers from them (delta-0, delta-2.2).
    """
    in_sql_engines: bool = False
    """Whether engines that run SQL commit with it and need not record blind appends: DuckDB does with Delta Kernel."""
    unset_level: UnsetLevel = "Serializable"
    """The isolation level that it uses if the table sets none (D6, delta-1.2)."""
    row_level: bool = False
    """Whether it can have row-level concurrency (delta-3, D36)."""
    photon: bool = False
    """Whether it exists with and without Photon."""
    rules_from_source: bool = False
    """Whether its conflict rules follow from its source code, and not from documentation."""
    crate_versions_below: tuple[int, ...] = ()
    """Below this version, the number may be that of the crate or that of the Python package."""
    commit_error: str = ""
    """The one exception that it raises for every conflict; empty if each conflict has its own."""
    commit_messages: tuple[tuple[str, str], ...] = ()
    """The text of that exception for each of Delta's error classes, as far as it is the same every time."""
    partitions_in_commits: bool = True
    """Whether the partition columns that its commits name are those of the write, and not of the table."""


COMMIT_FAILED = "Failed to commit transaction: "
"""How the text of each conflict of delta-rs begins."""

DATABRICKS = ClientFamily(
    name="databricks",
    title="Databricks",
    aliases=("dbr",),
    engine_info=(re.compile(rf"Databricks-Runtime/{_NUMBERS}?"),),
    unset_level="WriteSerializable",
    row_level=True,
    photon=True,
)
DELTA_RS = ClientFamily(
    name="delta-rs",
    title="delta-rs",
    aliases=("deltalake",),
    engine_info=(re.compile(rf"delta-rs[:.](?:[a-z]+-)?{_NUMBERS}?"),),
    runs_sql=False,
    records_blind_appends=False,
    crate_versions_below=(1,),
    commit_error="CommitFailedError",
    # CommitConflictError in crates/core/src/kernel/transaction/conflict_checker.rs, inside TransactionError.
    commit_messages=(
        ("DELTA_PROTOCOL_CHANGED", COMMIT_FAILED + "Protocol changed since last commit"),
        ("DELTA_METADATA_CHANGED", COMMIT_FAILED + "Metadata changed since last commit."),
        ("DELTA_CONCURRENT_APPEND", COMMIT_FAILED + "Commit failed: a concurrent transactions added new data."),
        (
            "DELTA_CONCURRENT_DELETE_READ",
            COMMIT_FAILED + "Commit failed: a concurrent transaction deleted data this operation read.",
        ),
        (
            "DELTA_CONCURRENT_DELETE_DELETE",
            COMMIT_FAILED + "Commit failed: a concurrent transaction deleted the same data your transaction deletes.",
        ),
        ("DELTA_CONCURRENT_TRANSACTION", COMMIT_FAILED + "Concurrent transaction failed."),
    ),
    partitions_in_commits=False,
)
KERNEL = ClientFamily(
    name="kernel",
    title="Delta Kernel",
    aliases=("duckdb",),
    engine_info=(
        re.compile(rf"(?:Kernel-|delta-kernel-rs[/:.]?v?){_NUMBERS}?"),
        re.compile(rf".*Delta-Kernel[/-]{_NUMBERS}?"),
    ),
    runs_sql=False,
    in_sql_engines=True,
    records_blind_appends=False,
)
DELTA_SPARK = ClientFamily(
    name="delta-spark",
    title="Delta Spark",
    aliases=("spark", "delta"),
    engine_info=(re.compile(rf"Apache-Spark/\S+ Delta-Lake/{_NUMBERS}?"),),
    rules_from_source=True,
)

FAMILIES: tuple[ClientFamily, ...] = (DATABRICKS, DELTA_RS, KERNEL, DELTA_SPARK)
"""The known families, in the order in which their patterns are tried."""

UNKNOWN = ClientFamily(name="unknown", title="an unknown client", records_blind_appends=False, in_sql_engines=True)
"""Stands for every other client. It gets the worst outcome of all known families."""


def family_of(engine: str) -> ClientFamily:
    """The family with this name; ``UNKNOWN`` if there is none."""
    return next((each for each in FAMILIES if each.name == engine), UNKNOWN)


def find_family(text: str) -> ClientFamily | None:
    """The family that a command line names by its name or an alias; ``None`` if there is none."""
    return next((each for each in (*FAMILIES, UNKNOWN) if text in (each.name, *each.aliases)), None)


def client_in(engine_info: str) -> tuple[ClientFamily, tuple[int, ...]]:
    """The family and the version that ``engineInfo`` names. A version that does not start with a number is omitted."""
    for family in FAMILIES:
        for pattern in family.engine_info:
            match = pattern.match(engine_info)
            if match is not None:
                return family, tuple(int(part) for part in match[1].split(".")) if match[1] else ()
    return UNKNOWN, ()
