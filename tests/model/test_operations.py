"""The SQL of each operation, as reviewers see it and Spark gets it."""

from __future__ import annotations

import pytest

from tablectl.model.names import parse_table
from tablectl.model.operations import ClusterBy, DropFeature, Operation, Purge, SetProperties, UnsetProperties, render


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
            ClusterBy((("id",), ("address", "city"), ("a.b",))),
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
    assert render(operation, parse_table("lake.s.t")) == sql
