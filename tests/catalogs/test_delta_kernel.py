"""An independent client reads the stand-in and the recorded log: Delta Kernel with its Unity Catalog client, in Java.

Its jars come with delta-spark. No Spark is started.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyspark  # where its jars are
import pytest

from tablectl.catalogs.registry import Catalogs, SparkCatalog
from tablectl.catalogs.unity import UnityCatalog
from tablectl.delta.names import parse_table
from tablectl.log.reader import read_table
from tablectl.model.safe_text import natural_key
from tablectl.storage.object_stores import StoreOptions
from tests.catalogs.unity_server import RECORDINGS, UnityServer

_SOURCE = Path(__file__).with_name("KernelReader.java")
_MAN = parse_table("lake.sales.man")
_KERNEL = "io.delta_delta-kernel-unitycatalog-4.4.0.jar"


@pytest.fixture
def jars() -> str:
    """The class path: what Spark resolved for Delta, and Spark's own jars for Hadoop."""
    found = sorted(Path.home().glob(f".ivy2*/jars/{_KERNEL}"))
    if shutil.which("javac") is None or not found:
        pytest.skip("needs a JDK, and the jars that a first start of Spark with Delta downloads")
    newest: dict[str, Path] = {}  # other versions of Delta may have left theirs
    for each in sorted(found[-1].parent.glob("*.jar"), key=lambda jar: natural_key(jar.name)):
        newest[re.sub(r"-[0-9][^/]*$", "", each.name)] = each
    return ":".join([*map(str, newest.values()), f"{Path(pyspark.__file__).parent / 'jars'}/*"])


@pytest.fixture
def lake(server: UnityServer, tmp_path: Path) -> Path:
    server.add_recorded()
    shutil.copytree(RECORDINGS / "man_delta_log", tmp_path / "man" / "_delta_log")
    server.loads["sales.man"]["metadata"]["location"] = f"file://{tmp_path}/man"
    return tmp_path / "man"


def by_kernel(jars: str, server: UnityServer) -> Any:
    command = ["java", "-cp", jars, str(_SOURCE), server.url, "lake", "sales", "man"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_delta_kernel_reads_the_same_table(
    jars: str, server: UnityServer, lake: Path, unity: Callable[..., UnityCatalog]
) -> None:
    # The newest commits are known to the catalog alone, as before they are published.
    newest = max(server.loads["sales.man"]["commits"], key=lambda commit: commit["version"])["version"]
    (lake / "_delta_log" / f"{newest:020}.json").unlink()
    (lake / "_delta_log" / f"{newest:020}.crc").unlink()
    theirs = by_kernel(jars, server)
    catalogs = Catalogs({"lake": unity()}, SparkCatalog(lambda: pytest.fail("Spark was started")))
    ours = read_table(_MAN, catalogs.location(_MAN), options=StoreOptions(access=catalogs))
    assert theirs["version"] == ours.version == newest
    assert theirs["columns"] == [field.name for field in ours.schema.fields]
    assert set(theirs["features"]) == set(ours.protocol.writer_features)
    # The catalog has one property that the log does not have: it was set through the catalog's API alone.
    assert ours.catalog is not None
    assert [each.what for each in ours.catalog.differences] == ["property owner.team"]
    assert {**theirs["properties"], "owner.team": "rest"} == dict(ours.properties)
