"""Reads single values for all parts of a policy, and collects the problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from tablectl.attributes.policy import HIDDEN, NO_MASK, MaskedKeys
from tablectl.delta.credentials import scrub
from tablectl.delta.names import NameSyntaxError
from tablectl.model.errors import Problem
from tablectl.policies.spelling_hints import cut, did_you_mean, shown
from tablectl.policies.variables import UndefinedVariableError, Variables, why_unusable
from tablectl.policies.wrong_values import MOST_HINTS
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar, SourceFile, plain

_Name = TypeVar("_Name")


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
    simple: bool = False
    """Whether no text of the file has a variable or an escape, so that none has to be looked for."""
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
        if self.simple:
            return ()
        texts = [text for text in _texts(node) if "${" in text]
        return tuple(dict.fromkeys(name for text in texts for name in self.variables.private(text)))

    def given(self, value: str | tuple[str, ...] | None, source: SourceFile) -> GivenValue:
        """The record of a value that was read."""
        return GivenValue(value, source, bool(self.hiding), _spelled(self.private), self.taken)

    def problem(self, source: SourceFile, message: str, hint: str = "") -> Problem:
        """A problem, which contains no value that must not be shown."""
        if self.hiding:
            why = (
                "its value, which `reports.mask` hides"
                if not self.private
                else f"the value of {_spelled(self.private)}"
            )
            message = f"{shown(self.hiding)} cannot take {why}"
            hint = "see what it takes, and check the value and its variables"
        return source.problem(message, hint)

    def report(self, source: SourceFile, message: str, hint: str = "") -> None:
        """Reports a problem. Reading continues, to find further ones."""
        self.problems.append(self.problem(source, message, hint))

    def name(self, text: str, source: SourceFile, read: Callable[[str], _Name]) -> _Name | None:
        """A name parsed by ``read``. Reports a problem and returns ``None`` if it is invalid."""
        try:
            return named(text, read, self)
        except WrongNameError as error:
            made = (self if error.hidden else replace(self, hiding="")).problem(source, error.message, error.hint)
            self.problems.append(made)
            return None

    def expanded(self, node: Node) -> Any:
        """The plain value of a node (``yaml_nodes.plain``) with its variables expanded. Raises ``UnreadableError``
        after problems were reported.
        """
        if self.simple:
            return plain(node)
        if isinstance(node, MapNode):
            return {key: self.expanded(inner) for key, (_, inner) in node.entries.items()}
        if isinstance(node, ListNode):
            return [self.expanded(item) for item in node.items]
        found = plain(node)
        if not isinstance(found, str) or ("${" not in found and found.isprintable()):
            return found
        try:
            text = self.variables.expand(found)
        except UndefinedVariableError as error:
            self.problems.append(node.source.problem(error.message, error.hint))  # it contains only names, no values
            raise UnreadableError from None
        reason = why_unusable(text)
        if reason and self.private:  # the reason contains nothing of the value
            self.problems.append(node.source.problem(f"{shown(found)} cannot be stored: {reason}"))
        elif reason:
            self.report(node.source, f"{shown(text)} cannot be stored: {reason}")
        if reason:
            raise UnreadableError
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


class UnreadableError(Exception):
    """A text could not be expanded, and a problem says so."""


class WrongNameError(ValueError):
    """A text is not the name of a table or a column, or not a location."""

    def __init__(self, message: str, hint: str = "", *, hidden: bool = True) -> None:
        super().__init__(message)
        self.message, self.hint, self.hidden = message, hint, hidden


def named(text: str, read: Callable[[str], _Name], reading: ValueReader) -> _Name:
    """A name parsed by ``read``. Raises ``WrongNameError``."""
    try:
        return read(text)
    except UndefinedVariableError as error:
        raise WrongNameError(error.message, error.hint, hidden=False) from None  # it contains only names, no values
    except NameSyntaxError as error:
        private = reading.variables.private(text)
        if private and not reading.hiding:
            message = f"{shown(text)} is not a name with the value of {_spelled(private)}"
            hint = "check the value: a location is absolute, and no part of a name is empty"
            raise WrongNameError(message, hint) from None
        raise WrongNameError(cut(str(error))) from None


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
