"""Reads ``tablectl.yaml``. Precedence, lowest first: the file, the section of an environment, variables ``TABLECTL_…``,
and what flags or parameters give (``config.with_settings``).

A file becomes plain values: texts, nested as in the file, and the position of each key. Plain values of several layers
are merged, and then read once as ``FileConfig``.

A plan of an unmerged branch runs with credentials. Everything that runs code with them, or decides where they are sent,
comes from the file of the base branch. A branch may set only the keys in ``FROM_BRANCH``.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import ValidationError

from tablectl.attributes.policy import SECRET_KEYS
from tablectl.delta.names import is_environment
from tablectl.engine.interface import LOGIN
from tablectl.model.errors import DEBUG, InputError, Problem, UsageError
from tablectl.policies.config import CONFIG, GONE, TOP_ALONE, Config, FileConfig, config_schema, environment_variables
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.repository import read_bytes, shown_path, stays_below
from tablectl.policies.spelling_hints import nearest, shown
from tablectl.policies.wrong_values import FileFacts, Keys, problems_of
from tablectl.policies.yaml_nodes import MapNode, Scalar, SourceFile, kind_of, places_in, plain

BASE = "TABLECTL_BASE_CONFIG"
"""The variable that names the base branch's file. Set it where untrusted branches are planned."""
FROM_BRANCH = ("policies", "variables", "lint", "install", "ignore")
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


FILE = "tablectl.yaml"
ENV = "TABLECTL_ENV"
"""Names the environment if nothing else does."""
_PREFIXES = ("TABLECTL_VAR_", "TABLECTL_GUARD_", "TABLECTL_TEST_")
"""Values of ``${NAME}`` in policies, what ``tablectl-guard run`` hands down, and what the project's own tests read."""
_OF_HOOKS = (
    *("TABLECTL_HOOK", "TABLECTL_TABLE", "TABLECTL_LOCATION", "TABLECTL_RUN", "TABLECTL_PLAN"),
    *("TABLECTL_STREAMS", "TABLECTL_OUTCOME", "TABLECTL_EVENT"),
)
"""What hooks and commands of notifications find in their environment; they may call tablectl."""

Places = dict[Keys, SourceFile]
"""Position by keys. The items of a list are numbered from 1."""

_SECRETS: tuple[Keys, ...] = (
    ("notify",),
    ("engine", "conf"),
    ("engine", "remote"),
    ("window", "before"),
    ("window", "after"),
)
"""Settings whose values can hold secrets: addresses of servers, commands, settings of Spark."""


def load_config(directory: Path, environ: Mapping[str, str], env: str | None = None) -> Config:
    """The configuration of a directory for an environment. Missing keys have their defaults.

    ``env`` names a section under ``env:``, whose values override those at the top level, as variables do. ``None``
    reads the name from ``TABLECTL_ENV``. Without a name, or with an empty one, only the top level applies. A single
    value under ``engine: {remote: …}`` can also be set by the variable ``TABLECTL_ENGINE_REMOTE``, and so on. An empty
    variable counts as not set. If ``TABLECTL_BASE_CONFIG`` names a file, the directory's own file sets only what a
    branch may set (see ``combined``). In a job of an unmerged branch without it, the other keys are listed in
    ``unmerged``. Raises ``InputError`` with all errors in all environments, and ``UsageError`` for
    an unknown environment.
    """
    path, problems = directory / FILE, list[Problem]()
    values, places = _own_values(directory, environ, problems)
    file = SourceFile(shown_path(path), 1, 1)
    unmerged: tuple[str, ...] = ()
    if not environ.get(BASE) and is_unmerged(environ):
        unmerged = ignored(values, {})
    elif environ.get(BASE):
        _read(values, places, file, problems)  # errors in ignored keys are reported too
        base, base_places = _read_base(Path(environ[BASE]), problems)
        values, places = combined(values, base), {**base_places, **places}
    sections = {"env": values.pop("env")} if "env" in values else {}
    known = _read(sections, places, file, problems)
    chosen = environ.get(ENV, "") if env is None else env
    if not problems and chosen in sections.get("env", {}):
        _merge(values, sections["env"][chosen])
        places |= {keys[2:]: place for keys, place in places.items() if keys[:2] == ("env", chosen) and keys[2:]}
    problems += _unknown_variables(environ, str(values))
    for variable, keys in environment_variables():
        if environ.get(variable):
            _set(values, keys, environ[variable])
            places[keys] = SourceFile(variable, 0, 0)
    config = _read(values, places, file, problems)
    if problems or config is None or known is None:
        raise InputError(tuple(problems))
    if chosen and chosen not in known.env:
        raise _no_such(chosen, known, "" if env is not None else f", which {ENV} names")
    settings = {each.name: getattr(config, each.name) for each in fields(config)} | {"env": known.env}
    return Config(**settings, environment=chosen, confined_to=_confined(directory, environ), unmerged=unmerged)


def _unknown_variables(environ: Mapping[str, str], config: str) -> Iterator[Problem]:
    """Variables that set nothing, most likely by a typing error. A variable that the configuration names is the
    user's.
    """
    known = [ENV, BASE, DEBUG, *LOGIN, *(variable for variable, _ in environment_variables())]
    for name in sorted(environ):
        unknown = name.startswith("TABLECTL_") and not name.startswith(_PREFIXES) and name not in {*known, *_OF_HOOKS}
        if unknown and environ[name] and name not in config:
            meant = nearest(name, known)
            hint = f"did you mean {meant}?" if meant else "give a variable of your own another beginning"
            yield Problem(name, 0, 0, "no setting has this name, so the variable sets nothing", hint)


