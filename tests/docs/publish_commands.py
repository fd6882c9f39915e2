"""Write ``docs/generated/commands.md`` from the program: ``python -m tests.docs.publish_commands``."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import redirect_stdout

from tablectl.commands.command_line import run_cli
from tests.docs.pages import ROOT
from tests.program import commands

PAGE = ROOT / "docs" / "generated" / "commands.md"
_TOP = """# Commands

Which commands and options are there? All of them, as `tablectl COMMAND --help` prints them.
This page is generated from the program by `python -m tests.docs.publish_commands`. The settings behind many options:
[settings.md](settings.md). The exit codes: [exit-codes.md](../exit-codes.md).

Results go to standard output, everything else to standard error. `NO_COLOR` turns colours off. Tab completion:
`eval "$(_TABLECTL_COMPLETE=bash_source tablectl)"` in `~/.bashrc`, with `zsh_source` or `fish_source` for other shells.
"""


def help_of(words: tuple[str, ...]) -> str:
    """What ``--help`` of a command prints, 100 characters wide."""
    printed = io.StringIO()
    with redirect_stdout(printed):
        run_cli([*words, "--help"], {"COLUMNS": "100", "NO_COLOR": "1"})
    return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().strip().splitlines())


def _sections() -> Iterator[str]:
    for words, _ in commands():
        yield f"\n## {' '.join(('tablectl', *words))}\n\n```text\n{help_of(words)}```\n"


def page() -> str:
    """The whole page."""
    return _TOP + "".join(_sections())


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
