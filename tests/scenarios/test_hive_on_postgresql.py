"""A Hive metastore on PostgreSQL, as docs/catalogs.md connects it: init, plan, apply, drift.

Processes of their own, because the driver of the database must be on the class path when a JVM starts.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DRIVER = Path.home() / ".ivy2.5.2/jars/org.postgresql_postgresql-42.7.8.jar"
PASSWORD = "in the environment"  # no file may hold it
pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(shutil.which("pg_ctl") is None, reason="PostgreSQL is not installed"),
    pytest.mark.skipif(not DRIVER.is_file(), reason=f"the JDBC driver is not at {DRIVER.name} in Ivy's jars"),
]
MAKE = """
import sys
from tablectl.engine.spark import SparkOptions, open_spark
from tablectl.policies.config import load_config
from pathlib import Path
conf = {
    **load_config(Path(), {}).engine.conf,
    "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
    "spark.sql.warehouse.dir": sys.argv[1],
}
engine = open_spark(SparkOptions(conf=conf))
spark = engine._session
spark.sql("CREATE DATABASE shop")
spark.sql("CREATE TABLE shop.orders (id LONG, day DATE) USING delta TBLPROPERTIES ('owner.team' = 'web')")
spark.sql("INSERT INTO shop.orders VALUES (1, DATE'2026-01-01')")
spark.sql("CREATE TABLE shop.plain (id LONG) USING parquet")
spark.sql("CREATE VIEW shop.seen AS SELECT * FROM shop.orders")
engine.close()
"""


def _run_as_postgres(*command: str) -> None:
    before = ["runuser", "-u", "postgres", "--"] if os.geteuid() == 0 else []
    subprocess.run([*before, *command], check=True, stdout=subprocess.DEVNULL)


@pytest.fixture
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty database on a server of its own."""
    tools = Path(os.path.realpath(shutil.which("pg_ctl") or "")).parent
    home = Path("/tmp") / f"tablectl-pg-{os.getpid()}"  # the server's user must reach it
    home.mkdir()
    try:
        (home / "password").write_text(PASSWORD)
        if os.geteuid() == 0:
            shutil.chown(home, "postgres")
            shutil.chown(home / "password", "postgres")
        options = ["-A", "scram-sha-256", "-U", "hive", f"--pwfile={home / 'password'}"]
        _run_as_postgres(str(tools / "initdb"), "-D", str(home / "data"), *options)
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        started = f"-p {port} -k {home} -c listen_addresses=127.0.0.1"
        _run_as_postgres(
            str(tools / "pg_ctl"), "-D", str(home / "data"), "-o", started, "-l", str(home / "log"), "-w", "start"
        )
        try:
            environ = {**os.environ, "PGPASSWORD": PASSWORD}
            made = [str(tools / "createdb"), "-h", "127.0.0.1", "-p", str(port), "-U", "hive", "metastore"]
            subprocess.run(made, check=True, env=environ)
            yield f"jdbc:postgresql://127.0.0.1:{port}/metastore"
        finally:
            _run_as_postgres(str(tools / "pg_ctl"), "-D", str(home / "data"), "-m", "immediate", "stop")
    finally:
        shutil.rmtree(home, ignore_errors=True)


def test_from_init_to_drift(database: str, tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "METASTORE_USER": "hive",
        "METASTORE_PASSWORD": PASSWORD,
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
    }
    repo = tmp_path / "repo"

    def run(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        where = repo if repo.exists() else tmp_path
        done = subprocess.run(
            [sys.executable, *words], check=False, cwd=where, env=environ, capture_output=True, text=True, timeout=500
        )
        assert done.returncode == code, done
        return done

    def tablectl(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
        return run("-m", "tablectl", *words, code=code)

    catalog = ["--catalog", "hive", "--catalog-url", database, "--catalog-driver", str(DRIVER)]
    tablectl("init", "repo", *catalog)
    run("-c", MAKE, str(tmp_path / "warehouse"))
    imported = tablectl("import", "shop.*", "--output", "policies/tables.yaml", "--force")
    assert "shop.plain is not a Delta table" in imported.stderr
    assert "shop.seen is a view" in imported.stderr
    assert "wrote 1 table to policies/tables.yaml" in imported.stderr
    assert "starting Spark" not in tablectl("plan", "--detailed-exitcode").stderr
    policies = repo / "policies/tables.yaml"
    policies.write_text(policies.read_text().replace("owner.team: web", "owner.team: payments"))
    tablectl("plan", "--out", "p.json", "--detailed-exitcode", code=2)
    assert "1 applied" in tablectl("apply", "p.json").stdout
    assert "No drift" in tablectl("drift").stdout
    for file in repo.rglob("*"):
        assert not file.is_file() or PASSWORD.encode() not in file.read_bytes(), file
