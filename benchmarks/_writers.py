"""Writers that work on one table, and what they were told of their transactions."""

from __future__ import annotations

import random
import re
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pyspark.sql.functions import col, lit, udf  # noqa: TID251  # what the writers write with

import tablectl

ROWS = 200
"""New ones in each transaction; a MERGE updates up to a quarter as many of its old ones as well."""
LONG = 2.0
_KINDS: tuple[Literal["append", "merge", "stream"], ...] = ("append", "merge", "stream", "append")
CONFLICT = re.compile(r"\b(DELTA_[A-Z_]+|[A-Za-z]*(?:Concurrent|MetadataChanged|ProtocolChanged)[A-Za-z]*)\b")
"""In the text of an error that another commit caused."""


@dataclass
class Writer:
    """One job: its own partition, so that writers do not fail each other by what they write."""

    number: int
    random: random.Random
    rows: dict[int, int] = field(default_factory=dict)
    """What the table must hold of this writer: id → amount."""
    committed: int = 0
    failures: list[tuple[float, str]] = field(default_factory=list)
    """Seconds spent, and the error's text."""
    guards: list[float] = field(default_factory=list)
    """Seconds that each guard took to be put and taken away, waiting included."""

    @property
    def kind(self) -> Literal["append", "merge", "stream"]:
        """Of four, one merges, one is a stream, and two append."""
        return _KINDS[self.number % len(_KINDS)]

    @property
    def hold(self) -> float:
        """Seconds for which a transaction holds its snapshot, next tos what Spark itself takes."""
        return LONG if self.number % 4 == 3 else 0.0

    @property
    def mode(self) -> Literal["rewrite", "append"]:
        """The guard's."""
        return "rewrite" if self.kind == "merge" else "append"

    def batch(self) -> dict[int, int]:
        """The rows of the next transaction."""
        new = [len(self.rows) + index for index in range(ROWS)]
        old = self.random.sample(sorted(self.rows), min(ROWS // 4, len(self.rows))) if self.kind == "merge" else []
        return {key: self.random.randrange(1_000_000) for key in [*old, *new]}

    def write(self, session: Any, place: str, batch: dict[int, int]) -> None:
        """The transaction itself."""
        _write(session, place, self, batch)


@dataclass
class Run:
    """One table, its writers, and the change that happens to it."""

    spark: Any
    place: str
    writers: list[Writer]
    guarded: bool
    stop: threading.Event = field(default_factory=threading.Event)
    broken: list[BaseException] = field(default_factory=list)
    """Errors that are not conflicts: the benchmark itself is wrong."""

    def guard(self, writer: Writer) -> AbstractContextManager[object]:
        """What a cooperating writer puts around its write."""
        return tablectl.guard(None, self.place, mode=writer.mode) if self.guarded else nullcontext()

    def transact(self, session: Any, writer: Writer) -> None:
        """One transaction, and what its writer was told of it."""
        batch, began = writer.batch(), time.monotonic()
        started = ended = began
        try:
            with self.guard(writer):
                started = time.monotonic()
                try:
                    writer.write(session, self.place, batch)
                finally:
                    ended = time.monotonic()
        except Exception as error:
            writer.failures.append((ended - started, f"{type(error).__name__}: {error}"))
            raise
        finally:
            writer.guards.append(time.monotonic() - began - (ended - started))
        writer.rows.update(batch)
        writer.committed += 1

    def work(self, writer: Writer) -> None:
        """Transactions one after the other until told to stop; a failed one is a failure, and the job goes on."""
        session = self.spark.newSession()
        try:
            while not self.stop.is_set():
                if writer.kind == "stream":
                    self._stream(session, writer)
                else:
                    self._once(session, writer)
        except BaseException as error:
            self.broken.append(error)
            raise

    def _once(self, session: Any, writer: Writer) -> None:
        try:
            self.transact(session, writer)
        except Exception as error:
            if not CONFLICT.search(f"{type(error).__name__} {error}"):
                raise

    def _stream(self, session: Any, writer: Writer) -> None:
        """A query until it fails; it is started again, as a supervisor would."""

        # A batch that is stopped inside would leave its writer untold of what it committed.
        whole = threading.Lock()

        def each(frame: Any, _number: int) -> None:
            with whole:
                if not self.stop.is_set():
                    self.transact(frame.sparkSession, writer)

        checkpoint = tempfile.mkdtemp(prefix="stream-", dir=Path(self.place).parent)
        source = session.readStream.format("rate").option("rowsPerSecond", 5).load()
        query = source.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint).start()
        try:
            while query.isActive and not self.stop.wait(0.05):
                pass
            problem = query.exception()
            if problem is not None and not CONFLICT.search(str(problem)):
                raise problem
        finally:
            # To stop waits for the batch, so the lock must be free again: a batch that comes now does nothing.
            with whole:
                pass
            query.stop()

    @contextmanager
    def working(self) -> Iterator[None]:
        """While the writers work: from when each has committed once until each has again after the change."""
        threads = [threading.Thread(target=self.work, args=(writer,), daemon=True) for writer in self.writers]
        for thread in threads:
            thread.start()
        try:
            self._until_each_commits()
            yield
            self._until_each_commits()
        finally:
            self.stop.set()
            for thread in threads:
                thread.join()
        if self.broken:
            raise self.broken[0]

    def _until_each_commits(self) -> None:
        before = [writer.committed for writer in self.writers]
        while any(writer.committed == count for writer, count in zip(self.writers, before, strict=True)):
            if self.broken:
                raise self.broken[0]
            time.sleep(0.05)


def _write(session: Any, place: str, writer: Writer, batch: dict[int, int]) -> None:
    rows = session.createDataFrame(list(batch.items()), "id long, amount long")
    amount = _held(writer.hold, min(batch)) if writer.hold else col("amount")
    frame = rows.select(lit(writer.number).alias("writer"), "id", amount.alias("amount"))
    if writer.kind != "merge":
        frame.write.format("delta").mode("append").save(place)
        return
    view = f"batch_{writer.number}"
    frame.createOrReplaceTempView(view)
    session.sql(
        f"MERGE INTO delta.`{place}` t USING {view} s ON t.writer = {writer.number} AND t.id = s.id "
        "WHEN MATCHED THEN UPDATE SET amount = s.amount WHEN NOT MATCHED THEN INSERT *"
    ).collect()


def _held(seconds: float, first: int) -> Any:
    """The amount, after so many seconds in one row: a transaction that is open for longer."""

    def held(key: int, amount: int) -> int:
        if key == first:
            time.sleep(seconds)
        return amount

    return udf(held, "long")("id", "amount")
