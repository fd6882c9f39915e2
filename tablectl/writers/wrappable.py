"""Which functions can be wrapped: those that have finished their work when they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any


def check_plain(function: Callable[..., Any], wrapper: str) -> None:
    """Raise ``TypeError`` for non-functions, and for async and generator functions, which return before their work is
    done.
    """
    if not callable(function):
        raise TypeError(f"{wrapper} wraps a function, and this is {type(function).__name__}")
    lazy = (inspect.iscoroutinefunction, inspect.isasyncgenfunction, inspect.isgeneratorfunction)
    if any(kind(each) for kind in lazy for each in (function, type(function).__call__)):
        raise TypeError(
            f"{wrapper} cannot wrap {getattr(function, '__qualname__', function)}: an async or generator function "
            "returns before it has written. Wrap the plain function that writes, and run that in a thread "
            "(asyncio.to_thread)"
        )
