"""The schema of ``tablectl.yaml`` takes what the reader takes, describes each key, and refuses the usual mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from tablectl.model.errors import InputError
from tablectl.policies.config import config_schema
from tablectl.policies.read_config import load_config

EXAMPLE = """
policies: policies
variables: {LAKE: /data}
engine: {dialect: oss, heartbeat: 5, exclusive_commits: true, conf: {spark.x: y}}
window:
  ttl: 60
  before: [./pause.sh, [./pause.sh, nightly]]
  deny: [{cron: '0 8 * * 1-5', duration: 10h, timezone: Europe/Berlin, tags: [pay]}]
stores: {s3: {region: eu-west-1}}
reports: {mask: ['*token*']}
lint: {L004: note, L006: {severity: ignore, reason: no time travel here}}
env: {prod: {window: {drain: 600}}}
"""


def schema_accepts(text: str) -> bool:
    validator = jsonschema.Draft202012Validator(config_schema())
    return validator.is_valid(yaml.safe_load(text))


def reader_accepts(text: str, place: Path) -> bool:
    (place / "tablectl.yaml").write_text(text)
    try:
        load_config(place, {})
    except InputError:
        return False
    return True


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(config_schema())


def test_reader_and_schema_accept_the_same_file(tmp_path: Path) -> None:
    assert reader_accepts(EXAMPLE, tmp_path)
    assert schema_accepts(EXAMPLE)


@pytest.mark.parametrize(
    "wrong",
    [
        "engine: {dialekt: oss}",
        "engine: {dialect: os}",
        "engine: [a]",
        "window: {ttl: 5}",
        "window: {ttl: soon}",
        "window: {before: ./pause.sh}",
        "window: {deny: [{cron: '0 8 * * 1-5'}]}",
        "stores: {s3: {secret_access_key: x}}",
        "stores: {s3: {regoin: x}}",
        "lint: {L0017: error}",
        "lint: {L004: fatal}",
        "plans: [a]",
        "env: {prod: {plans: a}}",
        "signatures: {required: true}",
    ],
)
def test_reader_and_schema_refuse_the_same_mistake(tmp_path: Path, wrong: str) -> None:
    assert not reader_accepts(wrong, tmp_path)
    assert not schema_accepts(wrong)


def _described(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, str]]:
    for key, inner in schema.get("properties", {}).items():
        yield f"{path}{key}", inner.get("description", "")
        yield from _described(inner, f"{path}{key}.")
    for part in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(part, dict):
            yield from _described(part, path)


def test_each_key_is_described_for_editors() -> None:
    options = ("stores.s3.", "stores.gs.", "stores.az.")
    missing = [
        key for key, about in _described(config_schema()) if not about and not any(each in key for each in options)
    ]
    assert not missing


def test_a_key_says_its_default() -> None:
    window = config_schema()["properties"]["window"]["properties"]
    assert [window[key]["default"] for key in ("stop_if_failed", "stop_if_silent", "soak")] == [1, 0, 10]
    assert "default" not in config_schema()["properties"]["state"], "no value is the default"
