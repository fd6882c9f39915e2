"""What all rounds of a run share: the server, the bucket, the proxies, the writers and the templates of tables."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from chaos.processes import Writer, writers
from chaos.proxy import Proxy
from chaos.scenario import TEMPLATES
from chaos.server import ROOT, Server
from tests.s3 import S3Server, clean_environ

_TEMPLATES = """
import json, sys
from pyspark.sql import SparkSession
session = SparkSession.builder.remote(sys.argv[1]).create()
for statement in json.loads(sys.stdin.read()):
    session.sql(statement).collect()
session.stop()
"""


class Harness:
    """Started by ``with``; everything is stopped at its end."""

    def __init__(self, work: Path, patience: float = 1.0) -> None:
        self.work = work
        self.patience = patience
        """How many times longer than usual work may take, on a busy machine, and writers pause between transactions;
        promised times stay the same.
        """
        work.mkdir(parents=True, exist_ok=True)
        self.s3 = S3Server()
        direct = {**clean_environ(os.environ), **self.s3.environ(), "HOME": os.environ.get("HOME", str(work))}
        direct.pop("TABLECTL_STATE", None)
        self.direct: Mapping[str, str] = direct
        """The environment of writers and of the server: no fault stands between them and the bucket."""
        os.environ.update(self.s3.environ())  # the probes are guards of this process
        self.store_proxy = Proxy(int(self.s3.url.rpartition(":")[2]))
        self.through = {**direct, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.store_proxy.port}"}
        """The environment of applies."""
        self.server = Server(work, dict(direct))
        self.engine_proxy = Proxy(self.server.port)
        self.remote = f"sc://127.0.0.1:{self.engine_proxy.port}"
        """Where applies reach the server."""
        self.endpoint_proxy = Proxy(self.server.thrift_port)
        self.endpoint = f"127.0.0.1:{self.endpoint_proxy.port}"
        """Where applies reach its Hive protocol."""
        self.writers: list[Writer] = writers(work, direct)

    def __enter__(self) -> Self:
        try:
            self.server.start()
            self._make_templates()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop everything."""
        for writer in self.writers:
            writer.close()
        self.server.kill()
        self.engine_proxy.close()
        self.endpoint_proxy.close()
        self.store_proxy.close()
        self.s3.close()

    def client(self) -> Any:
        """boto3's client of the bucket's server."""
        return self.s3.client

    def template(self, name: str) -> Path:
        """The folder of a template."""
        statements = "\n".join(TEMPLATES[name].statements(""))
        return self.work / "templates" / f"{name}-{hashlib.sha256(statements.encode()).hexdigest()[:12]}"

    def _make_templates(self) -> None:
        missing = [name for name in TEMPLATES if not self.template(name).exists()]
        asides = {name: self.template(name).with_suffix(".part") for name in missing}
        for aside in asides.values():
            shutil.rmtree(aside, ignore_errors=True)
            aside.parent.mkdir(parents=True, exist_ok=True)
        statements = [each for name in missing for each in TEMPLATES[name].statements(str(asides[name]))]
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _TEMPLATES, self.server.url],
            input=json.dumps(statements or ["SELECT 1"]),
            env={**self.direct, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if done.returncode:
            raise SystemExit(f"the tables could not be made:\n{done.stderr[-2000:]}")
        for name, aside in asides.items():
            aside.rename(self.template(name))
