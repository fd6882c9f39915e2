"""The SQL of each operation, as reviewers see it and Spark gets it."""

from __future__ import annotations

from typing import get_args

import pytest

from tablectl.delta.names import parse_table
from tablectl.model.operations import (
    OPERATIONS,
    ClusterBy,
    DropFeature,
    Operation,
    OptimizeData,
    Purge,
    RemoveMapping,
    Repartition,
    SetProperties,
    UnsetProperties,
    UpgradeUniform,
)
from tablectl.model.plan import Verb
from tests.builders import make_basis


@pytest.mark.parametrize(
    ("operation", "sql"),
    [
        (
            SetProperties((("owner.team", "payments"),)),
            "ALTER TABLE `lake`.`s`.`t`\nSET TBLPROPERTIES ('owner.team' = 'payments')",
        ),
        (
            SetProperties((("a", "1"), ("b", "it's"))),
            "ALTER TABLE `lake`.`s`.`t`\nSET TBLPROPERTIES (\n  'a' = '1',\n  'b' = 'it\\'s'\n)",
        ),
        (UnsetProperties(("a",)), "ALTER TABLE `lake`.`s`.`t`\nUNSET TBLPROPERTIES IF EXISTS ('a')"),
        (
            UnsetProperties(("a", "b")),
            "ALTER TABLE `lake`.`s`.`t`\nUNSET TBLPROPERTIES IF EXISTS (\n  'a',\n  'b'\n)",
        ),
        (ClusterBy(()), "ALTER TABLE `lake`.`s`.`t`\nCLUSTER BY NONE"),
        (
            ClusterBy(("id", "address.city", "`a.b`")),
            "ALTER TABLE `lake`.`s`.`t`\nCLUSTER BY (`id`, `address`.`city`, `a.b`)",
        ),
        (Purge(), "REORG TABLE `lake`.`s`.`t`\nAPPLY (PURGE)"),
        (DropFeature("deletionVectors"), "ALTER TABLE `lake`.`s`.`t`\nDROP FEATURE `deletionVectors`"),
        (
            DropFeature("a`b", truncate_history=True),
            "ALTER TABLE `lake`.`s`.`t`\nDROP FEATURE `a``b` TRUNCATE HISTORY",
        ),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else "",
)
def test_sql(operation: Operation, sql: str) -> None:
    assert operation.sql(parse_table("lake.s.t")) == sql


_NOTE = "\n  # shown, not run: tablectl makes this write, with the metadata"
_NOTE += "\n  # of columns; as it is, generated ones would become plain"
_WRITE = "\n  .write.format('delta').mode('overwrite')\n  .option('overwriteSchema', True)"


def test_an_overwrite_is_shown_as_the_dataframe_write_that_it_is() -> None:
    begin, end = f"(spark.table('`lake`.`s`.`t`'){_NOTE}{_WRITE}", "\n  .saveAsTable('`lake`.`s`.`t`'))"
    table = parse_table("lake.s.t")
    assert Repartition(()).sql(table) == f"{begin}{end}"
    assert Repartition(("day", "it's")).sql(table) == f"{begin}\n  .partitionBy('day', \"it's\"){end}"


def test_a_path_table_is_written_to_its_path() -> None:
    begin, end = f"(spark.read.format('delta').load('/lake/a b'){_NOTE}", "\n  .save('/lake/a b'))"
    assert Repartition(("day",)).sql(parse_table("delta.`/lake/a b`")) == f"{begin}{_WRITE}\n  .partitionBy('day'){end}"


def test_what_readers_would_not_see_is_spelled_out() -> None:
    assert "'a\\u202eb'" in Repartition(("a\u202eb",)).sql(parse_table("lake.s.t"))


def test_every_operation_is_listed_with_a_verb_of_its_own() -> None:
    assert {each.__name__ for each in OPERATIONS} == {each.__name__ for each in Operation.__subclasses__()}
    assert [each.verb for each in OPERATIONS] == list(dict.fromkeys(each.verb for each in OPERATIONS))
    assert {each.verb for each in OPERATIONS} == set(get_args(Verb))
    assert len({each.word for each in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize(
    ("operation", "everything"),
    [
        (Repartition(()), True),
        (RemoveMapping(), True),
        (UpgradeUniform(1), False),
        (UpgradeUniform(2), True),
        (OptimizeData(), False),
        (OptimizeData(full=True), True),
        (Purge(), False),
        (SetProperties((("a", "1"),)), False),
    ],
    ids=repr,
)
def test_which_operations_rewrite_all_data(operation: Operation, everything: bool) -> None:
    shown = operation.rewrite(make_basis(files=3, bytes=9))
    assert (shown is not None and shown.everything) is everything
