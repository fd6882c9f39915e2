"""The tool's own words, for ``tablectl explain``: what each means, and the page that says more."""

from __future__ import annotations

from tablectl.frozen import frozen


@frozen
class ToolTerm:
    """One word."""

    name: str
    meaning: str
    page: str
    """A page of the documentation, from the root of the repository."""
    also: tuple[str, ...] = ()
    """Other spellings."""


_WORDS = (
    ToolTerm("safe", "The phase of statements that no concurrent write conflicts with.", "docs/window.md", ("free",)),
    ToolTerm(
        "rewrite",
        "The phase of statements that rewrite files: concurrent UPDATE, DELETE and MERGE may fail once. "
        "Appends continue.",
        "docs/window.md",
    ),
    ToolTerm(
        "blocking",
        "The phase of statements that make every concurrent write fail once. Writers with a guard wait instead.",
        "docs/window.md",
        ("closed",),
    ),
    ToolTerm(
        "full rewrite",
        "All data of a table is rewritten: for other partition columns, without column mapping, or for Iceberg.",
        "docs/reports.md",
    ),
    ToolTerm("lockout", "A client that writes the table can no longer do so after the change.", "docs/reports.md"),
    ToolTerm(
        "irreversible",
        "The change upgrades the protocol or deletes history, so a rollback does not restore everything.",
        "docs/reports.md",
    ),
    ToolTerm(
        "phase",
        "When a statement runs, and with it which writers must wait: safe, rewrite, blocking.",
        "docs/window.md",
    ),
    ToolTerm(
        "gate", "Which writes may start during an apply: all, no schema changes, appends only, none.", "docs/window.md"
    ),
    ToolTerm("guard", "A writer's record that it is writing. An apply waits for it.", "docs/guards.md"),
    ToolTerm(
        "lease", "The exclusive right of an apply to change a table, as numbered records.", "docs/object-stores.md"
    ),
    ToolTerm("epoch", "The number of a lease.", "docs/object-stores.md"),
    ToolTerm("drain", "Waiting for the guards of writers that a gate stops.", "docs/window.md"),
    ToolTerm(
        "window", "The time in which an apply changes a table, with everything that protects writers.", "docs/window.md"
    ),
    ToolTerm("hook", "A command of yours before or after the window of a table.", "docs/window.md"),
    ToolTerm("calendar", "The times at which windows may open.", "docs/window.md"),
    ToolTerm("stamp", "Run and plan in the userMetadata of each commit that an apply makes.", "docs/window.md"),
    ToolTerm(
        "stale",
        "A change whose table has neither the value before it nor the value after it: it changed since the plan. "
        "The table is left alone.",
        "docs/plan-file.md",
    ),
    ToolTerm("pending", "A change whose table still has the value before it.", "docs/plan-file.md"),
    ToolTerm("drift", "Differences between policies and live tables.", "docs/drift-and-import.md"),
    ToolTerm(
        "refused", "A change that is not made. Nothing on its table changes; the plan names the fix.", "docs/reports.md"
    ),
    ToolTerm(
        "not readable", "A table whose log cannot be read. The report says why.", "docs/reports.md", ("unreadable",)
    ),
    ToolTerm("invalid", "An error in a policy or in tablectl.yaml, at a line and a column.", "docs/reports.md"),
    ToolTerm(
        "failed", "A statement failed during an apply, or the table is not as declared after it.", "docs/reports.md"
    ),
    ToolTerm("undone", "A change that was applied and verified, and that others changed since.", "docs/reports.md"),
    ToolTerm(
        "possible failure",
        "A writer that may have failed once during an apply, because the apply did not wait for it.",
        "docs/reports.md",
        ("possible-failure",),
    ),
    ToolTerm("finding", "A note, warning or error about a table, with a code such as P001.", "docs/README.md"),
)
_BY_NAME = {name: word for word in _WORDS for name in (word.name, *word.also)}


def find_tool_term(text: str) -> ToolTerm | None:
    """A word in any letter case."""
    return _BY_NAME.get(" ".join(text.lower().split()))


def tool_terms() -> tuple[str, ...]:
    """All words and their other spellings."""
    return tuple(_BY_NAME)
