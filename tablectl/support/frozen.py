"""``@frozen``: a frozen dataclass with slots, made in a tenth of the time.

``dataclass`` writes the source of six methods for each class and compiles it: half a millisecond a class, in Python
3.11 as in 3.13. A command loads up to 300 classes and makes objects of a third of them. So here ``__init__`` is
compiled when it is first used, and all classes share the other methods (docs/start-up.md).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from typing import Any, NoReturn, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type)
_ABSENT = object()
"""Stands for an argument whose default is made by a function."""


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: _Class, /) -> _Class: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[_Class], _Class]: ...


def frozen(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """A class whose annotations are its fields, as ``dataclass(frozen=True, slots=True)`` makes it. A method that the
    class defines itself stays. ``InitVar`` and ``field(init=False)`` are not supported.
    """
    if cls is None:
        return lambda cls: _made(cls, kw_only=kw_only)
    return _made(cls, kw_only=kw_only)


def _made(cls: type, *, kw_only: bool) -> type:
    made: Any = dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(cls)
    made.__init__ = _Init(made)
    made.__setattr__ = _refuse_change
    made.__delattr__ = _refuse_deletion
    made.__getstate__ = _state
    made.__setstate__ = _restore
    if "__eq__" not in cls.__dict__:
        made.__eq__, made.__hash__ = _comparison(made)
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _repr
    return made  # type: ignore[no-any-return]


class _Init:
    """Takes the place of ``__init__`` of a class until it is first used."""

    def __init__(self, cls: Any) -> None:
        self._cls = cls

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        if self._cls.__dict__["__init__"] is self:  # else another thread, or a subclass, came first
            self._cls.__init__ = _compiled_init(self._cls)
        return self._cls.__init__ if instance is None else self._cls.__init__.__get__(instance, owner)


def _compiled_init(cls: Any) -> Any:
    """``__init__`` with one parameter for each field, which sets the slots of the object."""
    names: dict[str, Any] = {"_ABSENT_": _ABSENT}
    lines = [_assignment(cls, each, names) for each in fields(cls)]
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = [_parameter(each) for each in fields(cls) if not each.kw_only]
    keywords = [_parameter(each) for each in fields(cls) if each.kw_only]
    signature = ", ".join(["self", *parameters, *(["*", *keywords] if keywords else [])])
    body = "\n  ".join(lines or ["pass"])
    source = f"def make({', '.join(names)}):\n def __init__({signature}):\n  {body}\n return __init__"
    found: dict[str, Any] = {}
    exec(source, vars(sys.modules[cls.__module__]), found)  # noqa: S102  # of names of fields, as in `dataclass`
    made = found["make"](**names)
    made.__qualname__ = f"{cls.__qualname__}.__init__"
    made.__annotations__ = {**{each.name: each.type for each in fields(cls)}, "return": None}
    return made


def _assignment(cls: Any, each: Field[Any], names: dict[str, Any]) -> str:
    """A line that sets a slot. ``names`` gets what the line and the parameter refer to."""
    names[f"_set_{each.name}"] = getattr(cls, each.name).__set__
    value = each.name
    if each.default_factory is not MISSING:
        names[f"_default_{each.name}"] = each.default_factory
        value = f"_default_{each.name}() if {each.name} is _ABSENT_ else {each.name}"
    elif each.default is not MISSING:
        names[f"_default_{each.name}"] = each.default
    return f"_set_{each.name}(self, {value})"


def _parameter(each: Field[Any]) -> str:
    if each.default_factory is not MISSING:
        return f"{each.name}=_ABSENT_"
    return each.name if each.default is MISSING else f"{each.name}=_default_{each.name}"


def _refuse_change(_self: object, name: str, _value: object) -> NoReturn:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_deletion(_self: object, name: str) -> NoReturn:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[Any]:
    """The values of the fields, for ``copy`` and ``pickle``: they would set attributes."""
    return [getattr(self, name) for name in self.__dataclass_fields__]


def _restore(self: Any, state: list[Any]) -> None:
    for each, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, each.name, value)


def _comparison(made: Any) -> tuple[Callable[[object, object], object], Callable[[object], int]]:
    """``__eq__`` and ``__hash__`` of a class."""
    compared = tuple(each.name for each in fields(made) if each.compare)
    values: Callable[[object], object] = attrgetter(*compared) if compared else _no_values

    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def hashed(self: object) -> int:
        return hash(values(self))

    return equal, hashed


def _no_values(_: object) -> tuple[()]:
    return ()


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in fields(self) if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
