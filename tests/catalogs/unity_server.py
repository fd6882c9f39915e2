"""A stand-in for a Unity Catalog server: its paths, paging, errors and credentials, in the shapes of server 0.6.0.

``test_unity_recordings.py`` compares its answers with those of the real server, key by key and type by type.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

RECORDINGS = Path(__file__).parents[1] / "recordings" / "unity-catalog-0.6.0"
API = "/api/2.1/unity-catalog"
Answer = tuple[int, Any]


def recording(name: str) -> dict[str, Any]:
    """One recorded request with its answer."""
    found: dict[str, Any] = json.loads((RECORDINGS / f"{name}.json").read_text())
    return found


def recorded(name: str) -> Any:
    """The body of a recorded answer."""
    return recording(name)["response"]["body"]


@dataclass
class UnityServer:
    """The state of the server. Tests change it between requests."""

    catalog: str = "lake"
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Entries of the list API, by ``schema.table``."""
    loads: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Answers of the Delta API, by ``schema.table``."""
    page_size: int = 100
    last_page_empty: bool = False
    token: str = ""
    """The token that is required; empty for none."""
    delta_api: bool = True
    vended: Callable[[str, str], dict[str, Any]] = lambda _name, _operation: {}
    """The credential of a table for an operation, in the form of the Delta API, without prefix."""
    me: dict[str, Any] | None = None
    """Who is logged in to a workspace of Databricks; ``None``: the server is not one."""
    assignments: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """Effective permissions of Databricks, by ``schema.table``: one assignment a page."""
    override: dict[str, Callable[[BaseHTTPRequestHandler], None]] = field(default_factory=dict)
    """Answers by path, instead of the server's own."""
    asked: list[str] = field(default_factory=list)
    url: str = ""

    def add_external(self, name: str, location: str, **entry: Any) -> None:
        schema, table = name.split(".")
        made = {**recorded("table-ext"), "name": table, "schema_name": schema, "storage_location": location}
        self.tables[name] = {**made, "catalog_name": self.catalog, "table_id": f"id-of-{name}", **entry}
        metadata = {**recorded("delta-ext")["metadata"], "location": location, "table-uuid": f"id-of-{name}"}
        self.loads[name] = {"metadata": metadata, "commits": []}

    def add_recorded(self) -> None:
        """The tables that the recordings describe."""
        for entry in recorded("tables-sales")["tables"]:
            self.tables[f"sales.{entry['name']}"] = entry
        for name in ("ext", "man"):
            self.loads[f"sales.{name}"] = recorded(f"delta-{name}")

    def answer(self, method: str, path: str, query: dict[str, str], body: Any) -> Answer:
        if path == "/api/2.0/preview/scim/v2/Me" and self.me is not None:
            return 200, self.me
        parts = [unquote(part) for part in path.removeprefix(f"{API}/").split("/")]
        match (method, *parts):
            case ("GET", "catalogs"):
                return 200, {
                    "catalogs": [{**recorded("catalogs")["catalogs"][0], "name": self.catalog}],
                    "next_page_token": None,
                }
            case ("GET", "catalogs", name) if name == self.catalog:
                return 200, {**recorded("catalogs")["catalogs"][0], "name": self.catalog}
            case ("GET", "schemas"):
                return self._schemas(query)
            case ("GET", "tables"):
                return self._list(query)
            case ("GET", "tables", name):
                return self._table(name)
            case ("GET", "effective-permissions", "table", name) if self.me is not None:
                return self._permissions(name.removeprefix(f"{self.catalog}."), query)
            case ("POST", "temporary-table-credentials"):
                return self._by_id(body)
            case ("GET", "delta", "v1", "catalogs", catalog, "schemas", schema, "tables", table, *rest):
                return self._delta(catalog, f"{schema}.{table}", rest, query)
            case _:
                return 404, {"error_code": "NOT_FOUND", "details": [], "message": "no such path"}

    def _schemas(self, query: dict[str, str]) -> Answer:
        if query.get("catalog_name") != self.catalog:
            return _missing("CATALOG_NOT_FOUND", f"Catalog not found: {query.get('catalog_name')}")
        one = recorded("schemas")["schemas"][0]
        names = sorted({name.split(".")[0] for name in self.tables})
        return self._paged(
            "schemas", [{**one, "name": name, "full_name": f"{self.catalog}.{name}"} for name in names], query
        )

    def _list(self, query: dict[str, str]) -> Answer:
        schema = query.get("schema_name", "")
        if query.get("catalog_name") != self.catalog or not any(name.startswith(f"{schema}.") for name in self.tables):
            return _missing("SCHEMA_NOT_FOUND", f"Schema not found: {schema}")
        return self._paged(
            "tables", [self.tables[name] for name in sorted(self.tables) if name.startswith(f"{schema}.")], query
        )

    def _paged(self, key: str, entries: list[dict[str, Any]], query: dict[str, str]) -> Answer:
        size = min(int(query.get("max_results") or 0) or self.page_size, self.page_size)  # 0: the server decides
        start = next((n + 1 for n, entry in enumerate(entries) if entry["name"] == query.get("page_token")), 0)
        page = entries[start : start + size]
        more = start + size < len(entries) or (self.last_page_empty and bool(page))
        return 200, {key: page, "next_page_token": page[-1]["name"] if more else None}

    def _table(self, full_name: str) -> Answer:
        catalog, _, name = full_name.partition(".")
        found = self.tables.get(name) if catalog == self.catalog else None
        return (200, found) if found else _missing("TABLE_NOT_FOUND", f"Table not found: {full_name}")

    def _permissions(self, name: str, query: dict[str, str]) -> Answer:
        """``GrantsAPI.get_effective`` of databricks-sdk: a page may have no entries and still be followed by one."""
        if query.get("max_results") != "0":
            return 400, {"error_code": "INVALID_PARAMETER_VALUE", "details": [], "message": "max_results: 0 or 150"}
        given, at = self.assignments.get(name, []), int(query.get("page_token") or 0)
        page = {"privilege_assignments": given[at - 1 : at]} if at else {}
        return 200, {**page, "next_page_token": str(at + 1)} if at < len(given) else page

    def _by_id(self, body: Any) -> Answer:
        name = next((name for name, entry in self.tables.items() if entry["table_id"] == body.get("table_id")), "")
        if not name:
            return _missing("TABLE_NOT_FOUND", "Table not found")
        held = self.vended(name, body["operation"])
        config = held.get("config", {})
        aws = {
            key: config.get(f"s3.{key.replace('_', '-')}")
            for key in ("access_key_id", "secret_access_key", "session_token")
        }
        return 200, {"aws_temp_credentials": aws, "expiration_time": held.get("expiration-time-ms")}

    def _delta(self, catalog: str, name: str, rest: list[str], query: dict[str, str]) -> Answer:
        if not self.delta_api:
            return 404, {"error_code": "ENDPOINT_NOT_FOUND", "details": [], "message": "no such path"}
        found = self.loads.get(name) if catalog == self.catalog else None
        if found is None:
            kind, message = "NoSuchTableException", f"Table not found: {catalog}.{name}"
            return 404, {"error": {"message": message, "type": kind, "code": 404, "stack": None}}
        if not rest:
            return 200, found
        operation = query.get("operation", "READ")
        held = {"config": {}, "expiration-time-ms": None, **self.vended(name, operation)}
        return 200, {"storage-credentials": [{"prefix": found["metadata"]["location"], "operation": operation, **held}]}


def _missing(code: str, message: str) -> Answer:
    details = [{"reason": code, "@type": "google.rpc.ErrorInfo"}]
    return 404, {"error_code": code, "details": details, "message": message}


@contextmanager
def serving(state: UnityServer) -> Iterator[UnityServer]:
    """The server on a free port of this machine."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._respond("GET", None)

        def do_POST(self) -> None:
            self._respond("POST", json.loads(self.rfile.read(int(self.headers["Content-Length"]))))

        def _respond(self, method: str, body: Any) -> None:
            split = urlsplit(self.path)
            state.asked.append(f"{method} {self.path}")
            if split.path in state.override:
                state.override[split.path](self)
                return
            if state.token and self.headers.get("Authorization") != f"Bearer {state.token}":
                send(self, 401, {"error_code": "UNAUTHENTICATED", "details": [], "message": "no valid token"})
                return
            send(self, *state.answer(method, split.path, dict(parse_qsl(split.query)), body))

        def log_message(self, *args: Any) -> None:
            """Prints nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    state.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()


def send(handler: BaseHTTPRequestHandler, status: int, body: Any, **headers: str) -> None:
    """One answer in JSON; bytes as they are."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(data)))
    for name, value in headers.items():
        handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(data)
