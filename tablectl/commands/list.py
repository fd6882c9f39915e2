"""Every command: its module, and the first sentence of its help. A new command is a line here and its file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

FIRST = ("check", "init", "import", "plan", "apply", "drift", "status", "conflicts", "doctor")
"""The commands that most people need; ``--help`` shows them before the others."""

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "check": ("check", "Say what is wrong or risky in a lake, the worst first"),
        "init": ("init", "Start a repository: policies, configuration, a CI workflow"),
        "import": ("import_tables", "Write policies from live tables"),
        "plan": ("plan", "Show the changes that the policies require"),
        "apply": ("apply", "Run a plan in one protected window"),
        "drift": ("drift", "Show what differs from the policies, and which commit did it"),
        "status": ("status", "Show the state of every table"),
        "conflicts": ("conflicts", "Show which concurrent operations on a table conflict"),
        "doctor": ("doctor", "Check what plan and apply need here, and say what to do"),
        "validate": ("validate", "Check policies without reading any table"),
        "lint": ("lint", "Check tables for risky settings"),
        "advise": ("advise", "Say which settings would save failed writes, bytes and files"),
        "explain": ("explain", "Explain the effective policy of a table, or a word"),
        "upkeep": ("upkeep", "Show or do what OPTIMIZE and VACUUM are due by the policies"),
        "show": ("show", "Show a saved plan"),
        "runs": ("runs", "List earlier applies from the tables' logs"),
        "undo": ("runs", "Undo a run: put the values from before it into the policies"),
        "rename": ("rename", "Give the policy of a table that moved its new name"),
        "create": ("create", "Create a table with everything that its policy declares"),
        "defaults": ("defaults", "Print what makers of tables must set, to create them as declared"),
        "lock": ("lock", "Write the files from which CI installs this version of tablectl"),
        "schema": ("schema", "Print the JSON Schema of policies or tablectl.yaml"),
        "demo": ("demo", "Build a small lake and run plan, apply and plan on it"),
        "window show": ("window", "Show who holds the lease on a table, and since when"),
        "window break": ("window", "Release the lease on a table by force"),
        "window clean": ("window", "Give up what is left of a copy beside a table"),
    }
)
