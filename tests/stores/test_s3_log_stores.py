"""Two drivers that commit to one table in S3 at the same time: what Delta's log stores do, and what apply requires.

Each driver is a Spark in a process of its own, configured as docs/object-stores.md prints it. S3 and DynamoDB are
moto's server in this process, which holds the requests of a pair until both have arrived: so both drivers have looked
for the commit before either writes it. The log store on DynamoDB has no setting for an endpoint; a file of regions
leads the AWS SDK to moto, by TLS.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

import pytest

from tablectl.log.reader import read_commits
from tests.docs.pages import ROOT, blocks
from tests.s3 import REGION, RequestGroup, S3Server

pytestmark = [pytest.mark.slow, pytest.mark.spark]
COMMIT_1, COMMIT_3, COMMIT_4 = (f"{version:020}.json" for version in (1, 3, 4))
REGIONS = """<XML><Regions><Region><Name>{region}</Name><Domain>amazonaws.com</Domain><Endpoint>
<ServiceName>dynamodb</ServiceName><Http>true</Http><Https>true</Https><Hostname>{host}</Hostname>
</Endpoint></Region></Regions></XML>
"""
DRIVER = """
import sys
from pathlib import Path
from tablectl.policies.read_config import load_config
from tablectl.commands.project import Engines
session = Engines(load_config(Path(), {})).open("")._session
for line in sys.stdin:
    try:
        print("done", session.sql(line).collect(), flush=True)
    except Exception as error:
        print("failed", str(error).splitlines()[0], flush=True)
"""


class Driver:
    """A Spark of its own, which runs one statement after the other."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        self._process = process
        self._log = log

    def send(self, sql: str) -> None:
        """Start a statement, and do not wait for its end."""
        self._pipe(self._process.stdin).write(f"{sql}\n")
        self._pipe(self._process.stdin).flush()

    def answer(self) -> str:
        """``done`` and its rows, or ``failed`` and the error."""
        line = self._pipe(self._process.stdout).readline()
        assert line, self._log.read_text()
        return line.strip()

    def started(self) -> None:
        """Wait for the first answer. Skips the test if the log store's package cannot be downloaded."""
        if not self._pipe(self._process.stdout).readline():
            log = self._log.read_text()
            if "unresolved dependency: io.delta#delta-storage-s3-dynamodb" in log:
                pytest.skip("io.delta:delta-storage-s3-dynamodb cannot be downloaded, and ~/.m2 does not have it")
            raise AssertionError(log)

    def run(self, sql: str) -> str:
        self.send(sql)
        answer = self.answer()
        assert answer.startswith("done"), answer
        return answer

    @staticmethod
    def _pipe(pipe: IO[str] | None) -> IO[str]:
        assert pipe is not None
        return pipe


@pytest.fixture
def environ(s3: S3Server, tmp_path: Path) -> Iterator[dict[str, str]]:
    """What a process needs to reach moto as it would reach AWS: S3 by ``stores:``, DynamoDB by a file of regions."""
    with s3.tls() as host:
        regions = tmp_path / "regions.xml"
        regions.write_text(REGIONS.format(region=REGION, host=host))
        kept = {key: value for key, value in os.environ.items() if key not in {"AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"}}
        flags = (
            f"-Dcom.amazonaws.regions.RegionUtils.fileOverride={regions} -Dcom.amazonaws.sdk.disableCertChecking=true"
        )
        home = str(Path("~root").expanduser()) if os.geteuid() == 0 else kept["HOME"]  # Ivy's cache of jars
        yield {**kept, "PYTHONPATH": str(ROOT), "HOME": home, "JAVA_TOOL_OPTIONS": flags}


@pytest.fixture
def printed() -> str:
    """The configuration that docs/object-stores.md prints for several drivers."""
    found = [each.text for each in blocks(ROOT / "docs/object-stores.md") if "S3DynamoDBLogStore" in each.text]
    assert len(found) == 1
    return found[0]


@contextmanager
def repository(folder: Path, s3: S3Server, config: str) -> Iterator[Path]:
    """A folder with a configuration whose ``stores:`` lead to moto."""
    folder.mkdir()
    stores = f"stores: {{s3: {{endpoint: '{s3.url}', region: {REGION}, allow_http: true}}}}"
    text, replaced = re.subn(r"(?m)^stores:.*$", stores, config)
    assert replaced == 1
    (folder / "tablectl.yaml").write_text(text)
    yield folder


@contextmanager
def drivers(folder: Path, environ: dict[str, str]) -> Iterator[Sequence[Driver]]:
    """Two drivers, each in a process of its own."""
    with ExitStack() as stack:
        made = []
        for name in ("a", "b"):
            log = folder / f"{name}.log"
            process = stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", DRIVER],
                    cwd=folder,
                    env=environ,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=stack.enter_context(log.open("w")),
                    text=True,
                )
            )
            made.append(Driver(process, log))
        for each in made:
            each.send("SELECT 1")
        for each in made:
            each.started()
        yield made


INSERT = "INSERT INTO delta.`{}` VALUES ({})"
ALTER = "ALTER TABLE delta.`{}` SET TBLPROPERTIES ('owner.team' = '{}')"


