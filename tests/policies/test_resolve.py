"""What holds for a table that patterns speak for: layers, ties, and live tables that no one named."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.attributes.policy import VALUE_TYPES
from tablectl.delta.names import TableName, parse_table
from tablectl.model.errors import InputError
from tablectl.policies.declared_tables import Specs, TableSpec, expand

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

HEAD = "version: 1\ntables:\n"


def live(*names: str) -> dict[TableName, str]:
    parsed = [parse_table(name) for name in names]
    return {name: name.parts[0] if name.is_path else f"/w/{'/'.join(name.parts)}" for name in parsed}


def expanded(specs: Specs, *names: str) -> dict[str, TableSpec]:
    return {spec.name.text: spec for spec in expand(specs, live(*names)).tables}


def declared(spec: TableSpec) -> dict[str, Any]:
    return {name: value for name in VALUE_TYPES if (value := getattr(spec.policy, name))}


def contradiction(specs: Specs, *names: str) -> list[str]:
    with pytest.raises(InputError) as caught:
        expand(specs, live(*names))
    return [str(problem) for problem in caught.value.problems]


def test_every_live_table_that_matches_has_the_declarations_of_the_pattern(read: Read) -> None:
    specs = read(f"{HEAD}  lake.finance.*:\n    isolation: Serializable\n    tags: [ledger]\n")
    assert specs.tables == ()
    found = expanded(specs, "lake.finance.a", "lake.finance.b", "lake.other.a")
    assert list(found) == ["lake.finance.a", "lake.finance.b"]
    spec = found["lake.finance.a"]
    assert (spec.policy.isolation, spec.tags, spec.location) == ("Serializable", ("ledger",), "/w/finance/a")
    assert str(spec.sources["isolation"]) == "policies.yaml:4:5"
    assert str(spec.declared) == "policies.yaml:3:3"


LAYERS = """
version: 1
defaults: {isolation: default, clustering: [d], properties: {a: d, b: d, c: d, e: d}, tags: [d]}
tables:
  lake.*.orders: {deletion_vectors: disabled, clustering: [p], properties: {a: p, b: p, c: p}, tags: [p]}
  lake.sales.*: {deletion_vectors: enabled, properties: {a: q, b: q}}
  lake.sales.orders: {properties: {a: own}}
"""


def test_defaults_under_patterns_under_the_tables_own(read: Read) -> None:
    (spec,) = read(LAYERS).tables
    assert declared(spec) == {
        "isolation": "default",
        "deletion_vectors": "disabled",  # *.orders has one more literal character than sales.*
        "clustering": ("p",),
        "properties": {"a": "own", "b": "p", "c": "p", "e": "d"},
    }
    assert spec.tags == ("p",)


def test_the_tables_own_entry_needs_no_live_table(read: Read) -> None:
    assert expanded(read(LAYERS)).keys() == {"lake.sales.orders"}
    assert read(LAYERS).tables[0].policy == expanded(read(LAYERS), "lake.sales.orders")["lake.sales.orders"].policy


def test_a_listing_tells_where_a_named_table_lies_unless_the_policy_does(read: Read) -> None:
    specs = read(f"{HEAD}  a.*:\n  a.b:\n  a.C: {{location: /declared}}\n  delta.`/x/*`:\n  delta.`s3a://b/x`:\n")
    found = expanded(specs, "a.b", "a.c", "delta.`/x/y`", "delta.`s3://b/x`")
    assert {name: spec.location for name, spec in found.items()} == {
        "a.b": "/w/a/b",
        "a.C": "/declared",
        "delta.`/x/y`": None,
        "delta.`s3a://b/x`": None,
    }


def test_unmanaged_cancels_what_lies_below_and_what_lies_above_may_bring_it_back(read: Read) -> None:
    text = """
version: 1
defaults: {isolation: default, properties: {a: d, b: d}}
tables:
  lake.*.*: {clustering: [p], properties: {b: p}}
  lake.sales.*: {unmanaged: [isolation, properties, clustering]}
  lake.sales.orders: {properties: {a: own}}
