"""Variables in policies: ``${NAME}`` comes from ``--var NAME=…``, else from ``TABLECTL_VAR_NAME``, else from
``variables:`` of ``tablectl.yaml``.

``$${`` is a literal ``${``. What is not shaped like a variable, such as ``${env:HOME}``, is literal text. A value is
put in after identifiers are split into parts, so that no value can end a quoted part or start another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tablectl.delta.names import NameSyntaxError

ENVIRON_PREFIX = "TABLECTL_VAR_"
VARIABLE = r"\$\{[A-Za-z_][A-Za-z0-9_]*\}"

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TOKEN = re.compile(r"\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_QUOTED_OR_BARE = re.compile(rf"`(?:[^`]|``)*`|(?:[A-Za-z0-9_]|{VARIABLE})+")
LONGEST_NAME = 4096


class UndefinedVariableError(ValueError):
    """A text uses undefined variables."""

    def __init__(self, names: tuple[str, ...], hint: str) -> None:
        super().__init__(f"undefined: {', '.join(names)}")
        self.message = " and ".join(f"the variable {name} is not defined" for name in names)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Variables:
    """Where values come from; ``given`` wins over ``environ``, and that over ``configured``."""

    given: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] = field(default_factory=dict)
    configured: Mapping[str, str] = field(default_factory=dict)
    environment: str = ""
    """The environment that ``configured`` is of; empty where none was named."""
    environments: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The variables that each environment gives."""

    def expand(self, text: str, quote: Callable[[str], str] = str) -> str:
        """The text with every variable replaced, once: a value is never expanded again. ``quote`` is put to each value.

        Raises ``UndefinedVariableError``.
        """
        if "${" not in text:
            return text
        values = {name: self._find(name) for name in variables_of(text)}
        missing = tuple(name for name, value in values.items() if value is None)
        if missing:
            raise UndefinedVariableError(missing, self._way_out(missing[0]))
        return _TOKEN.sub(lambda token: quote(values[token[1]] or "") if token[1] else "${", text)

    def _find(self, name: str) -> str | None:
        return self.given.get(name, self.environ.get(ENVIRON_PREFIX + name, self.configured.get(name)))

    def _way_out(self, name: str) -> str:
        by_hand = f"give it with --var {name}=… or in {ENVIRON_PREFIX}{name}"
        if self.environment:
            return f"add it to `env.{self.environment}.variables` of tablectl.yaml, or {by_hand}"
        givers = [f"--env {each}" for each, names in self.environments.items() if name in names]
        return f"environments give it: {' or '.join(givers)}; or {by_hand}" if givers else by_hand

    def expand_parts(self, text: str, split: Callable[[str], tuple[str, ...]]) -> tuple[str, ...]:
        """The parts that ``split`` finds in a name, each expanded by itself, so that no value adds or ends a part.

        Raises ``NameSyntaxError`` and ``UndefinedVariableError``.
        """
        if len(text) > LONGEST_NAME:
            raise NameSyntaxError(f"a name of {len(text)} characters: at most {LONGEST_NAME} are taken")
        self.expand(text)  # names all that is undefined, not only what the first part lacks
        parts = tuple(self.expand(part) for part in split(text))
        if not all(parts):
            raise NameSyntaxError(f"a variable in {text!r} is empty, and a name needs every part")
        return parts


def is_variable(name: str) -> bool:
    """Whether a variable may have a name."""
    return _NAME.match(name) is not None


def escape_variables(text: str) -> str:
    """The text that ``expand`` makes this text of."""
    return text.replace("${", "$${") if _TOKEN.search(text) else text


def variables_of(text: str) -> tuple[str, ...]:
    """The names of the variables that a text, as a file holds it, takes values of."""
    return tuple(dict.fromkeys(name for name in _TOKEN.findall(text) if name))


def quote_variables(text: str) -> str:
    """An identifier with backticks around each bare part that holds a variable, so that it splits like any other."""

    def quote(match: re.Match[str]) -> str:
        found = match.group()
        return f"`{found}`" if "$" in found and not found.startswith("`") else found

    return _QUOTED_OR_BARE.sub(quote, text)
