"""Values that go into the entry of their table, and everything that stays as it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tablectl.delta.names import parse_table
from tablectl.model.errors import InputError
from tablectl.model.plan import Value
from tablectl.policies.declared_tables import Specs
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.write_live_values import AdoptableValue, Adopter, Adoption, Texts
from tablectl.policies.write_yaml import write_key
from tablectl.policies.yaml_nodes import SourceFile

VARIABLES = Variables({"LAKE": "/data/lake", "TEAM": "web"})


def read(texts: Texts) -> Specs:
    reading = ValueReader(VARIABLES, "oss", "spark_catalog", [])
    return read_specs(((file, text.encode()) for file, text in texts.items()), reading)


def wish(table: str, attribute: str, value: Value, key: str = "") -> AdoptableValue:
    return AdoptableValue(parse_table(table), attribute, key, value, SourceFile("p.yaml", 1, 1))


def adopt(text: str, *adoptable_values: AdoptableValue) -> Adoption:
    return Adopter("oss", "spark_catalog", VARIABLES, read).adopt({"p.yaml": text}, adoptable_values)


def written(text: str, *adoptable_values: AdoptableValue) -> str:
    adoption = adopt(text, *adoptable_values)
    assert adoption.left == ()
    return adoption.texts["p.yaml"]


def test_its_own_entry_is_changed() -> None:
    text = "version: 1\ntables:\n  s.t: # ours\n    isolation: Serializable # pinned\n"
    assert written(text, wish("s.t", "isolation", "default")) == text.replace("Serializable", "default")


def test_what_a_pattern_or_the_defaults_give_goes_into_the_entry_of_the_table() -> None:
    text = 'version: 1\ndefaults: {isolation: Serializable}\ntables:\n  "s.*":\n    clustering: [a]\n  s.t: {}\n'
    assert written(text, wish("s.t", "isolation", "default"), wish("s.t", "clustering", ("b",))) == text.replace(
        "s.t: {}", "s.t: {isolation: default, clustering: [b]}"
    )


def test_a_table_without_an_entry_gets_one_next_to_its_pattern_with_the_variables_of_that() -> None:
    text = "version: 1\ntables:\n  delta.`${LAKE}/*`:\n    isolation: Serializable\n"
    assert written(text, wish("delta.`/data/lake/orders`", "isolation", "default")) == (
        text + "\n  delta.`${LAKE}/orders`:\n    isolation: default".lstrip("\n") + "\n"
    )


def test_properties_are_found_in_any_letter_case_that_delta_folds() -> None:
    text = "version: 1\ntables:\n  s.t:\n    properties:\n      delta.APPENDonly: true # yes\n      Owner.x: a\n"
    out = written(
        text,
        wish("s.t", "properties", "false", "delta.appendOnly"),
        wish("s.t", "properties", "b", "owner.team"),
        wish("s.t", "properties", None, "Owner.x"),
    )
    assert out == (
        "version: 1\ntables:\n  s.t:\n    properties:\n      delta.APPENDonly: false # yes\n      Owner.x: null\n"
        "      owner.team: b\n"
    )


def test_a_value_that_a_variable_gives_is_left_and_the_others_are_written() -> None:
    text = "version: 1\ntables:\n  s.t:\n    isolation: Serializable\n    properties: {owner.team: '${TEAM}'}\n"
    adoption = adopt(text, wish("s.t", "properties", "pay", "owner.team"), wish("s.t", "isolation", "default"))
    assert adoption.texts == {"p.yaml": text.replace("Serializable", "default")}
    (left,) = adoption.left
    why = left.reason
    assert (left.id, why) == ("properties.owner.team", "it holds a variable: '${TEAM}'")


@pytest.mark.parametrize(
    ("text", "asked", "why"),
    [
        (
            "version: 1\ntables:\n  s.t: &all\n    isolation: Serializable\n  s.u: *all\n",
            wish("s.t", "isolation", "default"),
            "an anchor",
        ),
        (
            "version: 1\ntables:\n  s.t:\n    isolation: Serializable\n",
            wish("s.t", "isolation", "SnapshotIsolation"),
            "the file would be wrong",
        ),
        (
            "version: 1\ntables:\n  s.t: {properties: {delta.checkpointRetentionDuration: interval 1 week}}\n",
            wish("s.t", "properties", "interval 1 month", "delta.checkpointRetentionDuration"),
            "the file would be wrong",
        ),
    ],
)
def test_what_no_policy_can_say_or_others_share_is_left(text: str, asked: AdoptableValue, why: str) -> None:
    adoption = adopt(text, asked)
    assert (adoption.texts, adoption.adopted) == ({}, ())
    assert why in adoption.left[0].reason


def test_a_folder_that_reads_as_a_pattern_gets_an_entry_with_an_escaped_key() -> None:
    text = "version: 1\ntables:\n  'delta.`/data/*`':\n    isolation: Serializable\n"
    adoption = adopt(text, wish("delta.`/data/x[1]`", "isolation", "default"))
    assert adoption.left == ()
    assert adoption.texts["p.yaml"] == text + "  delta.`/data/x[[]1]`:\n    isolation: default\n"


def test_one_value_that_spoils_the_file_does_not_keep_the_others_out() -> None:
    text = "version: 1\ntables:\n  s.t:\n    isolation: Serializable\n  s.u:\n    isolation: Serializable\n"
    adoption = adopt(text, wish("s.t", "isolation", "Snapshot"), wish("s.u", "isolation", "default"))
    assert [each.table.text for each in adoption.adopted] == ["s.u"]
    assert adoption.texts["p.yaml"].endswith("isolation: Serializable\n  s.u:\n    isolation: default\n")


def test_partitioning_takes_the_place_of_clustering() -> None:
    text = "version: 1\ntables:\n  s.t:\n    clustering: [a]\n    partitioning: none\n"
    out = written(text, wish("s.t", "clustering", "none"), wish("s.t", "partitioning", ("day",)))
    assert out == text.replace("[a]", "none").replace("partitioning: none", "partitioning: [day]")


def test_many_tables_in_one_file_and_one_of_them_spoils_it() -> None:
    """Each file is read a few times, however many values go into it."""
    names = [f"s.t{number:03d}" for number in range(300)]
    text = "version: 1\ntables:\n  's.*': {isolation: Serializable}\n" + "".join(
        f"  {name}: {{clustering: [a]}} # {name}\n" for name in names[:150]
    )
    asked = [
        wish(name, *each)
        for name in names
        for each in (("clustering", ("b",)), ("isolation", "Snapshot" if name == "s.t007" else "default"))
    ]
    reads: list[Texts] = []

    def counted(texts: Texts) -> Specs:
        reads.append(texts)
        return read(texts)

    adoption = Adopter("oss", "spark_catalog", VARIABLES, counted).adopt({"p.yaml": text}, asked)
    assert [(each.table.text, each.id) for each in adoption.left] == [("s.t007", "isolation")]
    assert "  s.t149: {clustering: [b], isolation: default} # s.t149\n" in adoption.texts["p.yaml"]
    assert "  s.t299:\n    clustering: [b]\n    isolation: default\n" in adoption.texts["p.yaml"]
    assert len(reads) < 30


Tree = dict[str, Any]
KEY = "delta.`/lake/orders`"


def laid_out(tree: Tree, layout: Callable[[], str], indent: str = "") -> str:
    """A map in YAML, each key as ``layout`` says: plain, explicit (``? key``), or with its value in braces."""
    lines = []
    for key, value in tree.items():
        how, name = layout(), write_key(key)
        if isinstance(value, str):
            lines.append(f"{indent}{name}: {value}" if how == "plain" else f"{indent}? {name}\n{indent}: {value}")
        elif how == "braces":
            lines.append(f"{indent}{name}: {flow(value)}")
        elif how == "inline":
            inner = laid_out(value, layout, f"{indent}  ")
            lines.append(f"{indent}? {name}\n{indent}: {inner.lstrip()}")
        else:
            head = f"{indent}{name}:" if how == "plain" else f"{indent}? {name}  # why\n{indent}:"
            lines.append(f"{head}\n{laid_out(value, layout, indent + '  ')}")
    return "\n".join(lines)


def flow(value: Tree | str) -> str:
    if isinstance(value, str):
        return value
    return f"{{{', '.join(f'{write_key(key, flow=True)}: {flow(each)}' for key, each in value.items())}}}"


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_file_in_any_layout_gets_the_value_or_a_reason(data: st.DataObject) -> None:
    entry: Tree = {"isolation": "Serializable", "properties": {"owner.team": "web"}}
    key = data.draw(st.sampled_from([KEY, "delta.`/lake/*`", "s.orders"]))
    tables: Tree = data.draw(st.permutations([(key, entry), ("s.other", {"isolation": "default"})]).map(dict))
    tree: Tree = {"version": "1", "tables": tables}
    layouts = st.sampled_from(["plain", "plain", "explicit", "inline", "braces"])
    text = laid_out(tree, lambda: data.draw(layouts)) + "\n"
    assume(readable(text))
    table = "s.orders" if key == "s.orders" else KEY
    asked = [wish(table, "isolation", "default"), wish(table, "properties", "b", "owner.team")]
    adoption = adopt(text, *data.draw(st.permutations(asked)))
    assert len(adoption.adopted) + len(adoption.left) == 2
    for each in adoption.left:
        assert "write it as `key: value`" in each.reason, (text, each)
    if "?" not in text:
        assert adoption.left == ()
    for new in adoption.texts.values():
        read({"p.yaml": new})


def readable(text: str) -> bool:
    try:
        read({"p.yaml": text})
    except InputError:
        return False
    return True


def test_a_table_of_a_pattern_whose_key_is_explicit_is_left_with_a_reason() -> None:
    adoption = adopt(
        "version: 1\ntables:\n  ? delta.`/lake/*`\n  : {isolation: Serializable}\n", wish(KEY, "isolation", "default")
    )
    assert adoption.texts == {}
    (left,) = adoption.left
    assert left.reason == "the key 'delta.`/lake/*`' follows a `?` or `:` on its line: write it as `key: value`"
