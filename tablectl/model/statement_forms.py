"""The forms of the SQL statements that tablectl can send: a closed table. Each statement is an instance of exactly one.

A form is a template with slots. Between its words, any white space is equal. Which forms this project has run is part
of the table: no statement was ever run on Databricks here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tablectl.delta.dialects import OPEN_SOURCE

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
_SQL = "https://docs.databricks.com/aws/en/sql/language-manual/"
_DELTA = "https://docs.delta.io/"


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementForm:
    """One form."""

    id: str
    template: str
    since: str
    """The first Databricks Runtime that has it, by its documentation; empty if every supported one."""
    source: str
    example: str
    run_on: frozenset[str] = frozenset({OPEN_SOURCE.name})
    """The dialects on which tests of this project run the form."""

    def matches(self, sql: str) -> bool:
        """Whether a statement is an instance of the form."""
        return re.fullmatch(_pattern(self.template), sql.strip(), re.DOTALL) is not None

    def evidence(self, dialect: str) -> str:
        """What is known about the form in a dialect, for people."""
        return "run by the tests of tablectl" if dialect in self.run_on else "documented, not verified here"


def _pattern(template: str) -> str:
    parts = re.split(r"(\{\w+\}|\s+|\(|\)|,)", template)
    return "".join(map(_part, parts))


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
        since="",
        source=_SQL + "sql-ref-syntax-ddl-tblproperties",
        example="ALTER TABLE `lake`.`sales`.`orders` SET TBLPROPERTIES ('delta.isolationLevel' = 'Serializable')",
    ),
    StatementForm(
        id="unset properties",
        template="ALTER TABLE {table} UNSET TBLPROPERTIES IF EXISTS ({keys})",
        since="",
        source=_SQL + "sql-ref-syntax-ddl-tblproperties",
        example="ALTER TABLE `lake`.`sales`.`orders` UNSET TBLPROPERTIES IF EXISTS ('owner.team')",
    ),
    StatementForm(
        id="cluster by",
        template="ALTER TABLE {table} CLUSTER BY ({columns})",
        since="15.4",
        source=_SQL + "sql-ref-syntax-ddl-cluster-by",
        example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY (`customer_id`, `address`.`city`)",
    ),
    StatementForm(
        id="cluster by none",
        template="ALTER TABLE {table} CLUSTER BY NONE",
        since="15.4",
        source=_SQL + "sql-ref-syntax-ddl-cluster-by",
        example="ALTER TABLE `lake`.`sales`.`orders` CLUSTER BY NONE",
    ),
    StatementForm(
        id="purge",
        template="REORG TABLE {table} APPLY (PURGE)",
        since="",
        source=_SQL + "delta-reorg-table",
        example="REORG TABLE `lake`.`sales`.`orders` APPLY (PURGE)",
    ),
    StatementForm(
        id="upgrade uniform",
        template="REORG TABLE {table} APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = {number}))",
        since="",
        source=_SQL + "delta-reorg-table",
        example="REORG TABLE `lake`.`sales`.`orders` APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))",
    ),
    StatementForm(
        id="optimize",
        template="OPTIMIZE {table}",
        since="",
        source=_SQL + "delta-optimize",
        example="OPTIMIZE `lake`.`sales`.`orders`",
    ),
    StatementForm(
        id="optimize full",
        template="OPTIMIZE {table} FULL",
        since="16.0",
        source=_SQL + "delta-optimize",
        example="OPTIMIZE `lake`.`sales`.`orders` FULL",
    ),
    StatementForm(
        id="drop feature",
        template="ALTER TABLE {table} DROP FEATURE {feature}",
        since="16.3",
        source=_DELTA + "delta-drop-feature/",
        example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors`",
    ),
    StatementForm(
        id="drop feature truncate history",
        template="ALTER TABLE {table} DROP FEATURE {feature} TRUNCATE HISTORY",
        since="14.3",
        source=_DELTA + "delta-drop-feature/",
        example="ALTER TABLE `lake`.`sales`.`orders` DROP FEATURE `deletionVectors` TRUNCATE HISTORY",
    ),
)
