"""Guards the Spark sessions of a Python program that ``tablectl-guard run`` started.

Python imports it at its start. It only waits for ``pyspark``: programs and workers that need no guards load nothing. It
must never break a program.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import Any


class _Finder:
    """Asked for each module; acts on the first ``pyspark``."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Never finds a module itself."""
        if name == "pyspark":
            sys.meta_path.remove(self)
            _install()


def _install() -> None:
    try:
        from tablectl.writers.session import install  # noqa: PLC0415  # see the module docstring
        from tablectl.writers.session_guards import SessionGuards  # noqa: PLC0415

        timeout, ttl = os.environ.get("TABLECTL_GUARD_TIMEOUT"), os.environ.get("TABLECTL_GUARD_TTL")
        settings: dict[str, Any] = {"timeout": float(timeout)} if timeout else {}
        settings.update({"ttl": float(ttl)} if ttl else {})
        name = os.environ.get("TABLECTL_GUARD_NAME", "")
        install(SessionGuards(name=name, everywhere=True, **settings))
    except Exception as error:  # noqa: BLE001  # see the module docstring
        told = f"tablectl-guard: this Python has no guards ({sys.executable}): {type(error).__name__}: {error}"
        print(told, file=sys.stderr)  # noqa: T201


def _start() -> None:
    if os.environ.get("TABLECTL_GUARD_RUN") == "1" and "PYTHON_WORKER_FACTORY_SECRET" not in os.environ:
        sys.meta_path.insert(0, _Finder())
    # Another sitecustomize, of the environment or of another launcher, runs as it would without ours.
    own = sys.modules.pop("sitecustomize", None)
    here = os.path.realpath(os.path.split(__file__)[0])
    sys.path[:] = [each for each in sys.path if os.path.realpath(each) != here]
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError:
        if own is not None:
            sys.modules["sitecustomize"] = own


_start()
