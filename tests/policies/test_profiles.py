"""Profiles: named bundles of settings, above the defaults and below patterns."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.delta.names import parse_table
from tablectl.policies.declared_tables import Specs
from tablectl.policies.effective_policy import explain, spec_for

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]

GOLD = """
version: 1
defaults: {isolation: default, tags: [all]}
profiles:
  gold: {isolation: Serializable, deletion_vectors: enabled, properties: {owner.team: gold}}
  streaming: {properties: {delta.appendOnly: true}}
tables:
"""


def test_a_profile_overrides_defaults_and_a_table_overrides_its_profile(read: Read) -> None:
    (spec,) = read(f"{GOLD}  a.b: {{profiles: [gold, streaming], deletion_vectors: disabled}}\n").tables
    assert (spec.policy.isolation, spec.policy.deletion_vectors, spec.tags) == ("Serializable", "disabled", ("all",))
    assert spec.policy.properties == {"owner.team": "gold", "delta.appendOnly": "true"}


def test_a_pattern_attaches_a_profile_and_overrides_it(read: Read) -> None:
    specs = read(f'{GOLD}  "a.*": {{profiles: [gold], deletion_vectors: disabled}}\n')
    spec = spec_for(specs, parse_table("a.b"))
    assert spec is not None
    assert (spec.policy.isolation, spec.policy.deletion_vectors) == ("Serializable", "disabled")


@pytest.mark.parametrize("own", ["profiles: []", "unmanaged: [isolation, deletion_vectors, owner.team]"])
def test_a_table_can_leave_the_profile_of_its_pattern(read: Read, own: str) -> None:
    specs = read(f'{GOLD}  "a.*": {{profiles: [gold]}}\n  a.b: {{{own}}}\n')
    (spec,) = specs.tables
    assert spec.policy.deletion_vectors is None


def test_a_profile_of_one_file_applies_in_all_files(read: Read) -> None:
    (spec,) = read(GOLD.removesuffix("tables:\n"), "version: 1\ndefaults: {profiles: [gold]}\ntables: {a.b: }\n").tables
    assert spec.policy.isolation == "Serializable"


def test_a_profile_cancels_what_the_defaults_declare(read: Read) -> None:
    text = "version: 1\ndefaults: {isolation: default}\nprofiles: {raw: {unmanaged: [isolation]}}\n"
    (spec,) = read(f"{text}tables: {{a.b: {{profiles: [raw]}}}}\n").tables
    assert spec.policy.isolation is None


def test_explain_names_the_profile_and_what_it_overrides(read: Read) -> None:
    found = explain(read(f"{GOLD}  a.b: {{profiles: [gold]}}\n"), "a.b")
    isolation = next(each for each in found.resolved if each.key == "isolation")
    assert isolation.won.title == "profile gold"
    assert [each.title for each in isolation.over] == ["defaults"]


def test_profiles_that_contradict_each_other_are_an_error(wrong: Wrong) -> None:
    text = f"{GOLD}  a.b: {{profiles: [gold, silver]}}\n".replace("  gold:", "  silver: {isolation: default}\n  gold:")
    (said,) = wrong(text)
    assert said.splitlines() == [
        (
            'policies.yaml:6:10: `isolation` of "a.b" is "Serializable" by the profile "gold" here and "default" '
            'by the profile "silver" at policies.yaml:5:12, and neither outweighs the other'
        ),
        "  hint: attach one of the two profiles, or declare the value at the table or its pattern",
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"{GOLD}  a.b: {{profiles: [golden]}}\n", 'no profile is called "golden"\n  hint: did you mean `gold`?'),
        ("version: 1\ntables: {a.b: {profiles: [x]}}\n", 'no profile is called "x"\n  hint: declare it under'),
        ("version: 1\ndefaults: {profiles: [x]}\n", 'no profile is called "x"'),
        ("version: 1\nprofiles: {gold: {profiles: [x]}}\n", '"profiles" is not allowed here'),
        ("version: 1\nprofiles: {gold: {location: /a}}\n", '"location" is not allowed here'),
        ("version: 1\nprofiles: {gold: {isolation: Snapshot}}\n", '"Snapshot" is not a value of `isolation`'),
        ("version: 1\nprofiles: {gold: [a]}\n", "a profile takes a map of attributes, not a list"),
        ("version: 1\nprofiles: [gold]\n", "`profiles` takes a map of profiles, not a list"),
        ("version: 1\nprofiles: {'a b': {}}\n", '"a b" is not the name of a profile'),
        (
            "version: 1\nprofiles: {gold: {unmanaged: [isolatio]}}\n",
            "is neither an attribute nor an inherited property",
        ),
    ],
)
def test_errors_in_profiles(wrong: Wrong, text: str, problem: str) -> None:
    (said,) = wrong(text)
    assert problem in said


def test_a_profile_in_two_files_is_an_error(wrong: Wrong) -> None:
    (said,) = wrong("version: 1\nprofiles: {gold: }\n", "version: 1\nprofiles: {gold: }\n")
    assert said.startswith('more.yaml:2:12: the profile "gold" is declared twice: first at policies.yaml:2:12')


def test_the_digest_changes_with_a_profile_that_a_pattern_attaches(read: Read) -> None:
    text = f'{GOLD}  "a.*": {{profiles: [gold]}}\n'
    changed = text.replace("deletion_vectors: enabled", "deletion_vectors: disabled")
    unused = text.replace("delta.appendOnly: true", "delta.appendOnly: false")
    assert read(text).digest != read(changed).digest
    assert read(text).digest == read(unused).digest
