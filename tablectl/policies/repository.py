"""The policies that a command uses: the files in the given paths, otherwise those of the repository; or tables that are
named on the command line, without declarations.

Files are found and read here, and left out unparsed if they cannot matter. A command about one table of ten thousand
needs its own entry and all patterns. To parse YAML takes two thousand times as long as to search it. So a file is left
out if its text has no pattern, and nothing that could stand for the name of the table.
"""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tablectl.attributes.policy import MaskedKeys
from tablectl.delta.dialects import DEFAULT_DIALECT
from tablectl.delta.locations import canonical_location
from tablectl.delta.names import DEFAULT_CATALOG, NameSyntaxError, TableName, join_parts, parse_table, quote_name
from tablectl.model.errors import InputError, Problem, UsageError
from tablectl.model.patterns import ANY_DEPTH, MAGIC, PathPattern, escape_glob, make_path_pattern
from tablectl.model.safe_text import printable
from tablectl.policies.config import Config
from tablectl.policies.declared_tables import Specs, resolve
from tablectl.policies.merge_layers import Declarations, Layer, LayerKind
from tablectl.policies.parse_yaml import MAX_BYTES, too_large
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Target, UndefinedVariableError, Variables, read_table_key, typed_place
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.files import NotRegularError, TooLargeError, read_regular

_SUFFIXES = (".yaml", ".yml")
_TABLE = "here stands a file of policies, or their folder; one table is `--select {name}`"
_START = "to start here: `tablectl init`, or `tablectl import TABLES… --out policies/tables.yaml` for live tables"


def read_files(paths: Sequence[Path], problems: list[Problem], root: str = "") -> dict[Path, bytes]:
    """The bytes of the files that ``find_files`` finds. Unreadable files are reported and left out."""
    contents = ((path, read_bytes(path, problems)) for path in find_files(paths, problems, root))
    return {path: data for path, data in contents if data is not None}


def find_files(paths: Sequence[Path], problems: list[Problem], root: str = "") -> tuple[Path, ...]:
    """The files in ``paths`` and every ``*.yaml`` and ``*.yml`` in its directories, sorted, without duplicates.

    Names in directories that start with a dot are skipped. Links are followed, and loops of links are followed once.
    With ``root``, a link that leads out of this directory is reported, and not followed.
    """
    found: dict[str, Path] = {}
    for path in paths:
        if not stays_below(path, root, problems):
            continue
        inside = tuple(_walk(path, problems, root)) if _is_directory(path) else (path,)
        if not inside:
            hint = "name a file, or the directory that holds the policies"
            if any(any(path.glob("*/" * depth + "_delta_log")) for depth in range(4)):
                hint = "it holds tables: `tablectl check` and `tablectl status` take such a folder"
            problems.append(Problem(shown_path(path), 0, 0, "no *.yaml or *.yml file in this directory", hint))
        for file in inside:
            found.setdefault(os.path.realpath(file), file)
    if not paths:
        problems.append(Problem("policies", 0, 0, "no files to read", "name the directory that holds the policies"))
    return tuple(sorted(found.values()))


def _is_name(text: str) -> bool:
    """Whether a text looks like the name of a table, and not like a file."""
    return "/" not in text and "." in text.strip(".") and not text.endswith((".yaml", ".yml", ".json"))


def _is_directory(path: Path) -> bool:
    try:
        return path.is_dir()
    except OSError:  # no permission: reading the path as a file reports it
        return False


def stays_below(path: Path, root: str, problems: list[Problem]) -> bool:
    """Whether a path is below a directory with all links resolved. Reports it otherwise."""
    if not root or f"{os.path.realpath(path)}/".startswith(f"{root.rstrip('/')}/"):
        return True
    hint = "a branch can only plan its own files: an error about another file would show a part of it"
    problems.append(Problem(shown_path(path), 0, 0, "a link that leads out of the repository", hint))
    return False


