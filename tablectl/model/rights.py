"""The rights that statements need on Databricks, and those that a catalog tells of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from tablectl.support.frozen import frozen

Right = Literal["MODIFY", "MANAGE", "ownership"]
OWNERSHIP: Final = "ownership"
_MEANS: Mapping[Right, frozenset[str]] = {
    "MODIFY": frozenset({"MODIFY", "ALL_PRIVILEGES", "ALL PRIVILEGES"}),
    "MANAGE": frozenset({"MANAGE", "MODIFY", "ALL_PRIVILEGES", "ALL PRIVILEGES"}),
    "ownership": frozenset({"MANAGE"}),
}
"""What a catalog may tell in place of each right. One edition of the page asks for ownership, or MODIFY for predictive
optimization, where another one takes MANAGE: nothing is reported as missing that one of them allows."""


@frozen
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
