"""Tables in S3 from plan to drift, by Spark with S3A, as a user runs it: one ``stores:`` section and no other setting.

S3 is moto's server in this process. Spark runs in processes of its own.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.s3 import REGION, S3Server

ROOT = Path(__file__).parents[2]
pytestmark = [pytest.mark.slow, pytest.mark.spark]
Run = Callable[..., subprocess.CompletedProcess[str]]

MAKE = """
import sys
from tablectl.commands.project import Engines
from tablectl.policies.read_config import load_config
from pathlib import Path
engine = Engines(load_config(Path(), {})).open("")
spark = engine._session
bucket = sys.argv[1]
for scheme, name in (("s3", "orders"), ("s3a", "events")):
    place = f"{scheme}://{bucket}/lake/{name}"
    for number in range(2):
        rows = spark.range(20).selectExpr("id", "id % 3 AS customer", "DATE'2026-01-01' + CAST(id % 2 AS INT) AS day")
        rows.write.format("delta").mode("append").save(place)
engine.close()
"""
COUNT = """
import sys
from tablectl.commands.project import Engines
from tablectl.policies.read_config import load_config
from pathlib import Path
engine = Engines(load_config(Path(), {})).open("")
print("rows", engine._session.read.format("delta").load(sys.argv[1]).count())
engine.close()
"""
GUARDED = """
import sys, tablectl
with tablectl.guard(None, sys.argv[1], "append"):
    print("guarded")
"""


@pytest.fixture
def run(s3: S3Server, tmp_path: Path) -> Run:
    """Runs Python in a repository whose only settings are those of ``stores:``."""
    repo = tmp_path / "repo"
    (repo / "policies").mkdir(parents=True)
    (repo / "tablectl.yaml").write_text(
        f"stores: {{s3: {{endpoint: '{s3.url}', region: {REGION}, allow_http: true}}}}\n"
        "engine: {exclusive_commits: true}\n"  # no other driver writes
    )
    kept = {key: value for key, value in os.environ.items() if key not in {"AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"}}
    home = str(Path("~root").expanduser()) if os.geteuid() == 0 else kept["HOME"]  # Ivy's cache of jars
    environ = {**kept, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache"), "HOME": home}

    def ran(*words: str, code: int = 0, **more: str) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *words],
            check=False,
            cwd=repo,
            env={**environ, **more},
            capture_output=True,
            text=True,
            timeout=900,
        )
        assert done.returncode == code, done
        return done

    return ran


def test_alter_optimize_and_a_rewrite_then_no_drift(run: Run, s3: S3Server, bucket: str, tmp_path: Path) -> None:
    name = bucket.removeprefix("s3://")
    run("-c", MAKE, name)
    orders, events = f"s3://{name}/lake/orders", f"s3a://{name}/lake/events"
    (tmp_path / "repo/policies/lake.yaml").write_text(
        "version: 1\ntables:\n"
        f"  delta.`{orders}`:\n"
        "    isolation: Serializable\n    clustering: [customer]\n    optimize: full\n    rewrite: allowed\n"
        "    properties: {owner.team: payments}\n"
        f"  delta.`{events}`:\n    partitioning: [day]\n    rewrite: allowed\n"
    )
    run("-m", "tablectl", "plan", "--out", "p.json", "--detailed-exitcode", code=2)
    assert len(json.loads((tmp_path / "repo/p.json").read_text())["tables"]) == 2
    applied = run("-m", "tablectl", "apply", "p.json")
    assert "2 applied" in applied.stdout, applied
    assert "No drift: 2 tables" in run("-m", "tablectl", "drift").stdout
    assert run("-m", "tablectl", "plan", "--detailed-exitcode").stdout == "No changes. 2 tables match their policies.\n"
    for place in (orders, events):
        assert "rows 40" in run("-c", COUNT, place).stdout
    environ = {"AWS_ENDPOINT_URL": s3.url, "AWS_ALLOW_HTTP": "true", "AWS_REGION": REGION}
    assert "guarded" in run("-c", GUARDED, f"delta.`{orders}`", **environ).stdout
    kept = s3.client.list_objects_v2(Bucket=name, Prefix="lake/orders/_tablectl/")
    assert kept["KeyCount"] > 0


def test_without_stores_s3_is_refused_before_the_window(run: Run, s3: S3Server, bucket: str, tmp_path: Path) -> None:
    from tests.commands.log_lake import create

    s3.upload(create(tmp_path / "orders") / "_delta_log", bucket, "lake/orders/_delta_log")
    (tmp_path / "repo/tablectl.yaml").write_text("engine: {exclusive_commits: true}\n")
    (tmp_path / "repo/policies/lake.yaml").write_text(
        f"version: 1\ntables:\n  delta.`{bucket}/lake/orders`: {{isolation: Serializable}}\n"
    )
    environ = {"AWS_ENDPOINT_URL": s3.url, "AWS_ALLOW_HTTP": "true"}
    refused = run("-m", "tablectl", "apply", "--yes", code=3, **environ)
    assert "the engine has no file system for s3:// locations" in refused.stdout
    kept = s3.client.list_objects_v2(Bucket=bucket.removeprefix("s3://"), Prefix="lake/orders/_tablectl/")
    assert kept["KeyCount"] == 0
