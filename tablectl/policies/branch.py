"""Which keys of ``tablectl.yaml`` an unmerged branch may set, and which come from its base branch.

A plan of a branch runs with credentials. Everything that runs code with them, or decides where they are sent, comes
from the base branch. A branch may set only the keys in ``FROM_BRANCH``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from tablectl.attributes.policy import SECRET_KEYS
from tablectl.model.errors import UsageError

BASE = "TABLECTL_BASE_CONFIG"
"""The variable that names the base branch's file. Set it where untrusted branches are planned."""
FROM_BRANCH = ("policies", "variables", "lint", "install")
"""The keys that a branch may set, at the top level and in environments. It may also add masks to ``reports``. No plan
uses ``install``: ``tablectl lock`` writes files from it.
"""
REQUESTS = (
    "BITBUCKET_PR_ID",
    "BUILDKITE_PULL_REQUEST",
    "CHANGE_ID",
    "CIRCLE_PULL_REQUEST",
    "CI_MERGE_REQUEST_IID",
)
"""The variables that name the unmerged request of a job: of Bitbucket, Buildkite (else ``false``), Jenkins, CircleCI
and GitLab.
"""


def is_unmerged(environ: Mapping[str, str]) -> bool:
    """Whether this is a job of a pull or merge request, or of a merge queue, in a CI system that says so."""
    event, azure = environ.get("GITHUB_EVENT_NAME", ""), environ.get("BUILD_REASON", "")
    asked = any(environ.get(each, "false") not in {"", "false"} for each in REQUESTS)
    return asked or event.startswith(("pull_request", "merge_group")) or azure == "PullRequest"


def check_merged(keys: Sequence[str]) -> None:
    """Raises ``UsageError`` if the file of an unmerged branch sets keys that it must not decide."""
    if keys:
        named = ", ".join(f"`{key}`" for key in keys)
        raise UsageError(
            f"tablectl.yaml: {named} count only once they are merged, and this job is of a branch that is not",
            f"set {BASE} to the tablectl.yaml of the branch from which plans are applied (docs/ci.md)",
        )


def combined(branch: Mapping[str, Any], base: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration values: from the branch's file for keys that it may set, from the base's file for all others.

    The environments are those of the branch. In an environment that the base does not have, the branch may set only the
    same keys.
    """
    values = _section(branch, base, SECRET_KEYS)
    masks = _masks(values, SECRET_KEYS)
    sections = branch.get("env")
    if isinstance(sections, dict):
        known = base.get("env")
        known = known if isinstance(known, dict) else {}
        values["env"] = {name: _section(_map(each), _map(known.get(name)), masks) for name, each in sections.items()}
    return values


def ignored(branch: Mapping[str, Any], base: Mapping[str, Any]) -> tuple[str, ...]:
    """The keys of a branch's file that are ignored before it is merged, such as ``engine`` or ``env.prod.stores``."""
    return tuple(_ignored(branch, combined(branch, base)))


def _ignored(branch: Mapping[str, Any], values: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    for key in sorted(branch.keys() | values.keys()):
        if key == "env" and not prefix:
            for name, section in _map(branch.get("env")).items():
                yield from _ignored(_map(section), _map(_map(values.get("env")).get(name)), f"env.{name}.")
        elif branch.get(key) != values.get(key):
            yield f"{prefix}{key}"


def _section(branch: Mapping[str, Any], base: Mapping[str, Any], inherited: Sequence[Any]) -> dict[str, Any]:
    """``inherited`` are the masks where the base has none: a list of the branch alone would replace them."""
    values = {key: value for key, value in base.items() if key not in {*FROM_BRANCH, "env"}}
    values |= {key: branch[key] for key in FROM_BRANCH if key in branch}
    if not _stays_inside(values.get("policies")):
        values.pop("policies", None)
        values |= {"policies": base["policies"]} if "policies" in base else {}
    masks = _masks(base, inherited)
    added = [each for each in _masks(branch, ()) if each not in masks]
    if added:
        values["reports"] = {**_map(base.get("reports")), "mask": [*masks, *added]}
    return values


def _stays_inside(policies: object) -> bool:
    """Whether the policies are inside the repository. A path elsewhere on the runner could contain secrets, and
    messages about invalid YAML would show them.
    """
    if not isinstance(policies, str):
        return True
    path = PurePosixPath(policies.replace("\\", "/"))
    return not path.is_absolute() and ".." not in path.parts and ":" not in policies


def _masks(values: Mapping[str, Any], inherited: Sequence[Any]) -> Sequence[Any]:
    found = _map(values.get("reports")).get("mask")
    return found if isinstance(found, list) else inherited


def _map(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
