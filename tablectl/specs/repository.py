"""The policies that a command is about: those named, else those of the repository."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from tablectl.specs.config import Config
from tablectl.specs.policies import load_specs
from tablectl.specs.spec import Specs

Paths = Sequence[str | Path] | str | Path | None
"""Policy files and folders; ``None`` or nothing is what the configuration names."""


def load_repository(
    paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str], environ: Mapping[str, str]
) -> Specs:
    """The policies of some paths, by default those of ``tablectl.yaml`` in a directory. Raises as ``load_specs``."""
    given = [paths] if isinstance(paths, str | Path) else list(paths or [])
    return load_specs(
        [Path(path) for path in given] or [Path(directory) / config.policies],
        variables=variables,
        environ=environ,
        dialect=config.engine.dialect,
        catalog=config.engine.catalog,
    )


def load_any(
    paths: Paths, config: Config, directory: str | Path, variables: Mapping[str, str], environ: Mapping[str, str]
) -> Specs:
    """The same for commands that need no policy: none where none are named and the repository has none."""
    if not paths and not (Path(directory) / config.policies).exists():
        return Specs.of(())
    return load_repository(paths, config, directory, variables, environ)
