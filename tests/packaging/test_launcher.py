"""``tablectl-guard run``, with a ``pyspark`` that is a folder of three classes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tablectl_guard.launcher import not_covered

ROOT = Path(__file__).parents[2]

SESSION = """
class Conf:
    def get(self, key, default=None):
        return default

class SparkSession:
    conf = Conf()

    def sql(self, statement):
        import os, pathlib
        print(statement.split()[0], len(list(pathlib.Path(os.environ["TABLE"]).glob("_tablectl/guards/*"))))
        return self
"""


@pytest.fixture
def job(tmp_path: Path) -> Path:
    """A folder with a job, a table and a PySpark."""
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    (tmp_path / "lib" / "pyspark" / "sql").mkdir(parents=True)
    (tmp_path / "lib" / "pyspark" / "__init__.py").write_text("")
    (tmp_path / "lib" / "pyspark" / "sql" / "__init__.py").write_text("from pyspark.sql.session import SparkSession\n")
    (tmp_path / "lib" / "pyspark" / "sql" / "session.py").write_text(SESSION)
    (tmp_path / "lib" / "sitecustomize.py").write_text("print('the other sitecustomize')\n")
    (tmp_path / "job.py").write_text(
        "import os\nfrom pyspark.sql import SparkSession\n"
        "SparkSession().sql(f\"INSERT INTO delta.`{os.environ['TABLE']}` VALUES (1)\")\n"
    )
    return tmp_path


def run(folder: Path, *command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(folder / "lib"), str(ROOT)])
    kept = {**os.environ, "PYTHONPATH": path, "TABLE": str(folder / "table"), **environ}
    arguments = [sys.executable, "-m", "tablectl_guard", "run", *command]
    return subprocess.run(arguments, env=kept, cwd=folder, capture_output=True, text=True, check=False)


def test_a_job_that_knows_nothing_of_guards_writes_under_one(job: Path) -> None:
    done = run(job, "--name", "nightly", "--", sys.executable, "job.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("the other sitecustomize\nINSERT 1\n")
    assert done.stderr.startswith("tablectl-guard: writes are guarded; not covered: streaming queries")
    assert list((job / "table" / "_tablectl" / "guards").iterdir()) == []
    (trace,) = (job / "table" / "_tablectl" / "writers").iterdir()
    assert '"mode": "append"' in trace.read_text()
    assert '"writer": "nightly, ' in trace.read_text()


def test_an_apply_in_the_job_is_not_guarded(job: Path) -> None:
    """A guard of its statement would wait at the gate that the apply keeps shut."""
    code = (
        "import os\nfrom pyspark.sql import SparkSession\n"
        "from tablectl.engine.spark import SessionFacts, SparkEngine\n"
        "statement = f\"ALTER TABLE delta.`{os.environ['TABLE']}` SET TBLPROPERTIES ('a' = 'b')\"\n"
        "SparkEngine(SparkSession(), 'oss', SessionFacts(shared=True)).execute(statement)\n"
        "SparkSession().sql(statement)\n"
    )
    done = run(job, "--", sys.executable, "-c", code)
    assert done.stdout.endswith("ALTER 0\nALTER 1\n"), done.stderr


def test_the_ttl_of_the_guards_is_that_of_the_launcher(job: Path) -> None:
    code = "from tablectl.writers import session; import pyspark.sql, sys; print(sys.meta_path[0]._guards.ttl)"
    assert run(job, "--", sys.executable, "-c", code).stdout.endswith("60.0\n")
    assert run(job, "--ttl", "1800", "--", sys.executable, "-c", code).stdout.endswith("1800.0\n")
    assert run(job, "--ttl", "0", "--", sys.executable, "job.py").returncode == 64


def test_its_exit_code_is_that_of_the_job(job: Path) -> None:
    assert run(job, "--", sys.executable, "-c", "raise SystemExit(7)").returncode == 7
    assert run(job, "--", "no-such-command").returncode == 127
    assert run(job, "--timeout", "-1", "--", sys.executable, "job.py").returncode == 64
    assert run(job).returncode == 64


def test_an_executor_loads_nothing(job: Path) -> None:
    code = "import sys, pyspark.sql; print('tablectl.writers.session' in sys.modules)"
    done = run(job, "--", sys.executable, "-c", code, PYTHON_WORKER_FACTORY_SECRET="x")
    assert done.stdout.endswith("False\n")
    assert run(job, "--", sys.executable, "-c", code).stdout.endswith("True\n")


def test_a_python_without_tablectl_runs_the_job_all_the_same(job: Path) -> None:
    (job / "lib" / "tablectl").mkdir()
    (job / "lib" / "tablectl" / "__init__.py").write_text("")
    inject = str(ROOT / "tablectl_guard" / "inject")
    path = os.pathsep.join([inject, str(job / "lib")])
    environ = {**os.environ, "PYTHONPATH": path, "TABLECTL_GUARD_RUN": "1", "TABLE": str(job / "table")}
    (job / "table" / "_tablectl").mkdir()
    done = subprocess.run([sys.executable, "job.py"], env=environ, cwd=job, capture_output=True, text=True, check=False)
    assert done.stdout.endswith("INSERT 0\n")
    assert "tablectl-guard: this Python has no guards" in done.stderr


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("python job.py --class x", ""),
        ("spark-submit job.py", ""),
        ("/opt/spark/bin/spark-submit --master yarn --deploy-mode client job.py lib.jar", ""),
        ("spark-submit --jars a.jar job.py", ""),
        ("spark-submit --deploy-mode cluster job.py", "with --deploy-mode cluster the driver starts elsewhere"),
        ("spark-submit --deploy-mode=cluster job.py", "with --deploy-mode cluster"),
        ("spark-submit --conf spark.submit.deployMode=cluster job.py", "with --deploy-mode cluster"),
        ("spark-submit -v --name x app.jar", "a job of the JVM has no Python"),
        ("spark-submit --class org.example.Job app.jar", "a job of the JVM has no Python"),
        ("spark-sql -e x", "spark-sql runs in the JVM"),
    ],
)
def test_what_cannot_be_covered_is_said(command: str, why: str) -> None:
    assert not_covered(command.split()).startswith(why)
    assert bool(not_covered(command.split())) == bool(why)
