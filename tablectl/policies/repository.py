"""The policies that a command is about: those named, else those of the repository."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tablectl.attributes.masked import MaskedKeys
from tablectl.model.errors import Problem
from tablectl.policies.config import Config
from tablectl.policies.files import find_files, read_files, shown_path
from tablectl.policies.policy_document import read_specs
from tablectl.policies.spec import Specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables

Paths = Sequence[str | Path] | str | Path | None
"""Policy files and folders; ``None`` or nothing is what the configuration names."""


def load_repository(
    paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str], environ: Mapping[str, str]
) -> Specs:
    """The policies of some paths, by default those of ``tablectl.yaml`` in a directory. Raises as ``load_specs``."""
    return open_repository(paths, config, directory, variables, environ)[1]


def variables_for(config: Config, given: Mapping[str, str], environ: Mapping[str, str]) -> Variables:
    """The variables of a command: ``--var``, ``TABLECTL_VAR_…``, what the configuration gives; the earlier wins."""
    environments = {name: frozenset(each.variables) for name, each in config.env.items()}
    return Variables(given, environ, config.variables, config.environment, environments)


def policy_paths(paths: Paths, config: Config, directory: str | Path) -> list[Path]:
    """The paths themselves; what the configuration names where there are none."""
    given = [paths] if isinstance(paths, str | Path) else list(paths or [])
    return [Path(path) for path in given] or [Path(directory) / config.policies]


@dataclass(frozen=True, slots=True)
class Repository:
    """Policy files as they were read, so that they can be written again."""

    files: Mapping[Path, bytes]
    variables: Variables
    config: Config

    def texts(self) -> dict[str, str]:
        """What each file holds, by its name in messages."""
        return {shown_path(path): data.decode("utf-8-sig") for path, data in self.files.items()}

    def read(self, texts: Mapping[str, str]) -> Specs:
        """The policies in some texts, with the variables of the repository. Raises ``InputError``."""
        engine = self.config.engine
        reading = ValueReader(self.variables, engine.dialect, engine.catalog, [], MaskedKeys(self.config.reports.mask))
        return read_specs(((file, text.encode()) for file, text in texts.items()), reading)

    def bytes_of(self, texts: Mapping[str, str]) -> dict[Path, bytes]:
        """What is to be written where for some texts to hold."""
        named = {shown_path(path): (path, data) for path, data in self.files.items()}
        return {
            path: (codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b"") + text.encode()
            for (path, data), text in ((named[file], text) for file, text in texts.items())
        }


def open_repository(
    paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[Repository, Specs]:
    """The files of some paths, and the policies in them. Raises as ``load_specs``."""
    problems: list[Problem] = []
    files = read_files(policy_paths(paths, config, directory), problems)
    known = variables_for(config, variables, environ)
    reading = ValueReader(
        known, config.engine.dialect, config.engine.catalog, problems, MaskedKeys(config.reports.mask)
    )
    specs = read_specs(((shown_path(path), data) for path, data in files.items()), reading)
    return Repository(files, known, config), specs


def load_any(
    paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str], environ: Mapping[str, str]
) -> Specs:
    """The same for commands that need no policy: none where none are named and the repository has none."""
    home = Path(directory) / config.policies
    if not paths and (not home.exists() or (home.is_dir() and not find_files([home], []))):
        return Specs.of(())
    return load_repository(paths, config, directory, variables, environ)
