"""The schemas that ``tablectl schema`` prints."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class SchemaKind(StrEnum):
    """The documents with a JSON Schema."""

    POLICIES = "policies"
    CONFIG = "config"
    PLAN = "plan"
    RUN = "run"
    DRIFT = "drift"
    STATUS = "status"


def schema_of(subject: SchemaKind) -> dict[str, Any]:
    """The schema of a document. Its module is loaded when used."""
    match subject:
        case SchemaKind.POLICIES:
            from tablectl.policies.schemas import policy_schema  # noqa: PLC0415  # see above

            return policy_schema()
        case SchemaKind.CONFIG:
            from tablectl.policies.schemas import config_schema  # noqa: PLC0415

            return config_schema()
        case SchemaKind.PLAN:
            from tablectl.reports.schema import plan_schema  # noqa: PLC0415

            return plan_schema()
        case SchemaKind.RUN:
            from tablectl.reports.schema import run_schema  # noqa: PLC0415

            return run_schema()
        case SchemaKind.DRIFT:
            from tablectl.reports.schema import drift_schema  # noqa: PLC0415

            return drift_schema()
        case SchemaKind.STATUS:
            from tablectl.reports.schema import status_schema  # noqa: PLC0415

            return status_schema()