def repository_above() -> Path:
    """The nearest folder with a ``tablectl.yaml``, from the current one upward; the current one if none has.

    Only folders of the same owner count, since the file can name commands to run; the search ends at a checkout's root.
    Git does so, too (https://git-scm.com/docs/git-config, ``safe.directory``).
    """
    here = Path(os.path.realpath(Path()))
    for steps, each in enumerate((here, *here.parents)):
        with suppress(OSError):
            if each.stat().st_uid != here.stat().st_uid:
                break
            if (each / FILE).is_file():
                return Path(*[".."] * steps)
            if (each / ".git").exists():
                break
    return Path()


def _checkout_of(directory: Path) -> str:
    """The checkout of a directory, or itself outside of one, with links resolved."""
    here = Path(os.path.realpath(directory))
    return str(next((each for each in (here, *here.parents) if (each / ".git").exists()), here))


def config_values(directory: Path, environ: Mapping[str, str]) -> dict[str, Any]:
    """The plain values of a directory's file, and of the one that ``TABLECTL_BASE_CONFIG`` names, which are valid."""
    values = _own_values(directory, environ, [])[0]
    if environ.get(BASE):
        values = combined(values, read_values(Path(environ[BASE]), [])[0])
    return {key: as_texts(each) for key, each in values.items()}


def as_texts(values: Any) -> Any:
    """Plain values in which each ``Scalar`` is its text."""
    if isinstance(values, dict):
        return {key: as_texts(each) for key, each in values.items()}
    if isinstance(values, list):
        return [as_texts(each) for each in values]
    return values.text if isinstance(values, Scalar) else values


def ignored_keys(directory: Path, environ: Mapping[str, str]) -> tuple[str, ...]:
    """The keys of a directory's file that are ignored because ``TABLECTL_BASE_CONFIG`` names another file."""
    if not environ.get(BASE):
        return ()
    return ignored(_own_values(directory, environ, [])[0], read_values(Path(environ[BASE]), [])[0])


def _own_values(directory: Path, environ: Mapping[str, str], problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    """The values of a directory's own file. In a job of an unmerged branch, a link to a file elsewhere is an error."""
    path = directory / FILE
    return read_values(path, problems) if stays_below(path, _confined(directory, environ), problems) else ({}, {})


def _confined(directory: Path, environ: Mapping[str, str]) -> str:
    """The folder out of which no file of an unmerged branch leads; empty for merged ones."""
    return _checkout_of(directory) if environ.get(BASE) or is_unmerged(environ) else ""


def _read_base(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    if not path.is_file():
        problems.append(Problem(shown_path(path), 0, 0, f"this file, which {BASE} names, does not exist"))
        return {}, {}
    return read_values(path, problems)


def _no_such(name: str, config: FileConfig, why: str) -> UsageError:
    message = f"{FILE} has no environment {shown(name)}{why}"
    if not config.env:
        return UsageError(message, f"it has none: add `env: {{{name if is_environment(name) else 'prod'}: …}}` to it")
    meant = nearest(name, config.env)
    known = f"known are {', '.join(config.env)}"
    return UsageError(message, f"did you mean {meant}? {known}" if meant else known)


def _merge(values: dict[str, Any], over: Mapping[str, Any]) -> None:
    """Override values in place: maps by key, everything else as a whole. A section that is not a map stays
    unchanged.
    """
    for key, value in over.items():
        if isinstance(value, dict) and key in values:
            if isinstance(values[key], dict):
                _merge(values[key], value)
        else:
            values[key] = value


def _set(values: dict[str, Any], keys: Keys, value: str) -> None:
    """Set one value in place. A section that is not a map stays unchanged and is reported elsewhere."""
    section: Any = values
    for key in keys[:-1]:
        section = section.setdefault(key, {}) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section[keys[-1]] = value


def _read(values: Mapping[str, Any], places: Places, file: SourceFile, problems: list[Problem]) -> FileConfig | None:
    """The whole file with its defaults; ``None`` after errors were added to ``problems``."""

    def place(keys: Keys) -> SourceFile:
        """The position of a key, or of the innermost key above that has one."""
        return next((places[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in places), file)

    try:
        return CONFIG.validate_python(values)
    except ValidationError as error:
        facts = FileFacts(schema=config_schema, place=place, key_place=place, secret=is_secret, instead=_instead)
        problems += problems_of(error, facts)
        return None


def is_secret(keys: Keys) -> bool:
    """Whether no message shows the value of a key."""
    own = keys[2:] if keys[:1] == ("env",) else keys
    # People paste the token itself where its variable is named.
    token = own[:1] == ("catalogs",) and own[-1:] == ("token_variable",)
    return token or any(own[: len(each)] == each for each in _SECRETS)


def _instead(keys: Keys) -> str:
    """What to write in place of an unknown key, if that is not a matter of spelling."""
    if keys[-1] in GONE:
        return GONE[keys[-1]]
    known = config_schema()["properties"]
    meant = nearest(keys[-1], known) if keys[:1] == ("env",) and len(keys) == 3 else None
    return f"`{meant}:` goes at the top level of the file: it is one for all environments" if meant in TOP_ALONE else ""


def read_values(path: Path, problems: list[Problem]) -> tuple[dict[str, Any], Places]:
    """The values in the file and their positions; empty if the file is missing or empty. Types are not checked yet."""
    data, file = read_bytes(path, problems, missing=b""), shown_path(path)
    root = parse_document(data, file, problems) if data is not None else None
    places: Places = {}
    if root is None or (isinstance(root, Scalar) and root.is_null):
        return {}, places
    if not isinstance(root, MapNode):
        hint = "for example `engine: {dialect: oss}`"
        problems.append(root.source.problem(f"the configuration is a map, not {kind_of(root)}", hint))
        return {}, places
    return plain(root), dict(places_in(root))
