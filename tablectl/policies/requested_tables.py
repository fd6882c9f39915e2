"""Specs for tables that are named on the command line, without declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tablectl.delta.names import NameSyntaxError, canonical_location, join_parts
from tablectl.model.errors import Problem, UsageError
from tablectl.policies.declarations import Declaration, Declarations
from tablectl.policies.entries import AttributeEntries
from tablectl.policies.resolve import resolve
from tablectl.policies.spec import Specs
from tablectl.policies.table_keys import Target, read_table_key
from tablectl.policies.variables import UndefinedVariableError, Variables
from tablectl.policies.yaml_nodes import SourceFile

ASKED = "the command line"
"""What stands for the file of such specs."""


def requested_tables(texts: Sequence[str], catalog: str, variables: Variables) -> Specs:
    """The specs of identifiers and patterns in policy syntax. Raises ``UsageError`` for other text."""
    targets = {target.key: target for target in (_target(text, catalog, variables) for text in texts)}
    declarations = Declarations.of(
        Declaration(target, AttributeEntries(), AttributeEntries(), SourceFile(ASKED, 1, number))
        for number, target in enumerate(targets.values(), 1)
    )
    problems: list[Problem] = []
    named = ((each.name, (each,)) for each in declarations.named if each.name)
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


def _target(text: str, catalog: str, variables: Variables) -> Target:
    try:
        return read_table_key(text, variables, catalog)
    except NameSyntaxError as error:
        raise UsageError(str(error), "name tables as policies do: lake.sales.orders, 'lake.sales.*'") from None
    except UndefinedVariableError as error:
        raise UsageError(error.message, error.hint) from None
