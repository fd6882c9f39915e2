"""The options and arguments that click reads and shows for a command, made from the settings of its record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, Field
from functools import partial
from importlib import import_module
from inspect import cleandoc
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import CompletionItem

from tablectl.commands.command import CliCommand, options_of
from tablectl.model.errors import TablectlError, UsageError
from tablectl.policies.config import OVERRIDDEN
from tablectl.policies.declare_setting import Setting, settings_of
from tablectl.policies.field_types import ListOf, MapOf, Text, Word
from tablectl.policies.value_kinds import number_text

_FORMAT = "format"
_COLUMN = 24
"""Characters of the column of options, where one is longer: the texts of all groups stand below each other."""
_PANELS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "Which tables": ("select", "exclude", "tags", "changed_since", "everything", "shard"),
        "When": (
            *("wait", "when", "within", "canary", "soak", "stop_if_failed", "stop_if_silent"),
            *("proceed", "override"),
        ),
        "Limits": ("max_tables", "max_bytes", "look_back", "days"),
        "Where": ("variables", "env", "remote", "cache", "catalog", "catalog_url", "catalog_name", "catalog_driver"),
        "Reports": ("format", "report", "verbose"),
    }
)
"""The options that several commands have, and those of the same purpose, below the command's own."""
_RENAMED: Mapping[tuple[str, str], str] = MappingProxyType(
    {
        ("import", "--output"): "--out",
        ("import", "-o"): "--out",
        ("import", "--from-dbt"): "--dbt",
        ("advise", "--write"): "--out",
        ("status", "--html"): "--report",
        ("undo", "--table"): "--select",
    }
)
"""Earlier spellings of options: they are refused with the present one."""
_ENDLESS = 100_000
"""A maximum from which on a number counts as unbounded."""


def loaded_command(path: str, module: str) -> click.Command:
    """The command of a module. Several commands of one module are named after their paths."""
    found = {name: each for name, each in vars(import_module(module)).items() if isinstance(each, CliCommand)}
    made = found.get(f"{path.replace(' ', '_')}_command") or next(iter(found.values()))
    return _Loaded(path.rpartition(" ")[2], made)


class _Loaded(click.Command):
    """A command with its options."""

    def __init__(self, name: str, made: CliCommand) -> None:
        options = [each for each in settings_of(made.options) if each[0].name not in made.without]
        super().__init__(
            name,
            params=[_parameter(*each, made.options) for each in options],
            help=cleandoc(made.run.__doc__ or ""),
            callback=partial(_run, made),
        )
        self._arguments = [(about.metavar, about.takes.description) for _, about in options if not about.flags]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the arguments with what they are, then the options in groups."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": self._arguments, "Options": []}
        panels |= {title: [] for title in _PANELS}
        for each in self.get_params(ctx):
            record = each.get_help_record(ctx) if isinstance(each, click.Option) else None
            title = next((title for title, names in _PANELS.items() if each.name in names), "Options")
            if record is not None:
                panels[title].append(record)
        width = max(len(flags) for rows in panels.values() for flags, _ in rows)
        for title, rows in panels.items():
            if rows:
                with formatter.section(title):
                    formatter.write_dl([(flags.ljust(min(width, _COLUMN)), text) for flags, text in rows])

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Raises ``UsageError`` with the present spelling of an option that was renamed."""
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            now = _RENAMED.get((self.name or "", error.option_name))
            if now is None:
                raise
            raise UsageError(f"{error.option_name} is now {now}") from None


def _run(made: CliCommand, **values: Any) -> int:
    given = {name: value for name, value in values.items() if value is not None and value not in ((), {})}
    return made.run(options_of(made.options, given), click.get_current_context().obj)


def _parameter(each: Field[Any], about: Setting, record: type[Any]) -> click.Parameter:
    takes, required = about.takes, each.default is MISSING and each.default_factory is MISSING
    if not about.flags:
        several = isinstance(takes, ListOf)
        read = partial(_read, about, about.metavar)
        shown = about.metavar if required or about.metavar.startswith("[") else f"[{about.metavar}]"
        return click.Argument(
            [each.name],
            metavar=shown,
            nargs=-1 if several else 1,
            required=required,
            callback=read,
            shell_complete=_tables if each.name in _TABLES else None,
        )
    more: dict[str, Any] = {} if required else {"default": None}  # the library's own default would count as given
    return click.Option(
        [each.name, *about.flags],
        metavar=about.metavar or None,
        help=_help(each, about, record),
        required=required,
        **more,
        is_eager=each.name == _FORMAT,  # the format of errors
        callback=partial(_read, about, about.flags[0]),
        shell_complete=_tables if each.name in _TABLES else None,
        **_kind(each, about),
    )


_TABLES = ("table", "tables", "places", "select", "exclude", "live", "old")
"""The parameters that take names of tables."""


def _tables(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The tables that the policies name and that go on like this, as people call them if that is enough."""
    from tablectl.commands.project import Project  # noqa: PLC0415  # no command but a completion needs it here

    with suppress(TablectlError):
        own = [each.table for each in Project.open().any_policies().declarations.named if each.table]
        counts = Counter(each.last for each in own)
        names = (each.last if counts[each.last] == 1 else each.text for each in own)
        return [CompletionItem(name) for name in sorted(names) if name.startswith(begun)]
    return []


