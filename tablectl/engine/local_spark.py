"""A local Spark: its settings and packages, those for object stores included, and its start."""

from __future__ import annotations

import os
import re
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from tablectl.engine.errors import engine_error
from tablectl.engine.find_java import java_problem
from tablectl.model.errors import EngineError
from tablectl.model.store_options import NO_STORES

INSTALL = "pip install 'pyspark[connect]==4.2.0' 'delta-spark==4.4.0' 'pandas>=2.2,<3'"
"""The extra ``spark`` by its own packages: where tablectl itself comes from is not known here."""
OURS = "spark.tablectl.driver"
"""Set in a driver that tablectl started: no writer of a table uses it."""
_STARTING = threading.Lock()
"""Two threads that need a local Spark at the same moment get the same one."""
_S3A = "org.apache.hadoop.fs.s3a.S3AFileSystem"
_ANONYMOUS = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
_CHAIN = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
"""Environment, web identity, profile, container, machine: the order in which the log reader looks, too."""
_VERSION = re.compile(r"hadoop-client-api-(?P<version>[0-9][0-9.]*)\.jar")
_DELTA = re.compile(r"\bio\.delta:delta-(?:spark|core)")
"""Delta for Spark itself. Its other packages, such as the log store on DynamoDB, bring no Delta."""


def start_local(conf: Mapping[str, str], stores: Mapping[str, Mapping[str, str]]) -> tuple[Any, bool]:
    """A classic session to derive ours from, and whether its Spark was started here. Raises ``EngineError``."""
    with _STARTING:
        return _started(conf, stores)


