"""Calls on threads of their own, for callers that wait no longer than they want to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

_Result = TypeVar("_Result")


def in_thread(call: Callable[[], _Result], name: str) -> Future[_Result]:
    """Makes a call on a daemon thread: a caller that stops waiting, and the end of the interpreter, leave it behind."""
    answer: Future[_Result] = Future()

    def make() -> None:
        try:
            answer.set_result(call())
        except BaseException as error:  # noqa: BLE001  # passed to the thread that waits
            answer.set_exception(error)

    threading.Thread(target=make, name=name, daemon=True).start()
    return answer
