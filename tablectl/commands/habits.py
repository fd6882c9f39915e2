"""Options of other tools, answered with what tablectl has in their place."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType

from tablectl.model.errors import UsageError

_SAME: Mapping[str, str] = MappingProxyType(
    {
        "auto-approve": "--yes",
        "force": "--yes",
        "models": "--select",
        "output": "--out",
        "target": "--select",
        "target-dir": "--directory",
    }
)
"""Options of Terraform, dbt and others, and ours of the same meaning."""
_JSON = "--format json prints the result as JSON"
_NOTHING = "{command} changes no table and asks nothing: leave it out"
_INSTEAD: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        "dry-run": {
            "apply": "`tablectl plan` shows what apply would do, and changes no table",
            "upkeep": "without --apply, upkeep changes no table",
            "create": "--show prints the statement and creates nothing",
            "": _NOTHING,
        },
        "yes": {"": _NOTHING},
        "json": {"": _JSON},
        "destroy": {"": "no command drops a table; `tablectl undo RUN` takes the changes of a run back"},
        "refresh-only": {"": "`tablectl drift` shows what differs from the policies"},
        "parallelism": {"": "`window: {parallel: N}` in tablectl.yaml says how many tables at a time"},
    }
)
"""What to do where we have no such option: by option, then by command; the empty text stands for all others."""


def answer_to_habit(option: str, command: str, args: Sequence[str], known: Collection[str]) -> UsageError | None:
    """What to write in place of an option that a command does not have, if it is one of another tool or has one dash.

    ``option`` is the one that the library names, which of ``-out=x`` sees ``-o`` alone; ``known`` are the options of
    the command.
    """
    words = [each for each in args if re.match(r"-[a-z][a-z-]+", each)] if len(option) == 2 else [option]
    if not words:
        return None
    written, equals, value = words[0].partition("=")
    name = written.lstrip("-")
    ours = next((each for each in (f"--{name}", _SAME.get(name, "")) if each in known), "")
    if ours and ours != option:
        return UsageError(f"{command} has no option {written}", f"write {ours}{equals}{value}")
    instead = _INSTEAD.get(_SAME.get(name, name).lstrip("-"), {})
    hint = instead.get(command, instead.get("", ""))
    return UsageError(f"{command} has no option {written}", hint.format(command=command)) if hint else None
