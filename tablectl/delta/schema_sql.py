"""The columns of a new table in SQL, and as a schema in Spark's JSON: each can be made from the other.

In SQL, every name and comment is quoted, and every type is a known one. No engine has to start to read SQL.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tablectl.delta.names import ColumnPath, column_text, quote_name, quote_text
from tablectl.delta.sql_tokens import SqlTextError, SqlToken, sql_tokens
from tablectl.support.json_text import read_json, write_json

_TYPES: Mapping[str, str] = {"long": "BIGINT", "integer": "INT", "short": "SMALLINT", "byte": "TINYINT"}
_PLAIN = frozenset(
    {"string", "double", "float", "boolean", "binary", "date", "timestamp", "timestamp_ntz", "variant", *_TYPES}
)
_SIZED = re.compile(r"(?:decimal\((?P<digits>[0-9]{1,2}),(?P<scale>-?[0-9]{1,2})\)|(?:char|varchar)\([0-9]{1,9}\))\Z")
_MOST_DIGITS = 38
_LENGTH = "__CHAR_VARCHAR_TYPE_STRING"
_KEPT = frozenset({"comment", _LENGTH})
_OWN = ("delta.columnMapping.", "delta.typeChanges")
"""What Delta keeps about the columns of one table, and not of its copy."""
LONGEST = 1_000_000
"""The maximum number of characters of the columns."""
DEEPEST = 50
"""The maximum depth of types within types."""
_SPELLINGS = (
    ("long", ("BIGINT", "LONG")),
    ("integer", ("INT", "INTEGER")),
    ("short", ("SMALLINT", "SHORT")),
    ("byte", ("TINYINT", "BYTE")),
    ("float", ("FLOAT", "REAL")),
    ("timestamp", ("TIMESTAMP", "TIMESTAMP_LTZ")),
    *(
        (each.lower(), (each,))
        for each in ("STRING", "DOUBLE", "BOOLEAN", "BINARY", "DATE", "TIMESTAMP_NTZ", "VARIANT")
    ),
)
_NAMES: Mapping[str, str] = MappingProxyType({word: name for name, words in _SPELLINGS for word in words})
_TEXTS = MappingProxyType({"CHAR": "char", "CHARACTER": "char", "VARCHAR": "varchar"})
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_BEYOND = frozenset({"DEFAULT", "GENERATED", "COLLATE", "CHECK", "PRIMARY", "REFERENCES", "CONSTRAINT"})
"""The words after a column that need a CREATE TABLE of your own."""
_END = SqlToken("", "", 0, 0)


def new_schema(text: str) -> str:
    """A schema in Spark's JSON as a CREATE TABLE can make it: without the ids and names of column mapping, and with
    elements of arrays and values of maps that may be null, for SQL has no other.

    Raises ``ValueError`` for text that is not a schema, and for a column that needs more than a name, a type, NOT NULL
    and a comment: a default, a generated or an identity column.
    """
    try:
        root = read_json(text)
    except ValueError as error:
        raise ValueError(f"it is not the JSON of a Spark schema: {error}") from None
    if not isinstance(root, dict) or root.get("type") != "struct" or not root.get("fields"):
        raise ValueError("it is not the JSON of a Spark schema with columns")
    try:
        return write_json(_struct(root, ()))
    except (KeyError, TypeError, AttributeError):
        raise ValueError("it is not the JSON of a Spark schema") from None
    except RecursionError:
        raise ValueError("its types are nested too deeply") from None


def with_null(schema: str, column: ColumnPath, *, allowed: bool) -> str:
    """The schema with a column that may be null, or may not. A column that is missing changes nothing."""
    root = read_json(schema)
    fields = root["fields"]
    for depth, part in enumerate(column):
        found = next((each for each in fields if each["name"].lower() == part.lower()), None)
        if found is None:
            return schema
        if depth + 1 == len(column):
            found["nullable"] = allowed
        fields = found["type"].get("fields", []) if isinstance(found["type"], dict) else []
    return write_json(root)


def _struct(struct: Mapping[str, Any], above: tuple[str, ...]) -> dict[str, Any]:
    fields = [_field(each, (*above, str(each["name"]))) for each in struct["fields"]]
    names = set[str]()
    for each in fields:
        if each["name"].lower() in names:
            raise ValueError(f"column {column_text((*above, each['name']))} is named twice")
        names.add(each["name"].lower())
    return {"type": "struct", "fields": fields}


def _field(field: Mapping[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    metadata = {key: value for key, value in (field.get("metadata") or {}).items() if not key.startswith(_OWN)}
    other = sorted(metadata.keys() - _KEPT)
    if other:
        raise ValueError(f"column {column_text(path)} has {other[0]}, which needs a CREATE TABLE of your own")
    kind = _type(field["type"], path)
    if isinstance(kind, str) and kind.startswith(("char", "varchar")):
        kind, metadata = "string", {**metadata, _LENGTH: kind}
    return {"name": path[-1], "type": kind, "nullable": field.get("nullable") is not False, "metadata": metadata}


def _type(kind: Any, path: tuple[str, ...]) -> Any:
    match kind:
        case str() if kind in _PLAIN or _SIZED.match(kind):
            found = _SIZED.match(kind)
            digits, scale = (int(found["digits"]), int(found["scale"])) if found and found["digits"] else (0, 0)
            if digits > _MOST_DIGITS or not 0 <= scale <= digits:
                why = f"a decimal has at most {_MOST_DIGITS} digits, and no more than these after the point"
                raise ValueError(f"column {column_text(path)} is {kind}: {why}")
            return kind
        case "decimal":
            return "decimal(10,0)"
        case {"type": "struct"}:
            return _struct(kind, path)
        case {"type": "array", "elementType": inner}:
            return {"type": "array", "elementType": _type(inner, path), "containsNull": True}
        case {"type": "map", "keyType": key, "valueType": value}:
            made = {"keyType": _type(key, path), "valueType": _type(value, path)}
            return {"type": "map", **made, "valueContainsNull": True}
    name = kind if isinstance(kind, str) else "a type of its own"
    raise ValueError(f"column {column_text(path)} is of type {name}, which needs a CREATE TABLE of your own")


def columns_sql(schema: str) -> tuple[str, ...]:
    """The columns of a schema that ``new_schema`` returned, each as SQL."""
    return tuple(_column(each, " ") for each in read_json(schema)["fields"])


def _column(field: Mapping[str, Any], between: str) -> str:
    metadata = field["metadata"]
    kind = metadata[_LENGTH].upper() if field["type"] == "string" and _LENGTH in metadata else _type_sql(field["type"])
    if not _SIZED.match(kind.lower()) and _LENGTH in metadata:
        raise ValueError(f"column {field['name']} has no length in {_LENGTH}")
    null = "" if field["nullable"] else " NOT NULL"
    comment = f" COMMENT {quote_text(str(metadata['comment']))}" if "comment" in metadata else ""
    return f"{quote_name(field['name'])}{between}{kind}{null}{comment}"


def _type_sql(kind: Any) -> str:
    if isinstance(kind, str):
        return _TYPES.get(kind, kind).upper()
    if kind["type"] == "struct":
        return f"STRUCT<{', '.join(_column(each, ': ') for each in kind['fields'])}>"
    if kind["type"] == "array":
        return f"ARRAY<{_type_sql(kind['elementType'])}>"
    return f"MAP<{_type_sql(kind['keyType'])}, {_type_sql(kind['valueType'])}>"


def schema_of_columns(text: str) -> str:
    """The schema of columns such as ``id BIGINT NOT NULL, day DATE``. Raises ``SqlTextError``.

    The grammar is that of ``StructType.fromDDL`` (``singleTableSchema`` of ``SqlBaseParser.g4`` in Spark 4).
    """
    if len(text) > LONGEST:
        raise SqlTextError(1, f"the columns have more than {LONGEST:,} characters")
    reader = _Reader(tuple(sql_tokens(text)))
    fields = reader.fields(within=0)
    if reader.at < len(reader.tokens):
        raise reader.error("a comma or the end is expected here")
    return write_json({"type": "struct", "fields": fields})


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[SqlToken]) -> None:
        self.tokens, self.at = tokens, 0

    def error(self, what: str) -> SqlTextError:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            return SqlTextError(token.line, f"{what}, and found {token.text[:60]}")
        return SqlTextError(self.tokens[-1].line if self.tokens else 1, f"{what}, and the text ends")

    def fields(self, within: int) -> list[dict[str, Any]]:
        found = [self._field(within)]
        while self._take(","):
            found.append(self._field(within))
        return found

    def _field(self, within: int) -> dict[str, Any]:
        name = self._peek().identifier
        if not name:
            raise self.error("the name of a column is expected")
        self.at += 1
        if within:
            self._take(":")
        kind, nullable, metadata = self._type(within), True, {}
        if self._take("NOT"):
            self._must("NULL")
            nullable = False
        if self._take("COMMENT"):
            if self._peek().kind != "text":
                raise self.error("a comment in quotes is expected")
            metadata = {"comment": self._peek().value}
            self.at += 1
        if self._peek().word in _BEYOND:
            raise self.error(f"column {name} needs a CREATE TABLE of your own")
        return {"name": name, "type": kind, "nullable": nullable, "metadata": metadata}

    def _type(self, within: int) -> Any:
        if within > DEEPEST:
            raise self.error(f"types are nested more than {DEEPEST} deep")
        word = self._peek().word
        if word in {"STRUCT", "ARRAY", "MAP"}:
            self.at += 1
            self._must("<")
            made = self._nested(word, within + 1)
            self._must(">")
            return made
        if word in _NAMES:
            self.at += 1
            return _NAMES[word]
        if word in _DECIMALS:
            self.at += 1
            given = self._numbers()
            precision, scale = (*given, *("10", "0")[len(given) :])[:2]
            return f"decimal({precision},{scale})"
        if word in _TEXTS:
            self.at += 1
            given = self._numbers()
            if len(given) == 1:
                return f"{_TEXTS[word]}({given[0]})"
            raise self.error(f"the length of {word} is expected before this")
        raise self.error("a type that tablectl knows is expected")

    def _nested(self, word: str, within: int) -> dict[str, Any]:
        if word == "STRUCT":
            return {"type": "struct", "fields": self.fields(within)}
        if word == "ARRAY":
            return {"type": "array", "elementType": self._type(within), "containsNull": True}
        key = self._type(within)
        self._must(",")
        return {"type": "map", "keyType": key, "valueType": self._type(within), "valueContainsNull": True}

    def _numbers(self) -> tuple[str, ...]:
        """The numbers in parentheses; none without parentheses."""
        found: list[str] = []
        if self._take("("):
            while self._peek().text.isdecimal():
                found.append(self._peek().text)
                self.at += 1
                if not self._take(","):
                    break
            self._must(")")
        return tuple(found)

    def _peek(self) -> SqlToken:
        return self.tokens[self.at] if self.at < len(self.tokens) else _END

    def _take(self, what: str) -> bool:
        """Whether a mark or a word comes next, which is then read."""
        token = self._peek()
        found = token.kind in {"mark", "word"} and token.text.upper() == what
        self.at += found
        return found

    def _must(self, what: str) -> None:
        if not self._take(what):
            raise self.error(f"{what} is expected")
