"""The value of each attribute: what is taken, and what is said of everything else."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tablectl.policies.declared_tables import Specs

Read = Callable[..., Specs]
Wrong = Callable[..., list[str]]


@pytest.mark.parametrize(
    ("entry", "name", "value"),
    [
        ("isolation: WriteSerializable", "isolation", "WriteSerializable"),
        ("isolation: ${LEVEL}", "isolation", "Serializable"),
        ("deletion_vectors: purged", "deletion_vectors", "purged"),
        ("clustering: none", "clustering", "none"),
        ("clustering: auto", "clustering", "auto"),
        ("managed: true", "managed", "true"),
        ("clustering: [a, B.c, '`d.e`', \"`f`\"]", "clustering", ("a", "B.c", "`d.e`", "f")),
        ('clustering: [42, true, "no"]', "clustering", ("42", "true", "no")),
        ('clustering: ["${LEVEL}", "s.${DOTTED}"]', "clustering", ("Serializable", "`s`.`x.y``z`")),
        ('partitioning: [d, "`a.b`"]', "partitioning", ("d", "`a.b`")),
        ("partitioning: none", "partitioning", "none"),
    ],
)
def test_what_is_taken(read: Read, entry: str, name: str, value: object) -> None:
    text = f"version: 1\ntables:\n  a.b:\n    {entry}\n"
    (spec,) = read(text, variables={"LEVEL": "Serializable", "DOTTED": "x.y`z"}).tables
    assert getattr(spec.policy, name) == value
    assert str(spec.sources[name]) == "policies.yaml:4:5"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (
            "isolation: serializable",
            '3:20: "serializable" is not a value of `isolation`\n  hint: did you mean `Serializable`?',
        ),
        (
            "deletion_vectors: off",
            ('3:27: "off" is not a value of `deletion_vectors`\n  hint: did you mean `disabled`?'),
        ),
        (
            "isolation: [Serializable]",
            (
                "3:20: `isolation` takes one of Serializable, WriteSerializable, default, "
                "not a list\n  hint: for example `isolation: Serializable`"
            ),
        ),
        (
            "isolation: null",
            (
                "3:9: `isolation` has no value\n  hint: leave it out: absent means not managed; "
                "`unmanaged: [isolation]` cancels an inherited value"
            ),
        ),
        (
            'isolation: "${NOPE}"',
            ("3:20: the variable NOPE is not defined\n  hint: give it with --var NOPE=… or in TABLECTL_VAR_NOPE"),
        ),
        (
            "clustering: id",
            (
                '3:21: `clustering` takes a list of columns or `none` or `auto`, and "id" is neither\n'
                "  hint: did you mean [id]?"
            ),
        ),
        ("clustering: None", '3:21: "None" is not a value of `clustering`\n  hint: did you mean `none`?'),
        (
            "clustering: {a: b}",
            (
                "3:21: `clustering` takes a list of columns or `none` or `auto`, not a map\n"
                "  hint: for example `clustering: [customer_id, order_date]`"
            ),
        ),
        (
            "clustering: []",
            ("3:21: `clustering` lists no column\n  hint: `clustering: none` declares that there are none"),
        ),
        ("clustering: [a, b, c, d, e]", "3:21: `clustering` takes at most 4 columns, and here are 5"),
        ("clustering: [a, s.b, S.B]", "3:30: the column S.B occurs twice in `clustering`"),
        ("clustering: [a..b]", "3:22: an empty part in column 'a..b'"),
        ('clustering: ["`a"]', "3:22: a backtick in '`a' is never closed"),
        ('clustering: [""]', "3:22: an empty part in column ''"),
        (
            "clustering: [~]",
            ("3:22: `clustering.1` has no value\n  hint: for example `clustering: [customer_id, order_date]`"),
        ),
        (
            "clustering: [[a]]",
            (
                "3:22: `clustering.1` takes text, not a list\n"
                "  hint: for example `clustering: [customer_id, order_date]`"
            ),
        ),
        ("clustering: [1.5]", '3:22: YAML reads 1.5 as a number, not as text\n  hint: quote it: "1.5"'),
        (
            "partitioning: [a.b]",
            (
                '3:24: `partitioning` takes top-level columns, and "a.b" is a field in one\n'
                '  hint: a column with a dot in its name goes in backticks: "`a.b`"'
            ),
        ),
    ],
)
def test_what_is_refused(table_wrong: Wrong, entry: str, problem: str) -> None:
    assert table_wrong(entry) == [f"policies.yaml:{problem}"]


def test_a_list_is_checked_to_its_end(table_wrong: Wrong) -> None:
    assert len(table_wrong("partitioning: [a.b, no, x, X]")) == 3
