"""Reads single values for all parts of a policy, and collects the problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from tablectl.attributes.policy import HIDDEN, NO_MASK, MaskedKeys
from tablectl.delta.credentials import scrub
from tablectl.delta.names import NameSyntaxError
from tablectl.model.errors import Problem
from tablectl.policies.spelling_hints import cut, did_you_mean, shown
from tablectl.policies.variables import UndefinedVariableError, Variables, why_unusable
from tablectl.policies.yaml_nodes import ListNode, Node, Scalar, SourceFile, is_text, kind_of

_Name = TypeVar("_Name")

_READS = {"bool": "as true or false", "int": "as a number", "float": "as a number", "timestamp": "as a date"}


MOST_HINTS = 200
"""The number of problems in all files after which no more suggestions are computed."""


@dataclass(frozen=True, slots=True)
class GivenValue:
    """A value and the position of its key."""

    value: str | tuple[str, ...] | None
    source: SourceFile
    hidden: bool = False
    """Whether the value must not appear in any error."""
    spelling: str = ""
    """What is shown in its place, if it is hidden because of its variables: ``${NAME}``."""
    taken: tuple[str, ...] = ()
    """The variables of the command line and the environment in it, if it is masked."""
    engine: str = ""
    """Of a property that no dialect knows: the engine that reads it."""

    def shown(self) -> str | tuple[str, ...] | None:
        """The value for people. A hidden value is masked, a credential is removed, ``None`` is still ``None``."""
        if self.hidden and self.value is not None:
            return self.spelling or HIDDEN
        return scrub(self.value) if isinstance(self.value, str) else self.value


@dataclass(frozen=True, slots=True)
class ValueReader:
    """The context for reading files: variables, dialect, catalog, masks. ``problems`` is appended to."""

    variables: Variables
    dialect: str
    catalog: str
    problems: list[Problem]
    masked: MaskedKeys = NO_MASK
    extra_properties: tuple[str, ...] = ()
    """Patterns of properties that policies may declare although no dialect knows them."""
    literal: bool = False
    """Whether ``${NAME}`` is literal text, as in ``tablectl.yaml``."""
    hiding: str = ""
    """The attribute or property whose value is being read, if no message may contain it; otherwise empty."""
    private: tuple[str, ...] = ()
    """The variables in the value if their values are the reason for that; empty if it is masked."""
    taken: tuple[str, ...] = ()
    """The variables in the value if it is masked."""

    @property
    def hints(self) -> bool:
        """Whether to compute a suggestion for another problem. With thousands of problems it is wasted effort."""
        return len(self.problems) < MOST_HINTS

    def of_value(self, attribute: str, key: str, node: Node) -> ValueReader:
        """The reader for the value of an attribute or a property."""
        if self.masked.hides_value(attribute, key):
            return replace(self, hiding=key or attribute, private=(), taken=self._private_in(node))
        return self.about(key or attribute, node)

    def about(self, what: str, node: Node) -> ValueReader:
        """The reader for a value whose errors must not repeat the values of its variables. ``what`` is its key.

        An error can contain a part of a value, or another spelling of it, so it contains none of it.
        """
        names = self._private_in(node)
        return replace(self, hiding=what, private=names) if names and not self.hiding else self

    def _private_in(self, node: Node) -> tuple[str, ...]:
        return tuple(dict.fromkeys(name for text in _texts(node) for name in self.variables.private(text)))

    def given(self, value: str | tuple[str, ...] | None, source: SourceFile) -> GivenValue:
        """The record of a value that was read."""
        return GivenValue(value, source, bool(self.hiding), _spelled(self.private), self.taken)

    def report(self, source: SourceFile, message: str, hint: str = "") -> None:
        """Reports a problem. Reading continues, to find further ones."""
        if self.hiding:
            why = (
                "its value, which `reports.mask` hides"
                if not self.private
                else f"the value of {_spelled(self.private)}"
            )
            message = f"{shown(self.hiding)} cannot take {why}"
            hint = "see what it takes, and check the value and its variables"
        self.problems.append(source.problem(message, hint))

    def name(self, text: str, source: SourceFile, read: Callable[[str], _Name]) -> _Name | None:
        """A name parsed by ``read``. Reports a problem and returns ``None`` if it is invalid."""
        private = self.variables.private(text)
        try:
            return read(text)
        except UndefinedVariableError as error:
            self.problems.append(source.problem(error.message, error.hint))  # it contains only names, no values
        except NameSyntaxError as error:
            if private and not self.hiding:
                message = f"{shown(text)} is not a name with the value of {_spelled(private)}"
                self.report(source, message, "check the value: a location is absolute, and no part of a name is empty")
            else:
                self.report(source, cut(str(error)))
        return None

    def scalar(self, node: Node, what: str, example: str, takes: str = "text") -> Scalar | None:
        """A scalar that counts as text. Otherwise reports a problem about ``what`` and returns ``None``. ``example``
        can be empty.
        """
        hint = f"for example {example}" if example else ""
        match node:
            case Scalar() if is_text(node):
                return node
            case Scalar() if node.is_null:
                self.report(node.source, f"{what} has no value", hint)
            case Scalar():
                reads = _READS.get(node.tag, "as something else")
                self.report(node.source, f"YAML reads {node.text} {reads}, not as text", f'quote it: "{node.text}"')
            case _:
                self.report(node.source, f"{what} takes {takes}, not {kind_of(node)}", hint)
        return None

    def text(self, node: Node, what: str, example: str, takes: str = "text") -> str | None:
        """A scalar's text with its variables expanded. Otherwise reports a problem and returns ``None``."""
        scalar = self.scalar(node, what, example, takes)
        return None if scalar is None else self.expand(scalar)

    def expand(self, scalar: Scalar) -> str | None:
        """The text of a scalar with its variables expanded. Otherwise reports a problem and returns ``None``."""
        if self.literal:
            return scalar.text
        try:
            text = self.variables.expand(scalar.text)
        except UndefinedVariableError as error:
            self.problems.append(scalar.source.problem(error.message, error.hint))  # it contains only names, no values
            return None
        reason = why_unusable(text)
        if reason and self.private:  # the reason contains nothing of the value
            self.problems.append(scalar.source.problem(f"{shown(scalar.text)} cannot be stored: {reason}"))
            return None
        if reason:
            self.report(scalar.source, f"{shown(text)} cannot be stored: {reason}")
            return None
        return text

    def refuse(
        self,
        key: str,
        source: SourceFile,
        known: Sequence[str],
        elsewhere: Mapping[str, str],
        *,
        name: str = "",
        hint: str = "",
    ) -> None:
        """Reports a key that is not valid here: valid elsewhere, or unknown. ``name`` is the whole name of the key in
        messages, ``hint`` replaces the suggestion for an unknown key.
        """
        name = name or key
        if key in elsewhere:
            self.report(source, f"{shown(name)} is not allowed here", elsewhere[key])
        else:
            suggestion = did_you_mean(key, known) if self.hints and not hint else hint
            self.report(source, f"unknown key {shown(name)}", suggestion)


def _spelled(names: Sequence[str]) -> str:
    return " and ".join(f"${{{name}}}" for name in names)


def _texts(node: Node) -> Iterator[str]:
    """The texts in a node."""
    left = [node]
    while left:
        each = left.pop()
        if isinstance(each, Scalar):
            yield each.text
        elif isinstance(each, ListNode):
            left.extend(each.items)
        else:
            left.extend(value for _, value in each.entries.values())
            yield from each.entries
