"""Ways to read policies from texts, without a disk, and to see what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from tablectl.model.errors import InputError, Problem
from tablectl.policies.declared_tables import Specs
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.policies.yaml_nodes import Node


def _read(
    *texts: str | bytes,
    variables: Mapping[str, str] | None = None,
    environ: Mapping[str, str] | None = None,
    dialect: str = "oss",
    catalog: str = "spark_catalog",
) -> Specs:
    names = ("policies.yaml", "more.yaml")
    files = zip(names, (text.encode() if isinstance(text, str) else text for text in texts), strict=False)
    return read_specs(files, ValueReader(Variables(variables or {}, environ or {}), dialect, catalog, []))


def _wrong(*texts: str | bytes, dialect: str = "oss") -> list[str]:
    with pytest.raises(InputError) as caught:
        _read(*texts, dialect=dialect)
    return [str(problem) for problem in caught.value.problems]


def _parse(text: str | bytes) -> tuple[Node | None, list[str]]:
    problems: list[Problem] = []
    tree = parse_document(text.encode() if isinstance(text, str) else text, "f.yaml", problems)
    return tree, [str(problem) for problem in problems]


@pytest.fixture(scope="session")
def read() -> Callable[..., Specs]:
    """The specs in one or two texts, ``policies.yaml`` and ``more.yaml``."""
    return _read


@pytest.fixture(scope="session")
def wrong() -> Callable[..., list[str]]:
    """Everything wrong in texts, as users see it."""
    return _wrong


@pytest.fixture(scope="session")
def table_wrong() -> Callable[..., list[str]]:
    """Everything wrong in the entry of one table, given as the inside of a flow map."""

    def look(entry: str, dialect: str = "oss") -> list[str]:
        return _wrong(f"version: 1\ntables:\n  a.b: {{{entry}}}\n", dialect=dialect)

    return look


@pytest.fixture(scope="session")
def parse() -> Callable[[str | bytes], tuple[Node | None, list[str]]]:
    """A text's tree and what is wrong with it."""
    return _parse
