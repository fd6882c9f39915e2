"""Lint rules of your own (docs/lint-rules.md): functions that installed packages offer as entry points of ``GROUP``.

They are code of the environment, as tablectl itself is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import getdoc

from tablectl.lint_rules.rule import LintRule

GROUP = "tablectl.lint_rules"
FAILED = "R001"
"""The code of the finding that a rule could not be loaded, or did not end as it should."""
OWN_CODE = "^[A-Z]{2,16}[0-9]{1,6}$"
"""The codes that rules can have. Built-in ones have one letter."""


def is_own_code(text: str) -> bool:
    """Whether a rule of your own can have this code."""
    return re.fullmatch(OWN_CODE[1:-1], text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableToLint:
    """A table and its policy, as a rule sees them."""

    name: str
    """As in reports: ``sales.orders``, ``delta.`/lake/orders```."""
    location: str
    declared: Mapping[str, str | tuple[str, ...] | None]
    """What the policy declares, by attribute or ``properties.<key>``; ``None`` unsets a property."""
    properties: Mapping[str, str]
    """The live table properties."""
    columns: Mapping[str, str]
    """The type of each top-level column, as Delta spells it, in order."""
    partitioned_by: tuple[str, ...]
    clustered_by: tuple[str, ...]
    features: frozenset[str]
    """The features of its protocol."""
    owner: str
    """By the policy; empty if it names none."""
    tags: tuple[str, ...]


Check = Callable[[TableToLint], Iterable[str]]
"""A rule: one message for each problem that it finds on a table."""


@dataclass(frozen=True, slots=True)
class OwnRule:
    """One entry point."""

    code: str
    """Its name."""
    package: str
    check: Check | None
    """``None`` if it could not be loaded."""
    trouble: str = ""
    """Why it could not be loaded."""
    text: str = ""
    """The docstring of the function."""


def own_rule_codes() -> tuple[str, ...]:
    """The codes of all rules, without loading any of them."""
    return tuple(sorted({each.name for each in entry_points(group=GROUP) if is_own_code(each.name)}))


@cache
def own_rules() -> tuple[OwnRule, ...]:
    """All rules, by code. A rule that cannot be loaded, and a second rule of one code, says so instead of checking."""
    found: dict[str, OwnRule] = {}
    for each in sorted(entry_points(group=GROUP), key=lambda each: (each.name, each.value)):
        rule = _load(each)
        first = found.setdefault(rule.code, rule)
        if first is not rule and first.trouble == "":
            found[rule.code] = OwnRule(rule.code, rule.package, None, "two packages have a rule of this code")
    return tuple(found.values())


def documentation_of(rule: OwnRule) -> LintRule:
    """A rule in the form of the built-in ones."""
    title, _, rest = rule.text.strip().partition("\n")
    return LintRule(
        code=rule.code,
        name=rule.code,
        severity="warning",
        title=title.strip().removesuffix(".") or "A rule of your own",
        breaks=" ".join(rest.split()) or "Its message says what it found.",
        why=f"The package {rule.package} has this rule.",
        fix="Change the table or its policy as the message says.",
        source=f"the entry point {rule.code} of {rule.package}",
    )


def _load(entry: EntryPoint) -> OwnRule:
    package = entry.dist.name if entry.dist else entry.module
    if not is_own_code(entry.name):
        return OwnRule(entry.name, package, None, "its name is not a code, such as ACME001")
    try:
        check = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of others: whatever it raises is reported
        return OwnRule(entry.name, package, None, f"{type(error).__name__}: {error}")
    if not callable(check):
        return OwnRule(entry.name, package, None, f"{entry.value} is not a function")
    return OwnRule(entry.name, package, check, text=getdoc(check) or "")
