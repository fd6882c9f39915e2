"""The processes of ``chaos.copies``: the JVM with its writers (no arguments), and the apply attached to it."""

from __future__ import annotations

import faulthandler
import json
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from deltalake import DeltaTable

import tablectl
from chaos.strangers import SQL, Stranger
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control
from tablectl.engine.interface import EngineOptions
from tablectl.engine.spark import open_spark
from tablectl.writers.options import ModeName

ROWS, DAYS, FILES = 2000, 5, 40
UPDATED, MERGED, DELETED = range(400), range(400, 800), range(800, 1600)
TWICE = range(1900, 2000)
"""Ids of rows that are there twice, whole."""
_NEW, _NEW_UNGUARDED = 10**6, 10**7
_TTL = 4.0
_OURS = ("METADATA_CHANGED", "MetadataChanged", '"mode":"Overwrite"', '\\"mode\\":\\"Overwrite\\"')
"""In the text of a conflict: the commit that caused it is that of the apply."""


class Writers:
    """Five writers, each in a thread and a session of its own, and their journal."""

    def __init__(self, spark: Any, folder: Path) -> None:
        self._name, self._place = f"delta.`{folder / 'table'}`", str(folder / "table")
        self._over, self._lock = threading.Event(), threading.Lock()
        self._file = (folder / "journal.jsonl").open("a", encoding="utf-8")
        # A server that was killed has written some ids already.
        self._first = int(time.time() * 10) % 10**6 * 10
        kinds: dict[str, Callable[[Any, int], None]] = {
            "append": self._append,
            "update": self._update,
            "merge": self._merge,
            "delete": self._delete,
            "unguarded": self._unguarded,
        }
        self._threads = [
            threading.Thread(target=self._run, args=(spark.newSession(), kind, write), daemon=True)
            for kind, write in kinds.items()
        ]
        for each in self._threads:
            each.start()

    def rest(self) -> None:
        """End the writers."""
        self._over.set()
        for each in self._threads:
            each.join()

    def _run(self, session: Any, kind: str, write: Callable[[Any, int], None]) -> None:
        number = 0
        while not self._over.wait(1.5 if kind == "unguarded" else 0.3):
            write(session, number)
            number += 1

    def _append(self, session: Any, number: int) -> None:
        id_ = _NEW + self._first + number
        self._try(session, "append", id_, 1.0, f"INSERT INTO {self._name} VALUES ({id_}, 'd{id_ % DAYS}', 1)")

    def _unguarded(self, session: Any, number: int) -> None:
        id_ = _NEW_UNGUARDED + self._first + number
        self._try(session, "unguarded", id_, 1.0, f"INSERT INTO {self._name} VALUES ({id_}, 'd{id_ % DAYS}', 1)")

    def _update(self, session: Any, number: int) -> None:
        id_, value = UPDATED[number * 7 % len(UPDATED)], float(self._first + number)
        self._try(session, "update", id_, value, f"UPDATE {self._name} SET v = {value:.1f}D WHERE id = {id_}")

    def _merge(self, session: Any, number: int) -> None:
        id_, value = MERGED[number * 7 % len(MERGED)], float(self._first + number)
        sql = (
            f"MERGE INTO {self._name} t USING (SELECT {id_} AS id) s ON t.id = s.id AND t.id = {id_} "
            f"WHEN MATCHED THEN UPDATE SET v = {value:.1f}D"
        )
        self._try(session, "merge", id_, value, sql)

    def _delete(self, session: Any, number: int) -> None:
        id_ = DELETED[(self._first + number) % len(DELETED)]
        self._try(session, "delete", id_, None, f"DELETE FROM {self._name} WHERE id = {id_}")

    def _try(self, session: Any, kind: str, id_: int, value: float | None, sql: str) -> None:
        mode: ModeName = "append" if kind == "append" else "rewrite"
        said = {"kind": kind, "id": id_, "v": value}
        guard = nullcontext() if kind == "unguarded" else tablectl.guard(None, self._place, mode=mode, ttl=_TTL)
        try:
            with guard:
                self._say({**said, "say": "try"})
                session.sql(sql)
        except Exception as error:  # whatever it is, the write failed
            text = str(error)
            ours = kind != "unguarded" and any(each in text for each in _OURS)
            self._say({**said, "say": "failed", "ours": ours, "error": text[:400]})
        else:
            self._say({**said, "say": "ok"})

    def _say(self, line: dict[str, Any]) -> None:
        with self._lock:
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()


