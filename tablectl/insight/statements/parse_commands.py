"""Parse the statements that change settings, files or the whole table, which sqlglot does not read.

The forms are those of Delta's grammar (``DeltaSqlBase.g4`` of Delta 4.4.0), of Spark's ``ALTER TABLE``, and ``COPY
INTO`` of Databricks. Any other text raises a ``StatementError`` that names the accepted forms.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from sqlglot import exp

from tablectl.delta.keys import CONSTRAINTS
from tablectl.delta.names import ColumnPath, column_text
from tablectl.insight.statements.command_actions import (
    Action,
    Alter,
    NoCommit,
    Rearrange,
    Replace,
    Send,
    StatementError,
    Undocumented,
    Whole,
    shown_start,
)
from tablectl.insight.statements.command_tokens import TokenReader, first_word, tokens_of
from tablectl.model.commit_contents import Kind, MetadataChange
from tablectl.model.operations import ClusterBy, DropFeature, SetProperties, UnsetProperties, UpgradeUniform

_ALTER_FORMS = (
    "SET TBLPROPERTIES ('key' = 'value', …)",
    "UNSET TBLPROPERTIES [IF EXISTS] ('key', …)",
    "CLUSTER BY (column, …) or NONE",
    "ADD COLUMNS (name type, …)",
    "RENAME COLUMN a TO b",
    "DROP COLUMN name",
    "REPLACE COLUMNS (name type, …)",
    (
        "ALTER COLUMN name COMMENT '…', TYPE type, SET NOT NULL, DROP NOT NULL, SET DEFAULT value, DROP DEFAULT, "
        "FIRST, AFTER column or SYNC IDENTITY"
    ),
    "ADD CONSTRAINT name CHECK (condition)",
    "DROP CONSTRAINT [IF EXISTS] name",
    "DROP FEATURE name [TRUNCATE HISTORY]",
    "RENAME TO, SET LOCATION, SET TAGS, OWNER TO",
)
FORMS: Mapping[str, str] = MappingProxyType(
    {
        "ALTER": f"ALTER TABLE table, followed by {'; '.join(_ALTER_FORMS)}",
        "COMMENT": "COMMENT ON TABLE table IS '…', or COMMENT ON COLUMN table.column IS '…'",
        "OPTIMIZE": "OPTIMIZE table [FULL] [WHERE condition] [ZORDER BY (column, …)]",
        "REORG": "REORG TABLE table [WHERE condition] APPLY (PURGE), or REORG TABLE table APPLY (UPGRADE UNIFORM "
        "(ICEBERG_COMPAT_VERSION = 2))",
        "RESTORE": "RESTORE TABLE table TO VERSION AS OF number, or TO TIMESTAMP AS OF '…'",
        "CREATE": "CREATE OR REPLACE TABLE table […] [AS SELECT …], or … SHALLOW CLONE source",
        "REPLACE": "REPLACE TABLE table […] [AS SELECT …]",
        "VACUUM": "VACUUM table [FULL | LITE] [RETAIN number HOURS] [DRY RUN]",
        "COPY": "COPY INTO table FROM … FILEFORMAT = …",
    }
)
"""The first word of a statement → its accepted forms."""


@dataclass(frozen=True, slots=True)
class Command:
    """A parsed statement."""

    verb: str
    """For people: ``ALTER TABLE … SET TBLPROPERTIES``."""
    action: Action
    table: exp.Table
    condition: tuple[int, int] | None = None
    """Where the condition of its WHERE begins and ends in the text."""


def parse_command(sql: str) -> Command | None:
    """The command in a text; ``None`` if its first word begins none. Raises ``StatementError``."""
    first = first_word(sql)
    parse = _PARSERS.get(first)
    if parse is None:
        return None
    kept = list(tokens_of(sql))
    while kept[-1].text == ";":
        kept.pop()
    count = 1 + sum(token.text == ";" for token in kept)
    if count > 1:
        raise StatementError(f"one statement is expected, and {shown_start(sql)} holds {count}", "give each by itself")
    reader = TokenReader(sql, kept, FORMS[first])
    reader.take(first)
    found = parse(reader)
    reader.end()
    return found


def _alter(reader: TokenReader) -> Command:
    reader.expect("TABLE")
    table = reader.table()
    for words, verb, parse in _ALTERS:
        if reader.take(*words):
            return Command(f"ALTER TABLE … {verb}", parse(reader), table)
    return reader.fail("one of the forms of ALTER TABLE")


def _set_properties(reader: TokenReader) -> Action:
    pairs: list[tuple[str, str]] = []
    reader.expect("(")
    while True:
        key = _key(reader)
        reader.take("=")
        pairs.append((key, reader.text() if reader.is_text() else _plain_value(reader)))
        if not reader.take(","):
            break
    reader.expect(")")
    return Send(SetProperties(tuple(dict(pairs).items())))


def _plain_value(reader: TokenReader) -> str:
    """A value without quotes: a number, ``true`` or ``false``."""
    sign = "-" if reader.take("-") else ""
    word = reader.peek()
    if not (word in {"TRUE", "FALSE"} and not sign) and not word.replace(".", "", 1).isdecimal():
        reader.fail("a value in quotes")
    reader.skip(1)
    return sign + word.lower()


def _key(reader: TokenReader) -> str:
    return reader.text() if reader.is_text() else ".".join(reader.path())


def _unset_properties(reader: TokenReader) -> Action:
    reader.take("IF", "EXISTS")
    reader.expect("(")
    keys = [_key(reader)]
    while reader.take(","):
        keys.append(_key(reader))
    reader.expect(")")
    return Send(UnsetProperties(tuple(dict.fromkeys(keys))))


def _cluster(reader: TokenReader) -> Action:
    if reader.take("NONE"):
        return Send(ClusterBy(()))
    if reader.take("AUTO"):
        return Send(ClusterBy(("AUTO",)))
    return Send(ClusterBy(tuple(map(column_text, _columns(reader)))))


def _columns(reader: TokenReader) -> tuple[ColumnPath, ...]:
    """Columns in brackets."""
    reader.expect("(")
    columns = [reader.path()]
    while reader.take(","):
        columns.append(reader.path())
    reader.expect(")")
    return tuple(columns)


def _add_constraint(reader: TokenReader) -> Action:
    name = "" if reader.peek() == "CHECK" else reader.name()
    if reader.peek() in {"PRIMARY", "FOREIGN"}:
        reader.rest()
        return Undocumented(Kind.ADD_CONSTRAINT, "primary and foreign keys are kept in Unity Catalog")
    reader.expect("CHECK")
    reader.group()
    key = f"{CONSTRAINTS}{(name or 'unnamed').lower()}"
    return Alter(Kind.ADD_CONSTRAINT, MetadataChange(sets=((key, ""),)), scans=True)


def _drop_constraint(reader: TokenReader) -> Action:
    reader.take("IF", "EXISTS")
    key = f"{CONSTRAINTS}{reader.name().lower()}"
    return Alter(Kind.DROP_CONSTRAINT, MetadataChange(removes=(key,)))


def _drop_feature(reader: TokenReader) -> Action:
    name = reader.text() if reader.is_text() else reader.name()
    return Send(DropFeature(name, truncate_history=reader.take("TRUNCATE", "HISTORY")))


_OTHER_SCHEMA = MetadataChange(schema="other")
_CHANGE_COLUMN = Alter(Kind.CHANGE_COLUMN, _OTHER_SCHEMA)
_COMMENT_COLUMN = Alter(Kind.COMMENT_COLUMN, _OTHER_SCHEMA)
_WIDEN_COLUMN = Alter(Kind.WIDEN_COLUMN, _OTHER_SCHEMA)


def _add_columns(reader: TokenReader) -> Action:
    reader.take("IF", "NOT", "EXISTS")
    bracket = reader.take("(")
    for length in reader.items():
        if length < 2:  # a name and a type
            reader.fail("a column with its type")
        reader.skip(length)
        reader.take(",")
    if bracket:
        reader.expect(")")
    return Alter(Kind.ADD_COLUMNS, _OTHER_SCHEMA)


def _replace_columns(reader: TokenReader) -> Action:
    _add_columns(reader)
    return _CHANGE_COLUMN


def _drop_columns(reader: TokenReader) -> Action:
    reader.take("IF", "EXISTS")
    if reader.peek() == "(":
        _columns(reader)
    else:
        reader.path()
        while reader.take(","):
            reader.path()
    return _CHANGE_COLUMN


def _rename_column(reader: TokenReader) -> Action:
    reader.path()
    reader.expect("TO")
    reader.name()
    return _CHANGE_COLUMN


_COLUMN_FORMS: tuple[tuple[tuple[str, ...], Alter], ...] = (
    (("SET", "NOT", "NULL"), Alter(Kind.SET_NOT_NULL, _OTHER_SCHEMA, scans=True)),
    (("DROP", "NOT", "NULL"), _CHANGE_COLUMN),
    (("SET", "DEFAULT"), _CHANGE_COLUMN),
    (("DROP", "DEFAULT"), _CHANGE_COLUMN),
    (("SYNC", "IDENTITY"), Alter(Kind.CHANGE_COLUMN, _OTHER_SCHEMA, scans=True)),
    (("COMMENT",), _COMMENT_COLUMN),
    (("TYPE",), _WIDEN_COLUMN),
    (("FIRST",), _CHANGE_COLUMN),
    (("AFTER",), _CHANGE_COLUMN),
)
_WITH_MORE = {("SET", "DEFAULT"), ("COMMENT",), ("TYPE",), ("AFTER",)}
"""Words that more must follow."""


def _alter_column(reader: TokenReader) -> Action:
    changes: list[Alter] = []
    for length in reader.items():
        changes.append(_change_of_column(reader, length))
        reader.take(",")
    # The changes of several columns by one statement
    kinds = {each.kind for each in changes}
    if len(kinds) == 1:
        kind = changes[0].kind
    elif Kind.SET_NOT_NULL in kinds:
        kind = Kind.SET_NOT_NULL
    else:
        kind = Kind.CHANGE_COLUMN
    return Alter(kind, _OTHER_SCHEMA, scans=any(each.scans for each in changes))


def _change_of_column(reader: TokenReader, length: int) -> Alter:
    """The change of one column; ``CHANGE COLUMN old new type`` gives all of its definition."""
    before = reader.left
    name = reader.path()
    left = length - (before - reader.left)
    found = next(((words, change) for words, change in _COLUMN_FORMS if reader.take(*words)), None)
    if found is None:
        again = reader.path()
        left -= len(again) * 2 - 1
        if left < 1:
            reader.fail("a change of the column")
        reader.skip(left)
        return _WIDEN_COLUMN if again[-1].casefold() == name[-1].casefold() else _CHANGE_COLUMN
    words, change = found
    left -= len(words)
    if (left > 0) is not (words in _WITH_MORE):
        reader.fail("a change of the column")
    reader.skip(left)
    return change


def _elsewhere(why: str) -> Callable[[TokenReader], Action]:
    def parse(reader: TokenReader) -> Action:
        reader.at_least_one()
        reader.rest()
        return NoCommit(why)

    return parse


_CATALOG = "it changes the catalog's entry, not the log of the table"
_ALTERS: tuple[tuple[tuple[str, ...], str, Callable[[TokenReader], Action]], ...] = (
    (("SET", "TBLPROPERTIES"), "SET TBLPROPERTIES", _set_properties),
    (("UNSET", "TBLPROPERTIES"), "UNSET TBLPROPERTIES", _unset_properties),
    (("CLUSTER", "BY"), "CLUSTER BY", _cluster),
    (("ADD", "CONSTRAINT"), "ADD CONSTRAINT", _add_constraint),
    (("DROP", "CONSTRAINT"), "DROP CONSTRAINT", _drop_constraint),
    (("DROP", "FEATURE"), "DROP FEATURE", _drop_feature),
    (("ADD", "COLUMNS"), "ADD COLUMNS", _add_columns),
    (("ADD", "COLUMN"), "ADD COLUMNS", _add_columns),
    (("DROP", "COLUMNS"), "DROP COLUMN", _drop_columns),
    (("DROP", "COLUMN"), "DROP COLUMN", _drop_columns),
    (("RENAME", "COLUMN"), "RENAME COLUMN", _rename_column),
    (("REPLACE", "COLUMNS"), "REPLACE COLUMNS", _replace_columns),
    (("RENAME", "TO"), "RENAME TO", _elsewhere(_CATALOG)),
    (("SET", "LOCATION"), "SET LOCATION", _elsewhere(_CATALOG)),
    (("SET", "TAGS"), "SET TAGS", _elsewhere(_CATALOG)),
    (("UNSET", "TAGS"), "UNSET TAGS", _elsewhere(_CATALOG)),
    (("SET", "OWNER", "TO"), "OWNER TO", _elsewhere(_CATALOG)),
    (("OWNER", "TO"), "OWNER TO", _elsewhere(_CATALOG)),
    (("ALTER", "COLUMN"), "ALTER COLUMN", _alter_column),
    (("CHANGE", "COLUMN"), "ALTER COLUMN", _alter_column),
    (("ALTER",), "ALTER COLUMN", _alter_column),
    (("CHANGE",), "ALTER COLUMN", _alter_column),
)


def _comment(reader: TokenReader) -> Command:
    reader.expect("ON")
    if reader.take("TABLE"):
        found = Command("COMMENT ON TABLE", Alter(Kind.SET_PROPERTIES, MetadataChange(described=True)), reader.table())
    else:
        reader.expect("COLUMN")
        # A table and a column as one name. Which parts are those of the column is known where the table is.
        parts = reader.path()
        if len(parts) == 1:
            reader.fail("a table and a column")
        found = Command(
            "COMMENT ON COLUMN",
            _COMMENT_COLUMN,
            exp.Table(this=exp.Dot.build([exp.to_identifier(each) for each in parts])),
        )
    reader.expect("IS")
    if not reader.take("NULL"):
        reader.text()
    return found


def _optimize(reader: TokenReader) -> Command:
    table = reader.table(location=True)
    reader.take("FULL")
    condition = reader.until(("ZORDER", "BY")) if reader.take("WHERE") else None
    zorder = reader.take("ZORDER", "BY")
    if zorder and reader.peek() == "(":
        _columns(reader)
    elif zorder:
        reader.path()
        while reader.take(","):
            reader.path()
    return Command("OPTIMIZE", Rearrange(Kind.OPTIMIZE, zorder), table, condition)


def _reorg(reader: TokenReader) -> Command:
    reader.expect("TABLE")
    table = reader.table()
    condition = reader.until(("APPLY", "(")) if reader.take("WHERE") else None
    reader.expect("APPLY", "(")
    if reader.take("PURGE"):
        reader.expect(")")
        return Command("REORG", Rearrange(Kind.REORG), table, condition)
    if condition is not None:
        reader.fail("PURGE")
    reader.expect("UPGRADE", "UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
    version = reader.number()
    reader.expect(")", ")")
    return Command("REORG … UPGRADE UNIFORM", Send(UpgradeUniform(version)), table)


def _restore(reader: TokenReader) -> Command:
    reader.take("TABLE")
    table = reader.table()
    reader.take("TO")
    reader.take("FOR")
    if not any(reader.take(word, "AS", "OF") for word in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")):
        reader.fail("VERSION AS OF or TIMESTAMP AS OF")
    reader.at_least_one()
    reader.rest()
    return Command("RESTORE", Whole(Kind.RESTORE), table)


def _create(reader: TokenReader) -> Command:
    if reader.take("OR", "REPLACE"):
        return _replace(reader)
    if reader.take("TABLE", "IF", "NOT", "EXISTS"):
        table = reader.table()
        reader.rest()
        return Command("CREATE TABLE IF NOT EXISTS", NoCommit("the table exists already"), table)
    return reader.fail("OR REPLACE")


def _replace(reader: TokenReader) -> Command:
    reader.expect("TABLE")
    table = reader.table()
    if reader.take("SHALLOW") or reader.take("DEEP") or reader.peek() == "CLONE":
        reader.expect("CLONE")
        reader.table()
        reader.rest()
        return Command("REPLACE TABLE … CLONE", Whole(Kind.CLONE), table)
    return Command("REPLACE TABLE", _definition(reader), table)


def _definition(reader: TokenReader) -> Replace:
    """The clauses of a table definition, of which partitions, clustering and the query matter."""
    partitions: tuple[str, ...] = ()
    clustering: tuple[ColumnPath, ...] | None = None
    while not reader.ended:
        if reader.take("PARTITIONED", "BY"):
            # Partition columns; without AS SELECT they may come with their types
            reader.expect("(")
            names = []
            for length in reader.items():
                before = reader.left
                names.append(reader.path()[-1])
                reader.skip(max(0, length - (before - reader.left)))
                reader.take(",")
            reader.expect(")")
            partitions = tuple(names)
        elif reader.take("CLUSTER", "BY"):
            clustering = (("AUTO",),) if reader.take("AUTO") else () if reader.take("NONE") else _columns(reader)
        elif reader.peek() == "(":
            reader.group()
        elif reader.take("AS") or reader.peek() in {"SELECT", "WITH"}:
            reader.at_least_one()
            reader.rest()
            return Replace(partitions, clustering, query=True)
        else:
            reader.skip(1)
    return Replace(partitions, clustering)


def _vacuum(reader: TokenReader) -> Command:
    table, dry = reader.table(location=True), False
    while not reader.ended:
        if reader.take("DRY", "RUN"):
            dry = True
        elif reader.take("RETAIN"):
            _plain_value(reader)
            reader.expect("HOURS")
        elif reader.take("USING", "INVENTORY"):
            reader.group() if reader.peek() == "(" else reader.path()
        elif not reader.take("FULL") and not reader.take("LITE"):
            reader.fail("FULL, LITE, RETAIN, USING INVENTORY or DRY RUN")
    return Command("VACUUM", NoCommit("a dry run deletes nothing") if dry else Whole(Kind.VACUUM), table)


def _copy(reader: TokenReader) -> Command:
    reader.expect("INTO")
    table = reader.table()
    reader.take("BY", "POSITION")
    if reader.peek() == "(":
        reader.group()
    reader.expect("FROM")
    rest = reader.rest()
    if not any(token.word == "FILEFORMAT" for token in rest):
        reader.fail("FILEFORMAT")
    return Command("COPY INTO", Whole(Kind.COPY_INTO), table)


_PARSERS: Mapping[str, Callable[[TokenReader], Command]] = MappingProxyType(
    {
        "ALTER": _alter,
        "COMMENT": _comment,
        "OPTIMIZE": _optimize,
        "REORG": _reorg,
        "RESTORE": _restore,
        "CREATE": _create,
        "REPLACE": _replace,
        "VACUUM": _vacuum,
        "COPY": _copy,
    }
)
