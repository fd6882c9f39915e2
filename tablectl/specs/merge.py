"""From what files declare to what holds for a table: defaults, then the table's own, attribute by attribute."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tablectl.attributes.policy import Policy
from tablectl.model.errors import Problem
from tablectl.specs.reading import Given
from tablectl.specs.shapes import EXCLUSIVE, SHAPES

Declared = Mapping[str, Given]
"""What a map declares, flat: ``isolation``, ``properties.owner.team``, ``tags``, ``location``."""


def merge(defaults: Declared, own: Declared, unmanaged: Iterable[str]) -> Declared:
    """The effective declarations. A list replaces a list, and properties merge by key, since each is an entry here.

    ``unmanaged`` takes inherited entries away; ``properties`` takes all of them.
    """
    cancelled = frozenset(unmanaged)
    inherited = {
        key: given for key, given in defaults.items() if key not in cancelled and key.split(".")[0] not in cancelled
    }
    return {**inherited, **own}


def check_exclusive(effective: Declared, own: Declared) -> Problem | None:
    """Clustering and partitioning exclude each other unless one is ``none``.

    The problem lies at the table's own entry where it has one, else in the defaults.
    """
    listed = [(name, effective[name].source) for name in EXCLUSIVE if _lists(effective, name)]
    if len(listed) < 2:
        return None
    listed.sort(key=lambda found: found[0] not in own)
    (name, source), (other, elsewhere) = listed
    message = f"`{name}` and `{other}` exclude each other, and `{other}` stands at {elsewhere}"
    hint = f"remove one, or declare it `none`; `unmanaged: [{other}]` cancels an inherited one"
    return source.problem(message, hint)


def _lists(effective: Declared, name: str) -> bool:
    return name in effective and isinstance(effective[name].value, tuple)


def policy_of(effective: Declared) -> Policy:
    """The policy that the declarations make."""
    values: dict[str, Any] = {}
    for name, shape in SHAPES.items():
        if shape.keyed:
            values[name] = _under(effective, name) or None
        elif name in effective:
            values[name] = effective[name].value
    return Policy(**values)


def _under(effective: Declared, name: str) -> dict[str, str | tuple[str, ...] | None]:
    prefix = f"{name}."
    return {key.removeprefix(prefix): effective[key].value for key in sorted(effective) if key.startswith(prefix)}
