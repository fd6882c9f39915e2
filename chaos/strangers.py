"""What others can do between two steps of a run. `tests/strangers` does each of these at every step on a fake
lake; `make chaos` draws from them for rounds on real Spark.

A new action gets a line here and a function in `tests/strangers/actions.py`; if it leaves the rows as they are, also
its statement in `SQL`, from which rounds draw: `python -m chaos.strangers SERVER TABLE NAME` sends one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from types import MappingProxyType


class Stranger(Enum):
    """One thing that others do to a table, to its records, or to the run."""

    VACUUM = "VACUUM with the table's retention"
    SHORT_VACUUM = "VACUUM that keeps one hour"
    OPTIMIZE = "OPTIMIZE"
    SET_OTHER = "SET TBLPROPERTIES of a key that is not declared"
    SET_DECLARED = "SET TBLPROPERTIES of a key that is declared, to another value"
    APPEND_ONLY = "appendOnly is turned on"
    ADD_COLUMN = "ADD COLUMN"
    ENABLE_FEATURE = "a protocol feature is added"
    CLUSTER_BY = "CLUSTER BY"
    ADD_CONSTRAINT = "ADD CONSTRAINT"
    RESTORE = "RESTORE to the version before"
    RESTORE_FIRST = "RESTORE to the first version"
    REPLACE = "CREATE OR REPLACE TABLE"
    RECREATE = "DROP TABLE and CREATE TABLE at the same place"
    APPEND = "an append without a guard"
    DELETE = "a DELETE without a guard"
    MERGE = "a MERGE without a guard"
    GUARDED_RESTORE = "a RESTORE with a guard"
    GUARDED_MERGE = "a MERGE with a guard"
    LOG_CLEANED = "old commits are removed from the log"
    DAY = "a day passes"
    WEEK = "a week passes"
    MONTH = "a month passes"
    SECOND_APPLY = "another apply of the same plan"
    BREAK = "window break"
    CLEAN = "window clean"
    STOP = "the run is asked to stop"
    KILL = "the run is killed"


_FEATURE = "'delta.feature.vacuumProtocolCheck' = 'supported'"
SQL: Mapping[Stranger, str] = MappingProxyType(
    {
        Stranger.VACUUM: "VACUUM {name}",
        Stranger.SHORT_VACUUM: "VACUUM {name} RETAIN 0 HOURS",
        Stranger.OPTIMIZE: "OPTIMIZE {name}",
        Stranger.SET_OTHER: "ALTER TABLE {name} SET TBLPROPERTIES ('their.key' = 'theirs')",
        Stranger.ENABLE_FEATURE: f"ALTER TABLE {{name}} SET TBLPROPERTIES ({_FEATURE})",
        Stranger.ADD_CONSTRAINT: "ALTER TABLE {name} ADD CONSTRAINT theirs CHECK (id < 1000000000)",
    }
)
"""Those after which the rows are still those that the writers were told."""


MARK = "of a stranger"
"""The ``userMetadata`` of their commits, by which a round knows them."""


def main(server: str, place: str, stranger: Stranger) -> None:
    """Send one statement through a Spark Connect server. A conflict with the writers or the apply is the stranger's."""
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251  # a client of its own

    spark = SparkSession.builder.remote(server).getOrCreate()
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", MARK)
    with suppress(Exception):
        spark.sql(SQL[stranger].format(name=f"delta.`{place}`"))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Stranger[sys.argv[3]])
