"""Credentials in locations: none is taken from a policy, and none is shown."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tablectl.delta.credentials import find_credentials, scrub, without_credentials
from tablectl.delta.names import NameSyntaxError, parse_table
from tablectl.model.patterns import make_path_pattern
from tablectl.model.safe_text import cut, is_cut
from tests.credential_corpus import HARMLESS
from tests.credential_corpus import SECRETS as SECRETS_OF_VALUES

SECRETS = [
    "s3://AKIAKEY:SECRET@bkt/t",
    "s3a://AKIAKEY:SEC/RET@bkt/t",
    "s3://SECRET@bkt/t",
    "gs://user:SECRET@bkt/t",
    "abfss://box:SECRET@acc.dfs.core.windows.net/t",
    "abfss://box@acc.dfs.core.windows.net/t?sv=2024-11-04&sig=SECRET",
    "abfss://box@acc.dfs.core.windows.net/t?SIG=SECRET&x=1",
    "s3://bkt/t?X-Amz-Credential=SECRET&X-Amz-Expires=60",
    "s3://bkt/t?x=1&X-Amz-Security-Token=SECRET",
    "gs://bkt/t?X-Goog-Signature=SECRET",
    "s3://bkt/t%3Fsig%3DSECRET",
    "https://host/t?access_token=SECRET",
    "wasbs://box@acc.blob.core.windows.net/t;AccountKey=SECRET",
]
PLAIN = [
    "/lake/orders",
    "/lake/it's?x=1",
    "s3://bkt/t",
    "abfss://box@acc.dfs.core.windows.net/t",
    "wasbs://box@acc.blob.core.windows.net/t",
    "s3://host:9000/bkt/t",
    "s3://host:9000/bkt/t@v2",
    "s3://bkt/design=round/signature/x",
    "s3://bkt/a@b/t",
    "s3://bkt/t?design=1",
]


@pytest.mark.parametrize("location", SECRETS)
def test_a_location_with_credentials_is_refused_and_the_message_holds_none(location: str) -> None:
    for name, read in ((f"delta.`{location}`", parse_table), (f"{location}/*", make_path_pattern)):
        with pytest.raises(NameSyntaxError) as caught:
            read(name)
        assert "SEC" not in str(caught.value)
        assert "RET" not in str(caught.value)
        assert "environment" in str(caught.value)


@pytest.mark.parametrize("location", SECRETS)
def test_a_bare_location_with_credentials_is_not_repeated_by_the_error(location: str) -> None:
    with pytest.raises(NameSyntaxError) as caught:
        parse_table(location)
    assert "RET" not in str(caught.value)


@pytest.mark.parametrize("location", PLAIN)
def test_a_location_without_credentials_is_taken_as_it_is(location: str) -> None:
    assert parse_table(f"delta.`{location}`").parts == (location,)
    assert scrub(f"cannot read {location}: no") == f"cannot read {location}: no"
    assert without_credentials(location) == location


@pytest.mark.parametrize("location", SECRETS)
def test_a_message_and_a_location_of_a_catalog_lose_them(location: str) -> None:
    said = scrub(f"GET {location}: 403 for '{location}'")
    assert "RET" not in said
    assert said.endswith("'")
    clean = without_credentials(location)
    assert not find_credentials(clean)
    assert clean.startswith(location.partition("://")[0])


def test_what_is_left_of_a_location_is_the_place() -> None:
    assert without_credentials("s3://K:S/x@bkt/a/t") == "s3://bkt/a/t"
    assert without_credentials("abfss://box:key@acc.net/t?sv=1&sig=x") == "abfss://box@acc.net/t"


@settings(max_examples=300, deadline=None)
@given(st.text(st.characters(codec="ascii", exclude_characters="@ '\"`\n\r\t\x0b\x0c\x1c\x1d\x1e\x1f"), max_size=20))
def test_no_password_in_a_location_is_left_in_the_text(password: str) -> None:
    secret = f"pw-{password}-end"
    assert secret not in scrub(f"no answer of https://user:{secret}@host/x")
    assert secret not in without_credentials(f"https://user:{secret}@host/x")


@pytest.mark.parametrize(("text", "secret"), SECRETS_OF_VALUES.values(), ids=SECRETS_OF_VALUES)
def test_a_secret_in_a_value_is_found_by_its_form(text: str, secret: str) -> None:
    assert secret in text
    for around in ("{}", "cannot read {}", "a\n{}\nb", '"{}"', "'{}'", "({})"):
        shown = scrub(around.format(text))
        assert secret not in shown
        assert scrub(shown) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_text_that_only_looks_like_a_secret_is_shown(text: str) -> None:
    assert scrub(text) == text
    assert scrub(f"the value is {text}, found at line 3") == f"the value is {text}, found at line 3"


def test_the_beginning_of_a_long_value_holds_no_half_of_a_token() -> None:
    value = f"{'a' * 90} dapi{'0123456789abcdef' * 2}{' x' * 9000}"
    shown = cut(value)
    assert "dapi" not in shown
    assert is_cut(shown)
    assert is_cut(cut(f"{SECRETS_OF_VALUES['private key'][0]}{'x' * 20_000}"))
    assert cut(value) != cut(value.replace("0123", "3210", 1))