def _walk(top: Path, problems: list[Problem], root: str) -> Iterator[Path]:
    def unreadable(error: OSError) -> None:
        problems.append(Problem(shown_path(Path(error.filename)), 0, 0, f"cannot be read: {error.strerror}"))

    seen: set[str] = set()
    for folder, folders, names in os.walk(top, onerror=unreadable, followlinks=True):
        real = os.path.realpath(folder)
        if real in seen:
            folders.clear()
            continue
        seen.add(real)
        folders[:] = sorted(
            name for name in folders if not name.startswith(".") and stays_below(Path(folder, name), root, problems)
        )
        for name in sorted(names):
            if (
                name.endswith(_SUFFIXES)
                and not name.startswith(".")
                and stays_below(Path(folder, name), root, problems)
            ):
                yield Path(folder) / name


def read_text(path: Path) -> str:
    """The text of a file in UTF-8 within the size limit. Raises ``InputError``."""
    problems: list[Problem] = []
    data = read_bytes(path, problems)
    if data is None:
        raise InputError(tuple(problems))
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError((Problem(shown_path(path), 0, 0, "it is not text in UTF-8"),)) from None


def read_bytes(path: Path, problems: list[Problem], missing: bytes | None = None) -> bytes | None:
    """The bytes of a file within the size limit. If the file does not exist, returns ``missing`` if given. Reports a
    problem and returns ``None`` otherwise.
    """
    file = shown_path(path)
    try:
        return read_regular(path, MAX_BYTES)
    except (NotRegularError, IsADirectoryError):
        problems.append(Problem(file, 0, 0, "this is not a file"))
        return None
    except TooLargeError:
        problems.append(too_large(file))
        return None
    except FileNotFoundError:
        if path.is_symlink():  # a link was put here on purpose: its policies must not be left out silently
            problems.append(Problem(file, 0, 0, "a link that leads nowhere"))
            return None
        if missing is None:
            problems.append(
                Problem(file, 0, 0, "no such file or directory", _TABLE.format(name=file) if _is_name(file) else _START)
            )
        return missing
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        problems.append(Problem(file, 0, 0, f"cannot be read: {reason}"))
        return None


def shown_path(path: Path) -> str:
    """A path as the user wrote it, printable even if it is not UTF-8 or contains line breaks."""
    text = os.fsencode(path).decode("utf-8", "replace")
    return printable(text if text.isprintable() else repr(text)[1:-1])


_Key = TypeVar("_Key")
_SHORTEST = 3
"""Shorter words are in every file."""
_MOST_WORDS = 200
"""From so many words on, it is quicker to parse all files."""
_COMMENT_LINE = re.compile(rb"^[ \t]*#.*$", re.MULTILINE)
_OTHER_LINE_END = re.compile(rb"\r(?!\n)|\xc2\x85|\xe2\x80[\xa8\xa9]")
"""What ends a line in YAML alone: policies can follow it in the line of a comment."""
_UNCLEAR = re.compile(
    rb"""[*?\\\x80-\xff]            # globs, aliases, escapes, and letters that fold into other letters
    | [^\s\[,{:]\[                  # a class of characters in a glob; a list has a space or a bracket before it
    | \$\{[^}]*\}(?![./]+[a-z0-9_$`])  # a variable in the last part of a name or of a location
    | (?:\A|^---[ \t\r]*\n)(?:[ \t\r]*\n)*[ \t]+[^\s]  # a file whose keys are indented
    | ^(?!version:|defaults:|tables:|---[ \t\r]*$)[^\s#]  # another key of the file, or a file in one pair of braces
    """,
    re.MULTILINE | re.VERBOSE,
)
_WORD = re.compile(r"[a-z0-9_]+")


def relevant_files(files: Mapping[_Key, bytes], tables: Iterable[TableName]) -> dict[_Key, bytes]:
    """The files that may declare one of the tables by name, by location or by a pattern, or what other files use. The
    others do neither.
    """
    words = _words(tables)
    if words is None:
        return dict(files)

    def may_declare(data: bytes) -> bool:
        text = (_COMMENT_LINE.sub(b"", data) if b"#" in data else data).lower()
        unclear = _OTHER_LINE_END.search(data) or _UNCLEAR.search(text)
        return unclear is not None or any(word in text for word in words)

    return {key: data for key, data in files.items() if may_declare(data)}


