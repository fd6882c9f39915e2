"""Explains a property: its values, what sets it, and which writers a change of it fails on an otherwise plain table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tablectl.attributes.policy import OWNED, OWNED_KEYS, attribute, why_refused
from tablectl.conflicts.delta_spark_rules import RELEASES
from tablectl.conflicts.statement_phases import PhaseVerdict, phase_of
from tablectl.delta.databricks_runtimes import CAPABILITIES, Capability
from tablectl.delta.dialects import DIALECTS
from tablectl.delta.properties import canonical_key, find_anywhere, find_known, why_never_declared
from tablectl.lint_rules import RULES
from tablectl.model.operations import Operation, SetProperties, UnsetProperties
from tablectl.model.plan import Basis, ProtocolFact
from tablectl.model.writers_in_history import ClientFact

_SAMPLE = "true"


@dataclass(frozen=True, slots=True)
class PropertyExplanation:
    """The explanation of one property key."""

    key: str
    """Delta's spelling, if the key is known."""
    attribute: str
    """The attribute that declares it; empty for a key of ``properties``."""
    description: str
    """The values that may be declared."""
    refused: tuple[str, str] | None
    """Why no policy can declare it, and what to do instead; ``None`` if a policy can."""
    dialects: tuple[str, ...]
    default: str | None
    """The value that every engine assumes if the key is not set; ``None`` if engines or sessions differ."""
    feature: str
    """The protocol feature that it enables."""
    changes: Mapping[str, PhaseVerdict]
    """The effect of setting and of unsetting it, on a plain table written by the newest Delta Spark."""
    codes: tuple[str, ...]
    """The codes of the findings about it."""
    runtimes: tuple[Capability, ...] = ()
    """What setting it needs on Databricks."""
    format: int = 2


def explain_property(text: str, dialect: str) -> PropertyExplanation | None:
    """The explanation of a property; ``None`` if neither Delta nor tablectl knows it."""
    owner, refused = OWNED.get(text.lower(), ""), why_refused(text, dialect)
    known = find_known(text, dialect) or find_anywhere(text)
    if not (owner or known or why_never_declared(text)):
        return None
    spelled = next((each for each in OWNED_KEYS if each.lower() == text.lower()), text)
    key = known.key if known else canonical_key(spelled, dialect)
    changes = {} if owner or refused or known is None else _changes(key, known.feature_value, dialect)
    return PropertyExplanation(
        key=key,
        attribute=owner,
        description=attribute(owner).value_type.description if owner else known.description if known else "",
        refused=None if owner else refused,
        dialects=tuple(each.name for each in DIALECTS if owner or find_known(key, each.name)),
        default=known.default if known else None,
        feature=known.feature if known else "",
        changes=changes,
        codes=tuple(rule.code for rule in RULES.values() if key in rule.properties),
        runtimes=tuple(each for each in CAPABILITIES if key in {name for name, _ in each.properties}),
    )


def _changes(key: str, value: str, dialect: str) -> dict[str, PhaseVerdict]:
    newest = RELEASES[-1]
    basis = Basis(
        protocol=ProtocolFact(reader=1, writer=2),
        partitioned=False,
        clustered=False,
        identity=False,
        schema_writers=False,
        overwrites=False,
        clients=(ClientFact(engine=newest.engine, version=newest.version),),
        vectors=None,
        files=None,
        bytes=None,
    )
    made: tuple[tuple[str, Operation], ...] = (
        ("set", SetProperties(((key, value or _SAMPLE),))),
        ("unset", UnsetProperties((key,))),
    )
    return {what: phase_of(operation.commits(basis), basis, dialect) for what, operation in made}
