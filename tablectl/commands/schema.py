"""``tablectl schema``: print the JSON Schema of a document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import typer

from tablectl.model.errors import ExitCode
from tablectl.policies.config import config_schema
from tablectl.policies.schemas import policy_schema
from tablectl.reports import schema

_Document = Literal["policies", "config", "plan", "run", "drift", "status"]


def schema_command(
    ctx: typer.Context,
    *,
    of: Annotated[
        _Document,
        typer.Option(
            metavar="DOCUMENT",
            help="policies, config (`tablectl.yaml`), or the JSON of plan, run (`apply`), drift or status.",
        ),
    ] = "policies",
) -> ExitCode:
    """Print the JSON Schema of policies or tablectl.yaml, for editors; or of plans, runs and drift, for programs.

    Example: tablectl schema > policies.schema.json
    """
    ctx.obj.json_result(_schema(of))
    return ExitCode.DONE


def _schema(of: _Document) -> Mapping[str, Any]:
    if of == "policies":
        return policy_schema()
    if of == "config":
        return config_schema()
    return {
        "plan": schema.plan_schema,
        "run": schema.run_schema,
        "drift": schema.drift_schema,
        "status": schema.status_schema,
    }[of]()
