"""Plans as bytes and back: whatever stands in a file, a plan comes out that is honest, or ``PlanFileError``."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.model.errors import ExitCode, PlanFileError
from tablectl.model.plan import Plan
from tablectl.planning import plan_file
from tablectl.planning.plan_file import check_environment, digest_of, dump_plan, load_plan
from tablectl.version import __version__

Body = dict[str, Any]


def _sealed(body: Body) -> bytes:
    """A file as someone would forge it: the digest fits."""
    rest = {key: value for key, value in body.items() if key != "sha256"}
    canonical = json.dumps(rest, sort_keys=True, separators=(",", ":"))
    return json.dumps({**rest, "sha256": hashlib.sha256(canonical.encode()).hexdigest()}).encode()


def _refused(data: bytes, *, to_apply: bool = True) -> str:
    with pytest.raises(PlanFileError) as caught:
        load_plan(data, "p.json", to_apply=to_apply)
    assert caught.value.exit_code is ExitCode.REFUSED
    assert caught.value.hint
    return caught.value.message


def test_a_plan_is_the_same_after_writing_and_reading_it(rich: Plan) -> None:
    data = dump_plan(rich)
    assert load_plan(data, "p.json") == rich
    assert dump_plan(load_plan(data, "p.json")) == data


def test_the_bytes_are_canonical(rich: Plan) -> None:
    data = dump_plan(rich)
    body = json.loads(data)
    assert data == dump_plan(deepcopy(rich))
    assert data.endswith(b"\n")
    assert list(body) == sorted(body)
    assert body["sha256"] == digest_of(rich)


def test_forging_the_digest_alone_is_honest(rich: Plan) -> None:
    assert load_plan(_sealed(json.loads(dump_plan(rich))), "p.json") == rich


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_changed_byte_is_refused_or_harmless(rich: Plan, data: st.DataObject) -> None:
    whole = dump_plan(rich)
    place = data.draw(st.integers(0, len(whole) - 1))
    edited = whole[:place] + data.draw(st.binary(max_size=3)) + whole[place + data.draw(st.integers(0, 3)) :]
    with contextlib.suppress(PlanFileError):
        assert load_plan(edited, "p.json") == rich


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_a_file_cut_off_anywhere_is_refused(rich: Plan, data: st.DataObject) -> None:
    whole = dump_plan(rich)
    _refused(whole[: data.draw(st.integers(0, len(whole) - 3))])


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_refused(data: bytes) -> None:
    _refused(data)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=10,
)


def _places(body: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(body, dict):
        return [path, *(each for key, value in body.items() for each in _places(value, (*path, key)))]
    if isinstance(body, list):
        return [path, *(each for index, value in enumerate(body) for each in _places(value, (*path, index)))]
    return [path]


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_forged_value_anywhere_is_refused_or_leaves_the_sql_honest(rich: Plan, data: st.DataObject) -> None:
    body = json.loads(dump_plan(rich))
    *path, last = data.draw(st.sampled_from([place for place in _places(body) if place]))
    parent = body
    for step in path:
        parent = parent[step]
    parent[last] = data.draw(_JSON)
    try:
        loaded = load_plan(_sealed(body), "p.json")
    except PlanFileError:
        return
    sqls = {statement.sql for table in rich.tables for statement in table.statements}
    for table in loaded.tables:
        for statement in table.statements:
            assert statement.sql in sqls or table.name not in {each.name for each in rich.tables}


def _sql(body: Body) -> None:
    body["tables"][0]["statements"][0]["sql"] = "DROP TABLE lake.s.t"


def _phase(body: Body) -> None:
    last = body["tables"][0]["statements"][-1]
    assert last["phase"] == "closed"
    last["phase"] = "free"


def _removed(body: Body) -> None:
    body["tables"][0]["statements"].pop()


def _added(body: Body) -> None:
    first = body["tables"][0]["statements"][0]
    body["tables"][0]["statements"].append({**first, "id": "another"})


def _reordered(body: Body) -> None:
    body["tables"][0]["statements"].reverse()


def _serves(body: Body) -> None:
    body["tables"][0]["statements"][0]["serves"] = ["isolation"]


def _after(body: Body) -> None:
    body["tables"][0]["changes"][0]["after"] = "default"


def _after_and_sql(body: Body) -> None:
    body["tables"][0]["changes"][0]["after"] = "SnapshotIsolation"
    for statement in body["tables"][0]["statements"]:
        statement["sql"] = statement["sql"].replace("'Serializable'", "'SnapshotIsolation'")
        statement["effect"]["sets"] = [
            [key, "SnapshotIsolation" if key == "delta.isolationLevel" else value]
            for key, value in statement["effect"]["sets"]
        ]


def _key_and_sql(body: Body) -> None:
    text = json.dumps(body["tables"][0]).replace("owner.team", "delta.feature.rowTracking")
    body["tables"][0] = json.loads(text)


def _name(body: Body) -> None:
    body["tables"][0]["name"] = "lake.s.other"


def _location_of_a_path(body: Body) -> None:
    body["tables"][1]["location"] = "/lake/elsewhere"


def _clients(body: Body) -> None:
    body["tables"][0]["basis"]["clients"] = [{"engine": "delta-spark", "version": [3, 2]}]


def _protocol(body: Body) -> None:
    body["tables"][0]["basis"]["protocol"]["writer"] = 6


def _vectors(body: Body) -> None:
    body["tables"][1]["basis"]["vectors"] = 1


def _protocol_after(body: Body) -> None:
    body["tables"][0]["protocol_after"] = body["tables"][0]["basis"]["protocol"]


def _findings(body: Body) -> None:
    body["tables"][0]["findings"] = []


def _undo(body: Body) -> None:
    body["tables"][0]["statements"][0]["undo"] = []


def _fails(body: Body) -> None:
    body["tables"][0]["statements"][-1]["fails"] = ""


def _twice(body: Body) -> None:
    body["tables"][0]["changes"].append(body["tables"][0]["changes"][0])


def _statement_of_a_refused_table(body: Body) -> None:
    body["tables"][2]["statements"] = body["tables"][0]["statements"]


def _tool(body: Body) -> None:
    body["tool"] = "0.0.9"


def _dialect(body: Body) -> None:
    body["dialect"] = "databricks"


_LIES = (
    _sql,
    _phase,
    _removed,
    _added,
    _reordered,
    _serves,
    _after,
    _after_and_sql,
    _key_and_sql,
    _name,
    _location_of_a_path,
    _clients,
    _protocol,
    _vectors,
    _protocol_after,
    _findings,
    _undo,
    _fails,
    _twice,
    _statement_of_a_refused_table,
    _tool,
    _dialect,
)


@pytest.mark.parametrize("lie", _LIES, ids=lambda lie: lie.__name__.strip("_"))
def test_a_lie_with_a_fitting_digest_is_refused(rich: Plan, lie: Callable[[Body], None]) -> None:
    body = json.loads(dump_plan(rich))
    lie(body)
    assert body != json.loads(dump_plan(rich))
    message = _refused(_sealed(body))
    assert "digest" not in message
    # Nor is it shown: reviewers believe what they are shown. Only another version's plan cannot be derived again.
    if body["tool"] == __version__:
        assert _refused(_sealed(body), to_apply=False) == message


@pytest.mark.parametrize("lie", _LIES, ids=lambda lie: lie.__name__.strip("_"))
def test_a_lie_without_one_is_not_even_shown(rich: Plan, lie: Callable[[Body], None]) -> None:
    body = json.loads(dump_plan(rich))
    lie(body)
    assert "digest" in _refused(json.dumps(body).encode(), to_apply=False)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "null",
        "[]",
        '"plan"',
        "{",
        "{}",
        '{"format": 2}',
        '{"format": 0, "sha256": ""}',
        '{"format": 3}',
        '{"format": "1"}',
        '{"format": true}',
        '{"format": 2.0}',
        '{"format": 2, "format": 1}',
        '{"format": 2, "x": NaN}',
        '{"format": 2, "x": -Infinity}',
        '{"format": 2, "x": 1e999}',
        '{"format": 2, "x": ' + "9" * 5000 + "}",
        '{"format": 2, "x": "\\ud800"}',
        '{"format": 2, "x": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"format": ' + '{"a":' * 900 + "1" + "}" * 900 + "}",
        '{"terraform_version": "1.9.0", "resource_changes": []}',
    ],
    ids=lambda text: text[:24],
)
def test_what_is_not_a_plan(text: str) -> None:
    _refused(text.encode())
    _refused(text.encode(), to_apply=False)


@pytest.mark.parametrize("depth", [150, 250, 900, 960, 980, 990, 1000])
def test_deep_nesting_under_a_fitting_digest(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    canonical = f'{{"format":1,"x":{nested}}}'
    digest = hashlib.sha256(canonical.encode()).hexdigest()
    _refused(f'{{"format":1,"sha256":"{digest}","x":{nested}}}'.encode())


@pytest.mark.parametrize("data", [b"\xff\xfe{}", b"\xef\xbb\xbf{}", "{}".encode("utf-16"), b'{"format": "\xc3("}'])
def test_what_is_not_utf_8(data: bytes) -> None:
    _refused(data)


@pytest.mark.parametrize(
    "edit",
    [
        {"tables": {}},
        {"tables": [{}]},
        {"tables": None},
        {"extra": 1},
        {"policies": 7},
        {"dialect": None},
        {"unchanged": [1]},
        {"format": 2.0},
    ],
    ids=str,
)
def test_a_fitting_digest_makes_no_plan_of_anything(rich: Plan, edit: Body) -> None:
    assert "not a plan" in _refused(_sealed({**json.loads(dump_plan(rich)), **edit}), to_apply=False)


def test_a_name_that_is_none(rich: Plan) -> None:
    for index in range(3):
        body = json.loads(dump_plan(rich))
        body["tables"][index]["name"] = "`"
        assert "never closed" in _refused(_sealed(body))


@pytest.mark.parametrize("env", ["--><h1>Approved</h1>", "a b", "`x`", "@all", "\x1b[2J", "x" * 65, "-x"])
def test_an_environment_that_no_file_can_have(rich: Plan, env: str) -> None:
    for to_apply in (True, False):
        told = _refused(_sealed({**json.loads(dump_plan(rich)), "env": env}), to_apply=to_apply)
        assert "is not an environment name" in told
        assert "\x1b" not in told


@pytest.mark.parametrize(
    ("made", "asked", "says"),
    [
        ("prod", "dev", "the plan is for the environment prod, not for dev"),
        ("prod", "", "the plan is for the environment prod, not for none"),
        ("", "dev", "the plan is for no environment, not for dev"),
    ],
)
def test_a_plan_of_another_environment(rich: Plan, made: str, asked: str, says: str) -> None:
    with pytest.raises(PlanFileError) as caught:
        check_environment(replace(rich, env=made), asked)
    assert caught.value.message == says


@pytest.mark.parametrize(("made", "asked"), [("prod", "prod"), ("prod", None), ("", ""), ("", None)])
def test_a_plan_of_the_environment_that_is_named_or_none_is(rich: Plan, made: str, asked: str | None) -> None:
    check_environment(replace(rich, env=made), asked)


def test_a_file_that_is_too_large(monkeypatch: pytest.MonkeyPatch, rich: Plan) -> None:
    monkeypatch.setattr(plan_file, "MAX_BYTES", 1000)
    assert "larger than" in _refused(dump_plan(rich))


def test_plans_of_other_versions_can_be_shown_and_not_applied(rich: Plan) -> None:
    data = dump_plan(replace(rich, tool="9.9.9"))
    assert load_plan(data, "p.json", to_apply=False).tool == "9.9.9"
    assert "made by tablectl 9.9.9" in _refused(data)


def test_a_plan_that_could_not_be_read_again_is_not_written(rich: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(rich, unchanged=tuple(f"lake.sales.t{number}" for number in range(4_000)))
    assert dump_plan(large)
    monkeypatch.setattr(plan_file, "MOST_VALUES", 1_000)
    with pytest.raises(PlanFileError, match="too many of its kind"):
        dump_plan(large)
