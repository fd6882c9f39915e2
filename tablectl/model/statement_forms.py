"""The forms of the SQL statements that tablectl can send: a closed table. Each statement is an instance of exactly one.

A form is a template with slots. Between its words, any white space is equal. Which forms this project has run is part
of the table: no statement was ever run on Databricks here.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal

from tablectl.delta.databricks_runtimes import for_form
from tablectl.delta.dialects import OPEN_SOURCE
from tablectl.frozen import frozen

_NAME = r"`(?:[^`]|``)+`"
_PATH = rf"{_NAME}(?:\.{_NAME})*"
_TEXT = r"'(?:[^'\\]|\\.)*'"
_PAIR = rf"{_TEXT}\s*=\s*{_TEXT}"
_SLOTS = {
    "table": _PATH,
    "columns": rf"{_PATH}(?:,\s*{_PATH})*",
    "pairs": rf"{_PAIR}(?:,\s*{_PAIR})*",
    "keys": rf"{_TEXT}(?:,\s*{_TEXT})*",
    "feature": _NAME,
    "number": r"[0-9]+",
}
"""Slot → the text that it may hold. Names and texts are always quoted."""
_DATABRICKS = "https://docs.databricks.com/aws/en/"
_SQL = _DATABRICKS + "sql/language-manual/"
_DELTA = "https://docs.delta.io/"


NOWHERE: frozenset[str] = frozenset()
"""No tests run the form."""
UNVERIFIED: Final = "documented, not verified here"


@frozen(kw_only=True)
class StatementForm:
    """One form."""

    id: str
    template: str
    source: str
    example: str
    run_on: frozenset[str] = frozenset({OPEN_SOURCE.name})
    """The dialects on which tests of this project run the form."""

    def matches(self, sql: str) -> bool:
        """Whether a statement is an instance of the form."""
        return _pattern(self.template).fullmatch(sql.strip()) is not None

    @property
    def since(self) -> str:
        """The first Databricks Runtime that has it (``databricks_runtimes``); empty if every supported one."""
        return next((each.first for each in for_form(self.id)), "")

    def evidence(self, dialect: str) -> Literal["", "documented, not verified here"]:
        """Whether tests of this project run the form in a dialect; empty if they do."""
        return "" if dialect in self.run_on else UNVERIFIED


@cache
def _pattern(template: str) -> re.Pattern[str]:
    parts = re.split(r"(\{\w+\}|\s+|\(|\)|,)", template)
    return re.compile("".join(map(_part, parts)), re.DOTALL)


def _part(part: str) -> str:
    if part.startswith("{"):
        return _SLOTS[part[1:-1]]
    if part in {"(", ")"}:
        return rf"\s*\{part}" if part == ")" else r"\s*\(\s*"
    return r"\s+" if part.isspace() else re.escape(part)


FORMS: tuple[StatementForm, ...] = (
    StatementForm(
        id="set properties",
        template="ALTER TABLE {table} SET TBLPROPERTIES ({pairs})",
        source=_SQL + "sql-ref-syntax-ddl-tblproperties",
        example="ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
    ),
    StatementForm(
        id="unset properties",
        template="ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({keys})",
        source=_SQL + "sql-ref-syntax-ddl-tblproperties",
        example="ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS ('owner.team')",
    ),
    StatementForm(
        id="cluster by",
        template="ALTER TABLE {table} CLUSTER BY ({columns})",
        source=_SQL + "sql-ref-syntax-ddl-cluster-by",
        example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY (`customer_id`, `address`.`city`)",
    ),
    StatementForm(
        id="cluster by none",
        template="ALTER TABLE {table} CLUSTER BY NONE",
        source=_SQL + "sql-ref-syntax-ddl-cluster-by",
        example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY NONE",
    ),
    StatementForm(
        id="cluster by auto",
        template="ALTER TABLE {table} CLUSTER BY AUTO",
        source=_SQL + "sql-ref-syntax-ddl-cluster-by",
        example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY AUTO",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="replace partitions by columns",
        template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY ({columns})",
        source=_DATABRICKS + "tables/clustering",
        example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY (`day`, `id`)",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="replace partitions by auto",
        template="ALTER TABLE {table} REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
        source=_DATABRICKS + "tables/clustering",
        example="ALTER TABLE `lake`.`sales`.`orders` REPLACE PARTITIONED BY WITH CLUSTER BY AUTO",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="enable predictive optimization",
        template="ALTER TABLE {table} ENABLE PREDICTIVE OPTIMIZATION",
        source=_DATABRICKS + "optimizations/predictive-optimization",
        example="ALTER TABLE `lake`.`sales`.`orders` ENABLE PREDICTIVE OPTIMIZATION",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="disable predictive optimization",
        template="ALTER TABLE {table} DISABLE PREDICTIVE OPTIMIZATION",
        source=_DATABRICKS + "optimizations/predictive-optimization",
        example="ALTER TABLE `lake`.`sales`.`orders` DISABLE PREDICTIVE OPTIMIZATION",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="inherit predictive optimization",
        template="ALTER TABLE {table} INHERIT PREDICTIVE OPTIMIZATION",
        source=_DATABRICKS + "optimizations/predictive-optimization",
        example="ALTER TABLE `lake`.`sales`.`orders` INHERIT PREDICTIVE OPTIMIZATION",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="set managed",
        template="ALTER TABLE {table} SET MANAGED",
        source=_DATABRICKS + "tables/convert-external-managed",
        example="ALTER TABLE `lake`.`sales`.`orders` SET MANAGED",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="unset managed",
        template="ALTER TABLE {table} UNSET MANAGED",
        source=_DATABRICKS + "tables/convert-external-managed",
        example="ALTER TABLE `lake`.`sales`.`orders` UNSET MANAGED",
        run_on=NOWHERE,
    ),
    StatementForm(
        id="purge",
        template="REORG TABLE {table} APPLY (PURGE)",
        source=_SQL + "delta-reorg-table",
        example="REORG TABLE `lake`.`sales`.`orders` APPLY (PURGE)",
    ),
    StatementForm(
        id="upgrade uniform",
        template="REORG TABLE {table} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {number}))",
        source=_SQL + "delta-reorg-table",
        example="REORG TABLE `lake`.`sales`.`orders` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    ),
    StatementForm(
        id="optimize",
        template="OPTIMIZE {table}",
        source=_SQL + "delta-optimize",
        example="OPTIMIZE `lake`.`sales`.`orders`",
    ),
    StatementForm(
        id="optimize full",
        template="OPTIMIZE {table} FULL",
        source=_SQL + "delta-optimize",
        example="OPTIMIZE `lake`.`sales`.`orders` FULL",
    ),
    StatementForm(
        id="drop feature",
        template="ALTER TABLE {table} DROP FEATURE {feature}",
        source=_DELTA + "delta-drop-feature/",
        example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors`",
    ),
    StatementForm(
        id="drop feature truncate history",
        template="ALTER TABLE {table} DROP FEATURE {feature} TRUNCATE HISTORY",
        source=_DELTA + "delta-drop-feature/",
        example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors` TRUNCATE HISTORY",
    ),
)


def form_of(sql: str) -> StatementForm:
    """The form of a statement. Raises ``ValueError`` if it has none, or several."""
    found = [form for form in FORMS if form.matches(sql)]
    if len(found) != 1:
        raise ValueError(f"the statement has {len(found)} forms: {sql[:200]}")
    return found[0]
