"""``${NAME}``: where values come from, what stays literal, and that no value breaks out of its part."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import NameSyntaxError, split_parts
from tablectl.policies.variables import (
    UndefinedVariableError,
    Variables,
    quote_variables,
    read_location,
    read_table_key,
)

VARIABLES = Variables(
    {"LAKE": "/lake", "_x1": "given"}, {"TABLECTL_VAR_LAKE": "/other", "TABLECTL_VAR_ENV": "prod", "HOME": "h"}
)


@pytest.mark.parametrize(
    ("text", "expanded"),
    [
        ("${LAKE}/events", "/lake/events"),
        ("a-${ENV}-${_x1}", "a-prod-given"),
        ("$${LAKE}", "${LAKE}"),
        ("$$${LAKE}", "$${LAKE}"),
        ("${env:HOME} ${} ${1A} ${LAKE $LAKE $$", "${env:HOME} ${} ${1A} ${LAKE $LAKE $$"),
        ("$${env:HOME}", "${env:HOME}"),
        ("", ""),
    ],
)
def test_expand(text: str, expanded: str) -> None:
    assert VARIABLES.expand(text) == expanded


def test_a_value_is_never_expanded_again() -> None:
    assert Variables({"A": "${B}", "B": "x"}).expand("${A}") == "${B}"


def test_the_environment_counts_only_with_the_prefix() -> None:
    with pytest.raises(UndefinedVariableError) as caught:
        VARIABLES.expand("${HOME}${HOME}${NOPE}")
    assert caught.value.message == "the variable HOME is not defined and the variable NOPE is not defined"
    assert caught.value.hint == "give it with --var HOME=… or in TABLECTL_VAR_HOME"


def test_the_configuration_comes_last() -> None:
    variables = Variables({"A": "given"}, {"TABLECTL_VAR_B": "environ"}, {"A": "1", "B": "2", "C": "configured"})
    assert variables.expand("${A} ${B} ${C}") == "given environ configured"


def test_an_empty_variable_of_the_environment_counts_as_not_set() -> None:
    """CI systems pass the empty text for a variable that they do not know."""
    variables = Variables({}, {"TABLECTL_VAR_A": "", "TABLECTL_VAR_B": ""}, {"A": "configured"})
    assert variables.expand("${A}") == "configured"
    assert variables.private("${A}${B}") == ()
    assert variables.private_values() == frozenset()
    with pytest.raises(UndefinedVariableError) as caught:
        variables.expand("x${B}")
    assert caught.value.message == "the variable B is empty"
    assert caught.value.hint == "give it with --var B=… or in TABLECTL_VAR_B"


def test_an_empty_variable_of_the_command_line_is_refused_by_its_name() -> None:
    """It must not fall back in silence: who gives it wants another value than the configured one."""
    with pytest.raises(UndefinedVariableError, match="A") as caught:
        Variables({"A": ""}, {"TABLECTL_VAR_A": "x"}, {"A": "y"}).expand("${A}")
    assert caught.value.message == "the variable A is empty"


def test_only_the_configuration_has_empty_values() -> None:
    assert Variables(configured={"SUFFIX": ""}).expand("orders${SUFFIX}") == "orders"


@pytest.mark.parametrize("text", ["delta.`${LAKE}/orders`", "delta.`${LAKE}/*`"])
def test_no_location_begins_with_an_empty_value(text: str) -> None:
    """It would be an absolute location elsewhere: ``/orders``."""
    variables = Variables(configured={"LAKE": ""})
    with pytest.raises(NameSyntaxError, match="the variable LAKE is empty"):
        read_table_key(text, variables, "spark_catalog")
    with pytest.raises(NameSyntaxError, match="the variable LAKE is empty"):
        read_location("${LAKE}/orders", variables)


@pytest.mark.parametrize(
    ("environment", "hint"),
    [
        ("", "environments give it: --env dev or --env prod; or give it with --var X=… or in TABLECTL_VAR_X"),
        ("qa", "add it to `env.qa.variables` of tablectl.yaml, or give it with --var X=… or in TABLECTL_VAR_X"),
    ],
)
def test_what_environments_give_is_said(environment: str, hint: str) -> None:
    given = {"dev": frozenset({"X"}), "qa": frozenset({"Y"}), "prod": frozenset({"X", "Y"})}
    with pytest.raises(UndefinedVariableError) as caught:
        Variables(environment=environment, environments=given).expand("${X}")
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("${CATALOG}.sales.orders", ("a.b`c", "sales", "orders")),
        ("sales_${ENV}.orders", ("sales_prod", "orders")),
        ("delta.`${CATALOG}/x`", ("delta", "a.b`c/x")),
        ("`$${ENV}`.t", ("${ENV}", "t")),
        ("`a``${ENV}`.t", ("a`prod", "t")),
    ],
)
def test_a_value_stays_inside_its_part(text: str, parts: tuple[str, ...]) -> None:
    variables = Variables({"CATALOG": "a.b`c", "ENV": "prod"})
    assert variables.expand_parts(text, lambda name: split_parts(quote_variables(name))) == parts


@settings(deadline=None)
@given(value=st.text(min_size=1))
def test_whatever_the_value_is(value: str) -> None:
    parts = Variables({"V": value}).expand_parts("${V}.`x${V}`.t", lambda name: split_parts(quote_variables(name)))
    assert parts == (value, f"x{value}", "t")


def test_a_name_lacks_all_its_variables_at_once() -> None:
    with pytest.raises(UndefinedVariableError, match="A, B"):
        Variables().expand_parts("`${A}`.`${B}`", split_parts)


def test_empty_and_endless_names_are_refused() -> None:
    with pytest.raises(NameSyntaxError, match="is empty"):
        Variables(configured={"V": ""}).expand_parts("a.`${V}`", split_parts)
    with pytest.raises(NameSyntaxError, match="at most 4096"):
        Variables().expand_parts("a." * 500_000 + "a", split_parts)
