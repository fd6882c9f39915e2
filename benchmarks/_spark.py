"""What Spark is asked: DESCRIBE DETAIL of each table named, in one warm session; prints seconds and files of each."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession  # noqa: TID251  # what is compared with

from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark


def main() -> None:
    """Locations, one a line, in the file that the first argument names."""
    locations = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    # Few partitions: the defaults, made for clusters, would be slower still on one machine.
    conf = {"spark.sql.shuffle.partitions": "2", "spark.databricks.delta.snapshotPartitions": "2"}
    conf |= {"spark.master": "local[2]", "spark.ui.enabled": "false"}
    engine = open_spark(EngineOptions(conf=conf))
    spark = SparkSession.getActiveSession()
    assert spark is not None
    seconds, files = [], []
    for location in locations:
        start = time.perf_counter()
        row = spark.sql(f"DESCRIBE DETAIL delta.`{location}`").collect()[0]
        seconds.append(time.perf_counter() - start)
        files.append(row.numFiles)
    engine.close()
    sys.stdout.write("\n" + json.dumps({"seconds": seconds, "files": files}))


if __name__ == "__main__":
    main()
