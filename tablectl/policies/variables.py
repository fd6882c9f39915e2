"""Variables in policies, and the names of tables and columns that are written with them. ``${NAME}`` comes from
``--var NAME=…``, otherwise from ``TABLECTL_VAR_NAME``, otherwise from ``variables:`` in ``tablectl.yaml``.

An empty ``TABLECTL_VAR_NAME`` counts as not set, and an empty ``--var NAME=`` is an error: CI systems pass the empty
text for a variable that they do not know. Only ``tablectl.yaml`` can declare an empty value, because people review it.

``$${`` is a literal ``${``. Text without the form of a variable, such as ``${env:HOME}``, is literal. Values are
inserted after identifiers are split into parts, so that no value can end a quoted part or start another.

Keys of ``tables`` can be patterns. In the pattern of a catalog name, globs are outside backticks, and a part in
backticks is literal. A path is always in backticks, so its globs are inside them. The value of a variable is literal in
both.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from tablectl.delta.names import (
    NameSyntaxError,
    TableName,
    column_text,
    how_to_quote,
    parse_column,
    parse_table,
    quote_name,
    split_parts,
)
from tablectl.model.patterns import (
    MAGIC,
    TablePattern,
    check_glob,
    escape_glob,
    literal_text,
    make_catalog_pattern,
    make_path_pattern,
)

ENVIRON_PREFIX = "TABLECTL_VAR_"
VARIABLE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TOKEN = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED_OR_BARE = re.compile(rf"`(?:[^`]|``)*`|(?:[A-Za-z0-9_]|{VARIABLE})+")
_CONTROL = re.compile("[\\x00-\\x1f\\x7f-\\x9f\\u2028\\u2029]")
LONGEST_NAME = 4096


class UndefinedVariableError(ValueError):
    """A text uses undefined variables, or such that are given as the empty text."""

    def __init__(self, names: tuple[str, ...], hint: str, empty: Collection[str] = ()) -> None:
        super().__init__(f"undefined: {', '.join(names)}")
        self.message = " and ".join(
            f"the variable {name} is {'empty' if name in empty else 'not defined'}" for name in names
        )
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Variables:
    """The sources of values. ``given`` overrides ``environ``, which overrides ``configured``."""

    given: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    configured: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    """The environment of ``configured``; empty if none was selected."""
    environments: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The variables that each environment defines."""

    def expand(self, text: str, quote: Callable[[str], str] = str) -> str:
        """The text with every variable replaced once: values are not expanded again. ``quote`` is applied to each
        value.

        Raises ``UndefinedVariableError``.
        """
        if "${" not in text:
            return text
        values = {name: self._find(name) for name in variables_of(text)}
        missing = tuple(name for name, value in values.items() if value is None)
        if missing:
            empty = {name for name in missing if name in self.given or ENVIRON_PREFIX + name in self.environ}
            raise UndefinedVariableError(missing, self._fix(missing[0]), empty)
        return _TOKEN.sub(lambda token: quote(values[token[1]] or "") if token[1] else "${", text)

    def private(self, text: str) -> tuple[str, ...]:
        """The variables in a text whose values no error may repeat: those from ``--var`` and the environment, which can
        be secrets. Values in ``tablectl.yaml`` are in the repository.
        """
        known = variables_of(text) if "${" in text else ()
        return tuple(name for name in known if name in self.given or self.environ.get(ENVIRON_PREFIX + name))

    def private_values(self, names: Collection[str] | None = None) -> frozenset[str]:
        """The values of variables of the command line and the environment: of all, or of those with some names."""
        found = {key.removeprefix(ENVIRON_PREFIX): value for key, value in self.environ.items() if _of_environ(key)}
        found |= self.given
        return frozenset(value for name, value in found.items() if value and (names is None or name in names))

    def _find(self, name: str) -> str | None:
        if name in self.given:
            return self.given[name] or None
        return self.environ.get(ENVIRON_PREFIX + name) or self.configured.get(name)

    def check_start(self, location: str) -> None:
        """Raises ``NameSyntaxError`` for a location that begins with an empty variable: ``${LAKE}/orders`` would be
        ``/orders``, an absolute location elsewhere.
        """
        first = _TOKEN.match(location)
        if first and first[1] and self._find(first[1]) == "":
            raise NameSyntaxError(f"the variable {first[1]} is empty, and the location {location!r} begins with it")

    def _fix(self, name: str) -> str:
        by_hand = f"give it with --var {name}=… or in {ENVIRON_PREFIX}{name}"
        if self.environment:
            return f"add it to `env.{self.environment}.variables` of tablectl.yaml, or {by_hand}"
        givers = [f"--env {each}" for each, names in self.environments.items() if name in names]
        return f"environments give it: {' or '.join(givers)}; or {by_hand}" if givers else by_hand

    def expand_parts(self, text: str, split: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
        """The parts that ``split`` finds in a name, each expanded separately, so that no value can add or end a part.

        Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
        """
        if len(text) > LONGEST_NAME:
            raise NameSyntaxError(f"a name of {len(text)} characters: at most {LONGEST_NAME} are taken")
        self.expand(text)  # reports all undefined variables, not only those of the first part
        parts = tuple(self.expand(part) for part in split(text))
        if not all(parts):
            raise NameSyntaxError(f"a variable in {text!r} is empty, and a name needs every part")
        return parts


def _of_environ(key: str) -> bool:
    return key.startswith(ENVIRON_PREFIX)


def is_variable(name: str) -> bool:
    """Whether a text is a valid variable name."""
    return _NAME.match(name) is not None


def escape_variables(text: str) -> str:
    """The text that ``expand`` turns into this text."""
    return text.replace("${", "$${") if _TOKEN.search(text) else text


def variables_of(text: str) -> tuple[str, ...]:
    """The names of the variables in a text, in order, without duplicates."""
    return tuple(dict.fromkeys(name for name in _TOKEN.findall(text) if name))


def quote_variables(text: str) -> str:
    """An identifier with backticks around each bare part that contains a variable, so that it can be split like any
    other.
    """

    def quote(match: re.Match[str]) -> str:
        found = match.group()
        return f"`{found}`" if "$" in found and not found.startswith("`") else found

    return _QUOTED_OR_BARE.sub(quote, text)


def read_table(text: str, variables: Variables, catalog: str) -> TableName:
    """The table that an identifier with variables names. Two parts mean schema and table in ``catalog``.

    Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
    """
    parts = variables.expand_parts(text, _split_table)
    if path := _PATH.fullmatch(text):
        variables.check_start(path[1])
    check_characters(parts)
    return parse_table(".".join(quote_name(part) for part in parts) if "${" in text else text, catalog)


def typed_place(text: str) -> str | None:
    """The absolute location that a text in a shell means: ``/data/lake``, ``./lake``, ``s3://lake``; ``None`` for a
    name. Backticks, which shells take for commands, are not needed.
    """
    if "://" in text and "`" not in text:
        return text.rstrip("/")
    if text in {".", ".."} or text.startswith(("/", "./", "../", "~/")):
        return os.path.abspath(os.path.expanduser(text))  # noqa: PTH100, PTH111  # links are kept, as in policies
    return None


def read_location(text: str, variables: Variables) -> str:
    """An absolute location, in the form of a path table's location. Raises as ``read_table``."""
    location = variables.expand(text)
    variables.check_start(text)
    check_characters((location,))
    return parse_table(f"delta.{quote_name(location)}").parts[0]


def read_column(text: str, variables: Variables) -> str:
    """A column in its shortest spelling. Raises as ``read_table``."""
    parts = variables.expand_parts(text, _split_table if "`" in text else parse_column)
    check_characters(parts)
    return column_text(parts)


def why_unusable(text: str) -> str:
    """Why a text cannot be stored; empty if it can. No engine stores NUL, and a lone surrogate is not valid text."""
    if "\0" in text:
        return "it holds a NUL character"
    if not text.isprintable() and any("\ud800" <= char <= "\udfff" for char in text):
        return "it holds half a character (a lone surrogate)"
    return ""


def why_no_name(text: str) -> str:
    """Why a text cannot be a name or a key; empty if it can. A control character or the end of a line in a name would
    begin a line of its own in what is generated from it and in a log.
    """
    found = _CONTROL.search(text)
    return why_unusable(text) or (f"it holds the control character U+{ord(found[0]):04X}" if found else "")


def _split_table(text: str) -> tuple[str, ...]:
    return split_parts(quote_variables(text))


def check_characters(parts: tuple[str, ...]) -> None:
    """Raises ``NameSyntaxError`` if a part of a name cannot be one."""
    for part in parts:
        reason = why_no_name(part)
        if reason:
            raise NameSyntaxError(f"{part!r} is not a valid name: {reason}")


Target = TableName | TablePattern

_PATH = re.compile(r"delta\.`((?:[^`]|``)*)`", re.IGNORECASE)
_PART = re.compile(rf"`((?:[^`]|``)*)`(?!`)|((?:[A-Za-z0-9_*?]|\[[^\]`.]*\]|{VARIABLE})+)")
_QUOTED = re.compile(r"`(?:[^`]|``)*`")


_BARE_LOCATION = re.compile(r"(?:\$\{\w+\}/|\.{0,2}/|~/|[a-z][a-z0-9+.-]*://)[^`]*\Z", re.ASCII)
"""A key that is a location as people type it."""


def read_table_key(text: str, variables: Variables, catalog: str) -> Target:
    """The table or pattern that a key of ``tables`` names. Two parts mean schema and table in ``catalog``.

    Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
    """
    if _BARE_LOCATION.match(text):
        raise NameSyntaxError(f"{text!r}: write a location as delta.`{text}`")
    path = _PATH.fullmatch(text)
    globs = re.sub(VARIABLE, "", path[1] if path else _QUOTED.sub("", text))
    if not any(char in globs for char in MAGIC):
        return read_table(text, variables, catalog)
    if len(text) > LONGEST_NAME:
        raise NameSyntaxError(f"a name of {len(text)} characters: at most {LONGEST_NAME} are taken")
    variables.expand(text)  # reports all undefined variables, not only those of the first part
    if path:
        glob = variables.expand(path[1].replace("``", "`"), escape_glob)
        variables.check_start(path[1])
        check_characters((glob,))
        return make_path_pattern(glob)
    return _catalog_target(_split(text), text, variables, catalog)


def _catalog_target(parts: tuple[tuple[str, bool], ...], text: str, variables: Variables, catalog: str) -> Target:
    globs = tuple(
        escape_glob(variables.expand(part)) if quoted else variables.expand(part, escape_glob) for part, quoted in parts
    )
    check_characters(globs)
    if not all(globs):
        raise NameSyntaxError(f"a variable in {text!r} is empty, and a name needs every part")
    if len(globs) == 2 and globs[0].casefold() == "delta":
        hint = "a pattern of paths is delta.`/path/*`, and one of a schema called delta names its catalog"
        raise NameSyntaxError(f"{text!r} is neither a path nor a name with its catalog: {hint}")
    if len(globs) == 2:
        return make_catalog_pattern(catalog, *globs)
    if len(globs) != 3:
        raise NameSyntaxError(
            f"{text!r} has {len(globs)} part{'s' if len(globs) > 1 else ''}: "
            "a pattern is schema.table, catalog.schema.table, or delta.`/path/*`"
        )
    check_glob(globs[0])
    named = literal_text(globs[0])
    if named is None:
        raise NameSyntaxError(f"{text!r} leaves the catalog open: name it, since engines do not list all they have")
    return make_catalog_pattern(named, *globs[1:])


def _split(text: str) -> tuple[tuple[str, bool], ...]:
    """The parts of a catalog pattern as written, and whether each was in backticks."""
    parts: list[tuple[str, bool]] = []
    at = 0
    while True:
        found = _PART.match(text, at)
        if found is None:
            raise NameSyntaxError(f"{_unexpected(text[at:])} in {text!r}: {how_to_quote(text)}")
        parts.append((found[2], False) if found[1] is None else (found[1].replace("``", "`"), True))
        at = found.end()
        if at == len(text):
            return tuple(parts)
        if text[at] != ".":
            raise NameSyntaxError(f"{_unexpected(text[at:])} in {text!r}: {how_to_quote(text)}")
        at += 1


def _unexpected(rest: str) -> str:
    if rest.startswith("["):
        return "a [ that is never closed"
    return f"unexpected {rest[0]!r}" if rest else "an empty part"
