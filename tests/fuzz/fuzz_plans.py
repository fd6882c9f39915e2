"""Plan files of damaged bytes, and edited ones whose digest was computed again."""

from __future__ import annotations

import hashlib
import json
from random import Random
from typing import Any

from tablectl.model.errors import PlanFileError
from tablectl.planning.plan_file import dump_plan, load_plan
from tests.fuzz.damage import damaged_bytes, damaged_json
from tests.fuzz.subject import Subject
from tests.planning.conftest import _rich

_PLAN = dump_plan(_rich())


def _sealed(body: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in body.items() if key != "sha256"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return json.dumps({**rest, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}).encode()


def damaged_plan(random: Random) -> str:
    return _loaded(damaged_bytes(random, _PLAN))


def edited_plan(random: Random) -> str:
    edited = damaged_json(random, json.loads(_PLAN))
    return _loaded(_sealed(edited) if isinstance(edited, dict) else json.dumps(edited).encode())


def _loaded(data: bytes) -> str:
    try:
        plan = load_plan(data, "plan.json")
    except PlanFileError as error:
        assert error.message.startswith("plan.json: ")
        assert error.hint
        return "refused"
    assert load_plan(dump_plan(plan), "plan.json") == plan
    return "read"


SUBJECTS = (
    Subject("plan-bytes", "a plan of any bytes is read or refused with a PlanFileError", damaged_plan),
    Subject("plan-fields", "an edited plan with a fitting digest is read or refused with a PlanFileError", edited_plan),
)
