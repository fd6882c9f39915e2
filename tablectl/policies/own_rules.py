"""Finds the lint rules of installed packages. They are code of the environment, as tablectl itself is."""

from __future__ import annotations

from functools import cache
from importlib.metadata import EntryPoint, entry_points
from inspect import getdoc

from tablectl.model.own_rules import GROUP, OwnRule, is_own_code


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


def _load(entry: EntryPoint) -> OwnRule:
    package = entry.dist.name if entry.dist else entry.module
    if not is_own_code(entry.name):
        return OwnRule(entry.name, package, None, "its name is no code, such as ACME001")
    try:
        check = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001  # code of others: whatever it raises is reported
        return OwnRule(entry.name, package, None, f"{type(error).__name__}: {error}")
    if not callable(check):
        return OwnRule(entry.name, package, None, f"{entry.value} is no function")
    return OwnRule(entry.name, package, check, text=getdoc(check) or "")
