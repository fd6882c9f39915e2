"""A session of databricks-connect on an open-source Spark Connect server, which ``tools.databricks_connect`` starts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

URL = os.environ.get("TABLECTL_TEST_CONNECT_URL", "")
"""Set by ``make test-databricks-connect``."""


@pytest.fixture(scope="session")
def url() -> str:
    if not URL:
        pytest.skip("run by `make test-databricks-connect`")
    return URL


@pytest.fixture(scope="session")
def session(url: str) -> Iterator[Any]:
    from databricks.connect import DatabricksSession  # installed only for these tests

    made = DatabricksSession.builder.remote(url).create()
    yield made
    made.client.close()


@pytest.fixture
def table(session: Any, tmp_path: Path) -> str:
    session.sql(f"CREATE TABLE delta.`{tmp_path}/orders` USING delta AS SELECT id FROM range(3)").collect()
    return f"delta.`{tmp_path}/orders`"


@pytest.fixture
def commits(table: str) -> Callable[[], list[dict[str, Any]]]:
    """Reads the ``commitInfo`` of each commit, oldest first."""
    log = Path(table.split("`")[1]) / "_delta_log"

    def read() -> list[dict[str, Any]]:
        lines = (line for path in sorted(log.glob("*.json")) for line in path.read_text().splitlines())
        return [json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line]

    return read
