"""Leaves the files of tablectl-guard out of tablectl's wheel, which depends on it."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class FilesHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    """Excludes them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before it selects files."""
        root = Path(self.root)
        spec = spec_from_file_location("guard_build", root / "packages" / "tablectl-guard" / "hatch_build.py")
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        self.build_config.target_config["exclude"] = [f"/{each.as_posix()}" for each in module.files(root)]
