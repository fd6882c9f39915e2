"""docs/integrations.md, run as printed: each recipe in an environment of its own (``make test-integrations``).

An environment has the packages of ``locks/integrations/NAME.lock``, and below them those of ``.venv``; that of delta-rs
has only its own. cron and Structured Streaming need no more than ``.venv``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from tests.docs.pages import ROOT, blocks

pytestmark = [pytest.mark.slow, pytest.mark.spark]
PAGE = ROOT / "docs/integrations.md"
MINUTES = 15


class Lake:
    """A table ``orders``, policies for it, and the programs of one environment."""

    def __init__(self, root: Path) -> None:
        self.root, self.repository, self.orders = root, root / "policies-repository", root / "lake" / "orders"
        write_deltalake(str(self.orders), pa.table({"id": [1]}))
        (self.repository / "policies").mkdir(parents=True)
        (self.repository / "plans").mkdir()
        policy = f"version: 1\ntables:\n  delta.`{self.orders}`: {{isolation: Serializable, allow: [lockout]}}\n"
        (self.repository / "policies/lake.yaml").write_text(policy)
        for block in blocks(PAGE):
            name = block.text.splitlines()[0].removeprefix("# ")
            if name.endswith((".py", ".sh")) and block.language in {"python", "sh"}:
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text(block.text)

    def run(self, environment: str, *command: str, cwd: Path | None = None, **environ: str) -> str:
        """What a command prints; it must succeed. ``environment`` is empty for that of the tests."""
        programs = ROOT / ".venv-integrations" / environment / "bin" if environment else Path(sys.prefix) / "bin"
        if not programs.exists():
            pytest.skip(f"no environment {environment}: run `make test-integrations`")
        kept = {
            **os.environ,
            "PATH": f"{programs}{os.pathsep}{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(self.root / "plugins")]),
            "LAKE": str(self.orders.parent),
            "LAKE_POLICIES": str(self.repository),
            **environ,
        }
        ran = subprocess.run(
            [str(programs / command[0]) if (programs / command[0]).exists() else command[0], *command[1:]],
            cwd=cwd or self.root,
            env=kept,
            capture_output=True,
            text=True,
            check=False,
            timeout=60 * MINUTES,
        )
        assert ran.returncode == 0, f"{command}: {ran.returncode}\n{ran.stdout[-3000:]}\n{ran.stderr[-5000:]}"
        return ran.stdout + ran.stderr

    @property
    def table(self) -> DeltaTable:
        return DeltaTable(str(self.orders))

    @property
    def level(self) -> str | None:
        return self.table.metadata().configuration.get("delta.isolationLevel")

    @property
    def ids(self) -> list[int]:
        return sorted(self.table.to_pyarrow_table()["id"].to_pylist())

    @property
    def writers(self) -> str:
        """What guarded writers left: they took part."""
        return " ".join(path.read_text() for path in (self.orders / "_tablectl").rglob("*") if path.is_file())


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def test_airflow(lake: Lake) -> None:
    home: dict[str, Any] = {
        "AIRFLOW_HOME": str(lake.root / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(lake.root / "dags"),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW__CORE__UNIT_TEST_MODE": "False",
    }
    lake.run("airflow", "airflow", "db", "migrate", **home)
    lake.run("airflow", "airflow", "dags", "test", "table_policies", **home)
    assert (lake.level, lake.ids) == ("Serializable", [1, 2])


def test_dagster(lake: Lake) -> None:
    home: dict[str, Any] = {"DAGSTER_HOME": str(lake.root / "dagster")}
    (lake.root / "dagster").mkdir()
    said = lake.run("dagster", "dagster", "asset", "materialize", "--select", "*", "-f", "definitions.py", **home)
    assert (lake.level, lake.ids) == ("Serializable", [1, 3])
    assert "no_drift" in said


def test_delta_rs(lake: Lake) -> None:
    lake.run("delta-rs", "python", "writer.py")
    assert lake.ids == [4]


def test_cron(lake: Lake) -> None:
    lake.run("", "sh", str(lake.root / "nightly.sh"), cwd=lake.repository)
    assert lake.level == "Serializable"
    assert (lake.repository / "drift.html").exists()
    before = lake.table.version()
    lake.run("", "sh", str(lake.root / "nightly.sh"), cwd=lake.repository)
    assert lake.table.version() == before


def test_structured_streaming(lake: Lake) -> None:
    incoming = lake.orders.parent / "incoming"
    incoming.mkdir()
    (incoming / "a.json").write_text('{"id": 5}\n{"id": 6}\n')
    lake.run("", "python", "stream.py", SPARK_CONF_DIR=str(spark_defaults(lake)))
    assert lake.ids == [1, 5, 6]


def test_dbt(lake: Lake) -> None:
    warehouse = lake.root / "warehouse"
    project = lake.root / "project"
    (project / "models").mkdir(parents=True)
    (project / "dbt_project.yml").write_text("name: shop\nversion: '1.0'\nprofile: shop\nmodel-paths: [models]\n")
    (project / "profiles.yml").write_text(
        "shop: {target: dev, outputs: {dev: {type: spark, method: session, host: none, schema: shop}}}\n"
    )
    (project / "models/totals.sql").write_text(
        "{{ config(materialized='incremental', file_format='delta', incremental_strategy='append') }}\nselect 7 as id\n"
    )
    policy = f"version: 1\ntables:\n  delta.`{warehouse}/shop.db/totals`: {{isolation: default}}\n"
    (lake.repository / "policies/lake.yaml").write_text(policy)
    found: dict[str, Any] = {"PROJECT": str(project), "SPARK_CONF_DIR": str(spark_defaults(lake))}
    for _ in range(2):  # the first build creates the table, the second appends to it
        lake.run("dbt", "sh", str(lake.root / "build.sh"), cwd=lake.repository, **found)
    table = DeltaTable(str(warehouse / "shop.db/totals"))
    assert table.to_pyarrow_table()["id"].to_pylist() == [7, 7]
    (trace,) = (warehouse / "shop.db/totals/_tablectl/writers").iterdir()
    assert json.loads(trace.read_text())["writer"].startswith("dbt")


def test_dbt_makes_a_table_with_an_empty_plan_from_the_settings_of_defaults(lake: Lake) -> None:
    project, table = lake.root / "project", lake.root / "warehouse/shop.db/totals"
    settings = (
        "{isolation: Serializable, retention: {log: 40 days}, deletion_vectors: enabled, row_tracking: enabled, "
        "partitioning: [day], data_skipping: [id], properties: {owner.team: web}}"
    )
    (lake.repository / "policies/lake.yaml").write_text(f"version: 1\ntables: {{shop.totals: {settings}}}\n")
    printed = lake.run("", "tablectl", "defaults", "dbt", "--project", "shop", cwd=lake.repository)
    assert "not set" not in printed
    (project / "models/shop").mkdir(parents=True)
    head = "name: shop\nversion: '1.0'\nprofile: shop\nmodel-paths: [models]\n"
    (project / "dbt_project.yml").write_text(head + printed)
    (project / "profiles.yml").write_text(
        "shop: {target: dev, outputs: {dev: {type: spark, method: session, host: none, schema: shop}}}\n"
    )
    model = "{{ config(materialized='table') }}\nselect 7 as id, 'monday' as day\n"
    (project / "models/shop/totals.sql").write_text(model)
    folders = ("--project-dir", str(project), "--profiles-dir", str(project))
    lake.run("dbt", "dbt", "run", *folders, SPARK_CONF_DIR=str(spark_defaults(lake)))
    (lake.repository / "policies/lake.yaml").write_text(f"version: 1\ntables: {{'delta.`{table}`': {settings}}}\n")
    assert "No changes" in lake.run("", "tablectl", "plan", cwd=lake.repository)


def spark_defaults(lake: Lake) -> Path:
    """The settings of a Spark with Delta, as an installation has them."""
    folder = lake.root / "conf"
    folder.mkdir(exist_ok=True)
    settings = {
        "spark.jars.packages": "io.delta:delta-spark_4.2_2.13:4.4.0",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(lake.root / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.catalogImplementation": "hive",
        "spark.hadoop.javax.jdo.option.ConnectionURL": f"jdbc:derby:;databaseName={lake.root}/metastore;create=true",
    }
    (folder / "spark-defaults.conf").write_text("".join(f"{key} {value}\n" for key, value in settings.items()))
    return folder