def entry(commit: str) -> RequestGroup:
    """The two requests that claim one commit in DynamoDB."""
    return RequestGroup("DynamoDB_20120810.PutItem", commit, '"Expected"')


def together(s3: S3Server, group: RequestGroup, *statements: tuple[Driver, str]) -> list[str]:
    """The answers to two statements of which the second starts when the first waits for it."""
    s3.faults.group = group
    (first, sql), (second, other) = statements
    first.send(sql)
    assert group.first.wait(120)
    second.send(other)
    return [first.answer(), second.answer()]


def apply_command(folder: Path, place: str) -> list[str]:
    """The command that applies one change to a table; its policy is written."""
    (folder / "policies").mkdir()
    (folder / "policies/lake.yaml").write_text(f"version: 1\ntables:\n  delta.`{place}`: {{isolation: Serializable}}\n")
    return [sys.executable, "-m", "tablectl", "apply", "--yes"]


def test_with_the_default_log_store_a_commit_is_lost_and_apply_refuses(
    s3: S3Server, bucket: str, environ: dict[str, str], tmp_path: Path
) -> None:
    place = f"{bucket.replace('s3:', 's3a:')}/lake/orders"
    with repository(tmp_path / "repo", s3, "stores:\n") as folder:
        with drivers(folder, environ) as (a, b):
            a.run(f"CREATE TABLE delta.`{place}` (id BIGINT) USING delta")
            b.run(f"SELECT count(*) FROM delta.`{place}`")
            group = RequestGroup("PUT", f"_delta_log/{COMMIT_1}")
            answers = together(s3, group, (a, INSERT.format(place, 1)), (b, INSERT.format(place, 2)))
            assert answers == ["done []", "done []"], "both are told that they committed"
        assert len(read_commits(place)) == 2, "the creation, and one of two commits"
        assert [each for each in s3.faults.conditional if "_delta_log" in each] == [], "S3A asks for no exclusion"
        command = apply_command(folder, place)
        refused = subprocess.run(command, check=False, cwd=folder, env=environ, capture_output=True, text=True)
        said = " ".join(refused.stdout.split())
        assert refused.returncode == 3, refused
        assert "on S3, Delta's default log store does not keep this driver and the writers' from overwriting" in said
        assert "`spark.delta.logStore.s3a.impl: io.delta.storage.S3DynamoDBLogStore` here" in said, refused.stdout


def test_with_the_log_store_on_dynamodb_none_is_lost_and_apply_takes_part(
    s3: S3Server, bucket: str, environ: dict[str, str], printed: str, tmp_path: Path
) -> None:
    place = f"{bucket.replace('s3:', 's3a:')}/lake/orders"
    count = f"SELECT count(*) AS n FROM delta.`{place}`"
    with repository(tmp_path / "repo", s3, printed) as folder, drivers(folder, environ) as (a, b):
        a.run(f"CREATE TABLE delta.`{place}` (id BIGINT) USING delta")
        b.run(count)
        appended = together(s3, entry(COMMIT_1), (a, INSERT.format(place, 1)), (b, INSERT.format(place, 2)))
        assert appended == ["done []", "done []"]
        assert "n=2" in b.run(count), "the second one is committed after the first"
        altered = together(s3, entry(COMMIT_3), (a, ALTER.format(place, "a")), (b, ALTER.format(place, "b")))
        done, failed = sorted(altered)
        assert done == "done []"
        assert "DELTA_METADATA_CHANGED" in failed

        s3.faults.group = entry(COMMIT_4)
        command = apply_command(folder, place)
        with subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.PIPE, text=True) as apply:
            assert s3.faults.group.first.wait(300)
            b.send(INSERT.format(place, 3))
            answer = b.answer()
            assert apply.stdout is not None
            report = apply.stdout.read()
        assert apply.returncode == 0, report
        # Which of the two is first is not decided here.
        assert answer == "done []" or "DELTA_METADATA_CHANGED" in answer
        assert ("n=3" if answer == "done []" else "n=2") in b.run(count)
        assert "delta.isolationLevel" in b.run(f"SHOW TBLPROPERTIES delta.`{place}`")


def test_the_log_store_on_dynamodb_takes_s3_and_s3a_for_two_tables(
    s3: S3Server, bucket: str, environ: dict[str, str], printed: str, tmp_path: Path
) -> None:
    s3_, s3a = f"{bucket}/lake/orders", f"{bucket.replace('s3:', 's3a:')}/lake/orders"
    with repository(tmp_path / "repo", s3, printed) as folder, drivers(folder, environ) as (a, b):
        a.run(f"CREATE TABLE delta.`{s3a}` (id BIGINT) USING delta")
        b.run(f"SELECT count(*) FROM delta.`{s3_}`")
        group = RequestGroup("PUT", f"_delta_log/{COMMIT_1}")
        answers = together(s3, group, (a, INSERT.format(s3a, 1)), (b, INSERT.format(s3_, 2)))
        assert answers == ["done []", "done []"]
        assert len(read_commits(s3a)) == 2, "the creation, and one of two commits"
