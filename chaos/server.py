"""A server of Spark with Delta, for Connect and the Hive protocol, as a process of its own that can be killed and
started again on the same ports.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pyspark  # noqa: TID251  # where spark-submit lies

from chaos.ports import free_port
from tablectl.engine.local_spark import packages

ROOT = Path(__file__).resolve().parent.parent
_MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
_CONNECT = "org.apache.spark.sql.connect.SparkConnectPlugin"
"""Both in one process: two drivers must not commit to tables on a local disk."""
_START = 120.0
"""Seconds that a server may take to listen; the first start of a machine downloads Delta."""


class Server:
    """One server at a time."""

    def __init__(self, folder: Path, environ: dict[str, str]) -> None:
        self.port, self.thrift_port = free_port(), free_port()
        self._folder = folder
        self._environ = environ
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return f"sc://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it listens."""
        conf = {
            "spark.master": "local[3]",
            "spark.driver.memory": "2g",
            # A server lives for minutes: the optimizing compiler would cost more than it gains.
            # Without it, code has 48 MB, which two servers in one process fill.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC",
            "spark.jars.packages": packages(),
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
            "spark.ui.enabled": "false",
            "spark.log.level": "WARN",
            "spark.sql.shuffle.partitions": "2",
            "spark.default.parallelism": "2",
            "spark.databricks.delta.snapshotPartitions": "2",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.plugins": _CONNECT,
            "spark.hadoop.hive.server2.thrift.port": str(self.thrift_port),
            "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
            "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
            "spark.connect.grpc.binding.port": str(self.port),
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.sql.warehouse.dir": str(self._folder / "warehouse"),
        }
        command = [str(Path(pyspark.__file__).parent / "bin" / "spark-submit"), "--class", _MAIN]
        for key, value in conf.items():
            command += ["--conf", f"{key}={value}"]
        environ = {**self._environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable}
        environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self._folder, env=environ, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + _START
        while not (self._listens(self.port) and self._listens(self.thrift_port)):
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"the server did not start: see {self._folder}/server.log")
            time.sleep(0.1)

    @staticmethod
    def _listens(port: int) -> bool:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL the server and the Python workers that it started."""
        if self._process is not None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None
