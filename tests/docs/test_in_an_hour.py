"""docs/in-an-hour.md is a script: it is run whole, in a bare virtual environment, on a Hive metastore in PostgreSQL."""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from deltalake import DeltaTable

from chaos.ports import free_port
from tests.docs.pages import ROOT, blocks

pytestmark = [pytest.mark.slow, pytest.mark.spark]
PAGE = ROOT / "docs/in-an-hour.md"
DRIVER = "org.postgresql:postgresql:42.7.8"
MINUTES = 40


def _programs() -> Path | None:
    """Where the newest PostgreSQL server of this machine is."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    return max(Path("/usr/lib/postgresql").glob("*/bin"), default=None)


@dataclass(frozen=True)
class Database:
    """A PostgreSQL server with an empty database ``metastore``, for the user ``hive``."""

    folder: Path
    port: int
    programs: Path

    def start(self) -> None:
        self.folder.mkdir()
        if getpass.getuser() == "root":  # PostgreSQL refuses to run as root
            shutil.chown(self.folder, "postgres")
            self.folder.parent.chmod(0o755)
        data, log = self.folder / "data", self.folder / "log"
        self.run("initdb", "-D", str(data), "-A", "trust", "-U", "hive")
        options = f"-p {self.port} -k {self.folder} -c fsync=off"
        self.run("pg_ctl", "-D", str(data), "-o", options, "-l", str(log), "-w", "start")
        self.run("createdb", "-h", str(self.folder), "-p", str(self.port), "-U", "hive", "metastore")

    def stop(self) -> None:
        if (self.folder / "data" / "postmaster.pid").exists():
            self.run("pg_ctl", "-D", str(self.folder / "data"), "-m", "immediate", "stop")

    def run(self, program: str, *arguments: str) -> None:
        user = ["runuser", "-u", "postgres", "--"] if getpass.getuser() == "root" else []
        command = [*user, str(self.programs / program), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.folder)


@pytest.fixture
def database() -> Iterator[Database]:
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    # Not below pytest's own folder, which only its user may enter.
    with TemporaryDirectory(prefix="tablectl-metastore-") as folder:
        made = Database(Path(folder) / "server", free_port(), programs)
        try:
            made.start()
            yield made
        finally:
            made.stop()


LAKE = """
from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession

spark = configure_spark_with_delta_pip(SparkSession.builder.enableHiveSupport()).getOrCreate()
spark.sql("CREATE DATABASE sales")
for name in ("orders", "returns"):
    spark.sql(f"CREATE TABLE sales.{name} (id BIGINT) USING delta")
spark.sql("CREATE TABLE sales.old (id BIGINT) USING parquet")
"""


def _driver() -> Path:
    """The JDBC driver, from the cache of Ivy; Spark fetches it if it is not there."""
    group, name, version = DRIVER.split(":")
    for cache in (Path.home() / ".ivy2.5.2", Path.home() / ".ivy2"):
        for found in cache.rglob(f"{name}-{version}.jar"):
            return found
        for found in cache.rglob(f"{group}_{name}-{version}.jar"):
            return found
    pytest.skip(f"the JDBC driver {DRIVER} is not in the cache of Ivy")


def _spark_conf(folder: Path, database: Database, driver: Path) -> Path:
    """``spark-defaults.conf`` of an installation whose catalog is that metastore."""
    folder.mkdir()
    jdo = "spark.hadoop.javax.jdo.option.Connection"
    settings = {
        "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(folder.parent / "warehouse"),
        "spark.sql.catalogImplementation": "hive",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        f"{jdo}URL": f"jdbc:postgresql://localhost:{database.port}/metastore",
        f"{jdo}DriverName": "org.postgresql.Driver",
        f"{jdo}UserName": "hive",
        f"{jdo}Password": "hive",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        **NEW_METASTORE,
        "spark.driver.extraClassPath": str(driver),
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return folder


NEW_METASTORE = {
    "spark.hadoop.datanucleus.schema.autoCreateTables": "true",
    "spark.hadoop.datanucleus.schema.autoCreateColumns": "true",
    "spark.hadoop.datanucleus.schema.autoCreateConstraints": "false",
}
"""What makes the tables of a new metastore on first use. An existing one, as users have it, needs none of it.

Not ``autoCreateAll``: DataNucleus adds foreign keys by a second connection, which then waits for the first one.
"""


def test_the_page_is_a_script_that_runs(database: Database, tmp_path: Path) -> None:
    driver = _driver()
    conf = _spark_conf(tmp_path / "conf", database, driver)
    wheels = ROOT / "dist"
    if not list(wheels.glob("tablectl-*.whl")):
        pytest.skip("there are no wheels: run `make dist`")
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | {"SPARK_CONF_DIR": str(conf)}
    subprocess.run([sys.executable, "-c", LAKE], env=environ, cwd=tmp_path, check=True, timeout=60 * MINUTES)

    settings, *script = (block.text for block in blocks(PAGE) if block.language == "sh")
    assert "export METASTORE=" in settings
    exports = {
        "METASTORE": f"jdbc:postgresql://localhost:{database.port}/metastore",
        "METASTORE_USER": "hive",
        "METASTORE_PASSWORD": "hive",
        "DRIVER": str(driver),
        "WHEELS": str(wheels),
    }
    assert all(f"{name}=" in settings for name in exports)
    (tmp_path / "hour.sh").write_text("set -e\n" + "\n".join(script))
    ran = subprocess.run(
        ["bash", "hour.sh"],
        env=environ | exports,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60 * MINUTES,
    )
    said = f"{ran.stdout}\n{ran.stderr}"
    assert ran.returncode == 0, said[-8000:]
    assert "sales.old" in ran.stderr, "what is not a Delta table is named"
    assert "No changes. 2 tables match their policies." in ran.stdout
    assert "applied and verified" in ran.stdout
    assert "No drift: 2 tables checked." in ran.stdout
    assert "orders, " in ran.stdout.partition("No drift")[2], "the trace names the job"
    written = int((tmp_path / "written").read_text())
    assert written >= 10
    orders = DeltaTable(str(tmp_path / "warehouse/sales.db/orders"))
    assert orders.to_pyarrow_table().num_rows == written, "no write failed and none was lost"
