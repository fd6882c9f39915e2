"""Azure (azurite): log reading, leases, guards. Google Cloud Storage (fake-gcs-server): log reading. If installed.

``npm install azurite`` and ``go install github.com/fsouza/fake-gcs-server@latest`` put them on the PATH.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import shutil
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import format_datetime
from pathlib import Path

import pytest

import tablectl
from chaos.ports import free_port
from tablectl.delta.names import parse_table
from tablectl.leases.acquire import Claim
from tablectl.leases.clock import SystemClock
from tablectl.leases.lease import Lease
from tablectl.leases.owner import Owner
from tablectl.log.reader import read_commits, read_table
from tablectl.storage.object_stores import RetryLimits, StoreOptions, open_bucket
from tablectl.storage.records import open_records
from tests.commands.log_lake import create
from tests.leases.lease_fakes import try_acquire
from tests.s3 import clean_environ

ACCOUNT = "devstoreaccount1"
KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account and the key that every azurite has."""
pytestmark = pytest.mark.slow


@contextmanager
def served(*command: str, port: int) -> Iterator[None]:
    program = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert program.poll() is None, "the emulator ended"
            time.sleep(0.1)
        yield
    finally:
        program.terminate()
        program.wait(30)


@pytest.fixture(autouse=True)
def no_cloud(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in os.environ.keys() - clean_environ(os.environ).keys():
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def azure(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty container."""
    program = shutil.which("azurite-blob")
    if program is None:
        pytest.skip("azurite is not installed: npm install azurite")
    port = free_port()
    flags = ("--inMemoryPersistence", "--skipApiVersionCheck", "--silent", "--blobPort", str(port))
    with served(program, *flags, port=port):
        url = f"http://127.0.0.1:{port}/{ACCOUNT}"
        _make_container(url, "lake")
        for name, value in (("ENDPOINT", url), ("ACCOUNT_NAME", ACCOUNT), ("ACCOUNT_KEY", KEY), ("ALLOW_HTTP", "true")):
            monkeypatch.setenv(f"AZURE_STORAGE_{name}" if name != "ALLOW_HTTP" else "AZURE_ALLOW_HTTP", value)
        yield "az://lake"


def _make_container(url: str, name: str) -> None:
    now = format_datetime(datetime.now(UTC), usegmt=True)
    signed = f"PUT\n\n\n\n\n\n\n\n\n\n\n\nx-ms-date:{now}\nx-ms-version:2021-08-06\n"
    signed += f"/{ACCOUNT}/{ACCOUNT}/{name}\nrestype:container"
    key = base64.b64encode(hmac.new(base64.b64decode(KEY), signed.encode(), hashlib.sha256).digest()).decode()
    headers = {"x-ms-date": now, "x-ms-version": "2021-08-06", "Authorization": f"SharedKey {ACCOUNT}:{key}"}
    request = urllib.request.Request(f"{url}/{name}?restype=container", method="PUT", headers=headers)
    with urllib.request.urlopen(request):
        pass


@pytest.fixture
def google(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The URI of an empty bucket."""
    program = shutil.which("fake-gcs-server")
    if program is None:
        pytest.skip("fake-gcs-server is not installed: go install github.com/fsouza/fake-gcs-server@latest")
    port = free_port()
    flags = ("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory")
    with served(program, *flags, "-public-host", f"127.0.0.1:{port}", port=port):
        url = f"http://127.0.0.1:{port}"
        body = json.dumps({"name": "lake"}).encode()
        request = urllib.request.Request(
            f"{url}/storage/v1/b", data=body, method="POST", headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request):
            pass
        for name, value in (("BASE_URL", url), ("SKIP_SIGNATURE", "true"), ("ALLOW_HTTP", "true")):
            monkeypatch.setenv(f"GOOGLE_{name}", value)
        yield "gs://lake"


def test_on_azure_a_table_is_read_leased_and_guarded(azure: str, tmp_path: Path) -> None:
    store = open_bucket("az", "lake", StoreOptions(), RetryLimits(1, 10))
    for name, body in _log(tmp_path).items():
        store.put(name, body)
    location = f"{azure}/orders"
    _is_read(location)

    records = open_records(location)
    assert records.create("guards/one.json", b"1")
    assert not records.create("guards/one.json", b"2")
    assert (records.read("guards/one.json"), records.names("guards/")) == (b"1", ("guards/one.json",))
    records.delete("guards/one.json")
    ann, ben = Owner("ann", "laptop", 1, "", "0"), Owner("ben", "laptop", 2, "", "0")
    held = try_acquire(records, Claim(ann, "run-of-ann", "d", 30), SystemClock())
    assert isinstance(held, Lease)
    assert not isinstance(try_acquire(records, Claim(ben, "run-of-ben", "d", 30), SystemClock()), Lease)
    held.release()
    assert isinstance(try_acquire(records, Claim(ben, "run-of-ben", "d", 30), SystemClock()), Lease)

    with tablectl.guard(None, location, "append"):
        assert records.names("guards/")


def test_on_google_a_table_is_read(google: str, tmp_path: Path) -> None:
    """fake-gcs-server knows no put of the XML API, which obstore sends: ``tests/storage/test_gcs_without_login.py``."""
    for name, body in _log(tmp_path).items():
        query = urllib.parse.urlencode({"uploadType": "media", "name": name})
        url = f"{os.environ['GOOGLE_BASE_URL']}/upload/storage/v1/b/lake/o?{query}"
        with urllib.request.urlopen(urllib.request.Request(url, data=body, method="POST")):
            pass
    _is_read(f"{google}/orders")


def _log(folder: Path) -> dict[str, bytes]:
    table = create(folder / "orders", properties={"owner.team": "web"})
    return {f"orders/_delta_log/{each.name}": each.read_bytes() for each in (table / "_delta_log").glob("*.json")}


def _is_read(location: str) -> None:
    live = read_table(parse_table(f"delta.`{location}`"), location)
    assert live.properties["owner.team"] == "web"
    assert len(read_commits(location)) == live.version + 1
