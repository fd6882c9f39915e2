"""A command: a record of its options, and a function that takes it. The same record holds the parameters of the Python
function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from functools import wraps
from inspect import signature
from typing import Any, ParamSpec, TypeVar

from tablectl.commands.output import Output
from tablectl.policies.declare_setting import settings_of

_Given = ParamSpec("_Given")
_Options = TypeVar("_Options")
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class CliCommand:
    """A command of the command line. Its help is the documentation of ``run``."""

    options: type[Any]
    """A record whose settings are the options and arguments."""
    run: Callable[[Any, Output], int]
    """Does the work and returns the exit code."""
    without: tuple[str, ...] = ()
    """Inherited options that the command does not have."""


def command(
    options: type[_Options], *, without: tuple[str, ...] = ()
) -> Callable[[Callable[[_Options, Output], int]], CliCommand]:
    """Makes a function the command of its module."""
    return lambda run: CliCommand(options, run, without)


def function(
    options: Callable[_Given, _Options],
) -> Callable[[Callable[[_Options], _Result]], Callable[_Given, _Result]]:
    """Makes a function of a record a function of the record's fields, for Python."""

    def decorate(work: Callable[[_Options], _Result]) -> Callable[_Given, _Result]:
        @wraps(work)
        def call(*args: _Given.args, **given: _Given.kwargs) -> _Result:
            return work(_checked(options, _bound(work.__name__, options, args, given)))

        returns = signature(work).return_annotation
        call.__signature__ = signature(options).replace(return_annotation=returns)  # type: ignore[attr-defined]
        return call

    return decorate


def options_of(record: Callable[..., _Options], values: Mapping[str, Any]) -> _Options:
    """A record of options that remembers which of them were given."""
    made = record(**values)
    object.__setattr__(made, "given", dict(values))
    return made


def _bound(name: str, record: Callable[..., Any], args: tuple[Any, ...], given: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a function by name. Raises ``TypeError`` for one that it does not have or that is missing."""
    try:
        return signature(record).bind(*args, **given).arguments
    except TypeError as error:
        raise TypeError(f"{name}(): {error}") from None


def _checked(record: Callable[..., _Options], values: dict[str, Any]) -> _Options:
    """The record of the parameters of a function. ``None`` stands for a parameter that is not given. Raises
    ``UsageError`` for a wrong value.
    """
    defaults = {each.name: each.default for each in fields(record)}  # type: ignore[arg-type]
    for each, about in settings_of(record):
        if each.name in values and values[each.name] is None:
            del values[each.name]
        elif each.name in values and values[each.name] != defaults[each.name]:
            values[each.name] = about.checked(each.name, values[each.name])
    return options_of(record, values)
