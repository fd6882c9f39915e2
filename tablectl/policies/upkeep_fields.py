"""``upkeep:`` of a policy: ``optimize`` and ``vacuum``, each a value of its own that a stronger layer replaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tablectl.model.upkeep import (
    NEVER,
    OptimizePolicy,
    UpkeepPolicy,
    VacuumPolicy,
    parse_every,
    parse_share,
    parse_target,
    read_optimize,
    read_vacuum,
)
from tablectl.policies.fields import FieldName, Section, Text
from tablectl.policies.value_reader import GivenValue, ValueReader
from tablectl.policies.yaml_nodes import Node
from tablectl.support.frozen import frozen


@frozen(kw_only=True)
class _AsText(Section):
    """A section whose record is kept as the text that people read."""

    def read(self, node: Node, name: FieldName, reading: ValueReader) -> Any | None:
        found = Section.read(self, node, name, reading)  # ``@frozen`` makes a new class, which ``super`` misses
        return None if found is None else found.text


def _every(description: str) -> Text:
    return Text(
        parse=parse_every,
        noun="an interval",
        values={"type": "string", "examples": ["7 days", NEVER]},
        description=description,
        example="7 days",
    )


def _why_not(made: OptimizePolicy) -> str:
    return made.why_not


UPKEEP = Section(
    named=True,
    keys={
        "optimize": _AsText(
            make=OptimizePolicy,
            keys={
                "small_files": Text(
                    parse=parse_share,
                    noun="a percentage",
                    values={"type": "string", "examples": ["30%"]},
                    description="The share of the table's bytes in files below half of `target` from which on they are "
                    "merged.",
                    example="30%",
                ),
                "target": Text(
                    parse=parse_target,
                    noun="a size",
                    values={"type": ["string", "integer"], "examples": ["128 MB"]},
                    description="The size of the merged files; default: 128 MB.",
                    example="128 MB",
                ),
                "every": _every(f"How long after the last OPTIMIZE the next one is due; `{NEVER}` cancels it."),
            },
            short="every",
            check=_why_not,
            description="When the files of the table are merged (OPTIMIZE).",
        ),
        "vacuum": _AsText(
            make=VacuumPolicy,
            keys={"every": _every(f"How long after the last VACUUM the next one is due; `{NEVER}` cancels it.")},
            required=("every",),
            short="every",
            description="When files are deleted that no version needs any more (VACUUM). `retention.deleted_files` "
            "says how long they are kept.",
        ),
    },
    description="What `tablectl upkeep --apply` does regularly. It never changes a plan.",
    example="{optimize: {small_files: 30%, every: 7 days}, vacuum: {every: 7 days}}",
)


def upkeep_of(effective: Mapping[str, GivenValue]) -> UpkeepPolicy | None:
    """The upkeep that the effective declarations ask for; ``None`` if they ask for none."""
    optimize = _read(effective, "upkeep.optimize", read_optimize)
    vacuum = _read(effective, "upkeep.vacuum", read_vacuum)
    if optimize and optimize.every == NEVER:
        optimize = replace(optimize, every="") if optimize.small_files else None
    if vacuum and vacuum.every == NEVER:
        vacuum = None
    clusters = effective["optimize"].value if "optimize" in effective else "never"
    return UpkeepPolicy(optimize=optimize, vacuum=vacuum, clusters=clusters) if optimize or vacuum else None


def _read(effective: Mapping[str, GivenValue], key: str, read: Callable[[str], Any]) -> Any:
    return read(str(effective[key].value)) if key in effective else None
