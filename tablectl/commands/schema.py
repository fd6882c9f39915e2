"""``tablectl schema``: print the JSON Schema of a document."""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.commands.command import command
from tablectl.commands.output import Output
from tablectl.model.errors import ExitCode
from tablectl.policies.declare_setting import setting
from tablectl.policies.field_types import Schema, Word
from tablectl.policies.schemas import config_schema, policy_schema


@dataclass(frozen=True, kw_only=True)
class SchemaOptions:
    """The options of ``schema``."""

    of: str = setting(
        "policies",
        Word(
            words=("policies", "config", "plan", "run", "drift", "status"),
            description="Policies, `tablectl.yaml` (config), or the JSON of `plan`, `apply` (run), `drift` or "
            "`status`.",
        ),
        "--of",
    )


@command(SchemaOptions)
def schema_command(options: SchemaOptions, out: Output) -> ExitCode:
    """Print the JSON Schema of policies or tablectl.yaml, for editors; or of plans, runs and drift, for programs.

    Example: tablectl schema > policies.schema.json
    """
    out.json_result(_schema(options.of))
    return ExitCode.DONE


def _schema(of: str) -> Schema:
    if of == "policies":
        return policy_schema()
    if of == "config":
        return config_schema()
    from tablectl.reports import schema  # noqa: PLC0415  # loads what reads the logs of tables

    return {
        "plan": schema.plan_schema,
        "run": schema.run_schema,
        "drift": schema.drift_schema,
        "status": schema.status_schema,
    }[of]()
