"""Shards of a plan: which tables belong to each, and the plan of all tables from the plans of all shards."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tablectl.delta.names import canonical_location
from tablectl.model.errors import PlanFileError, UsageError
from tablectl.model.plan import Plan
from tablectl.model.text import listed
from tablectl.support.frozen import frozen

MOST_SHARDS = 1000
_SHARD = re.compile(r"([1-9][0-9]{0,3})/([1-9][0-9]{0,3})")
_AGAIN = "plan all shards again, at one commit of the policies"
_TOLD = 5


@frozen
class Shard:
    """One of ``count`` parts of all tables, from 1."""

    number: int
    count: int

    @staticmethod
    def parse(text: str) -> Shard:
        """The shard in a text such as ``2/8``. Raises ``UsageError``."""
        match = _SHARD.fullmatch(text)
        shard = Shard(int(match[1]), int(match[2])) if match else Shard(0, 0)
        if not 1 <= shard.number <= shard.count <= MOST_SHARDS:
            hint = f"write NUMBER/COUNT with a NUMBER from 1 and a COUNT of at most {MOST_SHARDS}, for example 2/8"
            raise UsageError(f"--shard {text!r} is not a shard", hint)
        return shard

    @property
    def text(self) -> str:
        """As ``parse`` takes it."""
        return f"{self.number}/{self.count}"

    def has(self, key: str) -> bool:
        """Whether a table belongs to this shard, by ``TableName.key``. Every table belongs to one of all shards,
        whatever other tables there are.
        """
        digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1


def merge_plans(plans: Sequence[tuple[str, Plan]]) -> Plan:
    """The plan of all tables, equal to one that was made at once. ``plans`` are pairs of a file name and its plan.

    Raises ``PlanFileError`` if the plans are not all shards of one plan, each once.
    """
    first, whole = plans[0]
    for name, plan in plans:
        for key in ("dialect", "changed_since", "policies", "env"):
            if getattr(plan, key) != getattr(whole, key):
                raise PlanFileError(
                    f"{name} and {first} have different `{key}`: they are not shards of one plan", _AGAIN
                )
    _check_complete(plans)
    tables = sorted((table for _, plan in plans for table in plan.tables), key=lambda table: table.name)
    unchanged = sorted(each for _, plan in plans for each in plan.unchanged)
    failures = {each for _, plan in plans for each in plan.failures}
    _check_once("table", [*(table.name for table in tables), *unchanged])
    _check_once("location", [canonical_location(table.location) for table in tables])
    unmatched = set(whole.unmatched).intersection(*(plan.unmatched for _, plan in plans))
    return replace(
        whole,
        shard="",
        tables=tuple(tables),
        failures=tuple(sorted(failures, key=lambda each: (each.name, each.message))),
        unchanged=tuple(unchanged),
        unmatched=tuple(sorted(unmatched)),
    )


def _check_complete(plans: Sequence[tuple[str, Plan]]) -> None:
    """Raises ``PlanFileError`` unless the plans are shards 1 to n of n."""
    found: dict[Shard, str] = {}
    for name, plan in plans:
        try:
            shard = Shard.parse(plan.shard)
        except UsageError:
            hint = "`tablectl plan --shard 1/4 --out FILE` makes the first of four"
            raise PlanFileError(f"{name}: not the plan of a shard", hint) from None
        if shard in found:
            raise PlanFileError(f"{name} and {found[shard]} are both shard {shard.text}", "give each shard once")
        found[shard] = name
    counts = sorted({shard.count for shard in found})
    if len(counts) > 1:
        raise PlanFileError(f"the plans are shards of {' and of '.join(map(str, counts))}: {_files(plans)}", _AGAIN)
    missing = [str(number) for number in range(1, counts[0] + 1) if Shard(number, counts[0]) not in found]
    if missing:
        raise PlanFileError(f"shard {listed(missing, _TOLD)} of {counts[0]} is missing", "give the plans of all shards")


def _check_once(what: str, values: Iterable[str]) -> None:
    repeated = sorted(value for value, count in Counter(values).items() if count > 1)
    if repeated:
        raise PlanFileError(f"the {what} {repeated[0]} is in two shards", _AGAIN)


def _files(plans: Sequence[tuple[str, Plan]]) -> str:
    return ", ".join(f"{name} is {plan.shard}" for name, plan in plans[:_TOLD])
