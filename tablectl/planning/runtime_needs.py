"""The capabilities of the Databricks Runtime that a policy needs, value by value."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.attributes.policy import Policy, attribute
from tablectl.delta.databricks_runtimes import TRUNCATED, Capability, for_property, for_value
from tablectl.model.plan import Value


def needs_of_policy(policy: Policy, *, truncates: bool = False) -> Iterator[tuple[str, Capability]]:
    """The id of each declared value with what it needs. ``truncates``: the policy accepts the loss of history."""
    for name, key, value in policy.values():
        about = f"{name}.{key}" if key else name
        for known in needs_of_value(name, key, value, truncates=truncates):
            yield about, known


def needs_of_value(name: str, key: str, value: Value, *, truncates: bool = False) -> Iterator[Capability]:
    """What one value of an attribute needs, if the table does not have it yet."""
    word = f"{value}{TRUNCATED}" if truncates and value == "dropped" else value
    yield from for_value(name, word)
    declared = {key: value if isinstance(value, str) else None} if key else value
    if declared is None:
        return
    for each, text in attribute(name).planned(declared).items():
        yield from for_property(each, text)
