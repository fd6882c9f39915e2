"""What all tests share: one Spark session a run, also served over Spark Connect, with a Hive metastore on Derby."""

from __future__ import annotations

import os
import random
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import chain, count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from chaos.ports import free_port
from tablectl.engine.interface import EngineOptions
from tablectl.engine.local_spark import packages
from tablectl.engine.spark import open_spark
from tablectl.policies.read_config import REQUESTS
from tests.s3 import Faults, S3Server, clean_environ

# No test depends on how fast the machine is: hypothesis sets no deadline and does not complain of slow examples. Every
# run draws the same examples, so that it is green if nothing has changed; `--hypothesis-profile random` draws others.
_PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("random", _PATIENT)
settings.register_profile("tablectl", _PATIENT, derandomize=True)
settings.load_profile("tablectl")

os.environ["_TYPER_FORCE_DISABLE_TERMINAL"] = "1"  # in a job on GitHub, typer's help would be in colour

CONNECT_PACKAGE = "org.apache.spark:spark-connect_2.13"
# The optimizing compiler would take a quarter of the JVM's time and cost more than it gains. Without it, code has 48 MB
# by default, which a whole run may fill.
_JAVA = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"


_NUMBERS = count()


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--shuffle SEED`` finds tests that depend on their order."""
    parser.addoption("--shuffle", metavar="SEED", help="run the files, and the tests of each file, in a random order")


_SETTINGS = ("TABLECTL_", "GITHUB_", "GITLAB_", "CI_", "AWS_", "AZURE_", "GOOGLE_")
"""Variables that tablectl reads, and those of clouds. A job of CI or a user may have set them."""
_SIZES = ("COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR", "CI")
_OF_THE_TESTS = ("TABLECTL_GOLDEN", "TABLECTL_MEASURED", "TABLECTL_SCREENSHOTS", "TABLECTL_TEST_")


def pytest_configure() -> None:
    """Tests begin in the same environment everywhere, and are not themselves jobs of a pull request."""
    for name in (*REQUESTS, "GITHUB_EVENT_NAME", "BUILD_REASON"):
        os.environ.pop(name, None)
    for name in list(os.environ):
        if (name.startswith(_SETTINGS) or name in _SIZES) and not name.startswith(_OF_THE_TESTS):
            del os.environ[name]
    os.environ["TERM"] = "xterm"  # a dumb terminal is 80 columns wide for rich, whatever it says
    # A shell ignores Ctrl-C for what it runs in the background, and Python would leave it so: some tests press it.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Whatever uses the shared session is a test on Spark: ``make test`` runs those in a process of their own."""
    for item in items:
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
    if seed := config.getoption("--shuffle"):
        items[:] = shuffled(items, random.Random(seed))


def shuffled(items: list[pytest.Item], order: random.Random) -> list[pytest.Item]:
    """The files in a random order, and the tests of each file: a fixture of a file is made once."""
    files = defaultdict[Path, list[pytest.Item]](list)
    for item in items:
        files[item.path].append(item)
    for each in files.values():
        order.shuffle(each)
    return list(chain.from_iterable(order.sample(list(files.values()), len(files))))


@pytest.fixture(autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the cache of the user who runs it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture(scope="session")
def connect_port() -> int:
    """The port of the Connect server in the shared session's JVM."""
    return free_port()


@pytest.fixture(scope="session")
def thrift_port() -> int:
    """The port of the Thrift server in the shared session's JVM, if a test starts it."""
    return free_port()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, connect_port: int, thrift_port: int) -> Iterator[Any]:
    """The one session: real Spark and Delta, few partitions, classic and Connect in one JVM."""
    pyspark = pytest.importorskip("pyspark")
    home: Path = tmp_path_factory.mktemp("spark")
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # of the UDFs' workers; read when the session starts
    conf = {
        "spark.master": "local[4]",  # a held writer keeps one for itself
        "spark.default.parallelism": "2",
        "spark.app.name": "tablectl-tests",
        "spark.jars.packages": f"{packages()},{CONNECT_PACKAGE}:{pyspark.__version__}",
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.port": str(connect_port),
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(thrift_port),
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.sql.shuffle.partitions": "2",
        # VACUUM lists a table in so many tasks, 10,000 by default
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={home / 'metastore'};create=true",
        # Most statements run once, on a few rows. To compile them would take longer than to interpret them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.driver.extraJavaOptions": f"{_JAVA} -Dderby.stream.error.file={home / 'derby.log'}",
    }
    engine = open_spark(EngineOptions(conf=conf))
    session = pyspark.sql.SparkSession.getActiveSession()
    assert session is not None
    yield session
    engine.close()


@pytest.fixture(scope="session")
def connect_url(spark: Any, connect_port: int) -> str:
    """The Connect server of the shared session."""
    return f"sc://127.0.0.1:{connect_port}"


@pytest.fixture(scope="session")
def thrift_server(spark: Any, thrift_port: int) -> str:
    """Spark's own Thrift server in the shared session's JVM, as ``engine.thrift`` names it."""
    server = spark._jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    server.startWithContext(spark._jsparkSession.sqlContext())
    return f"127.0.0.1:{thrift_port}"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """One S3 server a run, outside of any environment."""
    pytest.importorskip("moto")
    server = S3Server()
    yield server
    server.close()


@pytest.fixture
def s3(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> S3Server:
    """The S3 server, faultless, and an environment that leads to it and to no other cloud."""
    s3_server.faults = Faults()
    for variable in os.environ.keys() - clean_environ(os.environ).keys():
        monkeypatch.delenv(variable)
    for variable, value in s3_server.environ().items():
        monkeypatch.setenv(variable, value)
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    return s3_server


@pytest.fixture
def bucket(s3: S3Server) -> str:
    """The URI of a new bucket."""
    return s3.make_bucket(f"bucket-{next(_NUMBERS)}")
