"""A guarded writer: a process of its own that works on the tables of a round through the Spark Connect server.

Orders come as JSON lines on standard input: ``work`` begins, ``rest`` ends the transaction that runs and answers with a
line. Everything it tries and learns is in the journal. ``python -m chaos.writer KIND NUMBER``.
"""

from __future__ import annotations

import contextlib
import json
import logging
import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

import pyspark.errors  # noqa: TID251  # what the writers write with
from pyspark.sql import SparkSession  # noqa: TID251
from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: TID251
from pyspark.sql.functions import col, lit  # noqa: TID251

import tablectl
from chaos.journal import Journal

Kind = Literal["append", "rewrite", "stream", "optimize"]
KINDS: tuple[Kind, ...] = ("append", "rewrite", "stream", "optimize")
GUARD_TTL = 10.0
"""Seconds: so an apply soon passes a guard whose server was killed."""
ROWS = 10
LONGEST_WAIT = 900.0
"""Seconds at a gate, after which something is wrong. Each of five killed runs takes the gate over shut, so a writer may
wait for them all; one that still waits at the end of a round is noticed by then.
"""
_USER = "spark.databricks.delta.commitInfo.userMetadata"
_STREAM_IDS = 1_000_000
"""Ids of one query; each query begins with a multiple of it."""


@dataclass(frozen=True, slots=True)
class Order:
    """The work of one round."""

    remote: str
    journal: Path
    tables: tuple[Path, ...]
    seed: int
    state: str | None
    folder: Path
    """For the checkpoints of streams."""
    pace: float = 1.0
    """Factor for the pauses between transactions."""


