"""What rules see: a table as it will be once its plan ran, or a policy alone, of which only the declared is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from tablectl.attributes.clustering import Clustering
from tablectl.attributes.deletion_vectors import KEY as VECTORS_KEY
from tablectl.attributes.isolation import KEY as ISOLATION_KEY
from tablectl.attributes.policy import Policy
from tablectl.delta.names import ColumnPath, NameSyntaxError, parse_column
from tablectl.delta.properties import find_anywhere
from tablectl.model.plan import Change, Value
from tablectl.model.table import Commit, LiveTable
from tablectl.model.table_options import NO_OPTIONS, TableOptions

_UNIFORM_VALUES: Mapping[str, str] = MappingProxyType(
    {"iceberg_v1": "delta.enableicebergcompatv1", "iceberg_v2": "delta.enableicebergcompatv2"}
)


@dataclass(frozen=True, slots=True)
class RuleFinding:
    """What a rule found."""

    code: str
    message: str
    about: str = ""
    """The id of the attribute or property whose line it concerns; empty where it is the table as a whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LintedState:
    """See the module."""

    dialect: str
    declared: Policy
    properties: Mapping[str, str | None]
    """As they will read, by folded key; of a policy alone, those that it names."""
    clustering: Value = None
    """As the attribute reads it; ``None`` where nothing is known."""
    partitioning: Value = None
    live: LiveTable | None = None
    """The table as it is; ``None`` of a policy alone."""
    changed: frozenset[str] = frozenset()
    """The ids of the changes that the plan makes."""
    optimize: str = "never"
    """What the policy says of OPTIMIZE after a change of clustering."""
    clients: tuple[str, ...] = ()
    """The clients that the policy names."""

    @classmethod
    def of_policy(cls, policy: Policy, dialect: str) -> LintedState:
        """A policy alone."""
        return cls(
            dialect=dialect,
            declared=policy,
            properties=declared_properties(policy),
            clustering=policy.clustering,
            partitioning=policy.partitioning,
        )

    @property
    def known(self) -> bool:
        """Whether what is not named is known to be unset."""
        return self.live is not None

    @property
    def history(self) -> tuple[Commit, ...]:
        """The look-back, newest first."""
        return self.live.history if self.live else ()

    def value(self, key: str) -> str | None:
        """A ``delta.*`` property as it will read; ``None`` where it is not set, or not known."""
        return self.properties.get(key.lower())

    def is_true(self, key: str) -> bool:
        """Whether a switch is on."""
        return (self.value(key) or "").lower() == "true"

    def meaning(self, key: str, default: str) -> object | None:
        """A property's parsed value, that of its default where it is known to be unset; ``None`` where nobody knows."""
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
        """Whether the plan changes one of some attributes or properties."""
        return bool(self.changed & set(ids))

    @property
    def columns(self) -> tuple[ColumnPath, ...]:
        """The clustering columns as they will be."""
        try:
            return tuple(map(parse_column, self.clustering)) if isinstance(self.clustering, tuple) else ()
        except NameSyntaxError:
            return ()


def declared_properties(policy: Policy) -> dict[str, str | None]:
    """What a policy makes of properties, attributes included, by folded key."""
    found = {key.lower(): value for key, value in (policy.properties or {}).items() if _is_delta(key)}
    if policy.deletion_vectors is not None:
        found[VECTORS_KEY.lower()] = "true" if policy.deletion_vectors == "enabled" else "false"
    if policy.isolation is not None:
        found[ISOLATION_KEY.lower()] = None if policy.isolation == "default" else policy.isolation
    uniform = policy.declared().get("uniform")
    if isinstance(uniform, str):
        found |= {key: "true" if value == uniform else None for value, key in _UNIFORM_VALUES.items()}
        if uniform in _UNIFORM_VALUES:
            # The upgrade turns them off by itself.
            found.setdefault(VECTORS_KEY.lower(), "false")
    return found


def _is_delta(key: str) -> bool:
    return key.lower().startswith("delta.")


def table_subject(
    policy: Policy,
    live: LiveTable,
    changes: tuple[Change, ...],
    dialect: str,
    *,
    options: TableOptions = NO_OPTIONS,
) -> LintedState:
    """A live table as a plan would leave it."""
    properties: dict[str, str | None] = {key.lower(): value for key, value in live.properties.items() if _is_delta(key)}
    planned = {change.attribute: change.after for change in changes if not change.key}
    return LintedState(
        dialect=dialect,
        declared=policy,
        properties={**properties, **declared_properties(policy)} if policy.declared() else properties,
        clustering=planned.get("clustering", Clustering().read(live, "")),
        partitioning=planned.get("partitioning", live.partition_columns or "none"),
        live=live,
        changed=frozenset(change.id for change in changes),
        optimize=options.optimize,
        clients=tuple(name for name, _ in options.clients),
    )
