"""``tablectl schema``: print the JSON Schema of a document."""

from __future__ import annotations

from dataclasses import dataclass

from tablectl.commands.command import command
from tablectl.commands.output import Output
from tablectl.model.errors import ExitCode
from tablectl.model.json_records import Schema, record_schema
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import FORMAT
from tablectl.policies.fields import Word
from tablectl.policies.schemas import config_schema, policy_schema
from tablectl.policies.settings import setting
from tablectl.reports.status import LakeStatus
from tablectl.support.json_text import write_json

_DIGEST: Schema = {
    "description": "SHA-256 over all the rest, as canonical JSON.",
    "type": "string",
    "pattern": "^[0-9a-f]{64}$",
}
_MASKED: Schema = {
    "description": "The patterns of `reports.mask`, where they hide values: then this is a report, and no plan file.",
    "type": "array",
    "items": {"type": "string"},
}


def plan_schema() -> Schema:
    """The schema of ``plan --format json``, ``show --format json`` and plan files."""
    made = record_schema(Plan, f"plan:{FORMAT}", "tablectl plan", {"sha256": _DIGEST}, {"masked": _MASKED})
    made["properties"]["format"] = {**made["properties"]["format"], "const": FORMAT}
    made["required"] = [key for key in made["required"] if key not in {"shard", "changed_since"}]
    return made


def run_schema() -> Schema:
    """The schema of ``apply --format json``."""
    made = record_schema(RunReport, "run:3", "tablectl run", {}, {})
    impossible = {ExitCode.CHANGES, ExitCode.USAGE}
    made["properties"]["exit_code"]["enum"] = [int(code) for code in ExitCode if code not in impossible]
    return made


def status_schema() -> Schema:
    """The schema of ``status --format json``."""
    return record_schema(LakeStatus, "status:1", "tablectl status", {}, {})


def drift_schema() -> Schema:
    """The schema of ``drift --format json``."""
    made = record_schema(Drift, "drift:2", "tablectl drift", {}, {})
    made["properties"]["format"] = {**made["properties"]["format"], "const": 2}
    return made


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
    out.result(write_json(_schema(options.of), indent=2) + "\n")
    return ExitCode.DONE


def _schema(of: str) -> Schema:
    if of == "policies":
        return policy_schema()
    if of == "config":
        return config_schema()
    return {
        "plan": plan_schema,
        "run": run_schema,
        "drift": drift_schema,
        "status": status_schema,
    }[of]()
