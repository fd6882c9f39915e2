"""Many small tables with one ALTER each, on a warm local Spark Connect server: a loop in one thread, and then an apply,
in pairs.

Counted is from the moment at which the session is open to the release of the last lease: starting Spark is not what a
scheduler can change. The gates are those of the run's own report. Every round sets other values.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import pyspark  # noqa: TID251  # where spark-submit is
from _report import machine, say, table, time_text
from pyspark.sql import SparkSession  # noqa: TID251  # the bare loop

import tablectl
from tablectl.applying.events import RunEvent
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.run_plan import Control, run
from tablectl.engine.interface import EngineOptions
from tablectl.engine.local_spark import packages
from tablectl.engine.spark import open_spark
from tablectl.policies.config import Config, EngineConfig, WindowConfig

_MAIN = "org.apache.spark.sql.connect.service.SparkConnectServer"
_SERVER = {
    "spark.master": "local[2]",
    "spark.driver.memory": "2g",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
    "spark.sql.shuffle.partitions": "2",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.connect.grpc.binding.address": "127.0.0.1",
}


@dataclass(frozen=True)
class Measured:
    """One run over all tables."""

    what: str
    seconds: float
    alters: tuple[float, ...]
    """Seconds of each ALTER."""
    gates: tuple[float, ...] = ()
    """Seconds for which each gate was shut."""


_HEAD = ("", "loop", "apply", "ratio", "of all rounds", "ALTER p50", "gate p50", "gate : ALTER", "gate max")


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A Spark Connect server of its own; its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    home = Path(pyspark.__file__).parent
    conf = {**_SERVER, "spark.jars.packages": packages(), "spark.connect.grpc.binding.port": str(port)}
    conf["spark.sql.warehouse.dir"] = str(folder / "warehouse")
    settings = [word for key, value in conf.items() for word in ("--conf", f"{key}={value}")]
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [str(home / "bin" / "spark-submit"), "--class", _MAIN, *settings],
            cwd=folder,
            env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable},
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    try:
        while not _listens(port):
            if process.poll() is not None:
                raise SystemExit("the Spark Connect server did not start:\n" + (folder / "server.log").read_text())
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def session(remote: str) -> Iterator[Any]:
    """A session whose client is closed before its server ends: an open client calls its server again at the exit of the
    process, for minutes if it is gone.
    """
    spark = cast("Any", SparkSession.builder).remote(remote).create()
    try:
        yield spark
    finally:
        spark.client.close()


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        return True
    return False


def bare_loop(spark: Any, places: Sequence[Path], value: int) -> Measured:
    """One thread, one ALTER after the other."""
    started, alters = time.perf_counter(), []
    for place in places:
        begun = time.perf_counter()
        spark.sql(f"ALTER TABLE delta.`{place}` SET TBLPROPERTIES ('bench.a' = '{value}', 'bench.b' = '{value}')")
        alters.append(time.perf_counter() - begun)
    return Measured("loop, 1 thread", time.perf_counter() - started, tuple(alters))


def apply(folder: Path, places: Sequence[Path], remote: str, parallel: int, value: int) -> Measured:
    """One apply of a plan made before."""
    tables = {f"delta.`{place}`": {"properties": {"bench.a": value, "bench.b": value}} for place in places}
    policies = folder / "policies.yaml"
    policies.write_text(json.dumps({"version": 1, "tables": tables}))
    plan = tablectl.plan([policies])
    times: dict[str, float] = {}

    def open_engine(stamp: str) -> Any:
        engine = open_spark(EngineOptions(remote=remote, statement_bound=600), stamp)
        times["open"] = time.perf_counter()
        return engine

    def notify(event: RunEvent) -> None:
        if event.step == "released":
            times["released"] = time.perf_counter()

    config = replace(Config(), engine=EngineConfig(remote=remote), window=WindowConfig(parallel=parallel))
    project = Project(config, folder, source=EngineSource(open=open_engine))
    report = run(project, plan, Control(notify=notify))
    if report.exit_code != 0 or len(report.tables) != len(places):
        raise SystemExit(f"the apply ended with {report.exit_code}: {report.tables[0]}")
    return Measured(
        f"apply, parallel {parallel}",
        times["released"] - times["open"],
        tuple(each.milliseconds / 1000 for one in report.tables for each in one.statements),
        tuple((one.window_ms or 0) / 1000 for one in report.tables),
    )


def row(pairs: Sequence[tuple[Measured, Measured]]) -> tuple[str, ...]:
    """A line of the table that is printed: of the pair with the median ratio, and the least and the largest ratio."""
    pairs = sorted(pairs, key=_ratio)
    loop, one = pairs[(len(pairs) - 1) // 2]
    gates = sorted(each / alter for each, alter in zip(one.gates, one.alters, strict=True))
    return (
        one.what,
        time_text(loop.seconds / len(loop.alters)),
        time_text(one.seconds / len(one.alters)),
        f"{_ratio((loop, one)):.2f}",
        f"{_ratio(pairs[0]):.2f} to {_ratio(pairs[-1]):.2f}",
        time_text(statistics.median(one.alters)),
        time_text(statistics.median(one.gates)),
        f"{statistics.median(gates):.2f}",
        time_text(max(one.gates)),
    )


def _ratio(pair: tuple[Measured, Measured]) -> float:
    loop, one = pair
    return one.seconds / loop.seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=100)
    parser.add_argument("--repeat", type=int, default=3, help="rounds; the one with the median ratio is printed")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))  # so that the server ends, too
    folder = Path(tempfile.mkdtemp(prefix="tablectl-side-by-side-"))
    try:
        with server(folder) as remote, session(remote) as spark:
            first = folder / "lake" / "0"
            # No checkpoints: the commit that writes one takes ten times as long.
            spark.range(3).write.format("delta").option("delta.checkpointInterval", "1000").save(str(first))
            places = [first, *(folder / "lake" / str(number) for number in range(1, given.tables))]
            for place in places[1:]:
                shutil.copytree(first, place)
            bare_loop(spark, places, 0)  # warms the server
            pairs: dict[int, list[tuple[Measured, Measured]]] = {}
            for value in range(10, 10 * given.repeat + 1, 10):
                for number in (1, 4, 8):
                    loop = bare_loop(spark, places, value + number)
                    pairs.setdefault(number, []).append(
                        (loop, apply(folder, places, remote, number, value + number + 1))
                    )
            say(f"{given.tables} tables, one ALTER of two properties each; {machine()}\n")
            say(table(_HEAD, [row(found) for found in pairs.values()]))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
