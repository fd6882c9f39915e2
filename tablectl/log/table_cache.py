"""What is kept of tables between two reads: the state of a table at its newest commit, and the commits that show who
writes it. A cache may forget everything at any time, and nothing in it is believed without a look at the log.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from tablectl.log.state import State
from tablectl.model.table import Commit
from tablectl.support.frozen import frozen

_NO_COMMITS: Mapping[int, Commit] = MappingProxyType({})


@frozen
class KnownState:
    """The state of a table at a version."""

    version: int
    identity: str
    """``TableLog.identity`` of the version's commit when the state was read."""
    state: State


class TableCache(Protocol):
    """Keeps what was read of tables. Locations are in canonical form. Threads may share it."""

    @property
    def keeps_states(self) -> bool:
        """Whether ``keep`` does anything: what it needs costs a call of the system."""
        ...

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """The kept commits of a table by version; empty if there are none."""
        ...

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        """Keeps the commits of a table, instead of those kept before. Never raises."""
        ...

    def state(self, location: str) -> KnownState | None:
        """The kept state of the table at a location; ``None`` if there is none."""
        ...

    def keep(self, location: str, known: KnownState) -> None:
        """Keeps the state of the table at a location, instead of the one kept before. Never raises."""
        ...

    def flush(self) -> None:
        """Writes what is to be kept, and closes what is open: a connection must not get into a forked process. Never
        raises.
        """
        ...


class NoCache:
    """Keeps nothing."""

    @property
    def keeps_states(self) -> bool:
        """Always false."""
        return False

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """Always empty."""
        return _NO_COMMITS

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        """Does nothing."""

    def state(self, location: str) -> KnownState | None:
        """Always ``None``."""
        return None

    def keep(self, location: str, known: KnownState) -> None:
        """Does nothing."""

    def flush(self) -> None:
        """Does nothing."""


@dataclass(slots=True)
class MemoryCache(NoCache):
    """Keeps the commits of the tables of one run, and no states: under a lease, the log alone is believed."""

    tables: dict[tuple[str, str], Mapping[int, Commit]] = field(default_factory=dict)

    def load(self, location: str, table_id: str) -> Mapping[int, Commit]:
        """As ``TableCache.load``."""
        return self.tables.get((location, table_id), _NO_COMMITS)

    def store(self, location: str, table_id: str, commits: Mapping[int, Commit]) -> None:
        """As ``TableCache.store``."""
        self.tables[location, table_id] = commits
