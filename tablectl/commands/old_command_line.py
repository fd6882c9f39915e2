"""The command line: every command and its module. A module is loaded when its command is called.

A new command is a line of ``COMMANDS`` and its file.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import cached_property
from io import StringIO
from types import MappingProxyType
from typing import Any

import click
from click.shell_completion import shell_complete

from tablectl.commands.habits import answer_to_habit
from tablectl.commands.output import Output, flush_streams
from tablectl.model.errors import ExitCode, TablectlError, error_of
from tablectl.version import __version__

FIRST = ("check", "init", "import", "plan", "apply", "drift", "status", "conflicts", "doctor")
"""The commands that most people need; ``--help`` shows them before the others."""

COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "check": ("check", "Say what is wrong or risky in a lake, the worst first"),
        "init": ("init", "Start a repository: policies, configuration, a CI workflow"),
        "import": ("import_tables", "Write policies from live tables"),
        "plan": ("plan", "Show the changes that the policies require"),
        "apply": ("apply", "Run a plan in one protected window"),
        "drift": ("drift", "Show what differs from the policies, and which commit did it"),
        "status": ("status", "Show the state of every table"),
        "conflicts": ("conflicts", "Show which concurrent operations on a table conflict"),
        "doctor": ("doctor", "Check what plan and apply need here, and say what to do"),
        "validate": ("validate", "Check policies without reading any table"),
        "lint": ("lint", "Check tables for risky settings"),
        "advise": ("advise", "Say which settings would save failed writes, bytes and files"),
        "explain": ("explain", "Explain the effective policy of a table, or a word"),
        "upkeep": ("upkeep", "Show or do what OPTIMIZE and VACUUM are due by the policies"),
        "show": ("show", "Show a saved plan"),
        "runs": ("runs", "List earlier applies from the tables' logs"),
        "undo": ("runs", "Undo a run: put the values from before it into the policies"),
        "rename": ("rename", "Give the policy of a table that moved its new name"),
        "create": ("create", "Create a table with everything that its policy declares"),
        "defaults": ("defaults", "Print what makers of tables must set, to create them as declared"),
        "lock": ("lock", "Write the files from which CI installs this version of tablectl"),
        "schema": ("schema", "Print the JSON Schema of policies or tablectl.yaml"),
        "demo": ("demo", "Build a small lake and run plan, apply and plan on it"),
        "window show": ("window", "Show who holds the lease on a table, and since when"),
        "window break": ("window", "Release the lease on a table by force"),
        "window clean": ("window", "Give up what is left of a copy beside a table"),
    }
)
"""Every command: its module, and the first sentence of its help."""

_COMPLETE = "_TABLECTL_COMPLETE"
"""Set by the script that the shell runs for a completion."""
_HELP = {"help_option_names": ["-h", "--help"]}


def run_old_cli(args: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command line; the exit code is the command's (docs/exit-codes.md), 64 for wrong usage."""
    if _COMPLETE in environ:
        return shell_complete(program(), {}, "tablectl", _COMPLETE, environ[_COMPLETE])
    out = Output(environ)
    try:
        # Not the library's ``main``, which turns Ctrl-C into 130 and a closed pipe into an exit.
        with program().make_context("tablectl", list(args), obj=out) as context:
            return int(context.command.invoke(context) or 0)
    except click.ClickException as error:
        # The library would exit 2, which means "changes are pending" here.
        option, wrong = str(getattr(error, "option_name", "")), getattr(error, "ctx", None)
        known = {each for param in wrong.command.params for each in param.opts} if wrong else ()
        meant = answer_to_habit(option, wrong.info_name or "", args, known) if wrong and option else None
        if meant:
            out.fail(meant)
            return ExitCode.USAGE
        said = StringIO()
        error.show(said)
        out.usage(said.getvalue(), error.format_message())
        return ExitCode.USAGE
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt, EOFError):
        out.fail(TablectlError("interrupted"))
        return ExitCode.ERROR
    except BrokenPipeError:
        # The reader of our output went away (`| head`): nothing is wrong with the tables.
        return ExitCode.ERROR
    except BaseException as error:  # noqa: BLE001  # see ``error_of``
        found = error_of("tablectl", error)
        out.fail(found)
        return found.exit_code
    finally:
        flush_streams()


def program() -> click.Group:
    """The program with all commands, of which none is loaded."""
    whole = _Group(
        "tablectl",
        help="Manage table policies for Delta Lake: plan the difference from the live tables and apply it in one "
        "protected window.\n\nExample: tablectl plan --out plans/today.json",
        params=[
            click.Option(
                ["--version"],
                is_flag=True,
                expose_value=False,
                is_eager=True,
                callback=_version,
                help="Print the version.",
            )
        ],
        no_args_is_help=True,
        context_settings=_HELP,
    )
    window = _Group(
        "window",
        help="Show or release the lease on a table, or give up a copy beside it.\n\n"
        "Example: tablectl window show lake.sales.orders",
        no_args_is_help=True,
    )
    for path in COMMANDS:
        group, _, name = path.rpartition(" ")
        (window if group else whole).add_command(_Listed(path), name)
    whole.add_command(window)
    return whole


class _Group(click.Group):
    """Commands in the order of the list."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Their names."""
        del ctx
        return list(self.commands)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes the commands that most people need, then the others."""
        del ctx
        width = max(map(len, self.commands))
        rows = [
            (name.ljust(width), each.get_short_help_str(formatter.width).removesuffix("."))
            for name, each in self.commands.items()
        ]
        first = [row for row in rows if row[0].strip() in FIRST]
        for title, shown in (("Commands", first or rows), ("More commands", [row for row in rows if row not in first])):
            if shown and (first or title == "Commands"):
                with formatter.section(title):
                    formatter.write_dl(shown)


def _version(context: click.Context, _parameter: click.Parameter, value: bool) -> None:  # noqa: FBT001  # of click
    if value and not context.resilient_parsing:
        sys.stdout.write(f"tablectl {__version__}\n")
        context.exit()


class _Listed(click.Command):
    """A command of the list, whose module is loaded when the command is called."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._module, summary = COMMANDS[path]
        super().__init__(path.rpartition(" ")[2], help=summary)

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        from tablectl.commands.click_options import loaded_command  # noqa: PLC0415  # `--help` needs no options, 0.1 s

        return loaded_command(self._path, f"tablectl.commands.{self._module}")

    def make_context(self, *args: Any, **more: Any) -> click.Context:
        """The context of the command itself."""
        return self.loaded.make_context(*args, **more)  # type: ignore[no-any-return]
