"""The command line: every command and its module. A module is loaded when its command is called.

A new command is a line of ``COMMANDS`` and its file, with a function whose signature is its options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from io import StringIO
from types import MappingProxyType
from typing import Annotated, Any

from typer import Abort, Exit, Option, Typer, TyperException
from typer.completion import shell_complete
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from tablectl.commands.habits import answer_to_habit
from tablectl.commands.output import Output, flush_streams
from tablectl.model.errors import ExitCode, TablectlError, UsageError, error_of
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

_GROUPS: Mapping[str, str] = MappingProxyType(
    {
        "window": "Show or release the lease on a table, or give up a copy beside it.\n\n"
        "Example: tablectl window show lake.sales.orders"
    }
)
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
_COMPLETE = "_TABLECTL_COMPLETE"
"""Set by the script that the shell runs for a completion."""
_MORE = "More commands"
_HELP = {"help_option_names": ["-h", "--help"]}


def run_cli(args: Sequence[str], environ: Mapping[str, str]) -> int:
    """Run a command line; the exit code is the command's (docs/exit-codes.md), 64 for wrong usage."""
    if _COMPLETE in environ:
        shell, _, asked = environ[_COMPLETE].partition("_")
        # `bash_source` is the spelling in the shell profiles of users of earlier versions.
        instruction = f"source_{shell}" if asked == "source" else environ[_COMPLETE]
        return shell_complete(program(), {}, "tablectl", _COMPLETE, instruction)
    if "--between" in args:
        from tablectl.commands.conflicts import with_folder  # noqa: PLC0415

        args = with_folder(args)
    out = Output(environ)
    try:
        # Not the library's ``main``, which turns Ctrl-C into 130 and a closed pipe into an exit.
        with program().make_context("tablectl", list(args), obj=out) as context:
            return int(context.command.invoke(context) or 0)
    except TyperException as error:
        return _wrong_usage(error, out, args)
    except Exit as error:
        return error.exit_code
    except (Abort, KeyboardInterrupt, EOFError):
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


def _wrong_usage(error: Any, out: Output, args: Sequence[str]) -> ExitCode:
    """Reports an error of the library, which would exit 2: that means "changes are pending" here."""
    option, context = getattr(error, "option_name", ""), getattr(error, "ctx", None)
    now = _RENAMED.get((context.info_name or "", option)) if context else None
    known = {each for param in context.command.params for each in param.opts} if context else ()
    meant = answer_to_habit(option, context.info_name or "", args, known) if context and option else None
    if now:
        out.fail(UsageError(f"{option} is now {now}"))
    elif meant:
        out.fail(meant)
    else:
        said = StringIO()
        error.show(said)
        # "Value error, " is how pydantic, which reads the values, says that a parser refused one.
        whole, message = (each.replace(": Value error, ", ": ") for each in (said.getvalue(), error.format_message()))
        out.usage(whole, message)
    return ExitCode.USAGE


def _version(value: bool) -> None:  # noqa: FBT001  # the library calls it so
    if value:
        sys.stdout.write(f"tablectl {__version__}\n")
        raise Exit


def tablectl(
    *,
    version: Annotated[  # its callback prints it
        bool, Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Manage table policies for Delta Lake: plan the difference from the live tables and apply it in one protected
    window.

    Example: tablectl plan --out plans/today.json
    """


def program() -> TyperGroup:
    """The program with all commands, of which none is loaded."""
    whole = _group("tablectl", tablectl, _help_of(tablectl))
    groups = {name: _group(name, lambda: None, about) for name, about in _GROUPS.items()}
    for path in COMMANDS:
        group, _, name = path.rpartition(" ")
        groups.get(group, whole).add_command(_Lazy(path), name)
    for name, each in groups.items():
        each.rich_help_panel = _MORE
        whole.add_command(each, name)
    return whole


def load_command(path: str) -> TyperCommand:
    """A command: the function ``NAME_command`` of its module, with the options of its signature."""
    made = getattr(import_module(f"tablectl.commands.{COMMANDS[path][0]}"), f"{path.replace(' ', '_')}_command")
    app = Typer(add_completion=False)
    app.command(path.rpartition(" ")[2], help=_help_of(made))(made)
    return get_command(app)  # type: ignore[return-value]  # with one command, it is not a group


def _help_of(made: Any) -> str:
    """The documentation of a function, each paragraph on a line, which is wrapped where it is printed."""
    return "\n\n".join(" ".join(each.split()) for each in inspect.getdoc(made).split("\n\n"))  # type: ignore[union-attr]


def _group(name: str, made: Any, about: str) -> TyperGroup:
    app = Typer(name=name, cls=_Group, add_completion=made is tablectl, context_settings=_HELP)
    app.callback(help=about)(made)
    return get_command(app)  # type: ignore[return-value]  # with a callback, it is a group


class _Group(TyperGroup):
    """Commands. Without one, the help is an error."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """The arguments of the command."""
        if not args and not ctx.resilient_parsing:
            with redirect_stdout(sys.stderr):
                ctx.get_help()
            raise Exit(ExitCode.USAGE)
        return super().parse_args(ctx, args)


class _Lazy(TyperCommand):
    """A command of the list, whose module is loaded when the command is called."""

    def __init__(self, path: str) -> None:
        self._path, name = path, path.rpartition(" ")[2]
        panel = None if path in FIRST or " " in path else _MORE
        super().__init__(name, help=COMMANDS[path][1], rich_help_panel=panel)

    def make_context(self, *args: Any, **more: Any) -> Any:
        """The context of the command itself."""
        return load_command(self._path).make_context(*args, **more)