def _started(conf: Mapping[str, str], stores: Mapping[str, Mapping[str, str]]) -> tuple[Any, bool]:
    from pyspark import SparkContext  # noqa: PLC0415, TID251  # only here, and only if an engine is used
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251  # as above

    if any(name in os.environ for name in ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")):
        message = "this process uses Spark Connect, so no session of another kind can be started in it"
        raise EngineError(message, "hand its session in (`spark=`), or set engine.remote")
    # Not the active session: that one is per thread, and if the user has a context, ``getOrCreate`` would change it.
    running = SparkSession._instantiatedSession
    if running is not None and running._sc._jsc is not None:
        return running, False
    context = SparkContext._active_spark_context
    if context is not None and context._jsc is not None:
        return SparkSession(context), False
    problem = java_problem(os.environ)
    if problem:
        raise EngineError(problem)
    builder = SparkSession.builder
    for key, value in local_conf(conf, stores).items():
        builder = builder.config(key, value)
    with tempfile.NamedTemporaryFile("w+", prefix="tablectl-spark-", suffix=".log") as log:
        try:
            with own_programs(), _stderr_to(log):
                return builder.getOrCreate(), True
        except Exception as error:
            log.seek(0)
            raise EngineError(why_not_started(log.read(), error), "see the requirements in the README") from error


def why_not_started(log: str, error: Exception) -> str:
    """Why a local Spark did not start, from what its JVM and Ivy wrote and from the error in Python."""
    lines = [line.strip(" :\t") for line in log.splitlines()]
    # Ivy also reports each host and file that it tried; the package is what the user can change.
    packages = [line for line in lines if "unresolved dependency" in line]
    unresolved = packages or [line for line in lines if "not found" in line]
    reason = unresolved[0] if unresolved else engine_error(error).message
    return f"the local Spark session did not start: {reason}"


@contextmanager
def own_programs() -> Iterator[None]:
    """While Spark starts, its programs are those of the installed PySpark. PySpark looks for them in the folder above
    the current one first (``find_spark_home.py``), and its workers import modules of the current one: in a checkout, a
    branch decides what is there.
    """
    saved = dict(os.environ)
    os.environ["PYTHONSAFEPATH"] = "1"
    spec = find_spec("pyspark")
    if "SPARK_HOME" not in os.environ and spec is not None and spec.origin is not None:
        home = Path(spec.origin).parent
        places = (home / "spark-distribution", home, home.parents[1])
        found = next((each for each in places if (each / "bin" / "spark-submit").is_file()), None)
        os.environ |= {} if found is None else {"SPARK_HOME": str(found)}
    try:
        yield
    finally:
        for name in ("PYTHONSAFEPATH", "SPARK_HOME"):
            os.environ.pop(name, None)
            os.environ |= {name: saved[name]} if name in saved else {}


@contextmanager
def _stderr_to(log: IO[str]) -> Iterator[None]:
    """While Spark starts, its JVM inherits a file as standard error: the output of Ivy and log4j is not for users."""
    sys.stderr.flush()
    saved = os.dup(2)
    os.dup2(log.fileno(), 2)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(saved, 2)
        os.close(saved)


def local_conf(conf: Mapping[str, str], stores: Mapping[str, Mapping[str, str]] = NO_STORES) -> dict[str, str]:
    """The settings of a local session: Delta enabled, few partitions, no web UI. The user's settings take
    precedence.
    """
    ours = {
        OURS: "true",
        "spark.app.name": "tablectl",
        "spark.master": "local[*]",
        "spark.jars.packages": packages(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.ui.enabled": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "4",
        "spark.databricks.delta.snapshotPartitions": "2",
        # VACUUM lists a table in as many tasks (``VacuumCommand.scala``): 10,000 by default, which take minutes here.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "32",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
    }
    merged = {**ours, **store_conf(stores, os.environ), **conf}
    theirs = conf.get("spark.jars.packages", "")
    delta = "" if _DELTA.search(theirs) else ours["spark.jars.packages"]
    merged["spark.jars.packages"] = ",".join(each for each in (delta, theirs, store_packages(stores, conf)) if each)
    return merged


def packages() -> str:
    """Maven coordinates of Delta for the installed pyspark and delta-spark."""
    try:
        spark, delta = metadata.version("pyspark"), metadata.version("delta-spark")
    except metadata.PackageNotFoundError as error:
        raise EngineError("a local session needs pyspark and delta-spark", INSTALL) from error
    return delta_coordinates(spark, delta)


def delta_coordinates(spark: str, delta: str) -> str:
    """The jar of a version of Delta for a version of Spark: since 4.1 its name contains Spark's minor version."""
    before = tuple(int(part) for part in delta.split(".")[:2] if part.isdigit()) < (4, 1)
    suffix = "" if before else f"_{'.'.join(spark.split('.')[:2])}"
    return f"io.delta:delta-spark{suffix}_2.13:{delta}"


def store_conf(stores: Mapping[str, Mapping[str, str]], environ: Mapping[str, str]) -> Mapping[str, str]:
    """The Spark settings that follow from ``stores:`` in ``tablectl.yaml``; none without options for S3.

    Hadoop's S3A serves ``s3a://`` only; the same class is set for ``s3://`` and ``s3n://``, because the log reader
    takes all three for one store. The names of the settings are those of Hadoop 3.5, "Connecting to an Amazon S3
    Bucket".
    """
    given = stores.get("s3")
    if not given:
        return {}

    def option(name: str, *variables: str) -> str:
        found = (environ.get(each) for each in (*variables, f"AWS_{name.upper()}"))
        return given.get(name) or next((each for each in found if each), "")

    endpoint, region = option("endpoint", "AWS_ENDPOINT_URL"), option("region", "AWS_DEFAULT_REGION")
    hosted = option("virtual_hosted_style_request").lower()
    conf = {
        "spark.hadoop.fs.s3.impl": _S3A,
        "spark.hadoop.fs.s3n.impl": _S3A,
        "spark.hadoop.fs.s3a.aws.credentials.provider": _ANONYMOUS if _is_true(option("skip_signature")) else _CHAIN,
    }
    if region:
        conf["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint:
        conf["spark.hadoop.fs.s3a.endpoint"] = endpoint
        conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] = "false" if endpoint.startswith("http://") else "true"
    if endpoint or hosted:
        conf["spark.hadoop.fs.s3a.path.style.access"] = "false" if _is_true(hosted) else "true"
    return conf


def store_packages(stores: Mapping[str, Mapping[str, str]], conf: Mapping[str, str]) -> str:
    """The Maven coordinates of S3A for the Hadoop of the installed pyspark; empty if it is not needed or there."""
    theirs = f"{conf.get('spark.jars.packages', '')} {conf.get('spark.jars', '')}"
    theirs += conf.get("spark.driver.extraClassPath", "")
    version = hadoop_version()
    if not stores.get("s3") or not version or "hadoop-aws" in theirs:
        return ""
    return f"org.apache.hadoop:hadoop-aws:{version}"


def hadoop_version() -> str:
    """The version of Hadoop that the installed pyspark brings; empty if it brings none."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return ""
    names = (each.name for each in Path(found.origin).parent.glob("jars/hadoop-client-api-*.jar"))
    return next((match["version"] for name in names if (match := _VERSION.fullmatch(name))), "")


def _is_true(text: str) -> bool:
    return text.lower() in {"1", "true"}
