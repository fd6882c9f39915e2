"""What a catalog says about a table, as plain values: its entry, the state of a table whose newest commits are known to
its catalog first, and the rights of a principal, which statements need on Databricks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from tablectl.delta.protocol import Protocol

CATALOG_FEATURES = frozenset({"catalogManaged", "catalogOwned", "catalogOwned-preview"})
"""The table features with which a table's commits go through its catalog (Delta protocol, "Catalog-managed tables")."""


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What a catalog says about a table besides its state. ``None`` and empty texts mean that it does not say."""

    managed: bool | None = None
    """Whether the catalog owns the table's storage: ``table_type`` is ``MANAGED``, and not ``EXTERNAL``."""
    optimization: str = ""
    """The table's own setting of predictive optimization: ``enabled``, ``disabled`` or ``inherit``."""
    optimized: bool | None = None
    """Whether predictive optimization is on for the table, inherited settings included."""
    filtered: bool | None = None
    """Whether the table has a row filter or column masks of its own: readers see less than what is stored."""
    foreign: bool = False
    """Whether another catalog owns the table, and this one only shows it: ``table_type`` is ``FOREIGN``."""


@dataclass(frozen=True, slots=True)
class ManagedTable:
    """One answer of a catalog about a table that it manages."""

    location: str
    """The table's location in canonical form."""
    table_id: str
    """The id that the catalog gave to the table. The ``metaData`` of the log has another one."""
    protocol: Protocol
    schema: str
    """The schema as ``schemaString`` of a ``metaData`` action."""
    partition_columns: tuple[str, ...]
    properties: Mapping[str, str]
    """The properties of the table, without those that the catalog derives itself."""
    clustering: tuple[tuple[str, ...], ...] | None
    """The clustering columns by physical name; ``None`` if the catalog lists none."""
    version: int
    """The newest version of the table."""
    metadata_version: int
    """The version of the last commit that changed metadata (``last-commit-version``). A plan is stale if it moves."""
    etag: str = ""
    commits: Mapping[int, str] = field(default_factory=dict)
    """The commits that may not be published yet: version → file name in ``_delta_log/_staged_commits``."""

    @property
    def managed(self) -> bool:
        """Whether commits go through the catalog."""
        return bool((self.protocol.reader_features | self.protocol.writer_features) & CATALOG_FEATURES)


Right = Literal["MODIFY", "MANAGE", "ownership"]
OWNERSHIP: Final = "ownership"
_MEANS: Mapping[Right, frozenset[str]] = {
    "MODIFY": frozenset({"MODIFY", "ALL_PRIVILEGES", "ALL PRIVILEGES"}),
    "MANAGE": frozenset({"MANAGE", "MODIFY", "ALL_PRIVILEGES", "ALL PRIVILEGES"}),
    "ownership": frozenset({"MANAGE"}),
}
"""What a catalog may tell in place of each right. One edition of the page asks for ownership, or MODIFY for predictive
optimization, where another one takes MANAGE: nothing is reported as missing that one of them allows."""


@dataclass(frozen=True, slots=True)
class TableRights:
    """The rights of a principal on a table, as far as its catalog tells."""

    principal: str
    held: frozenset[str]
    """Privileges as the catalog names them, inherited ones and those of groups included."""
    owns: bool

    def allows(self, right: Right) -> bool:
        """Whether a statement that needs the right can run."""
        return self.owns or bool(self.held & _MEANS[right])

    def lacking(self, needs: Iterable[tuple[str, Right]]) -> Iterator[str]:
        """For each right that is not there, the right and the statements that need it: ``ownership: CLUSTER BY``."""
        missing: dict[Right, list[str]] = {}
        for verb, right in needs:
            if not self.allows(right) and verb not in missing.setdefault(right, []):
                missing[right].append(verb)
        return (f"{right}: {', '.join(verbs)}" for right, verbs in missing.items())
