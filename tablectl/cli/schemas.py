"""What ``tablectl schema`` prints the schema of."""

from __future__ import annotations

from enum import StrEnum
from typing import Any


class Subject(StrEnum):
    """What there is a JSON Schema of."""

    POLICIES = "policies"
    PLAN = "plan"
    RUN = "run"
    DRIFT = "drift"


def schema_of(subject: Subject) -> dict[str, Any]:
    """Its schema. Modules are loaded when they are asked for."""
    match subject:
        case Subject.POLICIES:
            from tablectl.specs.json_schema import policy_schema  # noqa: PLC0415  # see above

            return policy_schema()
        case Subject.PLAN:
            from tablectl.reports.schema import plan_schema  # noqa: PLC0415

            return plan_schema()
        case Subject.RUN:
            from tablectl.reports.schema import run_schema  # noqa: PLC0415

            return run_schema()
        case Subject.DRIFT:
            from tablectl.reports.schema import drift_schema  # noqa: PLC0415

            return drift_schema()
