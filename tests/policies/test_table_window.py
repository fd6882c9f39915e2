"""``window:`` and ``owner:`` of a policy."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from tablectl.model.calendar import ALWAYS, Calendar, TableWindow, parse_rule
from tablectl.policies.declared_tables import Specs

Read = Callable[..., Specs]
TableWrong = Callable[..., list[str]]

NIGHT = '{cron: "0  22 * * *", duration: 1h90m, timezone: Europe/Berlin}'
SATURDAY = datetime(2026, 11, 21, 12, tzinfo=UTC)


def test_a_table_has_a_window_of_its_own_key_by_key(read: Read) -> None:
    text = (
        f"version: 1\ndefaults: {{window: {{drain: 60, allow: [{NIGHT}]}}}}\ntables:\n  a.b: {{window: {{drain: 5}}}}\n"
    )
    (spec,) = read(text).tables
    assert spec.window == TableWindow(drain=5, allow=("0 22 * * * for 2h30m in Europe/Berlin",))


def test_without_window_settings_there_are_none(read: Read) -> None:
    (spec,) = read("version: 1\ndefaults: {window: {drain: 1}}\ntables: {a.b: {unmanaged: [window]}}\n").tables
    assert spec.window is None


def test_allow_replaces_the_rules_of_the_configuration_and_deny_adds_to_them() -> None:
    week, weekend = parse_rule("0 0 * * 1-5 for 1d in UTC"), parse_rule("0 0 * * 6 for 2d in UTC")
    configured = Calendar(allow=(week,), deny=(parse_rule("0 0 1 12 * for 31d in UTC"),))
    own = TableWindow(allow=(weekend.text,)).over(configured)
    assert (configured.permits(SATURDAY), own.permits(SATURDAY)) == (False, True)
    assert not own.permits(SATURDAY.replace(month=12, day=12))  # a freeze of the configuration holds
    assert not TableWindow(deny=(weekend.text,)).over(ALWAYS).permits(SATURDAY)
    assert TableWindow(allow=()).over(configured).permits(SATURDAY)


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("window: {drain: soon}", "`window.drain` needs a whole number"),
        ("window: {allow: [{cron: x, duration: 1h}]}", "needs the five fields of cron"),
        ("window: {allow: [{cron: '* * * * *'}]}", "needs `duration`"),
        ("window: {before: [./steal.sh]}", "before"),
        ("window: {allow: [{cron: '* * * * *', duration: 1h, tables: [x]}]}", "tables"),
        ("window: closed", "`window` takes a map with"),
        ('owner: ""', "is not an owner"),
        ('owner: "a\\nb"', "owner"),
        ("owner: [a]", "`owner` takes text, not a list"),
    ],
)
def test_errors(table_wrong: TableWrong, entry: str, problem: str) -> None:
    assert problem in table_wrong(entry)[0]


def test_any_text_can_be_an_owner(read: Read) -> None:
    (spec,) = read("version: 1\ndefaults: {owner: someone}\ntables: {a.b: {owner: Team Ä}}\n").tables
    assert spec.owner == "Team Ä"


@pytest.mark.parametrize(
    "text", ["", "x", "* * * * * for 1h", "* * * * * for 0h in UTC", "* * * * * for 1h in Nowhere"]
)
def test_a_rule_of_a_plan_file_is_checked(text: str) -> None:
    with pytest.raises(ValueError, match="needs"):
        parse_rule(text)
