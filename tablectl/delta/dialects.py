"""The dialects: the products that run the statements of tablectl, and in what they differ.

``engine.dialect`` of ``tablectl.yaml`` names one. Records and signatures hold the name; ``dialect_of`` returns the
dialect. No other module compares a name: a difference between dialects is a field here, or a set of names in the record
of what differs (``PropertyType.dialects``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tablectl.delta.client_families import DATABRICKS as DATABRICKS_CLIENTS
from tablectl.delta.client_families import ClientFamily


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """One product, and what holds for every table that its statements change."""

    name: str
    """The value of ``engine.dialect`` and of a plan's ``dialect``."""
    title: str
    """For people, within a sentence."""
    runtime: ClientFamily | None = None
    """The clients to expect on each table, even if its history names none of them; ``None`` if the history alone
    decides.
    """
    settable_levels: frozenset[str] = frozenset({"Serializable", "WriteSerializable"})
    """The isolation levels that a statement can set."""
    default_level: str = "Serializable"
    """The isolation level of a table that stores none."""
    rewrite_measured: bool = False
    """Whether it was measured what a rewrite of a whole table preserves (docs/partitioning.md)."""
    path_names: bool = True
    """Whether statements may name a table of the catalog by its location."""
    exclusive_commits: bool = False
    """Whether it prevents by itself that two drivers overwrite each other's commits."""
    maintains_managed: bool = False
    """Whether OPTIMIZE, REORG and DROP FEATURE run on catalog-managed tables."""
    ordered_clustering: bool = True
    """Whether the order of clustering columns has a meaning."""
    abandons_statements: bool = True
    """Whether it is known when its Connect server ends the statement of a client that is gone."""
    statement_timeout: str = ""
    """The setting of a Connect session that ends each of its statements after some seconds; empty if there is none."""
    session_settings: bool = False
    """Whether OPTIMIZE and VACUUM take file sizes, batches and logging from settings of the session."""
    catalog_settings: bool = False
    """Whether it has automatic clustering, predictive optimization and SET MANAGED."""
    sets_not_null: bool = False
    """Whether ALTER COLUMN … SET NOT NULL runs on an existing table."""
    iceberg_faults: bool = True
    """Whether Iceberg compatibility has the faults of Delta 4.4.0: V2 and V3 refuse partition columns of type decimal,
    and V3 fails writes to a table with a column of type variant."""
    variant_statistics: bool = True
    """Whether a list of columns with statistics may name one of type variant: Delta 4.4.0 takes it
    (``SkippingEligibleDataType`` in ``DataSkippingReader.scala``). Databricks documents that such columns have no
    minimum and maximum ("Variant type support", "Limitations")."""
    streams_stopped_by_metadata: Literal["", "on Databricks"] = ""
    """The streams that every change of metadata stops, in the words of ``ReaderKind`` (D22); empty if none."""


OPEN_SOURCE = Dialect(
    name="oss",
    title="open-source Delta",
    # It honours a stored WriteSerializable and rejects setting it (delta-1.2).
    settable_levels=frozenset({"Serializable"}),
    rewrite_measured=True,
    session_settings=True,
)
DATABRICKS = Dialect(
    name="databricks",
    title="Databricks",
    runtime=DATABRICKS_CLIENTS,
    iceberg_faults=False,
    variant_statistics=False,
    default_level="WriteSerializable",  # D6
    path_names=False,
    exclusive_commits=True,
    maintains_managed=True,
    ordered_clustering=False,
    abandons_statements=False,
    # docs.databricks.com, "Databricks Connect support in Databricks notebooks": 9000 in notebooks on serverless
    # compute, and no limit elsewhere. It also ends the statement of a client that is there.
    statement_timeout="spark.databricks.execution.timeout",
    catalog_settings=True,
    sets_not_null=True,
    streams_stopped_by_metadata="on Databricks",
)

DIALECTS: tuple[Dialect, ...] = (OPEN_SOURCE, DATABRICKS)
"""All dialects. The first one is the default."""
DEFAULT_DIALECT = OPEN_SOURCE.name
EVERY_DIALECT = frozenset(each.name for each in DIALECTS)


def dialect_of(name: str) -> Dialect:
    """The dialect with this name. Raises ``KeyError`` if there is none."""
    for each in DIALECTS:
        if each.name == name:
            return each
    raise KeyError(name)


def dialect_for(family: ClientFamily) -> Dialect:
    """The dialect whose runtime a family is; the default one for every other family."""
    return next((each for each in DIALECTS if each.runtime is family), OPEN_SOURCE)