@dataclass
class Work:
    """A writer in one round."""

    kind: Kind
    number: int
    order: Order
    stop: threading.Event
    random: random.Random
    attempts: int = 0
    queries: int = 0
    known: dict[str, list[int]] = field(default_factory=dict)
    """Ids of own rows that are there for certain, by table."""
    free: int = 0
    """The next id."""

    def run(self) -> None:
        """Work until told to stop; a lost session is replaced."""
        failures = 0
        while not self.stop.is_set():
            session = None
            try:
                session = self._connect()
                while not self.stop.is_set() and self._once(session):
                    self.stop.wait(self.random.uniform(0.2, 1.0) * self.order.pace)
            except Exception as error:
                failures += 1
                # The server is gone, or not there again yet: what an attempt was told is in the journal already.
                print(f"{type(error).__name__}: {str(error)[:300]}", file=sys.stderr, flush=True)
                # A stream starts a Python process in the server each time, which a busy machine gives up after 10 s.
                self.stop.wait(15.0 * failures if self.kind == "stream" else min(2.0 * failures, 15.0))
            finally:
                if session is not None:
                    with suppress(Exception):
                        session.stop()

    def _connect(self) -> Any:
        builder: Any = SparkSession.builder
        session = builder.remote(self.order.remote).create()
        session.client.set_retry_policies([DefaultPolicy(max_retries=4, max_backoff=2000)])
        return session

    def _once(self, session: Any) -> bool:
        """One transaction; False where the session is of no more use."""
        place = self.random.choice(self.order.tables)
        if self.kind == "stream":
            return self._stream(session, place)
        act, pairs = self._next(place.name)
        attempt = f"{self.order.seed}-{self.number}-{self.attempts}"
        self.attempts += 1
        told = guarded(self.order, self.number, place, attempt, act, pairs, partial(_write, session, self.number))
        self._learn(place.name, act, [key for key, _ in pairs], told)
        return told != "unknown"

    def _next(self, table: str) -> tuple[str, list[tuple[int, int]]]:
        known = self.known.setdefault(table, [])
        if self.kind == "optimize" and self.random.random() < 0.5:
            return "optimize", []
        act = self.random.choice(["merge", "merge", "update", "delete"]) if self.kind == "rewrite" else "append"
        if act in {"update", "delete"} and not known:
            act = "merge"
        old = self.random.sample(known, min(ROWS // 3, len(known))) if act != "append" else []
        new = list(range(self.free, self.free + ROWS)) if act in {"append", "merge"} else []
        self.free += len(new)
        value = self.random.randrange(1_000_000)
        return act, [(key, value) for key in [*old, *new]]

    def _learn(self, table: str, act: str, keys: list[int], told: str) -> None:
        known = self.known.setdefault(table, [])
        gone = act == "delete" or told == "unknown"
        if told == "failed" or act == "optimize":
            return
        self.known[table] = [key for key in known if key not in keys] + ([] if gone else keys)

    def _stream(self, session: Any, place: Path) -> bool:
        """One query for the whole round: each starts a Python process in the server. After a failure, another one."""
        first = self.number * 10 * _STREAM_IDS + self.queries * _STREAM_IDS
        self.queries += 1
        checkpoint = self.order.folder / f"stream-{self.number}-{self.queries}"
        source = session.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 1)
        each = partial(write_batch, self.order, self.number, place, first)
        begun = source.load().writeStream.foreachBatch(each).option("checkpointLocation", str(checkpoint))
        query = begun.trigger(processingTime="500 milliseconds").start()
        try:
            while query.isActive and not self.stop.wait(0.5):
                pass
        finally:
            query.stop()
        return True


def write_batch(order: Order, number: int, place: Path, first: int, frame: Any, batch: int) -> None:
    """One batch of a stream. Runs in the Python process of the server, which imports this module."""
    value = batch * 7 + 1
    pairs = [(first + batch * ROWS + index, value) for index in range(ROWS)]
    attempt = f"{order.seed}-{number}-{first}-{batch}"
    start = first + batch * ROWS - frame.agg({"value": "min"}).collect()[0][0]

    def write(place: Path, _act: str, _pairs: list[tuple[int, int]], attempt: str) -> None:
        numbered = frame.select((col("value") + lit(start)).alias("id"))
        rows = numbered.selectExpr(
            f"CAST({number} AS INT) AS w", "id", f"CAST({value} AS LONG) AS v", "CAST(id % 4 AS INT) AS m"
        )
        rows.write.format("delta").mode("append").option("userMetadata", attempt).save(str(place))

    if guarded(order, number, place, attempt, "append", pairs, write) != "ok":
        raise RuntimeError(f"batch {batch} of {attempt} was not written")


def _write(session: Any, number: int, place: Path, act: str, pairs: list[tuple[int, int]], attempt: str) -> None:
    table = f"delta.`{place}`"
    session.conf.set(_USER, attempt)
    keys = ", ".join(str(key) for key, _ in pairs)
    if act in {"append", "merge"}:
        values = ", ".join(f"({number}, {key}L, {value}L, {key % 4})" for key, value in pairs)
        rows = f"(SELECT * FROM VALUES {values} AS s(w, id, v, m))"
    if act == "append":
        session.sql(f"SELECT * FROM {rows}").write.format("delta").mode("append").save(str(place))
    elif act == "merge":
        session.sql(
            f"MERGE INTO {table} t USING {rows} s ON t.w = {number} AND t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT *"
        ).collect()
    elif act == "update":
        session.sql(f"UPDATE {table} SET v = {pairs[0][1]} WHERE w = {number} AND id IN ({keys})").collect()
    elif act == "delete":
        session.sql(f"DELETE FROM {table} WHERE w = {number} AND id IN ({keys})").collect()
    else:
        session.sql(f"OPTIMIZE {table}").collect()


Write = Callable[[Path, str, list[tuple[int, int]], str], None]


def guarded(
    order: Order, number: int, place: Path, attempt: str, act: str, pairs: list[tuple[int, int]], write: Write
) -> str:
    """One transaction under its guard, noted in the journal; what the writer was told: ok, failed or unknown."""
    journal = Journal(order.journal)
    journal.note("try", attempt, writer=number, table=place.name, act=act, pairs=pairs)
    mode: Literal["append", "rewrite"] = "append" if act == "append" else "rewrite"
    guard = tablectl.guard(None, place, mode, name=attempt, timeout=LONGEST_WAIT, state=order.state, ttl=GUARD_TTL)
    told, text = "ok", ""
    with _warnings(journal, attempt):
        try:
            with guard:
                journal.note("inside", attempt)
                write(place, act, pairs, attempt)
        except Exception as error:
            told, text = ("failed" if _answered(error) else "unknown"), f"{type(error).__name__}: {error}"
    journal.note("told", attempt, told=told, error=text)
    return told


def _answered(error: Exception) -> bool:
    """Whether an error is an answer of Delta or Spark about this statement, so that nothing of it landed."""
    if isinstance(error, tablectl.GuardTimeout):
        return True
    if not isinstance(error, pyspark.errors.PySparkException):
        return False
    text = f"{type(error).__name__} {error}"
    return not any(
        sign in text
        for sign in ("SESSION", "OPERATION", "UNAVAILABLE", "RETRIES", "_InactiveRpc", "INTERNAL", "CANCEL")
    )


class _Notes(logging.Handler):
    def __init__(self, journal: Journal, attempt: str) -> None:
        super().__init__(logging.WARNING)
        self._journal = journal
        self._attempt = attempt

    def emit(self, record: logging.LogRecord) -> None:
        self._journal.note("warning", self._attempt, text=record.getMessage())


@contextmanager
def _warnings(journal: Journal, attempt: str) -> Iterator[None]:
    """What the guard logs belongs to the attempt: a guard that fails open says so there."""
    handler = _Notes(journal, attempt)
    log = logging.getLogger("tablectl")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def order_of(body: dict[str, Any]) -> Order:
    """An order as it came over standard input."""
    return Order(
        body["remote"],
        Path(body["journal"]),
        tuple(Path(each) for each in body["tables"]),
        int(body["seed"]),
        body["state"],
        Path(body["folder"]),
        float(body.get("pace", 1.0)),
    )


def main() -> None:
    """Follow orders until standard input ends."""
    kind: Kind = next(each for each in KINDS if each == sys.argv[1])
    number = int(sys.argv[2])
    stop, worker = threading.Event(), None
    for line in sys.stdin:
        body = json.loads(line)
        if body["do"] == "work":
            stop = threading.Event()
            order = order_of(body)
            work = Work(kind, number, order, stop, random.Random(order.seed * 100 + number), free=number * 1000)
            worker = threading.Thread(target=work.run, daemon=True)
            worker.start()
        else:
            stop.set()
            if worker is not None:
                worker.join()
            with contextlib.suppress(BrokenPipeError):
                print(json.dumps({"rested": True}), flush=True)


if __name__ == "__main__":
    main()
