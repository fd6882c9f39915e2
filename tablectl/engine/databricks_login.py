"""The unified login of databricks-sdk, whose requests end within half a minute if the workspace does not answer."""

from __future__ import annotations

import logging
from typing import Any

from tablectl.model.errors import EngineError

LOGIN = "see the unified authentication of databricks-sdk: DATABRICKS_HOST, profiles, OAuth"

REQUEST = 10.0
"""Seconds that a request waits for its answer."""
PATIENCE = 20
"""Seconds for which a request is tried again if no answer comes."""


def log_in(profile: str = "") -> Any:
    """A ``Config`` of databricks-sdk. Raises ``ImportError`` without the package, else what the SDK raises.

    The SDK asks the host about itself and tries that for 5 minutes unless a bound is set, and then goes on without the
    answer (``Config._resolve_host_metadata``).
    """
    from databricks.sdk.core import Config  # noqa: PLC0415  # only where it is used

    # It logs what it then raises; without a handler, to standard error.
    logging.getLogger("databricks").addHandler(logging.NullHandler())
    given = {"profile": profile} if profile else {}
    return Config(http_timeout_seconds=REQUEST, retry_timeout_seconds=PATIENCE, product="tablectl", **given)


def check_host(profile: str = "") -> None:
    """Raise ``EngineError`` if the workspace of the login does not answer. Any answer is enough, a refusal too: what is
    wrong with the login itself, its user finds out.
    """
    try:
        from databricks.sdk import WorkspaceClient  # noqa: PLC0415  # only where it is used

        config = log_in(profile)
        host = config.host
        WorkspaceClient(config=config).current_user.me()
    except TimeoutError as error:
        raise EngineError(
            f"{host} does not answer", f"see whether the host is right and can be reached; {LOGIN}"
        ) from error
    except Exception:  # noqa: BLE001  # an answer, or no login of the SDK
        return
