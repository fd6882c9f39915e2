"""Write ``docs/generated/commands.md`` from the program: ``python -m tests.docs.publish_commands``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.docs.pages import ROOT
from tests.program import commands

PAGE = ROOT / "docs" / "generated" / "commands.md"
_TOP = """# Commands

Which commands and options are there? All of them, with what `tablectl COMMAND --help` says of each.
This page is generated from the program by `python -m tests.docs.publish_commands`. The settings behind many options:
[settings.md](settings.md). The exit codes: [exit-codes.md](../exit-codes.md).

Results go to standard output, everything else to standard error. `NO_COLOR` turns colours off. Tab completion:
`tablectl --install-completion`, or `eval "$(tablectl --show-completion)"` in the profile of the shell.
"""


def _panels(command: Any) -> dict[str, list[Any]]:
    """The parameters by the panels of ``--help``, in their order."""
    found: dict[str, list[Any]] = {"Arguments": [], "Options": []}
    for each in command.params:
        usual = "Arguments" if each.param_type_name == "argument" else "Options"
        found.setdefault(getattr(each, "rich_help_panel", None) or usual, []).append(each)
    return {title: each for title, each in found.items() if each}


def _row(each: Any) -> str:
    """A parameter: its spellings, what it takes, what it is for, its bounds and its default."""
    if each.param_type_name == "argument":
        names = f"`{each.metavar or each.name}`"
    else:
        takes = f" {each.metavar}" if each.metavar else ""
        names = ", ".join(f"`{name}{takes}`" for name in (*each.opts, *each.secondary_opts))
    notes = ["required"] if each.required else []
    least, most = getattr(each, "min", None), getattr(each, "max", None)
    if least is not None:
        notes.append(f"at least {least}" if most is None else f"{least} to {most}")
    if isinstance(each.default, int | float | str) and each.default != "" and not isinstance(each.default, bool):
        notes.append(f"default: {each.default}")
    about = (getattr(each, "help", "") or "") + (f" [{'; '.join(notes)}]" if notes else "")
    return f"| {names} | {about} |\n"


def _section(words: tuple[str, ...], command: Any) -> Iterator[str]:
    yield f"\n## {' '.join(('tablectl', *words))}\n\n{command.help.strip()}\n"
    for title, params in _panels(command).items():
        yield f"\n| {title} | |\n|---|---|\n" + "".join(map(_row, params))


def page() -> str:
    """The whole page."""
    return _TOP + "".join(part for words, command in commands() for part in _section(words, command))


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
