"""The JSON Schemas of the output of ``--format json``: a plan (which is the plan file), a run, and drift."""

from __future__ import annotations

from tablectl.model.errors import ExitCode
from tablectl.model.plan import Plan
from tablectl.model.run_report import RunReport
from tablectl.planning.drift import Drift
from tablectl.planning.plan_file import FORMAT
from tablectl.reports.status_document import LakeStatus
from tablectl.support.typed_json import Schema, record_schema

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
