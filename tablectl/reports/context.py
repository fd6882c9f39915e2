"""The context of a report: facts that are not in the plan or run itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from tablectl.model.plan import Plan
from tablectl.model.text import printable
from tablectl.policies.policy_lines import Sources
from tablectl.policies.yaml_nodes import SourceFile

_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/?=&%+-]+\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """Where things are found. Every field may be unknown."""

    digest: str = ""
    """The digest of the plan, whose values may be masked in the report."""
    sources: Sources = field(default_factory=dict)
    """The lines of the policies that declare the changes."""
    root: str = ""
    """The path from the root of the repository to the directory to which the files of ``sources`` are relative."""
    plan_file: str = ""
    """The file in which the plan was saved."""
    ci: str = ""
    """The URL of the CI run."""
    plan: Plan | None = None
    """The plan of the run."""
    pending_fails: bool = False
    """Whether pending changes count as failures."""

    refused: str = ""
    """Why the plan as a whole may be neither saved nor run."""

    def source(self, table: str, change: str = "") -> SourceFile | None:
        """The line that declares a change, else the one that names its table."""
        found: Mapping[str, SourceFile] = self.sources.get(table, {})
        return found.get(change) or found.get("")

    def place(self, table: str, change: str = "") -> str:
        """``policies/sales.yaml:7``; empty if unknown."""
        source = self.source(table, change)
        return printable(f"{source.file}:{source.line}") if source and source.line else ""

    @property
    def address(self) -> str:
        """``ci`` if it is safe to put into a page; else empty."""
        return self.ci if _ADDRESS.match(self.ci) else ""
