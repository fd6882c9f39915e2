"""The options of a guard, checked when it is created: a mistake must show at once, not during the next window."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypedDict, Union

from tablectl.delta.locations import is_absolute
from tablectl.delta.names import NameSyntaxError, parse_table, quote_name
from tablectl.leases.guards import LONGEST_TTL, TTL, GuardMode

if TYPE_CHECKING:  # newer than the oldest Python of a writer
    from typing import Unpack

Table = Union[str, "os.PathLike[str]"]
"""An identifier as in Spark SQL (``sales.orders``, ``lake.sales.orders``, ``delta.`/path```), or a location."""

ModeName = Literal["any", "rewrite", "append"]


@dataclass(frozen=True)
class GuardTarget:
    """The table of a guard."""

    text: str
    """As the writer wrote it."""
    location: str | None
    """Its location, if the writer gave one."""


@dataclass(frozen=True)
class GuardOptions:
    """The checked options of a guard."""

    target: GuardTarget
    mode: GuardMode
    name: str = ""
    """The writer's name, for people; may be empty."""
    timeout: float | None = None
    """Seconds to wait at a gate; ``None`` waits as long as its holder is alive."""
    state: str | None = None
    """Where the records are stored, if not in the table; ``None`` reads it from the environment."""
    ttl: float = TTL
    wait_for_deletion: bool = False
    """Whether the end of a write waits until the guard is deleted, also on an object store."""


def parse_target(table: Table) -> GuardTarget:
    """Parse the table that a writer names. Raises ``ValueError`` with the problem and a valid form."""
    text = os.fspath(table)
    if not isinstance(text, str):
        raise TypeError(f"a table is a str or a path of one, and this is {type(text).__name__}")
    if "/" in text and "`" not in text and not is_absolute(text):
        raise NameSyntaxError(f"the path {text!r} is relative: write it from the root, or as a URI")
    name = parse_table(f"delta.{quote_name(text)}" if is_absolute(text) else text)
    return GuardTarget(text, name.parts[0] if name.is_path else None)


class GuardSettings(TypedDict, total=False):
    """The optional parameters of ``guard`` and ``guard_batch``."""

    name: str
    timeout: float | None
    state: str | None
    ttl: float
    wait_for_deletion: bool


def guard_options(table: Table, mode: ModeName | GuardMode, **settings: Unpack[GuardSettings]) -> GuardOptions:
    """Check the options of a guard. Raises ``ValueError`` and ``TypeError``."""
    if mode not in set(GuardMode):
        raise ValueError(f"mode {mode!r} is none of {', '.join(GuardMode)}")
    terms = GuardOptions(parse_target(table), GuardMode(mode), **settings)
    if not _is_line(terms.name):
        raise ValueError(f"name {terms.name!r} is not one line of text")
    if terms.timeout is not None and not (_is_number(terms.timeout) and terms.timeout >= 0):
        raise ValueError(f"timeout {terms.timeout!r} is not a number of seconds")
    if terms.state is not None and not is_absolute(terms.state):
        raise ValueError(f"state {terms.state!r} is relative: write the path from the root, or a URI")
    if not (_is_number(terms.ttl) and 0 < terms.ttl <= LONGEST_TTL):
        raise ValueError(f"ttl {terms.ttl!r} is not a number of seconds up to {LONGEST_TTL:g}")
    return terms


def _is_line(value: object) -> bool:
    return isinstance(value, str) and value.isprintable()


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and not math.isnan(value)