def serve() -> None:
    """Answer the orders on standard input, one JSON line each."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    conf = {"spark.master": "local[4]", "spark.sql.shuffle.partitions": "2", "spark.ui.enabled": "false"}
    open_spark(EngineOptions(conf=conf | {"spark.driver.memory": "2g"}))
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251  # what the writers work in

    spark: Any = SparkSession.getActiveSession()
    gateway = spark.sparkContext._gateway.gateway_parameters  # noqa: SLF001  # PySpark has no public name for it
    _answer({"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": gateway.auth_token})
    writers: Writers | None = None
    for line in sys.stdin:
        order = json.loads(line)
        folder = Path(order.get("folder", "."))
        if order["do"] == "make":
            _make(spark, folder)
            _answer(_read(spark, folder))
        elif order["do"] == "work":
            writers = Writers(spark, folder)
            _answer({})
        elif order["do"] == "rest":
            if writers is not None:
                writers.rest()
            _answer({})
        elif order["do"] == "act":
            _act(spark, folder, Stranger[order["stranger"]])
            _answer({})
        else:
            _answer(_read(spark, folder))


def _act(spark: Any, folder: Path, stranger: Stranger) -> None:
    """What a stranger does to the table. A conflict with the writers or the apply is theirs to bear."""
    name = f"delta.`{folder / 'table'}`"
    spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    with suppress(Exception):  # such as a conflict: then nothing was done
        spark.sql(SQL[stranger].format(name=name))


def _make(spark: Any, folder: Path) -> None:
    name = f"delta.`{folder / 'table'}`"
    properties = "'delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true'"
    spark.sql(f"CREATE TABLE {name} (id BIGINT, day STRING, v DOUBLE) USING delta TBLPROPERTIES ({properties})")
    rows = f"SELECT id, concat('d', id % {DAYS}), double(id) FROM range"
    spark.sql(f"INSERT INTO {name} {rows}(0, {ROWS}, 1, {FILES})")
    spark.sql(f"INSERT INTO {name} {rows}({TWICE.start}, {TWICE.stop}, 1, 1)")


def _read(spark: Any, folder: Path) -> dict[str, Any]:
    name = f"delta.`{folder / 'table'}`"
    detail = spark.sql(f"DESCRIBE DETAIL {name}").collect()[0]
    files = DeltaTable(str(folder / "table")).file_uris()
    rows = spark.sql(f"SELECT id, v, count(*) FROM {name} GROUP BY id, v").collect()
    version = spark.sql(f"DESCRIBE HISTORY {name} LIMIT 1").collect()[0].version
    return {
        "id": detail.id,
        "partitions": list(detail.partitionColumns),
        "version": version,
        "rows": [list(row) for row in rows],
        "gone": [each for each in files if not Path(unquote(urlparse(each).path)).exists()],
        "records": sorted(each.name for each in (folder / "table" / "_tablectl" / "copy").glob("*")),
    }


def _answer(body: dict[str, Any]) -> None:
    print(json.dumps(body), flush=True)


def apply(steps: Path, result: Path) -> None:
    """Apply the policies of the working directory in the server's JVM; write down the steps, and how it ended."""
    from pyspark import SparkContext  # noqa: PLC0415, TID251  # attached to the JVM of the server
    from pyspark.java_gateway import launch_gateway  # noqa: PLC0415, TID251
    from pyspark.sql import SparkSession  # noqa: PLC0415, TID251

    gateway: Any = launch_gateway()  # type: ignore[no-untyped-call]
    jvm: Any = gateway.jvm
    there = jvm.org.apache.spark.SparkContext.getOrCreate()
    java = jvm.org.apache.spark.api.java.JavaSparkContext.fromSparkContext(there)
    context = SparkContext(gateway=gateway, jsc=java, conf=None)
    spark = SparkSession(context, jvm.org.apache.spark.sql.classic.SparkSession.getDefaultSession().get())
    copies = 0

    def notify(event: RunEvent) -> None:
        nonlocal copies
        copies += event.step == "copy"
        step = _STEPS.get(event.step, "")
        if step == "copy" and copies > 1:
            step = "follow"
        with steps.open("a", encoding="utf-8") as file:
            file.write(f"{step}\n")
        print(f"{time.time():.1f} {event.step} {event.words}", flush=True)

    faulthandler.dump_traceback_later(120, repeat=True)
    report = tablectl.apply(directory=Path.cwd(), spark=spark.newSession(), control=Control(notify=notify))
    message = "; ".join(f"{each.outcome}: {each.message}" for each in report.tables)
    result.write_text(json.dumps({"code": report.exit_code, "message": message}), encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # whatever pyspark does at exit would end the server's Spark


_STEPS = {"copy": "copy", "gate closed": "gate", "before closed-overwrite": "cut over", "verify": "verify"}

if __name__ == "__main__":
    if len(sys.argv) == 1:
        serve()
    else:
        apply(Path(sys.argv[1]), Path(sys.argv[2]))
