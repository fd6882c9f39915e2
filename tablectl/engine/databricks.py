"""Databricks Connect: a session on a cluster or on serverless compute, with the unified login of databricks-sdk.

``engine.remote: databricks`` takes the default login (environment, default profile, OAuth, workload identity),
``databricks://NAME`` a profile of ``~/.databrickscfg``. The cluster is ``engine.cluster``, or comes from the same
place, as ``cluster_id`` or ``DATABRICKS_CLUSTER_ID``.
"""

from __future__ import annotations

import sys
from typing import Any

from tablectl.model.errors import EngineError

SCHEME = "databricks"
PYTHON = (3, 12)
"""The only Python for which databricks-connect 17 and newer exist."""
_LOGIN = "see the unified authentication of databricks-sdk: DATABRICKS_HOST, profiles, OAuth; and `engine.cluster`"


def is_databricks(remote: str) -> bool:
    """Whether ``engine.remote`` names Databricks Connect, and not a Spark Connect server by its address."""
    return remote == SCHEME or remote.startswith(f"{SCHEME}://")


def profile_of(remote: str) -> str:
    """The profile that ``engine.remote`` names; empty for the default login."""
    return remote.partition("://")[2].strip("/")


def why_not_installed(version: tuple[int, int] = sys.version_info[:2]) -> EngineError:
    """The error for a Python without databricks-connect."""
    wanted, found = (".".join(map(str, each)) for each in (PYTHON, version))
    if version != PYTHON:
        return EngineError(
            f"databricks-connect for today's runtimes exists for Python {wanted} only, and this is Python {found}",
            f"make an environment with Python {wanted}, and install databricks-connect and tablectl there",
        )
    hint = "install it with `pip install 'databricks-connect>=17.3,<20'`"
    return EngineError("databricks-connect is not installed", hint)


def open_databricks(remote: str, *, serverless: bool, cluster: str = "") -> Any:
    """A new session. Raises ``EngineError`` if Databricks Connect is missing, or if the login or the compute fails."""
    try:
        from databricks.connect import DatabricksSession  # noqa: PLC0415  # only where it is installed
    except ImportError as error:
        raise why_not_installed() from error
    builder = DatabricksSession.builder
    profile = profile_of(remote)
    if profile:
        builder = builder.profile(profile)
    if cluster:
        builder = builder.clusterId(cluster)
    if serverless:
        builder = builder.serverless(True)  # noqa: FBT003  # as databricks-connect names it
    try:
        return builder.create()
    except Exception as error:  # whatever the client and the SDK raise says why
        text = " ".join(str(error).split())[:300]
        raise EngineError(f"databricks-connect opens no session: {text}", _LOGIN) from error
