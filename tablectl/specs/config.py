"""``tablectl.yaml``: where things lie and how the engine is reached. The file, then ``TABLECTL_…``; the later wins."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import ErrorDetails

from tablectl.model.errors import InputError, Problem
from tablectl.model.names import DEFAULT_CATALOG, is_absolute
from tablectl.specs.config_file import Places, key_text, read_values
from tablectl.specs.files import shown_path
from tablectl.specs.identifiers import why_unusable
from tablectl.specs.tree import Source
from tablectl.specs.wording import did_you_mean, shown

FILE = "tablectl.yaml"

LATER_KEYS = frozenset(
    {("lint",), ("env",), ("plans",), ("engine", "exclusive_commits"), ("window", "before"), ("window", "after")}
)
"""Keys of the design that are not built yet."""

ENVIRON: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "TABLECTL_POLICIES": ("policies",),
        "TABLECTL_STATE": ("state",),
        "TABLECTL_ENGINE_CATALOG": ("engine", "catalog"),
        "TABLECTL_ENGINE_DIALECT": ("engine", "dialect"),
        "TABLECTL_ENGINE_REMOTE": ("engine", "remote"),
        "TABLECTL_WINDOW_PARALLEL": ("window", "parallel"),
        "TABLECTL_WINDOW_TTL": ("window", "ttl"),
    }
)
"""The variables that set a value, and which."""


def _clean(text: str) -> str:
    if not text or any(ord(char) < 32 for char in text) or why_unusable(text):
        raise ValueError("needs text without control characters")
    return text


def _remote(text: str) -> str:
    if not _clean(text).startswith("sc://"):
        raise ValueError("needs the address of a Spark Connect server, such as sc://host:15002")
    return text


def _place(text: str) -> str:
    if not is_absolute(_clean(text)):
        raise ValueError("needs an absolute path or a URI, such as s3://lake/tablectl")
    return text


_Clean = Annotated[str, AfterValidator(_clean)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class EngineConfig(_Section):
    """How statements reach the tables."""

    catalog: _Clean = DEFAULT_CATALOG
    """The catalog of identifiers with two parts."""
    dialect: Literal["oss", "databricks"] = "oss"
    """The dialect of statements."""
    remote: Annotated[str, AfterValidator(_remote)] | None = None
    """A Spark Connect server; ``None`` for a session of this process."""
    conf: Mapping[str, str] = Field(default_factory=dict)
    """Spark settings of a session of this process."""


class WindowConfig(_Section):
    """How the protected window runs."""

    parallel: int = Field(default=4, ge=1, le=64)
    """Tables worked on at a time."""
    ttl: int = Field(default=60, ge=10, le=3600)
    """Seconds after which an unrenewed lease may be taken over."""


class Config(_Section):
    """The configuration of one repository. Relative paths count from its directory."""

    policies: _Clean = "policies"
    engine: EngineConfig = EngineConfig()
    window: WindowConfig = WindowConfig()
    state: Annotated[str, AfterValidator(_place)] | None = None
    """Where lease records lie if not beside the tables."""


def load_config(directory: Path, environ: Mapping[str, str]) -> Config:
    """The configuration of a directory; what neither file nor environment sets has its default.

    An empty variable counts as not set. Raises ``InputError`` with everything that is wrong.
    """
    path, problems = directory / FILE, list[Problem]()
    values, places = read_values(path, problems)
    for variable, keys in ENVIRON.items():
        if environ.get(variable):
            _set(values, keys, environ[variable])
            places[keys] = Source(variable, 0, 0)
    try:
        config = Config.model_validate(values)
    except ValidationError as error:
        found = error.errors(include_url=False)
        raise InputError((*problems, *(_explain(detail, places, shown_path(path)) for detail in found))) from None
    if problems:
        raise InputError(tuple(problems))
    return config


def _set(values: dict[str, Any], keys: tuple[str, ...], value: str) -> None:
    """Put one value where it belongs; a section that is no map stays as it is and is a problem of its own."""
    section: Any = values
    for key in keys[:-1]:
        section = section.setdefault(key, {}) if isinstance(section, dict) else None
    if isinstance(section, dict):
        section[keys[-1]] = value


def _explain(detail: ErrorDetails, places: Places, file: str) -> Problem:
    keys = tuple(str(key) for key in detail["loc"])
    source = next((places[keys[:end]] for end in range(len(keys), 0, -1) if keys[:end] in places), Source(file, 1, 1))
    name, given = key_text(keys), detail["input"]
    found = shown(given) if isinstance(given, str) else "nothing" if given is None else "a map"
    match detail["type"]:
        case "extra_forbidden" if keys in LATER_KEYS:
            return source.problem(f"{name} is not supported yet", "remove it: this version would not act on it")
        case "extra_forbidden":
            return source.problem(f"unknown key {shown('.'.join(keys))}", did_you_mean(keys[-1], _keys_beside(keys)))
        case "model_type" | "dict_type" | "mapping_type":
            return source.problem(f"{name} takes a map, not {found}", f"put its keys under {name}")
        case _:
            return source.problem(f"{name} {_needs(detail)}, not {found}")


def _needs(detail: ErrorDetails) -> str:
    context = detail.get("ctx", {})
    match detail["type"]:
        case "value_error":
            return str(context["error"])
        case "literal_error":
            return f"needs {context['expected']}"
        case "greater_than_equal":
            return f"needs at least {context['ge']}"
        case "less_than_equal":
            return f"needs at most {context['le']}"
        case "bool_parsing" | "bool_type":
            return "needs true or false"
        case "string_type":
            return "needs text"
        case _:
            return "needs a whole number"


def _keys_beside(keys: tuple[str, ...]) -> tuple[str, ...]:
    sections: dict[tuple[str, ...], type[BaseModel]] = {("engine",): EngineConfig, ("window",): WindowConfig}
    return tuple(sections.get(keys[:-1], Config).model_fields)
