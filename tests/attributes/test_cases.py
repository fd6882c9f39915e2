"""The cases in ``tests/cases/<attribute>/*.yaml``: a policy and a live table in, a plan or what is wrong out.

``policy`` is one table's entry as users write it. ``live`` gives the facts that differ from ``conftest``'s table:
``properties``, ``protocol`` (reader, writer, features), ``partitions``, ``clustering``, ``vectors``, ``clients``,
``columns`` (how many columns of type long there are instead), ``overwrites``, ``truncation`` (when history is due),
``schema`` (its fields, as Delta writes them),
``entry`` (what its catalog says about it: ``managed``, ``optimization``, ``optimized``, ``filtered``),
``marks`` (columns, files and bytes of data clustered alike), ``older`` (files and bytes of what is loose and as old as
the columns), ``optimize`` as the policy has it. ``runtime`` is ``engine.runtime``. Expected is one of
``problems`` (parts of what specs report),
``nothing: true``, ``refusals``, or ``changes`` and ``statements``, exactly.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.attributes.policy import ATTRIBUTES
from tablectl.delta.databricks_runtimes import parse_runtime
from tablectl.delta.names import parse_column
from tablectl.delta.protocol import READER_FEATURES, Client, Protocol
from tablectl.delta.schema import Field, Schema, parse_schema
from tablectl.model.catalog_answers import CatalogEntry
from tablectl.model.errors import InputError
from tablectl.model.file_layout import ClusteringState, FileGroup
from tablectl.model.plan import Change, Refusal, Statement
from tablectl.model.table import HistoryTruncation, LiveTable
from tablectl.planning.plan_table import plan_table
from tablectl.policies.declared_tables import Specs
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables

_CASES = Path(__file__).parent.parent / "cases"
_FILES = sorted(_CASES.glob("*/*.yaml"))


@pytest.mark.parametrize("file", _FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_case(file: Path, live: Callable[..., LiveTable]) -> None:
    case = yaml.safe_load(file.read_text(encoding="utf-8"))
    assert outcome(case, live) == case["expect"]


def test_every_attribute_has_cases() -> None:
    for attribute in ATTRIBUTES:
        assert len(list((_CASES / attribute.name).glob("*.yaml"))) >= 8, attribute.name


def outcome(case: dict[str, Any], live: Callable[..., LiveTable]) -> dict[str, Any]:
    """What comes of a case, in the words of its ``expect``."""
    dialect = case.get("dialect", "oss")
    try:
        specs = _specs(case["policy"], dialect)
    except InputError as error:
        return {"problems": _matched(case["expect"].get("problems", []), [str(each) for each in error.problems])}
    (spec,) = specs.tables
    runtime = parse_runtime(case["runtime"]) if "runtime" in case else None
    table = live(**_facts(case.get("live", {})))
    found = plan_table(spec.policy, table, dialect, spec.options, runtime=runtime)
    if found is None:
        return {"nothing": True}
    if found.refusals:
        # The first reason of each change: what is wrong with it comes before what it lacks the consent for.
        return {"refusals": {refusal.change: _refusal(refusal) for refusal in reversed(found.refusals)}}
    return {
        "changes": {change.id: _change(change) for change in found.changes},
        "statements": [_statement(statement) for statement in found.statements],
    }


def _specs(policy: Any, dialect: str) -> Specs:
    text = yaml.safe_dump({"version": 1, "tables": {"lake.s.t": policy}}, allow_unicode=True)
    reading = ValueReader(Variables({}, {}), dialect, "spark_catalog", [])
    return read_specs([("policies.yaml", text.encode())], reading)


def _matched(expected: Iterable[str], found: list[str]) -> list[str]:
    """The expected part of each problem that holds it, else the whole problem, so that a difference shows."""
    parts = list(expected)
    return [next((part for part in parts if part in problem), problem) for problem in found]


def _facts(given: dict[str, Any]) -> dict[str, Any]:
    facts: dict[str, Any] = dict(given)
    if "protocol" in given:
        reader, writer, *features = given["protocol"]
        read = frozenset(features) & READER_FEATURES if reader == 3 else frozenset()
        facts["protocol"] = Protocol(reader, writer, read, frozenset(features))
    if "partitions" in given:
        facts["partition_columns"] = tuple(facts.pop("partitions"))
    if "clustering" in given:
        facts["clustering"] = tuple(parse_column(text) for text in given["clustering"])
    if "clients" in given:
        named = (text.partition(" ") for text in given["clients"])
        facts["clients"] = tuple(Client(name, tuple(map(int, v.split("."))) if v else ()) for name, _, v in named)
    if "entry" in given:
        facts["entry"] = CatalogEntry(**given["entry"])
    if "marks" in given:
        parts = [FileGroup(columns=each[0] and tuple(each[0]), files=each[1], bytes=each[2]) for each in given["marks"]]
        files, size = facts.pop("older", (0, 0))
        facts["marks"] = ClusteringState(parts=tuple(parts), older=FileGroup(files=files, bytes=size))
    if "truncation" in given:
        facts["truncation"] = HistoryTruncation(given["truncation"])
    if "columns" in given:
        facts["schema"] = Schema(tuple(Field(f"c{index}", "long") for index in range(1, facts.pop("columns") + 1)))
    if "schema" in given:
        facts["schema"] = parse_schema(json.dumps({"type": "struct", "fields": given["schema"]}))
    return facts


def _change(change: Change) -> dict[str, Any]:
    body = {"before": _plain(change.before), "after": _plain(change.after)}
    if change.via:
        body["via"] = [_plain(value) for value in change.via]
    return body


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _statement(statement: Statement) -> dict[str, Any]:
    body: dict[str, Any] = {"phase": str(statement.phase), "sql": statement.sql}
    if statement.only_if:
        body["only if"] = statement.only_if
    if statement.due is not None:
        body["due"] = statement.due
    if statement.undo:
        body["undo"] = list(statement.undo)
    if statement.undo_note:
        body["stays"] = statement.undo_note
    return body


def _refusal(refusal: Refusal) -> dict[str, str]:
    assert refusal.fix
    body = {"why": refusal.reason}
    return {**body, "error": refusal.condition} if refusal.condition else body
