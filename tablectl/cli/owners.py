"""``tablectl owners``: who is responsible for which table, and as the lines of a CODEOWNERS file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path

from tablectl.cli.output import Output
from tablectl.cli.request import CommandRequest
from tablectl.frozen import frozen
from tablectl.model.errors import ExitCode
from tablectl.model.text import printable
from tablectl.policies.declarations import Declaration, rank
from tablectl.policies.precedence import effective, merge
from tablectl.policies.spec import Specs

_ACCOUNT = re.compile(r"@[A-Za-z0-9][A-Za-z0-9-]*(?:/[A-Za-z0-9._-]+)?|[^@\s]+@[^@\s]+\.[^@\s]+")
"""What the hosts of repositories take: ``@user``, ``@org/team``, an address."""


class OwnersFormat(StrEnum):
    """The formats of the command."""

    TEXT = "text"
    JSON = "json"
    CODEOWNERS = "codeowners"


@frozen
class OwnedTable:
    """A table or a pattern with its owner."""

    table: str
    owner: str
    """Empty if no policy names one."""
    file: str
    line: int


def owners_command(request: CommandRequest, out: Output, form: OwnersFormat) -> ExitCode:
    """Print the owners that the policies declare. Reads no table."""
    project = request.open(out)
    found = sorted(owned_tables(project.policies(request.paths)), key=lambda each: (each.owner, each.table))
    match form:
        case OwnersFormat.JSON:
            out.json_result([asdict(each) for each in found])
        case OwnersFormat.CODEOWNERS:
            out.result("".join(f"{line}\n" for line in codeowners(found, _root())))
        case OwnersFormat.TEXT:
            rows = [(printable(each.owner or "-"), printable(each.table), f"{each.file}:{each.line}") for each in found]
            owner, table = (max((len(row[column]) for row in rows), default=0) for column in (0, 1))
            lines = (f"{row[0].ljust(owner)}  {row[1].ljust(table)}  {row[2]}\n" for row in rows)
            out.result("".join(lines))
    return ExitCode.DONE


def owned_tables(specs: Specs) -> Iterator[OwnedTable]:
    """The owner of each named table and of each pattern."""
    patterns = ((each, (each,)) for each in specs.declarations.patterns)
    named = (
        (each, (each, *specs.declarations.matching(name))) for each in specs.declarations.named if (name := each.name)
    )
    for declaration, layers in (*named, *patterns):
        yield _owned(declaration, layers, specs)


def _owned(declaration: Declaration, layers: tuple[Declaration, ...], specs: Specs) -> OwnedTable:
    given = effective(merge(rank(layers, specs.declarations.profiles))).get("owner")
    source = declaration.source
    return OwnedTable(declaration.target.text, str(given.value) if given else "", source.file, source.line)


def codeowners(tables: Iterable[OwnedTable], root: Path) -> Iterator[str]:
    """One line for each policy file: every owner of a table in it. Owners that are no accounts become comments."""
    files: dict[str, set[str]] = {}
    for each in tables:
        files.setdefault(each.file, set()).update({each.owner} - {""})
    for file, owners in sorted(files.items()):
        accounts = sorted(each for each in owners if _ACCOUNT.fullmatch(each))
        for other in sorted(owners - set(accounts)):
            yield f"# {file}: {printable(other)} is no @user, @org/team or address"
        if accounts:
            yield f"{_pattern(Path(file), root)} {' '.join(accounts)}"


def _pattern(file: Path, root: Path) -> str:
    """The path of a file from the root of its repository, as CODEOWNERS takes it."""
    path = Path(os.path.relpath(file.resolve(), root)).as_posix()
    return "/" + re.sub(r"([ \\#*?!\[\]])", r"\\\1", path)


def _root() -> Path:
    here = Path.cwd()
    return next((each for each in (here, *here.parents) if (each / ".git").exists()), here).resolve()
