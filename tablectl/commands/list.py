"""Every command: its module, and the first sentence of its help. A new command is a line here and its file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "validate": ("validate", "Check policies without reading any table."),
        "plan": ("plan", "Show the changes that the policies require."),
        "lint": ("lint", "Check tables for risky settings."),
        "show": ("show", "Show a saved plan."),
        "apply": ("apply", "Run a plan in one protected window."),
        "drift": ("drift", "Show differences from the policies and the commit that caused each."),
        "rename": ("rename", "Give the policy of a table that moved its new name."),
        "runs": ("runs", "List earlier applies from the tables' logs: time, user, plan and commits."),
        "undo": ("runs", "Undo a run: put the values from before it into the policies, and plan them."),
        "import": ("import_tables", "Write policies from live tables."),
        "explain": ("explain", "Explain the effective policy of a table, or a term"),
        "conflicts": ("conflicts", "Show which concurrent operations on a table conflict and how to avoid it"),
        "status": ("status", "Show the state of every table: policy, drift, last apply, protocol, debt, retention."),
        "advise": ("advise", "Say from the logs which settings would save failed writes, bytes and files, and why."),
        "defaults": (
            "defaults",
            "Print what makers of tables must set, so that new tables are as the policies declare.",
        ),
        "create": ("create", "Create a table with everything that its policy declares."),
        "init": ("init", "Start a repository: configuration, policies, a CI workflow, a pre-commit hook."),
        "doctor": ("doctor", "Check what plan and apply need here: Java, Spark, stores, credentials, rights, clock."),
        "lock": ("lock", "Write the files from which CI installs this version of tablectl"),
        "schema": ("schema", "Print the JSON Schema of policies or tablectl.yaml"),
        "demo": ("demo", "Build a small lake of real Delta tables and run plan, apply and plan on it."),
        "window show": ("window", "Show who holds the lease on a table, and since when."),
        "window break": ("window", "Release the lease on a table by force."),
    }
)