def _words(tables: Iterable[TableName]) -> frozenset[bytes] | None:
    """A word of each table that every spelling of its name contains; ``None`` if a table has none, or for too many
    tables.

    The last part is used, since a catalog can be left out, and variables usually stand for catalogs and schemas.
    """
    words = set[bytes]()
    for table in tables:
        last = table.parts[-1].rstrip("/").rpartition("/")[2] if table.is_path else table.parts[-1]
        longest = max(_WORD.findall(last.casefold()), key=len, default="")
        if len(longest) < _SHORTEST or len(words) > _MOST_WORDS:
            return None
        words.add(longest.encode())
    return frozenset(words)


Paths = Sequence[str | Path] | str | Path | None
"""Policy files and directories. ``None`` or an empty value means the path in the configuration."""


def variables_for(config: Config, given: Mapping[str, str], environ: Mapping[str, str]) -> Variables:
    """The variables of a command. Precedence, highest first: ``--var``, ``TABLECTL_VAR_…``, the configuration."""
    environments = {name: frozenset(each.variables) for name, each in config.env.items()}
    return Variables(given, environ, config.variables, config.environment, environments)


def policy_paths(paths: Paths, config: Config, directory: str | Path) -> list[Path]:
    """The given paths; the path in the configuration if there are none."""
    given = [paths] if isinstance(paths, str | Path) else list(paths or [])
    return [Path(path) for path in given] or [Path(directory) / config.policies]


@dataclass(frozen=True, slots=True)
class Repository:
    """Policy files with their bytes, so that they can be rewritten."""

    files: Mapping[Path, bytes]
    variables: Variables
    config: Config

    def texts(self) -> dict[str, str]:
        """File name in messages → text of the file."""
        return {shown_path(path): data.decode("utf-8-sig") for path, data in self.files.items()}

    def read(self, texts: Mapping[str, str]) -> Specs:
        """Parses the policies in texts, with the variables of the repository. Raises ``InputError``."""
        return read_specs(
            ((file, text.encode()) for file, text in texts.items()), _reader(self.config, self.variables, [])
        )

    def bytes_of(self, texts: Mapping[str, str]) -> dict[Path, bytes]:
        """The bytes to write to each path so that the files contain ``texts``."""
        named = {shown_path(path): (path, data) for path, data in self.files.items()}
        return {
            path: (codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b"") + text.encode()
            for (path, data), text in ((named[file], text) for file, text in texts.items())
        }


def _reader(config: Config, variables: Variables, problems: list[Problem]) -> ValueReader:
    engine, masked = config.engine, MaskedKeys(config.reports.mask)
    return ValueReader(variables, engine.dialect, engine.catalog, problems, masked, engine.extra_properties)


def parse_files(
    files: Mapping[Path, bytes], config: Config, variables: Variables, problems: Sequence[Problem] = ()
) -> Specs:
    """The policies in the bytes of files. Raises ``InputError`` with all errors in them, and with ``problems``."""
    named = ((shown_path(path), data) for path, data in files.items())
    return read_specs(named, _reader(config, variables, [*problems]))


def open_repository(
    paths: Paths,
    config: Config,
    directory: str | Path,
    variables: Variables,
    choose: Callable[[dict[Path, bytes]], dict[Path, bytes]] | None = None,
) -> tuple[Repository, Specs]:
    """The files in ``paths`` and the policies in them. Raises ``InputError`` with all errors in them.

    ``choose`` leaves files out before they are parsed, so errors in these are not found.
    """
    problems: list[Problem] = []
    found = read_files(policy_paths(paths, config, directory), problems, config.confined_to)
    files = choose(found) if choose else found
    return Repository(files, variables, config), parse_files(files, config, variables, problems)


