"""The options, the window settings and the upkeep of one table, made of its effective declarations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tablectl.model.calendar import TableWindow
from tablectl.model.table_options import TableLock, TableOptions
from tablectl.model.upkeep import NEVER, UpkeepPolicy, read_optimize, read_vacuum
from tablectl.policies.policy_fields import OPTIONS
from tablectl.policies.value_reader import GivenValue


def options_of(effective: Mapping[str, GivenValue]) -> TableOptions:
    """Builds the options from the effective declarations."""
    given: dict[str, Any] = {name: effective[name].value for name in OPTIONS if name in effective}
    if "max_bytes" in given:
        given["max_bytes"] = int(given["max_bytes"])
    if "truncate_history" in given:
        given["truncate_history"] = given["truncate_history"] == "true"
    given["engine_properties"] = tuple(
        sorted((key.partition(".")[2], each.engine) for key, each in effective.items() if each.engine)
    )
    given["locked"] = _lock_of(effective)
    return TableOptions(**given, clients=_pairs(effective, "clients"), streams=_pairs(effective, "streams"))


def _lock_of(effective: Mapping[str, GivenValue]) -> TableLock | None:
    """The lock of the effective declarations. A layer that declares a part of it takes the rest from those below."""
    found = {each: effective.get(f"locked.{each}") for each in ("until", "reason", "owner")}
    given = {name: str(each.value) for name, each in found.items() if each}
    return TableLock(**given) if len(given) == len(found) else None


def _pairs(effective: Mapping[str, GivenValue], option: str) -> tuple[tuple[str, str], ...]:
    """The keys and values of a map, sorted."""
    found = {key.partition(".")[2]: str(effective[key].value) for key in effective if key.startswith(f"{option}.")}
    return tuple(sorted(found.items()))


def window_of(effective: Mapping[str, GivenValue]) -> TableWindow | None:
    """The window settings of the effective declarations; ``None`` without any."""
    given: dict[str, Any] = {
        key.removeprefix("window."): effective[key].value for key in effective if key.startswith("window.")
    }
    if "drain" in given:
        given["drain"] = int(given["drain"])
    return TableWindow(**given) if given else None


def upkeep_of(effective: Mapping[str, GivenValue]) -> UpkeepPolicy | None:
    """The upkeep that the effective declarations ask for; ``None`` if they ask for none."""
    optimize = _read(effective, "upkeep.optimize", read_optimize)
    vacuum = _read(effective, "upkeep.vacuum", read_vacuum)
    if optimize and optimize.every == NEVER:
        optimize = replace(optimize, every="") if optimize.small_files else None
    if vacuum and vacuum.every == NEVER:
        vacuum = None
    clusters: Any = effective["optimize"].value if "optimize" in effective else "never"
    return UpkeepPolicy(optimize=optimize, vacuum=vacuum, clusters=clusters) if optimize or vacuum else None


def _read(effective: Mapping[str, GivenValue], key: str, read: Callable[[str], Any]) -> Any:
    return read(str(effective[key].value)) if key in effective else None
