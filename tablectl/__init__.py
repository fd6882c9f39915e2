"""Declarative table policies for Delta Lake: plan the settings that decide which Spark jobs fail, and apply them.

``check``, ``plan``, ``apply``, ``create``, ``drift``, ``status``, ``advise``, ``lint``, ``import_tables``, ``explain``,
``set_defaults`` (``defaults``), ``upkeep``, ``run_upkeep`` (``upkeep --apply``) and ``conflict_report`` (``conflicts``)
are the commands as functions, for notebooks and orchestrators; ``guard``, ``guard_batch`` and ``retry_on_conflict`` are
for the jobs that write to the tables.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tablectl.version import __version__

if TYPE_CHECKING:  # the functions are loaded on first use: `import tablectl` alone must cost next to nothing
    from tablectl.commands.advise import advise as advise
    from tablectl.commands.apply import apply as apply
    from tablectl.commands.check import check as check
    from tablectl.commands.conflicts import conflict_report as conflict_report
    from tablectl.commands.create import create as create
    from tablectl.commands.defaults import set_defaults as set_defaults
    from tablectl.commands.drift import drift as drift
    from tablectl.commands.explain import explain as explain
    from tablectl.commands.import_tables import import_tables as import_tables
    from tablectl.commands.lint import lint as lint
    from tablectl.commands.plan import plan as plan
    from tablectl.commands.status import status as status
    from tablectl.commands.upkeep import run_upkeep as run_upkeep
    from tablectl.commands.upkeep import upkeep as upkeep
    from tablectl.model.errors import TablectlError as TablectlError
    from tablectl.policies.own_rules import TableToLint as TableToLint
    from tablectl.writers.gate_entry import GuardTimeout as GuardTimeout
    from tablectl.writers.guard import guard as guard
    from tablectl.writers.guard import guard_batch as guard_batch
    from tablectl.writers.retry import retry_on_conflict as retry_on_conflict
    from tablectl.writers.session import guard_session as guard_session

_MODULES: Mapping[str, str] = MappingProxyType(
    {
        "plan": "commands.plan",
        "apply": "commands.apply",
        "drift": "commands.drift",
        "lint": "commands.lint",
        "status": "commands.status",
        "explain": "commands.explain",
        "import_tables": "commands.import_tables",
        "conflict_report": "commands.conflicts",
        "advise": "commands.advise",
        "create": "commands.create",
        "set_defaults": "commands.defaults",
        "check": "commands.check",
        "upkeep": "commands.upkeep",
        "run_upkeep": "commands.upkeep",
        "guard": "writers.guard",
        "guard_batch": "writers.guard",
        "guard_session": "writers.session",
        "retry_on_conflict": "writers.retry",
        "GuardTimeout": "writers.gate_entry",
        "TablectlError": "model.errors",
        "TableToLint": "policies.own_rules",
    }
)
"""The functions and classes of the package, and their modules. No module of this package may have the name of one of
them: once imported, it would hide the function.
"""
__all__ = ["__version__"]
__all__ += list(_MODULES)


def __dir__() -> list[str]:
    return sorted(__all__)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'tablectl' has no attribute {name!r}")
    try:
        module = import_module(f"tablectl.{_MODULES[name]}")
    except ModuleNotFoundError as error:
        if error.name == "tablectl.commands":
            raise ImportError(f"tablectl.{name} is in tablectl, and only tablectl-guard is installed") from error
        raise
    if _MODULES[name].startswith("commands"):
        methods = import_module("tablectl.model.report_methods").ReportMethods
        methods.reports = import_module("tablectl.commands.notebook")
    return getattr(module, name)
