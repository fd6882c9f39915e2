"""Unity Catalog as it answers, and as no one wants it to answer."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest

from tablectl.catalogs.http_client import OversizeAnswerError
from tablectl.catalogs.registry import CatalogTable
from tablectl.catalogs.unity import UnityCatalog
from tablectl.delta.names import TableName, parse_table
from tablectl.model.errors import LiveError, TablectlError
from tests.catalogs.unity_server import API, UnityServer, send

Open = Callable[..., UnityCatalog]
TABLES = f"{API}/tables"
ORDERS = parse_table("lake.sales.orders")
ORDERS_PATH = f"{API}/delta/v1/catalogs/lake/schemas/sales/tables/orders"
SECRET = "dapi-1234567890abcdef"


def locations(listed: Any) -> dict[str, str]:
    return {name.text: each.location for name, each in listed.items() if isinstance(each, CatalogTable)}


def failed(call: Callable[[], object]) -> TablectlError:
    with pytest.raises(TablectlError) as caught:
        call()
    return caught.value


# Lists


def test_all_pages_are_read_and_the_last_may_be_empty(server: UnityServer, unity: Open) -> None:
    for number in range(7):
        server.add_external(f"sales.t{number}", f"s3://lake/t{number}")
    server.page_size, server.last_page_empty = 3, True
    assert locations(unity().tables("lake", "sales")) == {f"lake.sales.t{n}": f"s3://lake/t{n}" for n in range(7)}
    assert unity().schemas("lake") == ("sales",)


def test_a_page_in_the_middle_may_be_empty(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    pages = [
        {"tables": [], "next_page_token": "a"},
        {"next_page_token": "b"},
        {"tables": [server.tables["sales.orders"]]},
    ]
    server.override[TABLES] = lambda handler: send(handler, 200, pages.pop(0))
    assert locations(unity().tables("lake", "sales")) == {"lake.sales.orders": "s3://lake/orders"}


def test_pages_that_never_end_are_an_error(server: UnityServer, unity: Open) -> None:
    server.override[TABLES] = lambda handler: send(handler, 200, {"tables": [], "next_page_token": "again"})
    assert "do not end" in failed(lambda: unity().tables("lake", "sales")).message
    server.override[TABLES] = lambda handler: send(
        handler, 200, {"tables": [], "next_page_token": str(len(server.asked))}
    )
    assert "too long" in failed(lambda: unity().tables("lake", "sales")).message
    assert len(server.asked) < 1100


def test_a_listing_that_takes_too_long_is_an_error(server: UnityServer, unity: Open) -> None:
    ticks = iter(range(0, 10_000, 400))
    reader = UnityCatalog(unity().http, {}, clock=lambda: float(next(ticks)))
    server.override[TABLES] = lambda handler: send(
        handler, 200, {"tables": [{"name": "x"}], "next_page_token": str(len(server.asked))}
    )
    assert "too long" in failed(lambda: reader.tables("lake", "sales")).message


def test_a_page_that_is_too_large_is_asked_for_in_smaller_parts(server: UnityServer, unity: Open) -> None:
    for number in range(12):
        server.add_external(f"sales.t{number:02}", f"s3://lake/t{number}", comment="x" * 3000)
    found = unity(bytes=20_000).tables("lake", "sales")
    assert len(found) == 12
    assert any("max_results=1&" in asked or asked.endswith("max_results=1") for asked in server.asked)


def test_a_few_names_are_loaded_without_a_list(server: UnityServer, unity: Open) -> None:
    for name in ("orders", "returns", "others"):
        server.add_external(f"sales.{name}", f"s3://lake/{name}")
    found = unity().tables("lake", "sales", "orders|returns|gone")
    assert sorted(locations(found)) == ["lake.sales.orders", "lake.sales.returns"]
    assert isinstance(found[parse_table("lake.sales.gone")], LiveError)
    assert not any(asked.startswith(f"GET {TABLES}") for asked in server.asked)


def test_views_and_other_formats_are_errors_of_their_own(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.seen", "s3://lake/x", table_type="VIEW")
    server.add_external("sales.csv", "s3://lake/x", data_source_format="CSV")
    server.add_external("sales.nowhere", "s3://lake/x", storage_location=None)
    server.add_external("sales.orders", "s3://user:pass@lake/orders")
    found = unity().tables("lake", "sales")
    assert {name.parts[1]: str(each) for name, each in found.items() if isinstance(each, TablectlError)}.keys() == {
        "seen",
        "csv",
        "nowhere",
    }
    assert locations(found) == {"lake.sales.orders": "s3://lake/orders"}


def test_names_cannot_leave_their_place_in_the_path(server: UnityServer, unity: Open) -> None:
    for name in ("../../../catalogs", "a/b?c=d#e", "..", "ä`"):
        assert "does not exist" in failed(partial(unity().load, TableName("lake", ("sales", name)))).message
    assert all(
        asked.startswith((f"GET {API}/delta/v1/catalogs/lake/schemas/sales/tables/", f"GET {TABLES}/"))
        for asked in server.asked
    )


# Hostile and slow answers


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b'"x"', b"{" * 100_000, b'{"metadata": 1}', b'{"metadata": {"location": {}}}', b"\xff\xfe"],
)
def test_an_answer_of_another_form_is_an_error_of_the_table(server: UnityServer, unity: Open, body: bytes) -> None:
    server.override[ORDERS_PATH] = lambda handler: send(handler, 200, body)
    assert isinstance(failed(lambda: unity().load(ORDERS)), LiveError)


def test_an_answer_has_a_largest_size(server: UnityServer, unity: Open) -> None:
    server.override[ORDERS_PATH] = lambda handler: send(handler, 200, b'{"x": "' + b"x" * 300_000 + b'"}')
    assert isinstance(failed(lambda: unity(bytes=100_000).load(ORDERS)), OversizeAnswerError)
    server.override[ORDERS_PATH] = lambda handler: send(handler, 200, b'{"x": [' + b"[]," * 400_000 + b"[]]}")
    assert "values" in failed(lambda: unity().load(ORDERS)).message


def test_a_server_that_sends_a_byte_now_and_then_is_given_up(server: UnityServer, unity: Open) -> None:
    def drip(handler: BaseHTTPRequestHandler) -> None:
        try:
            for _ in range(200):
                handler.wfile.write(b"H")
                handler.wfile.flush()
                time.sleep(0.02)
        except OSError:
            pass

    server.override[ORDERS_PATH] = drip
    assert "within 0.3 s" in failed(lambda: unity(seconds=0.3).load(ORDERS)).message


def test_no_server_is_an_error_that_names_its_url(server: UnityServer, unity: Open) -> None:
    reader = UnityCatalog(type(unity().http)("http://127.0.0.1:1"), {})
    assert failed(lambda: reader.load(ORDERS)).message.startswith("http://127.0.0.1:1: no answer")


def test_a_busy_server_is_asked_three_times(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    busy = [429, 500]

    def sometimes(handler: BaseHTTPRequestHandler) -> None:
        if busy:
            send(handler, busy.pop(0), {"message": "busy"}, Retry_After="1")
        else:
            send(handler, 200, server.loads["sales.orders"])

    server.override[ORDERS_PATH] = sometimes
    assert unity().load(ORDERS).location == "s3://lake/orders"
    server.override[ORDERS_PATH] = lambda handler: send(handler, 429, {"message": "busy"}, Retry_After="999999999")
    assert "429: busy" in failed(lambda: unity().load(ORDERS)).message
    assert len(server.asked) == 6


def test_an_answer_that_is_cut_short_is_asked_for_again_and_never_taken_for_another_form(
    server: UnityServer, unity: Open
) -> None:
    """``http.client`` reports no error for fewer bytes than Content-Length promises."""
    server.add_external("sales.orders", "s3://lake/orders")
    cuts = [1, 1]

    def cut(handler: BaseHTTPRequestHandler) -> None:
        if not cuts:
            send(handler, 200, server.loads["sales.orders"])
            return
        cuts.pop()
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"a":')

    server.override[ORDERS_PATH] = cut
    assert unity().load(ORDERS).location == "s3://lake/orders"
    cuts += [1, 1, 1]
    assert "cut short after 5 bytes" in failed(lambda: unity().load(ORDERS)).message


def no_answer(handler: BaseHTTPRequestHandler) -> None:
    """Closes the connection in place of an answer. A client that waited would give up at a time, which a busy machine
    can reach with a good answer, too.
    """
    handler.close_connection = True


def test_a_server_that_never_answered_is_waited_for_once(server: UnityServer, unity: Open) -> None:
    server.override[ORDERS_PATH] = server.override[TABLES] = no_answer
    reader = unity()
    first = failed(lambda: reader.load(ORDERS))
    asked = len(server.asked)
    assert failed(lambda: reader.tables("lake", "sales")).message.endswith(
        first.message.removeprefix("lake.sales.orders")
    )
    assert len(server.asked) == asked == 1


def test_a_server_that_answered_before_is_asked_for_each_table(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    reader = unity()
    reader.load(ORDERS)
    server.override[ORDERS_PATH] = no_answer
    assert "no answer" in failed(lambda: reader.load(ORDERS)).message
    assert reader.schemas("lake") == ("sales",)


def test_a_server_of_another_kind_is_never_a_table_that_does_not_exist(server: UnityServer, unity: Open) -> None:
    """Each path of such a server is 404, without the kind of error that Unity Catalog gives."""
    for path in (ORDERS_PATH, TABLES, f"{API}/schemas", f"{API}/tables/lake.sales.orders"):
        server.override[path] = lambda handler: send(handler, 404, b"<html>Not Found</html>")
    reader = unity()
    for call in (lambda: reader.load(ORDERS), lambda: reader.tables("lake", "sales"), lambda: reader.schemas("lake")):
        found = failed(call)
        assert "does not exist" not in found.message
        assert found.hint == "this server is not a Unity Catalog: check `url`"


# Secrets


def test_the_token_goes_to_the_catalog_alone(server: UnityServer, unity: Open) -> None:
    server.token = SECRET
    server.add_external("sales.orders", "s3://lake/orders")
    assert unity(SECRET).load(ORDERS).location == "s3://lake/orders"
    assert "401" in failed(lambda: unity("other-token").load(ORDERS)).message

    received: list[str] = []

    def elsewhere(handler: BaseHTTPRequestHandler) -> None:
        received.append(str(handler.headers))
        send(handler, 200, {})

    server.override["/elsewhere"] = elsewhere
    server.override[ORDERS_PATH] = lambda handler: send(
        handler, 302, {}, Location=f"{server.url}/elsewhere?token={SECRET}"
    )
    found = failed(lambda: unity(SECRET).load(ORDERS))
    assert f"answers 302, a redirect to {server.url}/elsewhere" in found.message
    assert "redirects are not followed" in found.hint
    assert SECRET not in found.message
    assert received == []


def test_errors_repeat_no_secret(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    vended = {
        "s3.access-key-id": "AKIAEXAMPLEKEY",
        "s3.secret-access-key": "wJalrXUtnFEMI",
        "s3.session-token": "FQoGZXIvYXdzEPP",
    }
    server.vended = lambda _name, _operation: {"config": vended, "expiration-time-ms": 4_000_000_000_000}
    reader = unity(SECRET)
    held = reader.credentials(reader.load(ORDERS), "READ")
    assert held.values["token"] == "FQoGZXIvYXdzEPP"
    assert "FQoGZXIvYXdzEPP" not in repr(held)

    message = f"no right with {SECRET} or wJalrXUtnFEMI or FQoGZXIvYXdzEPP \x1b[31m https://u:p@host/x?sig=abc"
    server.override[ORDERS_PATH] = lambda handler: send(handler, 403, {"error": {"message": message, "type": "x"}})
    said = failed(lambda: reader.load(ORDERS))
    for secret in (SECRET, *list(vended.values())[1:], "sig=abc", "u:p@", "\x1b"):
        assert secret not in str(said)
    assert "403: no right with …" in said.message


def test_a_broken_answer_with_credentials_is_not_repeated(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    server.override[f"{ORDERS_PATH}/credentials"] = lambda handler: send(handler, 200, b'{"secret": "abcdefgh')
    reader = unity()
    assert "abcdefgh" not in str(failed(lambda: reader.credentials(reader.load(ORDERS), "READ")))


# Credentials


@pytest.mark.parametrize(
    ("config", "family", "values"),
    [
        (
            {
                "s3.access-key-id": "AKIAEX",
                "s3.secret-access-key": "s3cret",
                "s3.session-token": "t0ken0",
                "gcs.oauth-token": None,
            },
            "s3",
            {"access_key_id": "AKIAEX", "secret_access_key": "s3cret", "token": "t0ken0"},
        ),
        ({"azure.sas-token": "?sv=1&sig=x"}, "az", {"sas_token": "sv=1&sig=x"}),
        ({"gcs.oauth-token": "ya29.x"}, "gs", {"token": "ya29.x"}),
        ({}, "", {}),
    ],
)
def test_credentials_of_each_cloud(server: UnityServer, unity: Open, config: Any, family: str, values: Any) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    server.vended = lambda _name, _operation: {"config": config, "expiration-time-ms": 1_795_000_000_000}
    reader = unity()
    held = reader.credentials(reader.load(ORDERS), "READ_WRITE")
    assert (held.family, held.values) == (family, values)
    assert held.expires is not None
    assert held.expires.year == 2026
    assert server.asked[-1].endswith("credentials?operation=READ_WRITE")


def test_credentials_for_another_place_are_refused(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    reader = unity()
    table = reader.load(ORDERS)
    for prefix in ("s3://lake/ord", "s3://lake/orders2", "s3://other/orders", "", None, 5):
        server.vended = lambda _name, _operation, prefix=prefix: {"prefix": prefix, "config": {}}  # type: ignore[misc]
        assert "no credentials for s3://lake/orders" in failed(lambda: reader.credentials(table, "READ")).message
    server.vended = lambda _name, _operation: {"prefix": "s3a://lake/", "config": {"gcs.oauth-token": "x"}}
    assert reader.credentials(table, "READ").family == "gs"


def test_a_server_without_the_delta_api_is_asked_in_the_older_way(server: UnityServer, unity: Open) -> None:
    server.add_external("sales.orders", "s3://lake/orders")
    server.delta_api = False
    server.vended = lambda _name, _operation: {
        "config": {"s3.access-key-id": "AKIAEX", "s3.secret-access-key": "s3cret"},
        "expiration-time-ms": 1_795_000_000_000,
    }
    reader = unity()
    table = reader.load(ORDERS)
    assert (table.location, table.table_id) == ("s3://lake/orders", "id-of-sales.orders")
    assert reader.credentials(table, "READ").values == {"access_key_id": "AKIAEX", "secret_access_key": "s3cret"}
