"""Variables in policies. ``${NAME}`` comes from ``--var NAME=…``, otherwise from ``TABLECTL_VAR_NAME``, otherwise from
``variables:`` in ``tablectl.yaml``.

``$${`` is a literal ``${``. Text without the form of a variable, such as ``${env:HOME}``, is literal. Values are
inserted after identifiers are split into parts, so that no value can end a quoted part or start another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from tablectl.delta.names import NameSyntaxError
from tablectl.support.frozen import frozen

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


@frozen
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
            raise UndefinedVariableError(missing, self._fix(missing[0]))
        return _TOKEN.sub(lambda token: quote(values[token[1]] or "") if token[1] else "${", text)

    def private(self, text: str) -> tuple[str, ...]:
        """The variables in a text whose values no error may repeat: those from ``--var`` and the environment, which can
        be secrets. Values in ``tablectl.yaml`` are in the repository.
        """
        known = variables_of(text) if "${" in text else ()
        return tuple(name for name in known if name in self.given or ENVIRON_PREFIX + name in self.environ)

    def private_values(self, names: Collection[str] | None = None) -> frozenset[str]:
        """The values of variables of the command line and the environment: of all, or of those with some names."""
        found = {key.removeprefix(ENVIRON_PREFIX): value for key, value in self.environ.items() if _of_environ(key)}
        found |= self.given
        return frozenset(value for name, value in found.items() if names is None or name in names)

    def _find(self, name: str) -> str | None:
        return self.given.get(name, self.environ.get(ENVIRON_PREFIX + name, self.configured.get(name)))

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