"""
    found = expanded(read(text), "lake.sales.x", "lake.other.x")
    assert declared(found["lake.sales.x"]) == {}
    assert declared(found["lake.sales.orders"]) == {"properties": {"a": "own"}}
    assert declared(found["lake.other.x"]) == {
        "isolation": "default",
        "clustering": ("p",),
        "properties": {"a": "d", "b": "p"},
    }


def test_defaults_belong_to_the_files_of_the_entries_that_match(read: Read) -> None:
    one = "version: 1\ndefaults: {isolation: default, properties: {a: one}}\ntables:\n  lake.sales.*:\n  lake.x.y:\n"
    two = (
        "version: 1\ndefaults: {isolation: Serializable, properties: {b: two}}\ntables:\n"
        "  lake.*.*: {deletion_vectors: enabled}\n  lake.sales.own:\n"
    )
    found = expanded(read(one, two), "lake.sales.a", "lake.other.a")
    # The file of the more literal pattern wins, but its defaults do not win over any pattern.
    assert declared(found["lake.sales.a"]) == {
        "isolation": "default",
        "deletion_vectors": "enabled",
        "properties": {"a": "one", "b": "two"},
    }
    assert declared(found["lake.other.a"])["isolation"] == "Serializable"
    assert declared(found["lake.sales.own"])["isolation"] == "Serializable"
    assert declared(found["lake.x.y"])["isolation"] == "default"


# Ties

PAIR = f"{HEAD}  lake.a*.x: {{%s}}\n  lake.*b.x: {{%s}}\n"


@pytest.mark.parametrize(
    ("one", "other", "key", "says"),
    [
        ("isolation: default", "isolation: Serializable", "isolation", ('"Serializable"', '"default"')),
        ("clustering: [a]", "clustering: [b, c]", "clustering", ("[b, c]", "[a]")),
        ("tags: [a]", "tags: [b]", "tags", ("[b]", "[a]")),
        ("properties: {k: v}", "properties: {k: null}", "properties.k", ("null", '"v"')),
        ("isolation: default", "unmanaged: [isolation]", "isolation", ("unmanaged", '"default"')),
        ("properties: {k: v}", "unmanaged: [properties]", "properties.k", ("unmanaged", '"v"')),
        ("deletion_vectors: purged", "deletion_vectors: disabled", "deletion_vectors", ('"disabled"', '"purged"')),
    ],
)
def test_two_patterns_of_one_weight_must_not_differ(
    read: Read, one: str, other: str, key: str, says: tuple[str, str]
) -> None:
    (said,) = contradiction(read(PAIR % (one, other)), "lake.ab.x")
    assert said.startswith("policies.yaml:4:")
    assert f': `{key}` of "lake.ab.x" is {says[0]} by the pattern "lake.*b.x" here ' in said
    assert f'and {says[1]} by the pattern "lake.a*.x" at policies.yaml:3:' in said


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("isolation: default", "isolation: default"),
        ("isolation: default", "deletion_vectors: enabled"),
        ("clustering: [A, b.c]", "clustering: [a, '`b`.`C`']"),
        (
            "properties: {delta.checkpointRetentionDuration: interval 7 days}",
            "properties: {DELTA.CHECKPOINTRETENTIONDURATION: 1 week}",
        ),
        ("unmanaged: [isolation]", "unmanaged: [isolation]"),
        ("properties: {k: null}", "properties: {k: null}"),
    ],
)
def test_two_that_say_the_same_are_fine(read: Read, one: str, other: str) -> None:
    assert len(expanded(read(PAIR % (one, other)), "lake.ab.x")) == 1


def test_a_tie_does_not_matter_where_something_heavier_speaks(read: Read) -> None:
    text = PAIR % ("isolation: default", "isolation: Serializable")
    found = expanded(read(f"{text}  lake.ab.x: {{isolation: default}}\n"), "lake.ab.x")
    assert found["lake.ab.x"].policy.isolation == "default"
    found = expanded(
        read(f"{text}  lake.?b.x: {{isolation: default}}\n  lake.ab.?: {{isolation: default}}\n"), "lake.ab.z"
    )
    assert list(found) == ["lake.ab.z"]


def test_a_tie_about_a_named_table_is_known_without_looking(wrong: Wrong) -> None:
    (said,) = wrong(PAIR % ("isolation: default", "isolation: Serializable") + "  lake.ab.x:\n")
    assert '`isolation` of "lake.ab.x" is' in said


def test_a_tie_is_said_once_however_many_tables_have_it(read: Read) -> None:
    specs = read(f"{HEAD}  lake.a*.*: {{isolation: default}}\n  lake.*b.*: {{isolation: Serializable}}\n")
    (said,) = contradiction(specs, *(f"lake.ab.t{number}" for number in range(12)))
    assert '`isolation` of "lake.ab.t0" and 11 more is' in said


def test_defaults_of_equal_patterns_must_not_differ_either(read: Read) -> None:
    one = "version: 1\ndefaults: {isolation: default}\ntables: {lake.a*.x: }\n"
    two = "version: 1\ndefaults: {isolation: Serializable}\ntables: {lake.*b.x: }\n"
    (said,) = contradiction(read(one, two), "lake.ab.x")
    assert said.startswith('policies.yaml:2:12: `isolation` of "lake.ab.x" is "default" in the defaults here ')
    assert 'and "Serializable" in the defaults at more.yaml:2:12' in said


# What is wrong whatever tables there are


def test_a_pattern_declared_twice(wrong: Wrong) -> None:
    assert wrong(f"{HEAD}  lake.sales.*:\n", f"{HEAD}  LAKE.`Sales`.*:\n") == [
        (
            'policies.yaml:3:3: the pattern "lake.sales.*" is declared twice: first at more.yaml:3:3\n'
            "  hint: make one entry of the two"
        )
    ]


def test_a_pattern_takes_no_location(wrong: Wrong) -> None:
    assert wrong(f"{HEAD}  lake.sales.*: {{location: /x}}\n") == [
        'policies.yaml:3:18: "location" is not allowed here\n  hint: a location belongs to one table, not to a pattern'
    ]


def test_values_of_patterns_are_checked_without_a_table(wrong: Wrong) -> None:
    text = (
        f"{HEAD}  lake.*.*: {{isolation: x}}\n  delta.`/l/*`: {{clustering: [a], partitioning: [b]}}\n  lake.a**.b:\n"
    )
    assert [said.split(": ")[0] for said in wrong(text)] == [
        "policies.yaml:3:25",
        "policies.yaml:4:18",
        "policies.yaml:5:3",
    ]


def test_clustering_and_partitioning_meet_in_the_merged_result(read: Read) -> None:
    specs = read(f"{HEAD}  lake.*.*: {{clustering: [a]}}\n  lake.sales.*: {{partitioning: [b]}}\n")
    (said,) = contradiction(specs, "lake.sales.a", "lake.sales.b")
    assert said.startswith("policies.yaml:4:18: `partitioning` and `clustering` exclude each other, and")
    assert len(expanded(specs, "lake.x.a")) == 1


def test_unmanaged_may_name_what_patterns_of_other_files_bring(read: Read, wrong: Wrong) -> None:
    one = f"{HEAD}  lake.*.*: {{properties: {{owner.team: x}}}}\n"
    read(one, f"{HEAD}  lake.sales.a: {{unmanaged: [owner.team]}}\n")
    (said,) = wrong(one, f"{HEAD}  lake.sales.a: {{unmanaged: [owner.taem]}}\n")
    assert said.endswith("hint: did you mean `owner.team`?")


# The digest


BASE = f"{HEAD}  lake.sales.*: {{isolation: default, properties: {{a: '1'}}}}\n  lake.*.x: {{tags: [t]}}\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("isolation: default", "isolation: Serializable"),
        ("a: '1'", "a: null"),
        ("a: '1'", "b: '1'"),
        ("lake.sales.*", "lake.sales.?"),
        ("tags: [t]", "tags: [u]"),
        ("tags: [t]", "tags: [t], unmanaged: [isolation]"),
        ("version: 1", "version: 1\ndefaults: {isolation: default}"),
    ],
)
def test_the_digest_covers_patterns(read: Read, old: str, new: str) -> None:
    assert read(BASE.replace(old, new)).digest != read(BASE).digest


def test_the_digest_follows_neither_the_layout_nor_the_live_tables(read: Read) -> None:
    first, second = BASE.removeprefix(HEAD).splitlines()
    assert read(f"{HEAD}{second}\n", f"# x\n{HEAD}{first}\n").digest == read(BASE).digest
    assert expand(read(BASE), live("lake.sales.a")).digest == read(BASE).digest


# Laws


_KEYS = ["lake.*.*", "lake.s*.*", "lake.*.o*", "lake.sales.*", "lake.*.orders", "lake.sales.o*", "lake.sales.orders"]
_BODIES = st.fixed_dictionaries(
    {},
    optional={
        "isolation": st.sampled_from(["default", "Serializable"]),
        "clustering": st.sampled_from(["[a]", "[b]", "none"]),
        "tags": st.sampled_from(["[t]", "[u]"]),
        "properties": st.sampled_from(["{k: v}", "{k: w}", "{k: null, l: x}"]),
    },
)
_FILES = st.lists(
    st.tuples(_BODIES, st.dictionaries(st.sampled_from(_KEYS), _BODIES, max_size=4)), min_size=1, max_size=2
)
Body = Mapping[str, str]


def _flow(body: Body) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in body.items()) + "}"


def _file(defaults: Body, tables: Mapping[str, Body]) -> str:
    entries = "".join(f"  {key}: {_flow(body)}\n" for key, body in tables.items())
    return f"version: 1\ndefaults: {_flow(defaults)}\ntables:{' {}' if not tables else ''}\n{entries}"


def _outcome(read: Read, *texts: str) -> object:
    try:
        specs = expand(read(*texts), live("lake.sales.orders", "lake.sales.other", "lake.web.orders"))
    except InputError as error:
        # Which of two places is "here" depends on the names of the files, that there is a problem does not.
        return len(error.problems)
    return [(spec.name.text, declared(spec), spec.tags) for spec in specs.tables]


@settings(deadline=None)
@given(files=_FILES)
def test_the_order_of_files_and_of_entries_does_not_matter(
    read: Read, files: list[tuple[Body, dict[str, Body]]]
) -> None:
    backwards = [(defaults, dict(reversed(tables.items()))) for defaults, tables in reversed(files)]
    assert _outcome(read, *(_file(*each) for each in files)) == _outcome(read, *(_file(*each) for each in backwards))


@settings(deadline=None)
@given(files=_FILES, body=_BODIES)
def test_what_a_tables_own_entry_says_always_holds(
    read: Read, files: list[tuple[Body, dict[str, Body]]], body: Body
) -> None:
    (defaults, tables), *rest = files
    others = [(each, {key: value for key, value in more.items() if key != "lake.sales.orders"}) for each, more in rest]
    texts = [_file(defaults, {**tables, "lake.sales.orders": body}), *(_file(*each) for each in others)]
    for spec in _found(read, texts):
        assert all(str(getattr(spec.policy, key)) == body[key] for key in ("isolation",) if key in body)
        assert "tags" not in body or f"[{', '.join(spec.tags)}]" == body["tags"]
        own = read(_file({}, {"lake.sales.orders": body})).tables[0].policy.properties or {}
        assert {**(spec.policy.properties or {}), **own} == dict(spec.policy.properties or {})


def _found(read: Read, texts: list[str]) -> list[TableSpec]:
    with suppress(InputError):  # a contradiction in what others say
        return [spec for spec in expand(read(*texts), {}).tables if spec.name.text == "lake.sales.orders"]
    return []
