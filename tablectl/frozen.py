"""``@frozen``: a frozen dataclass with slots, made in half the time.

``dataclass`` writes the source of six methods for each class and compiles it: half a millisecond a class, in Python
3.11 as in 3.13. A command loads up to 350 classes, so that was a fifth of its start-up (docs/start-up.md). Here only
``__init__`` and the two methods that keep an object frozen are compiled. Equality, hash and ``repr`` are functions that
all classes share.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any, TypeVar, dataclass_transform, overload

_Class = TypeVar("_Class", bound=type)


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(cls: _Class, /) -> _Class: ...


@overload
@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def frozen(*, kw_only: bool = False) -> Callable[[_Class], _Class]: ...


def frozen(cls: Any = None, /, *, kw_only: bool = False) -> Any:
    """A class whose annotations are its fields, as ``dataclass(frozen=True, slots=True)`` makes it. A method that the
    class defines itself stays.
    """
    if cls is None:
        return lambda cls: _made(cls, kw_only=kw_only)
    return _made(cls, kw_only=kw_only)


def _made(cls: type, *, kw_only: bool) -> type:
    made: Any = dataclass(frozen=True, slots=True, repr=False, eq=False, kw_only=kw_only)(cls)
    compared = tuple(each.name for each in made.__dataclass_fields__.values() if each.compare)
    values: Callable[[object], object] = attrgetter(*compared) if compared else _no_values

    def equal(self: object, other: object) -> object:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    def hashed(self: object) -> int:
        return hash(values(self))

    if "__eq__" not in cls.__dict__:
        made.__eq__ = equal
        made.__hash__ = hashed
    if "__repr__" not in cls.__dict__:
        made.__repr__ = _repr
    return made  # type: ignore[no-any-return]


def _no_values(_: object) -> tuple[()]:
    return ()


def _repr(self: Any) -> str:
    shown = (f"{each.name}={getattr(self, each.name)!r}" for each in self.__dataclass_fields__.values() if each.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"
