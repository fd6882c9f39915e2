"""The fields of the window that both ``tablectl.yaml`` and a policy have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tablectl.model.calendar import LONGEST, Rule, check_cron, check_zone
from tablectl.policies.fields import ListOf, Section, Text, YamlField, duration, whole

DRAIN = whole(0, 86_400, "Seconds that writers have to finish each time the gate becomes stricter.")
RULE_KEYS: Mapping[str, YamlField] = MappingProxyType(
    {
        "cron": Text(parse=check_cron, description="When the period begins: the five fields of cron."),
        "duration": duration(LONGEST, "How long it lasts."),
        "timezone": Text(parse=check_zone, description="The time zone of the fields; default: UTC."),
    }
)
"""The keys of a rule that is about every table."""
RULE_REQUIRED = ("cron", "duration")


def always() -> Rule:
    """The rule that a section starts from: its required keys replace these values."""
    return Rule(cron="* * * * *", duration=LONGEST)


def _rules(description: str) -> ListOf:
    rule = Section(make=always, keys=RULE_KEYS, required=RULE_REQUIRED)
    return ListOf(of=rule, make=lambda rules: tuple(each.text for each in rules), description=description)


TABLE_WINDOW = Section(
    named=True,
    keys={
        "drain": replace(DRAIN, parse=lambda text: str(DRAIN.parse(text))),
        "allow": _rules("Periods in which the table's window may open, instead of those of tablectl.yaml."),
        "deny": _rules("Periods in which the table's window may not open, besides those of tablectl.yaml."),
    },
    description="The table's own window settings, over those of tablectl.yaml.",
    example='{allow: [{cron: "0 22 * * 6", duration: 8h}]}',
)
"""``window:`` of a policy. It has no commands: only tablectl.yaml can name what tablectl runs."""
