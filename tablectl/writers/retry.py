"""``tablectl.retry_on_conflict``: run a function again after a conflict with a concurrent commit."""

from __future__ import annotations

import inspect
import logging
import math
import random
import time
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from tablectl.engine.errors import conflict_in
from tablectl.support.compat import ParamSpec


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


_log = logging.getLogger(__name__)
_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")


def retry_on_conflict(
    attempts: int = 5, base: float = 0.5, longest: float = 30.0
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """A decorator that runs the whole function again if it fails because of a conflict with a concurrent commit.

    ``attempts`` counts all runs. Before run n + 1 it sleeps a random time up to ``base`` × 2ⁿ⁻¹ seconds, at most
    ``longest``. Conflicts are those of Delta on classic Spark, Connect and Databricks, and of ``deltalake``. Every
    other exception is raised unchanged, and so is the conflict of the last run.

    The function must be idempotent, and must resolve the table itself: a ``DeltaTable`` created outside would fail each
    time. With a guard: retry outside, guard inside, so that no apply waits for the guard of a write that sleeps.
    """
    if callable(attempts):
        raise TypeError("retry_on_conflict needs its parentheses: @tablectl.retry_on_conflict()")
    if attempts < 1:
        raise ValueError(f"attempts {attempts!r} is not a number from 1")
    if not (0 <= base < math.inf and 0 <= longest < math.inf):
        raise ValueError(f"base {base!r} and longest {longest!r} are not numbers of seconds")

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        check_plain(function, "retry_on_conflict")
        name = getattr(function, "__qualname__", repr(function))

        @wraps(function)
        def retried(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            for run in range(1, attempts):
                try:
                    return function(*args, **kwargs)
                except Exception as error:
                    conflict = _conflict(error)
                    if not conflict:
                        raise
                pause = random.uniform(0, min(longest, base * 2 ** (run - 1)))  # noqa: S311  # jitter, not a secret
                _log.warning("%s: %s in run %d of %d, again in %.1f s", name, conflict, run, attempts, pause)
                time.sleep(pause)
            return function(*args, **kwargs)

        return retried

    return decorate


def _conflict(error: Exception) -> str:
    try:
        return conflict_in(error)
    except Exception:  # noqa: BLE001  # an exception of a JVM that is gone cannot even be printed
        return ""
