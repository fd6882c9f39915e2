"""A lint rule, and what it checks: a table as its plan will leave it, or a policy alone, of which only the declarations
are known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import date
from typing import Literal, get_args

from tablectl.attributes.clustering import Clustering
from tablectl.attributes.policy import Policy, planned_properties
from tablectl.delta.databricks_runtimes import Runtime
from tablectl.delta.names import ColumnPath, NameSyntaxError, parse_column
from tablectl.delta.properties import find_anywhere, in_force
from tablectl.model.commit import Commit
from tablectl.model.plan import Change, Value
from tablectl.model.table import LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableLock, TableOptions
from tablectl.model.upkeep import UpkeepPolicy
from tablectl.support.typed_json import Unwritten

Found = Iterator[tuple[str, str]]
"""The findings of a check: the message, and the id of the attribute or property; empty for the whole table."""

Seen = Literal["validate", "plan", "lint"]
Harm = Literal["data or history at risk", "clients locked out", "writers at risk", "debt", "closed to some clients"]
HARMS: tuple[Harm, ...] = get_args(Harm)
"""What a finding puts at risk, the worst first. The last one is for information."""
Mend = tuple[tuple[str, str, Value], ...]
"""What a policy would declare: an attribute, the key of a map (otherwise empty), and the value."""


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """The finding of a rule."""

    code: str
    message: str
    about: str = ""
    """The id of the attribute or property; empty if the finding concerns the whole table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedState:
    """The state that the rules check."""

    dialect: str
    declared: Policy
    properties: Mapping[str, str | None]
    """The planned values, by folded key. For a policy alone, only the keys that it names."""
    clustering: Value = None
    """The planned value of the attribute; ``None`` if unknown."""
    partitioning: Value = None
    live: LiveTable | None = None
    """The live table; ``None`` for a policy alone."""
    changed: frozenset[str] = frozenset()
    """The ids of the changes that the plan makes."""
    optimize: str = "never"
    """The policy's option for OPTIMIZE after a change of the clustering columns."""
    client_versions: tuple[tuple[str, str], ...] = ()
    """The clients that the policy names, with their versions."""
    runtime: Runtime | None = None
    """The Databricks Runtime of the engine; ``None`` if there is none, or if it is not stated."""
    truncates: bool = False
    """Whether the policy accepts the loss of history."""
    allow: tuple[str, ...] = ()
    """The consents of the policy."""
    lock: TableLock | None = None
    """The lock of the policy."""
    upkeep: UpkeepPolicy | None = None
    """The upkeep that the policy declares; ``None`` if it declares none, and for a plan, which it never changes."""
    today: date | None = None
    """``None`` if the day is not known."""

    @classmethod
    def of_policy(
        cls, policy: Policy, dialect: str, runtime: Runtime | None = None, *, options: TableOptions = NO_OPTIONS
    ) -> LintedState:
        """The state of a policy alone."""
        return cls(
            dialect=dialect,
            declared=policy,
            properties=planned_properties(policy),
            clustering=policy.clustering,
            partitioning=policy.partitioning,
            client_versions=options.clients,
            runtime=runtime,
            truncates=options.truncate_history,
            allow=options.allow,
        )

    @property
    def clients(self) -> tuple[str, ...]:
        """The clients that the policy names."""
        return tuple(name for name, _ in self.client_versions)

    @property
    def known(self) -> bool:
        """Whether a property that is not named is known to be unset."""
        return self.live is not None

    @property
    def history(self) -> tuple[Commit, ...]:
        """The look-back, newest first."""
        return self.live.history if self.live else ()

    def value(self, key: str) -> str | None:
        """The planned value of a ``delta.*`` property; ``None`` if it is not set or unknown."""
        return self.properties.get(key.lower())

    def is_true(self, key: str) -> bool:
        """Whether a boolean property is planned to be true."""
        return (self.value(key) or "").lower() == "true"

    def meaning(self, key: str, default: str) -> object | None:
        """The parsed value of a property, or of ``default`` if it is known to be unset; ``None`` if unknown or
        unparsable.
        """
        text = self.value(key)
        if text is None:
            if not self.known and key.lower() not in self.properties:
                return None
            text = default
        entry = find_anywhere(key)
        try:
            return entry.parse(text) if entry else text
        except ValueError:
            return None

    def touches(self, *ids: str) -> bool:
        """Whether the plan changes one of these attributes or properties."""
        return bool(self.changed & set(ids))

    @property
    def columns(self) -> tuple[ColumnPath, ...]:
        """The planned clustering columns."""
        try:
            return tuple(map(parse_column, self.clustering)) if isinstance(self.clustering, tuple) else ()
        except NameSyntaxError:
            return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LintRule:
    """One code: its documentation, its default severity and its check."""

    code: str
    name: str
    """The name for machine-readable formats: ``StatisticsMissClustering``."""
    severity: Literal["note", "warning", "error"]
    title: str
    breaks: str
    """What goes wrong."""
    why: str
    fix: str
    source: str
    """The sources: ``delta-2.2`` and ``D60`` (docs/reference), or a public page."""
    seen: tuple[Seen, ...] = ("plan", "lint")
    """The commands that check the rule. On tables that it does not change, ``plan`` names errors."""
    harm: Harm = "debt"
    properties: tuple[str, ...] = ()
    """The table properties that the rule is about, in Delta's spelling."""
    mend: Unwritten[Callable[[LintedState], Mend]] = lambda _: ()
    """The policy that mends a finding; empty if a person has to decide."""
    check: Unwritten[Callable[[LintedState], Found] | None] = None
    """``None`` if another module makes the findings."""

    def __call__(self, check: Callable[[LintedState], Found]) -> LintRule:
        """The rule with its check: a rule decorates the function that finds it."""
        return replace(self, check=check)


def table_subject(
    policy: Policy,
    live: LiveTable,
    changes: tuple[Change, ...],
    dialect: str,
    *,
    options: TableOptions = NO_OPTIONS,
    runtime: Runtime | None = None,
) -> LintedState:
    """A live table as a plan would leave it."""
    planned = {change.attribute: change.after for change in changes if not change.key}
    return LintedState(
        dialect=dialect,
        declared=policy,
        properties={**in_force(live.properties), **planned_properties(policy)},
        clustering=planned.get("clustering", Clustering().read(live, "")),
        partitioning=planned.get("partitioning", live.partition_columns or "none"),
        live=live,
        changed=frozenset(change.id for change in changes),
        optimize=options.optimize,
        client_versions=options.clients,
        runtime=runtime,
        truncates=options.truncate_history,
        lock=options.locked,
    )
