"""What tables have, adopted by policies written in any layout: then nothing differs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tablectl.attributes.policy import Policy, attribute
from tablectl.log.blame import Origin
from tablectl.model.plan import Value
from tablectl.model.table import LiveTable
from tablectl.planning.diff import diff
from tablectl.planning.drift import Drift, adoptable_values, declarable, questions, table_drift
from tablectl.policies.declared_tables import Specs
from tablectl.policies.effective_policy import spec_for
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.write_live_values import Adopter, Texts
from tablectl.policies.write_yaml import write_key, write_value
from tests.planning.test_convergence import policies, tables

Declared = list[tuple[str, str, Value]]


def read(texts: Texts) -> Specs:
    reading = ValueReader(Variables(), "oss", "spark_catalog", [])
    return read_specs(((file, text.encode()) for file, text in texts.items()), reading)


def flow(declared: Declared) -> str:
    plain = [f"{name}: {write_value(value, flow=True)}" for name, key, value in declared if not key]
    keyed = [f"{write_key(key, flow=True)}: {write_value(value, flow=True)}" for _, key, value in declared if key]
    inner = ", ".join(keyed)
    return "{" + ", ".join([*plain, *([f"properties: {{{inner}}}"] if keyed else [])]) + "}"


def block(declared: Declared, indent: str, comment: str) -> str:
    lines = [f"{indent}{name}: {write_value(value)}{comment}\n" for name, key, value in declared if not key]
    keyed = [f"{indent}  {write_key(key)}: {write_value(value)}{comment}\n" for _, key, value in declared if key]
    return "".join([*lines, *([f"{indent}properties:{comment}\n", *keyed] if keyed else [])])


@st.composite
def files(draw: st.DrawFn, policy: Policy) -> str:
    """A file that gives lake.s.t a policy by its entry, a pattern and defaults; another table is next to it."""
    layers: list[Declared] = [[], [], []]
    for each in policy.values():
        draw(st.sampled_from(layers)).append(each)
    comment = draw(st.sampled_from(["", "  # why"]))
    lines = ["version: 1\n"]
    titles = ("defaults", '"lake.s.*"', "lake.s.t")
    for title, declared in zip(titles, layers, strict=True):
        indent = "" if title == "defaults" else "  "
        if title == '"lake.s.*"':
            lines.append("tables:\n  lake.s.other: {isolation: default}\n")
        if title == "lake.s.t" and not declared and draw(st.booleans()):
            continue
        if not declared and title == "defaults":
            continue
        if not declared or draw(st.booleans()):
            lines.append(f"{indent}{title}: {flow(declared)}{comment}\n")
        else:
            lines.append(f"{indent}{title}:{comment}\n{block(declared, indent + '  ', comment)}")
    return "".join(lines)


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies(), data=st.data())
def test_what_is_adopted_no_longer_differs(
    live: Callable[..., LiveTable], facts: dict[str, Any], policy: Policy, data: st.DataObject
) -> None:
    table = live(**facts)
    text = data.draw(files(policy))
    before = read({"p.yaml": text})
    spec = spec_for(before, table.name)
    assert spec is not None
    texts, now = {"p.yaml": text}, spec
    for _ in range(2):  # Iceberg V3 maps columns by itself, so `column_mapping` differs only once V3 is adopted
        changes = diff(now.policy, table)
        # A chain that was broken off is nothing that a policy could say.
        assume(not any(change.before == "iceberg_v2 begun" for change in changes))
        drift = Drift(tables=(table_drift(now, table, changes, [Origin()] * len(changes)),))
        adoption = Adopter("oss", "spark_catalog", Variables(), read).adopt(texts, adoptable_values(drift))
        # A text that some client ignores is nothing that a policy could say either.
        assert {each.reason for each in adoption.left} <= {"the policy declares it already: apply it"}
        texts = {**texts, **adoption.texts}
        after = read(texts)
        found = spec_for(after, table.name)
        assert found is not None
        now = found
    for change in diff(now.policy, table):
        written = declarable(change.attribute, change.key, change.before)
        assert written != change.before
        assert attribute(change.attribute).agrees(written, change.after, change.key)
    assert [each.policy for each in after.tables if each.name.text == "lake.s.other"] == [
        each.policy for each in before.tables if each.name.text == "lake.s.other"
    ]
    comments = [line.count("#") for line in (text, texts["p.yaml"])]
    assert comments[0] == comments[1]


@settings(max_examples=150, deadline=None)
@given(facts=tables(), policy=policies())
def test_no_table_differs_from_itself(live: Callable[..., LiveTable], facts: dict[str, Any], policy: Policy) -> None:
    table = live(**facts)
    for question in questions(diff(policy, table)):
        assert question.same(question.read(table), question.read(table))
