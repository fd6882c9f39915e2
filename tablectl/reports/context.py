"""What a report may tell beside the plan or the run itself."""

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
    """Where things are to be found. All of it may be unknown."""

    digest: str = ""
    """The digest of the plan, whose values may be masked in what is shown."""
    sources: Sources = field(default_factory=dict)
    """The lines of the policies that ask for the changes."""
    root: str = ""
    """The path from the root of the repository to the directory that the files of ``sources`` count from."""
    plan_file: str = ""
    """Where the plan was saved."""
    ci: str = ""
    """The URL of the CI run."""
    plan: Plan | None = None
    """The plan that a run is of."""
    pending_fails: bool = False
    """Whether changes that wait to be applied are failures."""

    refused: str = ""
    """Why the plan as a whole may be neither saved nor run."""

    def source(self, table: str, change: str = "") -> SourceFile | None:
        """The line that asks for a change, else the one that names its table."""
        found: Mapping[str, SourceFile] = self.sources.get(table, {})
        return found.get(change) or found.get("")

    def place(self, table: str, change: str = "") -> str:
        """``policies/sales.yaml:7``, empty where it is not known."""
        source = self.source(table, change)
        return printable(f"{source.file}:{source.line}") if source and source.line else ""

    @property
    def address(self) -> str:
        """``ci``, if it is one that can be written into a page as it stands."""
        return self.ci if _ADDRESS.match(self.ci) else ""
