"""The columns of a table in SQL, as the JSON of a Spark schema: no engine has to start to read them.

The grammar is that of ``StructType.fromDDL`` (``singleTableSchema`` of ``SqlBaseParser.g4`` in Spark 4).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tablectl.delta.sql_tokens import SqlToken, sql_tokens
from tablectl.support.json_text import write_json

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
_TYPES: Mapping[str, str] = MappingProxyType({word: name for name, words in _SPELLINGS for word in words})
_TEXTS = MappingProxyType({"CHAR": "char", "CHARACTER": "char", "VARCHAR": "varchar"})
_DECIMALS = frozenset({"DECIMAL", "DEC", "NUMERIC"})
_OWN = frozenset({"DEFAULT", "GENERATED", "COLLATE", "CHECK", "PRIMARY", "REFERENCES", "CONSTRAINT"})


def schema_of_columns(text: str) -> str:
    """The schema of columns such as ``id BIGINT NOT NULL, day DATE``. Raises ``ValueError`` with the line."""
    if len(text) > LONGEST:
        raise ValueError(f"line 1: the columns have more than {LONGEST:,} characters")
    reader = _Reader(tuple(sql_tokens(text)))
    fields = reader.fields(within=0)
    if reader.at < len(reader.tokens):
        raise reader.error("a comma or the end is expected here")
    return write_json({"type": "struct", "fields": fields})


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, tokens: Sequence[SqlToken]) -> None:
        self.tokens, self.at = tokens, 0

    def error(self, what: str) -> ValueError:
        if self.at < len(self.tokens):
            token = self.tokens[self.at]
            return ValueError(f"line {token.line}: {what}, and found {token.text[:60]}")
        line = self.tokens[-1].line if self.tokens else 1
        return ValueError(f"line {line}: {what}, and the text ends")

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
            metadata = {"comment": self._peek().string}
            self.at += 1
        if self._peek().word in _OWN:
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
        if word in _TYPES:
            self.at += 1
            return _TYPES[word]
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


_END = SqlToken("", "", 0)
