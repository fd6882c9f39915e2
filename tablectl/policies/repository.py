"""The policies that a command uses: those in the given paths, otherwise those of the repository; or tables that are
named on the command line, without declarations.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tablectl.attributes.policy import MaskedKeys
from tablectl.delta.names import NameSyntaxError, canonical_location, join_parts
from tablectl.model.errors import Problem, UsageError
from tablectl.model.patterns import MAGIC, PathPattern, make_path_pattern
from tablectl.policies.config import Config
from tablectl.policies.find_files import find_files, read_files, shown_path
from tablectl.policies.identifiers import Target, read_table_key, typed_place
from tablectl.policies.layers import Declarations, Layer, LayerKind
from tablectl.policies.policy_document import read_specs
from tablectl.policies.spec import Specs, resolve
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import UndefinedVariableError, Variables
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.support.frozen import frozen

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


@frozen
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
        engine = self.config.engine
        reading = ValueReader(
            self.variables,
            engine.dialect,
            engine.catalog,
            [],
            MaskedKeys(self.config.reports.mask),
            engine.extra_properties,
        )
        return read_specs(((file, text.encode()) for file, text in texts.items()), reading)

    def bytes_of(self, texts: Mapping[str, str]) -> dict[Path, bytes]:
        """The bytes to write to each path so that the files contain ``texts``."""
        named = {shown_path(path): (path, data) for path, data in self.files.items()}
        return {
            path: (codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b"") + text.encode()
            for (path, data), text in ((named[file], text) for file, text in texts.items())
        }


def _all(files: dict[Path, bytes]) -> dict[Path, bytes]:
    return files


def parse_files(
    files: Mapping[Path, bytes], config: Config, variables: Variables, problems: Sequence[Problem] = ()
) -> Specs:
    """The policies in the bytes of files. Raises ``InputError`` with all errors in them, and with ``problems``."""
    engine = config.engine
    reading = ValueReader(
        variables,
        engine.dialect,
        engine.catalog,
        list(problems),
        MaskedKeys(config.reports.mask),
        engine.extra_properties,
    )
    return read_specs(((shown_path(path), data) for path, data in files.items()), reading)


def open_repository(
    paths: Paths,
    config: Config,
    directory: str | Path,
    variables: Variables,
    choose: Callable[[dict[Path, bytes]], dict[Path, bytes]] = _all,
) -> tuple[Repository, Specs]:
    """The files in ``paths`` and the policies in them. Raises as ``load_specs``.

    ``choose`` leaves files out before they are parsed, so errors in these are not found.
    """
    problems: list[Problem] = []
    files = choose(read_files(policy_paths(paths, config, directory), problems, config.confined_to))
    return Repository(files, variables, config), parse_files(files, config, variables, problems)


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


_BELOW = ("*", "*/*", "*/*/*")
"""Where the tables of a place lie: directly in it, or in folders for schemas and layers."""


def _targets(text: str, catalog: str, variables: Variables) -> tuple[Target, ...]:
    """The table or the pattern of a text. A place can be a table itself, or hold tables."""
    try:
        place = typed_place(variables.expand(text) if text.startswith("${") else text)
        if place is None:
            return (read_table_key(text, variables, catalog),)
        if any(char in place for char in MAGIC):
            return (make_path_pattern(place),)
        folder, _, name = place.rpartition("/")
        alone = (PathPattern(folder, (name,)),) if folder.strip("/") and not folder.endswith(":/") else ()
        return (*alone, *(make_path_pattern(f"{place.rstrip('/')}/{each}") for each in _BELOW))
    except NameSyntaxError as error:
        raise UsageError(
            str(error), "name tables as policies do: lake.sales.orders, 'lake.sales.*'; or a folder: /data/lake"
        ) from None
    except UndefinedVariableError as error:
        raise UsageError(error.message, error.hint) from None
