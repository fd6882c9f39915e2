"""The context of a report: facts that are not in the plan or run itself."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from urllib.parse import quote

from tablectl.model.plan import Plan
from tablectl.model.safe_text import printable
from tablectl.policies.effective_policy import Sources
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
    dumped: bytes = b""
    """The contents of that file; empty if it is not known."""
    ci: str = ""
    """The URL of the CI run."""
    blob: str = ""
    """The URL below which a browser shows the files of the repository at this commit, without a slash at the end."""
    repository: str = ""
    """The name of the repository."""
    commit: str = ""
    """The commit from which the policies come."""
    author: str = ""
    """The account that started this."""
    made: str = ""
    """When the report was made, as text."""
    plan: Plan | None = None
    """The plan of the run."""
    now: datetime | None = None
    """The time for which the report tells the expected loss of a plan; ``None`` to tell only the quietest and the
    busiest hour.
    """
    no_quiet_hour: bool = False
    """Whether the report says once for all tables that the quietest hour is unknown."""
    streams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """By table: how far its declared streams are, and what stops them."""
    pending_fails: bool = False
    """Whether pending changes count as failures."""

    seconds: float | None = None
    """How long reading and comparing the tables took, if known."""
    began: int = 0
    """When that began, in milliseconds since the epoch; 0 if unknown."""
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

    def link(self, table: str, change: str = "") -> str:
        """The address of ``place`` in the repository; empty if unknown."""
        source = self.source(table, change)
        return self.link_of(source) if source else ""

    def link_of(self, source: SourceFile) -> str:
        """The address of a line of a policy; empty if unknown."""
        if not source.line or not _ADDRESS.match(self.blob) or posixpath.isabs(source.file):
            return ""
        path = posixpath.normpath(posixpath.join(self.root, source.file))
        if path.startswith(".."):
            return ""
        return f"{self.blob}/{quote(path.encode(errors='backslashreplace'), safe='/-._~')}#L{source.line}"

    @property
    def address(self) -> str:
        """``ci`` if it is safe to put into a page; else empty."""
        return self.ci if _ADDRESS.match(self.ci) else ""
