"""The keys of ``tables``: names, and patterns for names and paths."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.names import NameSyntaxError, TableName, quote_name
from tablectl.model.patterns import CatalogPattern, PathPattern
from tablectl.policies.variables import UndefinedVariableError, Variables, read_table_key

NONE = Variables()
VARIABLES = Variables({"LAKE": "/data/[x]*", "CAT": "my.cat", "ENV": "prod*"}, configured={"EMPTY": ""})


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("sales.*", CatalogPattern("engine", "sales", "*")),
        ("lake.*.orders", CatalogPattern("lake", "*", "orders")),
        ("lake.[a-c]?.o*", CatalogPattern("lake", "[a-c]?", "o*")),
        ("lake.`a*`.*", CatalogPattern("lake", "a[*]", "*")),
        ("lake.`a.b``c`.x*", CatalogPattern("lake", "a.b`c", "x*")),
        ("${CAT}.sales_${ENV}.*", CatalogPattern("my.cat", "sales_prod[*]", "*")),
        ("engine.delta.*", CatalogPattern("engine", "delta", "*")),
        ("delta.`s3://lake/finance/*`", PathPattern("s3://lake/finance", ("*",))),
        ("DELTA.`/lake/*/raw/`", PathPattern("/lake", ("*", "raw"))),
        ("delta.`${LAKE}/raw/*`", PathPattern("/data/[x]*/raw", ("*",))),
        ("delta.`${LAKE}/raw`", TableName("", ("/data/[x]*/raw",))),
        ("delta.`/lake/odd[[]1]`", TableName("", ("/lake/odd[1]",))),
        ("delta.`/lake/a``*`", PathPattern("/lake", ("a`*",))),
        ("lake.[s]ales.orders", TableName("lake", ("sales", "orders"))),
        ("lake.`s*`.`[x]`", TableName("lake", ("s*", "[x]"))),
    ],
)
def test_keys(text: str, target: object) -> None:
    assert read_table_key(text, VARIABLES, "engine") == target


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("*", "has 1 part"),
        ("a.b.c.*", "has 4 parts"),
        ("*.sales.orders", "leaves the catalog open"),
        ("l?ke.sales.orders", "leaves the catalog open"),
        ("delta.*", "neither a path nor a name with its catalog"),
        ("delta.`lake/*`", "is relative"),
        ("delta.`s3://*/x`", "where its store is named"),
        ("lake.a**.b", "inside one part"),
        ("lake.a*.[b", "never closed"),
        ("lake.a*.b-c", "unexpected '-'"),
        ("lake.`a`*.b", "unexpected '\\*'"),
        ("lake..*", "unexpected '.'"),
        ("/data/*", "write a location as delta.`/data/\\*`"),
        ("${LAKE}/sales/orders", r"write a location as delta.`\$\{LAKE\}/sales/orders`"),
        ("s3://lake/*", r"write a location as delta.`s3://lake/\*`"),
        ("lake.*.", "an empty part"),
        ("delta.`/a/[.][.]/*`", "has a .. or . step"),
        ("delta.`/*/[.]/b`", "has a .. or . step"),
        ("lake.${EMPTY}.*", "is empty"),
        ("lake.`a\0`.*", "NUL"),
        ("delta.`/a\0/*`", "NUL"),
        ("lake." + "a" * 5000 + "*", "at most 4096"),
    ],
)
def test_what_is_not_a_key(text: str, words: str) -> None:
    with pytest.raises(NameSyntaxError, match=words):
        read_table_key(text, VARIABLES, "engine")


def test_every_undefined_variable_is_named() -> None:
    with pytest.raises(UndefinedVariableError) as caught:
        read_table_key("${A}.${B}.*", NONE, "engine")
    assert caught.value.message == "the variable A is not defined and the variable B is not defined"


_TEXTS = st.text(st.sampled_from("ab.*?[]!`/${}-_ \\:s3é"), max_size=20)


@settings(deadline=None)
@given(_TEXTS)
def test_any_text_is_a_key_or_refused(text: str) -> None:
    for each in (text, "delta." + quote_name("/" + text), f"lake.{text}"):
        with suppress(NameSyntaxError, UndefinedVariableError):
            read_table_key(each, NONE, "engine")


@settings(deadline=None)
@given(_TEXTS)
def test_a_pattern_is_read_back_from_its_own_text(text: str) -> None:
    for each in (f"lake.{text}.*", f"spark_catalog.{text}.?", "delta." + quote_name(f"/{text}/*")):
        try:
            target = read_table_key(each, NONE, "spark_catalog")
        except (NameSyntaxError, UndefinedVariableError):
            continue
        again = read_table_key(target.text.replace("${", "$${"), NONE, "spark_catalog")
        assert (again.key, again.text) == (target.key, target.text)
