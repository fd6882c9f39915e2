"""The results of the benchmarks that run seed by seed, and the Spark that they run on.

Each seed adds a line to a file, so that a later command goes on where an earlier one ended.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import SparkSession  # noqa: TID251  # what the writers work in

from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

FOLDER = Path(__file__).parent / "results"
_CONF = {
    "spark.master": "local[64]",  # a transaction that is held keeps a task
    # One partition, and no code generation: the tables have a few rows, so planning takes longer than running.
    "spark.sql.shuffle.partitions": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.default.parallelism": "1",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    # Otherwise each Python worker imports pandas and pyarrow.
    "spark.sql.execution.pythonUDF.arrow.enabled": "false",
    # What a web interface would show.
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.ui.explainMode": "simple",
    "spark.sql.maxPlanStringLength": "1000",
    "spark.driver.memory": "3g",
}


def read(path: Path) -> list[dict[str, Any]]:
    """The last line of each seed."""
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({line["seed"]: line for line in lines}.values())


def append(path: Path, measured: DataclassInstance) -> None:
    """Add the line of a seed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(measured)) + "\n")


def next_seed(path: Path) -> int:
    """The first seed after all those with a result."""
    return max((int(each["seed"]) for each in read(path)), default=0) + 1


@contextmanager
def small_spark() -> Iterator[Any]:
    """A local session for many small transactions."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # read when the session starts
    engine = open_spark(EngineOptions(conf=_CONF))
    try:
        yield SparkSession.getActiveSession()
    finally:
        engine.close()
