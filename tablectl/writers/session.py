"""``tablectl.guard_session``: guards for every write of a Spark session, with no change of the job (docs/guards.md).

Methods of PySpark and of Delta's Python API are wrapped once, in the modules that are loaded and in those that will be.
A session says by a setting of its own whether its writes are guarded, so the sessions of a stream's batches inherit it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from tablectl.leases.guards import TTL
from tablectl.writers.options import guard_options
from tablectl.writers.session_guards import SETTING, SessionGuards
from tablectl.writers.spark_methods import PATCHES, Patch

NOT_COVERED = (
    "not covered: streaming queries that write a table without foreachBatch, writes of the JVM (Scala, Java, "
    "spark-sql), other sessions (newSession), foreachBatch on Spark Connect"
)

_log = logging.getLogger(__name__)


def guard_session(
    spark: Any, *, name: str = "", timeout: float | None = None, state: str | None = None, ttl: float = TTL
) -> None:
    """Guard every write of a session, classic or Connect: DataFrame writers, ``spark.sql``, ``DeltaTable``.

    * A write is guarded as ``append`` only if it does not read its target and cannot change its schema; otherwise with
      a stricter mode. An SQL statement whose source cannot be parsed is guarded with a stricter mode, too.
    * ``name``, ``timeout``, ``state`` and ``ttl`` are those of ``guard``. The first call in a process decides.

    What is not covered is logged once. Raises ``ValueError`` and ``TypeError`` for invalid options, and
    ``GuardTimeout`` from a write that waited for longer than ``timeout``. Every other failure of a guard is a warning.
    """
    guards = SessionGuards(name, timeout, state, ttl)
    guard_options("/checked", "any", name=name, timeout=timeout, state=state, ttl=ttl)
    spark.conf.set(SETTING, "on")
    install(guards)
    _log.info("the writes of this Spark session are guarded; %s", NOT_COVERED)


def install(guards: SessionGuards) -> None:
    """Wrap the methods of the modules in ``PATCHES``, now or when they are loaded. Once in a process."""
    if any(isinstance(each, _Finder) for each in sys.meta_path):
        return
    sys.meta_path.insert(0, _Finder(guards))
    for name, patch in PATCHES.items():
        if name in sys.modules:
            _patched(patch, sys.modules[name], guards)


class _Finder(MetaPathFinder):
    """Wraps methods as soon as their module is loaded."""

    def __init__(self, guards: SessionGuards) -> None:
        self._guards = guards
        self._looking = False

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        """As ``importlib`` asks: the module's own specification, with a loader that wraps methods afterwards."""
        if fullname not in PATCHES or self._looking:
            return None
        self._looking = True
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking = False
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, PATCHES[fullname], self._guards)
        return spec


class _Loader(Loader):
    def __init__(self, loader: Any, patch: Patch, guards: SessionGuards) -> None:
        self._loader = loader
        self._patch = patch
        self._guards = guards

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        _patched(self._patch, module, self._guards)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def _patched(patch: Patch, module: ModuleType, guards: SessionGuards) -> None:
    """Wrap a module's methods. A version of PySpark that has others is not guarded there, and that is said."""
    try:
        patch(module, guards)
    except Exception as error:  # noqa: BLE001  # never the job's problem
        _log.warning("%s is not guarded: %s: %s", module.__name__, type(error).__name__, error)