def _kind(each: Field[Any], about: Setting) -> dict[str, Any]:
    takes = about.takes
    if isinstance(takes, Word) and takes.is_flag:
        # Without a default, `--on/--off` says which of the two is given.
        return {"is_flag": True, "flag_value": each.default is not True} if each.default is not None else {}
    if about.values > 1:
        return {"nargs": about.values}
    if isinstance(takes, Word):
        return {"type": click.Choice(takes.words)}
    return {"multiple": isinstance(takes, ListOf | MapOf)}


def _help(each: Field[Any], about: Setting, record: type[Any]) -> str:
    place = next((name for base, name in OVERRIDDEN.items() if each.name in base.__annotations__), "")
    if place and issubclass(record, tuple(OVERRIDDEN)):
        else_default = f", else {number_text(each.default)}" if isinstance(each.default, int | float) else ""
        notes, told = [], f"{about.takes.description} Default: `{place}.{each.name}`{else_default}."
    else:
        notes, told = [f"default: {each.default}"] if _tells(each.default) else [], about.takes.description
    notes += _bounds(about)
    extra = f"  [{'; '.join(notes)}]" if notes else ""
    return f"{told}{extra}"


def _tells(default: Any) -> bool:
    return isinstance(default, int | str) and default != "" and not isinstance(default, bool)


def _bounds(about: Setting) -> list[str]:
    """The bounds of a number, without a maximum that only keeps it from overflowing."""
    values = about.takes.values if isinstance(about.takes, Text) else {}
    if "minimum" not in values:
        return []
    least, most = values["minimum"], values["maximum"]
    return [f"{least}<=x<={most}" if most < _ENDLESS else f"x>={least}"]


def _read(about: Setting, name: str, context: click.Context, _parameter: click.Parameter, given: Any) -> Any:
    """The value of an option. Raises ``UsageError`` for a wrong one."""
    if given is None or given == ():
        return None
    if isinstance(about.takes, MapOf):
        return _pairs(name, given, about.takes)
    if isinstance(about.takes, ListOf):
        return tuple(about.parsed(name, each) for each in given)
    if isinstance(about.takes, Word):
        value = about.takes.meaning.get(given, given)
        if _parameter.name == _FORMAT:
            context.obj.json = given == "json"
        return value
    return about.parsed(name, given)


def _pairs(flag: str, given: Sequence[str], takes: MapOf) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in given:
        name, equals, value = pair.partition("=")
        if not equals or takes.why_not(name):
            raise UsageError(f"{flag} {pair!r} is not NAME=VALUE", f"for example {flag} LAKE=/data/lake")
        if name in found:
            raise UsageError(f"{flag} {name} is given twice")
        found[name] = value
    return found
