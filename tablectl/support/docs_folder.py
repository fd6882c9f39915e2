"""Where the pages of the documentation are."""

from __future__ import annotations

from importlib import resources
from pathlib import Path


def pages_folder() -> Path:
    """Next to the package in an installation, at the root of a checkout."""
    package = Path(str(resources.files("tablectl")))
    return package / "_docs" if (package / "_docs").is_dir() else package.parent / "docs"
