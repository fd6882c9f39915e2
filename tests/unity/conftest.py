"""The real server of Unity Catalog, built from a checkout that ``UNITY_SOURCE`` names (``make test-unity``)."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

import pytest

from tests.commands.conftest import cli, repo  # noqa: F401  # fixtures
from tools.unity_server import BUILDS, Build, missing

API = "/api/2.1/unity-catalog"
_DIRECT = build_opener(ProxyHandler({}))


@pytest.fixture(scope="session")
def build() -> Build:
    """The server and its connector. Skips without a checkout to build them from."""
    source = os.environ.get("UNITY_SOURCE", "")
    if not source:
        pytest.skip("UNITY_SOURCE names no checkout of github.com/unitycatalog/unitycatalog: nothing was tested")
    if lacking := missing():
        pytest.skip(lacking)
    made = Build(Path(source).resolve(), BUILDS)
    made.make()
    return made


@dataclass(frozen=True)
class Server:
    """A server that runs."""

    url: str
    folder: Path

    @property
    def admin(self) -> str:
        """The token of the user who may do everything. The server writes it when it starts."""
        return (self.folder / "etc" / "conf" / "token.txt").read_text()

    def ask(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The answer to a request of the admin."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.admin}", "Content-Type": "application/json"}
        request = Request(f"{self.url}{path}", data, headers, method=method)
        try:
            with _DIRECT.open(request, timeout=60) as answer:
                told = answer.read()
        except HTTPError as error:
            raise AssertionError(f"{method} {path}: {error.code} {error.read(1000)!r}") from None
        found: dict[str, Any] = json.loads(told) if told.startswith(b"{") else {}
        return found

    def make_schema(self, catalog: str, schema: str) -> None:
        """A catalog with one schema."""
        self.ask("POST", f"{API}/catalogs", {"name": catalog})
        self.ask("POST", f"{API}/schemas", {"name": schema, "catalog_name": catalog})

    def register(self, catalog: str, schema: str, table: str, location: str) -> None:
        """An external Delta table with one column."""
        column = {
            "name": "id",
            "type_name": "LONG",
            "type_text": "bigint",
            "type_json": '{"name":"id","type":"long","nullable":true,"metadata":{}}',
            "position": 0,
            "nullable": True,
        }
        named = {"name": table, "catalog_name": catalog, "schema_name": schema, "storage_location": location}
        kind = {"table_type": "EXTERNAL", "data_source_format": "DELTA", "columns": [column]}
        self.ask("POST", f"{API}/tables", {**named, **kind})

    def grant(self, user: str, kind: str, name: str, *rights: str) -> None:
        """Rights of a user on a catalog, a schema or a table."""
        changes = {"changes": [{"principal": user, "add": list(rights), "remove": []}]}
        self.ask("PATCH", f"{API}/permissions/{kind}/{name}", changes)

    def add_user(self, name: str) -> str:
        """A user without rights. Returns a token, which the key of the server signs as the server does."""
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.hashes import SHA512
        from cryptography.hazmat.primitives.serialization import load_der_private_key

        mail = [{"value": name, "primary": True}]
        self.ask("POST", "/api/1.0/unity-control/scim2/Users", {"displayName": name, "emails": mail})
        head, _, rest = self.admin.partition(".")
        claims = json.loads(_bytes(rest.partition(".")[0]))
        signed = f"{head}.{_text(json.dumps({**claims, 'type': 'ACCESS', 'sub': name}).encode())}"
        assert json.loads(_bytes(head))["alg"] == "RS512"
        key = load_der_private_key((self.folder / "etc" / "conf" / "private_key.der").read_bytes(), None)
        assert isinstance(key, RSAPrivateKey)
        return f"{signed}.{_text(key.sign(signed.encode(), PKCS1v15(), SHA512()))}"


def _bytes(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


@pytest.fixture(scope="session")
def serving(build: Build, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    """Starts a server with settings of ``server.properties``, in a folder of its own."""

    @contextmanager
    def started(**settings: str) -> Iterator[Server]:
        folder = tmp_path_factory.mktemp("unity")
        conf = folder / "etc" / "conf"
        conf.mkdir(parents=True)
        for each in (build.source / "etc" / "conf").iterdir():
            (conf / each.name).write_bytes(each.read_bytes())
        given = {"server.env": "dev", "storage-root.tables": f"file://{folder}/managed", **settings}
        (conf / "server.properties").write_text("".join(f"{key}={value}\n" for key, value in given.items()))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = folder / "server.log"
        environ = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        with log.open("wb") as out:
            process = subprocess.Popen(build.command(port), cwd=folder, stdout=out, stderr=out, env=environ)
            try:
                server = Server(f"http://127.0.0.1:{port}", folder)
                _await(server, process, log)
                yield server
            finally:
                process.terminate()
                process.wait()

    return started


def _await(server: Server, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until the server answers, however long a loaded machine takes: the end of its process is the failure."""
    while process.poll() is None:
        try:
            server.ask("GET", f"{API}/catalogs")
        except (URLError, OSError):
            time.sleep(0.2)  # between two questions; nothing is measured by it
        else:
            return
    pytest.fail(f"the server ended: {log.read_text()[-3000:]}")
