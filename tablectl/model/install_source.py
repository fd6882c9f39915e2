"""Where others install tablectl from: the one setting for everything that names an installation.

tablectl and tablectl-guard are two distributions of one repository. A command always names both, at one commit or as
two files. It never asks a package index for either name: whoever registers a name there that its owner has not
registered could run code with the credentials of a lake.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

DISTRIBUTIONS = ("tablectl-guard", "tablectl")
"""In the order in which they are installed: the second needs the first."""

NEEDS = "needs git+https://HOST/PATH@COMMIT (40 hexadecimal digits), or a folder or an https URL with the two wheels"

_GIT = re.compile(r"git\+(?:https://|ssh://git@)[\w.:-]+(?:/[\w.~+-]+)+@[0-9a-f]{40}")
_FOLDER = re.compile(r"(?:https://[\w.:-]+/)?[\w.~][\w.~+-]*(?:/[\w.~+-]+)*/?")
_HASH = re.compile(r"sha256:[0-9a-f]{64}")


class CiSystem(StrEnum):
    """CI systems with a template."""

    GITHUB = "github"
    GITLAB = "gitlab"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class InstallSource:
    """A repository at a commit, or a folder of wheels."""

    text: str
    """As the user wrote it, without a slash at the end."""

    @property
    def is_git(self) -> bool:
        """Whether it is a repository."""
        return self.text.startswith("git+")

    @property
    def is_url(self) -> bool:
        """Whether it is a folder of wheels behind an https URL."""
        return self.text.startswith("https://")

    def requirement(self, distribution: str, version: str) -> str:
        """What pip takes for one distribution: a direct reference or the path of a wheel."""
        if self.is_git:
            below = "#subdirectory=packages/tablectl-guard" if distribution == "tablectl-guard" else ""
            return f"{distribution} @ {self.text}{below}"
        wheel = f"{self.text}/{wheel_name(distribution, version)}"
        return f"{distribution} @ {wheel}" if self.is_url else f"./{wheel}"


def parse_source(text: str) -> InstallSource:
    """Parse the setting. A branch or a tag of Git is refused: it can move. Raises ``ValueError``."""
    if ".." in text.split("/") or not (_GIT.fullmatch(text) or _FOLDER.fullmatch(text)):
        raise ValueError(NEEDS)
    return InstallSource(text.rstrip("/"))


def parse_hash(text: str) -> str:
    """Parse the hash of a wheel. Raises ``ValueError``."""
    if _HASH.fullmatch(text) is None:
        raise ValueError("needs sha256: and 64 hexadecimal digits, as `make dist` prints them")
    return text


def wheel_name(distribution: str, version: str) -> str:
    """The file name of a wheel, which `make dist` writes."""
    return f"{distribution.replace('-', '_')}-{version}-py3-none-any.whl"


def requirements_text(source: InstallSource, version: str, hashes: Mapping[str, str]) -> str:
    """A requirements file that names the two distributions: for ``pip install --no-deps --no-build-isolation -r``.

    Wheels have their hashes (``hashes``, by distribution). pip cannot check a hash of a repository; there the commit is
    the hash.
    """
    lines = [source.requirement(each, version) for each in DISTRIBUTIONS]
    if not source.is_git:
        lines = [f"{line} \\\n    --hash={hashes[each]}" for line, each in zip(lines, DISTRIBUTIONS, strict=True)]
    return "".join(f"{line}\n" for line in lines)