def load_specs(
    paths: Sequence[Path],
    *,
    variables: Mapping[str, str],
    environ: Mapping[str, str],
    dialect: str = DEFAULT_DIALECT,
    catalog: str = DEFAULT_CATALOG,
) -> Specs:
    """The policies in files and directories.

    ``variables`` are the ``--var`` values, ``environ`` the environment, with lower precedence. Raises ``InputError``
    with all errors in all files.
    """
    problems: list[Problem] = []
    reading = ValueReader(Variables(variables, environ), dialect, catalog, problems)
    return read_specs(((shown_path(path), data) for path, data in read_files(paths, problems).items()), reading)


def has_policies(config: Config, directory: str | Path) -> bool:
    """Whether the repository has any policy file where the configuration says."""
    home = Path(directory) / config.policies
    return home.exists() and not (home.is_dir() and not find_files([home], []))


ASKED = "the command line"
"""What stands for the file of such specs."""


def requested_tables(texts: Sequence[str], catalog: str, variables: Variables) -> Specs:
    """The specs of identifiers and patterns in policy syntax, and of the tables in places: folders and addresses, as
    people type them. Raises ``UsageError`` for other text.
    """
    layers: dict[str, Layer] = {}
    for number, text in enumerate(texts, 1):
        for target in _targets(text, catalog, variables):
            source = SourceFile(ASKED, 1, number)
            layers.setdefault(target.key, Layer(kind=LayerKind.TABLE, target=target, source=source))
    declarations = Declarations.of(layers.values())
    problems: list[Problem] = []
    named = ((each.table, (each,)) for each in declarations.named if each.table)
    return Specs.of(resolve(named, {}, problems), declarations)


def whole_catalog(catalog: str) -> str:
    """The pattern that matches every table of a catalog."""
    return f"{join_parts((catalog,))}.*.*"


def declared_already(specs: Specs, besides: str) -> Mapping[str, SourceFile]:
    """The entries of tables in files other than ``besides``: position by the ``key`` of the table and of its
    location.
    """
    named = [spec for spec in specs.tables if spec.declared.file != besides]
    places = {canonical_location(spec.location): spec.declared for spec in named if spec.location}
    return places | {spec.name.key: spec.declared for spec in named}


def _place_of(text: str, catalog: str) -> str | None:
    """The absolute location of a text that means a place. A relative folder that exists is one, unless its name reads
    as that of a table: ``sales.orders``.
    """
    place = typed_place(text)
    if place is not None or not os.path.isdir(text):  # noqa: PTH112  # a text, not a path yet
        return place
    try:
        parse_table(text, catalog)
    except NameSyntaxError:
        return typed_place(f"./{text}")
    return None


def _targets(text: str, catalog: str, variables: Variables) -> tuple[Target, ...]:
    """The table or the pattern of a text. A place can be a table itself, or hold tables at any depth. A folder that
    exists is a place, whatever its name.
    """
    above, log, _ = f"{text}/".partition("/_delta_log/")
    if log:
        raise UsageError(f"{text!r} is in the log of a table", f"name the folder of the table: {above}")
    if os.path.isfile(text):  # noqa: PTH113  # a text, not a path yet
        raise UsageError(f"{text!r} is a file", "name the folder of a table, or one that holds tables")
    try:
        place = _place_of(variables.expand(text) if text.startswith("${") else text, catalog)
        if place is None:
            return (read_table_key(text, variables, catalog),)
        if any(char in place for char in MAGIC) and not os.path.isdir(place):  # noqa: PTH112  # a text, not a path yet
            return (make_path_pattern(place),)
        (place,) = parse_table(f"delta.{quote_name(place)}").parts
        folder, _, name = place.rpartition("/")
        alone = (PathPattern(folder, (escape_glob(name),)),) if folder.strip("/") and not folder.endswith(":/") else ()
        return (*alone, PathPattern(place, (ANY_DEPTH,)))
    except NameSyntaxError as error:
        raise UsageError(
            str(error), "name tables as policies do: lake.sales.orders, 'lake.sales.*'; or a folder: /data/lake"
        ) from None
    except UndefinedVariableError as error:
        raise UsageError(error.message, error.hint) from None
