"""Options as obstore takes them: it panics over some that it does not know, so each is tried."""

from __future__ import annotations

import pytest

from tablectl.model.store_options import CONNECTION, OPTIONS, SECRETS
from tablectl.storage.object_stores import BucketError, RetryLimits, StoreOptions, open_bucket

PLACES = {"s3": ("s3", "bucket"), "gs": ("gs", "bucket"), "az": ("abfss", "c@account.dfs.core.windows.net")}
SWITCHES = CONNECTION & {
    "allow_http",
    "allow_invalid_certificates",
    "http1_only",
    "http2_only",
    "randomize_addresses",
} | {
    "disable_bulk_delete",
    "disable_tagging",
    "imdsv1_fallback",
    "request_payer",
    "skip_signature",
    "sse_bucket_key_enabled",
    "unsigned_payload",
    "use_azure_cli",
    "use_emulator",
    "use_fabric_endpoint",
    "virtual_hosted_style_request",
}
VALUES = {
    **dict.fromkeys(SWITCHES, "true"),
    **dict.fromkeys(("timeout", "connect_timeout", "read_timeout", "pool_idle_timeout"), "3s"),
    "checksum_algorithm": "SHA256",
    "credential_type": "auto",
    "endpoint": "http://127.0.0.1:9",
    "pool_max_idle_per_host": "3",
    "proxy_url": "http://127.0.0.1:9",
    "s3_express": "false",
    "server_side_encryption": "AES256",
}
FILES = {"application_credentials", "service_account"}


def opened(family: str, options: dict[str, str]) -> object:
    scheme, authority = PLACES[family]
    return open_bucket(scheme, authority, StoreOptions(families={family: options}), RetryLimits(0, 1))


@pytest.mark.parametrize(("family", "option"), [(family, option) for family in OPTIONS for option in OPTIONS[family]])
def test_every_option_is_known_to_the_library(family: str, option: str) -> None:
    if option in FILES:
        with pytest.raises(BucketError, match="No such file"):
            opened(family, {option: "/no/such/file"})
    else:
        assert opened(family, {option: VALUES.get(option, "x")}) is not None


@pytest.mark.parametrize("option", ["no_such", "default_headers", "http2_keep_alive_interval", "bucket", "ENDPOINT"])
def test_others_are_refused_before_the_library_sees_them(option: str) -> None:
    with pytest.raises(BucketError, match=option) as caught:
        opened("s3", {option: "x"})
    assert "known are allow_http" in caught.value.failure.hint


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [("allow_http", "perhaps", 'failed to parse "perhaps" as boolean'), ("timeout", "soon", '"soon" as Duration')],
)
def test_values_that_make_no_sense_name_the_place_to_look(option: str, value: str, message: str) -> None:
    with pytest.raises(BucketError, match=message) as caught:
        opened("s3", {option: value})
    assert "stores.s3 in tablectl.yaml" in caught.value.failure.hint


def test_a_secret_is_never_an_option() -> None:
    for family, secrets in SECRETS.items():
        assert not OPTIONS[family] & set(secrets)


def test_kinds_of_stores() -> None:
    with pytest.raises(BucketError, match="unknown kind of store 'ftp'"):
        open_bucket("ftp", "host", StoreOptions(), RetryLimits(0, 1))
    for scheme in ("abfs", "abfss", "az", "azure"):
        authority = "c@account.dfs.core.windows.net" if scheme.startswith("abfs") else "c"
        options = StoreOptions(families={"az": {"account_name": "account"}})
        assert open_bucket(scheme, authority, options, RetryLimits(0, 1)) is not None
