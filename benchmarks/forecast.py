"""Whether the expected loss is right, and what it saves to wait for a quiet moment.

Each seed is a workload: writers with a timetable. Their four weeks of commits are written into the log of a real Delta
table, as Delta records such writes. ``tablectl plan`` tells the expected loss from that log alone. Then come applies in
the fifth week, some at random moments, some in the hour that the plan proposes. For each, the transactions that the
writers have in flight at that moment are begun for real, in threads of one JVM, and are held while ``tablectl apply``
runs. Counted are those that fail.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from math import log2
from pathlib import Path
from statistics import median
from typing import Any

from _forecast_replay import report, run, strict_report
from _forecast_writers import (
    DAY,
    HOUR,
    WEEKS,
    Held,
    Timetable,
    Transaction,
    create,
    create_log,
    generate,
    simulate,
    write_past,
)
from _report import machine, say, table
from _results import FOLDER, append, next_seed, read, small_spark

import tablectl
from tablectl.model.expected_loss import HOURS, TableLoss, hour_of_week
from tablectl.model.plan import Basis, ProtocolFact

RESULTS = FOLDER / "forecast.jsonl"
SIMULATED = RESULTS.with_name("forecast-simulated.jsonl")
MOMENTS = 6
"""Random and proposed moments of each workload."""
START = datetime(2026, 10, 5, tzinfo=UTC).timestamp()
"""A Monday."""
FUTURE = START + WEEKS * 7 * DAY
HALF = 0.5
"""Added to predicted and counted failures, because either can be zero."""
BASIS = Basis(
    protocol=ProtocolFact(reader=1, writer=2),
    partitioned=False,
    clustered=False,
    identity=False,
    schema_writers=False,
    overwrites=False,
    clients=(),
    vectors=0,
    files=1,
    bytes=1,
)
"""Of the replayed tables."""
POLICY = "version: 1\ntables:\n  delta.`{place}`:\n    properties: {{owner.round: '{number}'}}\n"


@dataclass(frozen=True)
class Applied:
    """One apply, and what it cost."""

    proposed: bool
    hour: int
    """Of the week, in UTC."""
    predicted: float
    predicted_seconds: float
    in_flight: int
    failed: int
    lost_seconds: float


@dataclass(frozen=True)
class Measured:
    """The result of one seed."""

    seed: int
    writers: tuple[str, ...]
    writes: int
    """Writes in the log."""
    applied: tuple[Applied, ...]


def measure(spark: Any, folder: Path, seed: int) -> Measured:
    """One workload on a table of its own. Without Spark, each transaction in flight counts as failed."""
    writers, place = generate(seed), str(folder / f"t{seed}")
    if spark is None:
        create_log(place, len(writers))
    else:
        create(spark, place, len(writers))
    past = [each for each in simulate(writers, START, FUTURE, seed) if each.end < FUTURE]
    write_past(place, writers, past)
    repository = Repository(spark, folder / f"repository-{seed}", place)
    loss = repository.loss()
    held = Held(spark, place, writers)
    moments = _moments(loss, random.Random(seed))
    # Each moment meets a week of its own, so that the moments are independent.
    weeks = (simulate(writers, FUTURE - DAY, FUTURE + 8 * DAY, seed * 1000 + number) for number in range(len(moments)))
    applied = [
        _applied(repository, held, loss, week, at, proposed=proposed)
        for (at, proposed), week in zip(moments, weeks, strict=True)
    ]
    return Measured(seed, tuple(map(Timetable.text, writers)), len(past), tuple(applied))


def _moments(loss: TableLoss, chosen: random.Random) -> list[tuple[float, bool]]:
    """Random moments of the fifth week, and as many random moments of the proposed hour."""
    assert loss.quietest is not None
    quiet = FUTURE + loss.quietest * HOUR
    anywhere = [(FUTURE + chosen.uniform(0, HOURS * HOUR), False) for _ in range(MOMENTS)]
    return anywhere + [(quiet + chosen.uniform(0, HOUR), True) for _ in range(MOMENTS)]


def _applied(
    repository: Repository, held: Held, loss: TableLoss, week: Sequence[Transaction], at: float, *, proposed: bool
) -> Applied:
    """An apply at a moment. If nothing is in flight, nothing can fail, and it is not run."""
    flight = [each for each in week if each.start <= at < each.end]
    failed = held.around(flight, repository.apply) if flight and held.spark is not None else len(flight)
    work = sum(each.end - each.start for each in flight) * failed / len(flight) if flight else 0.0
    hour = hour_of_week(at)
    expected = loss.week[hour]
    return Applied(proposed, hour, expected.failed, expected.seconds, len(flight), failed, round(work, 1))


class Repository:
    """Policies for one table, whose next apply always has a blocking statement."""

    def __init__(self, spark: Any, directory: Path, place: str) -> None:
        self._spark = spark
        self._directory = directory
        self._place = place
        self._round = 0
        (directory / "policies").mkdir(parents=True)
        self._declare()

    def _declare(self) -> None:
        self._round += 1
        text = POLICY.format(place=self._place, number=self._round)
        (self._directory / "policies" / "t.yaml").write_text(text, encoding="utf-8")

    def loss(self) -> TableLoss:
        """What the plan tells."""
        plan = tablectl.plan(directory=self._directory)
        loss = plan.tables[0].loss if plan.tables else None
        if loss is None or loss.unknown:
            raise SystemExit(f"{self._place}: no forecast: {loss}")
        return loss

    def apply(self) -> None:
        """A real apply of another value."""
        report = tablectl.apply(directory=self._directory, spark=self._spark)
        if report.exit_code != 0:
            raise SystemExit(f"the apply came to {report}")
        self._declare()


# Results


def ratio(predicted: float, counted: float) -> float:
    """log2 of predicted to counted failures, each with a half added."""
    return log2((predicted + HALF) / (counted + HALF))


def summary(lines: Sequence[dict[str, Any]]) -> str:
    """The table of all seeds, the median error, and the share of the loss that waiting avoided."""
    rows, errors, totals = [], [], [0, 0]
    for line in sorted(lines, key=lambda each: int(each["seed"])):
        sides = [[each for each in line["applied"] if each["proposed"] is side] for side in (False, True)]
        predicted = [sum(each["predicted"] for each in side) for side in sides]
        counted = [sum(each["failed"] for each in side) for side in sides]
        error = ratio(predicted[0], counted[0])
        errors.append(abs(error))
        totals = [total + count for total, count in zip(totals, counted, strict=True)]
        shown = [f"{predicted[0]:.1f}", str(counted[0]), f"{error:+.2f}", f"{predicted[1]:.1f}", str(counted[1])]
        rows.append((str(line["seed"]), str(len(line["writers"])), str(line["writes"]), *shown))
    head = ("seed", "writers", "writes", "random", "failed", "log2", "proposed", "failed")
    avoided = 1 - totals[1] / totals[0] if totals[0] else 0.0
    return (
        table(head, rows)
        + f"\n{len(rows)} workloads, {sum(len(each['applied']) for each in lines)} moments"
        + f"\nmedian |log2(predicted / counted)| at random moments: {median(errors or [0.0]):.2f}"
        + f"\nloss avoided by waiting: {avoided:.0%} ({totals[0]} failed writes at random moments, {totals[1]} at the "
        + "proposed ones)\n"
    )


def main() -> int:
    """Run the next seeds, add a line for each, and print all results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20, help="how many further workloads to run; 0 prints the results")
    parser.add_argument("--first", type=int, help="the first seed; by default the first without a result")
    parser.add_argument(
        "--simulated", action="store_true", help="without Spark: each transaction in flight counts as failed"
    )
    parser.add_argument("--results", type=Path)
    parser.add_argument("--replay", action="store_true", help="the sixty tables of _forecast_tables.py, without Spark")
    parser.add_argument("--strict", type=int, default=0, metavar="APPLIES", help="strict timetables, without Spark")
    asked = parser.parse_args()
    if asked.strict:
        say(machine() + "\n\n" + strict_report(BASIS, asked.strict))
        return 0
    if asked.replay:
        say(machine() + "\n\n" + report(run(BASIS)))
        return 0
    results = asked.results or (SIMULATED if asked.simulated else RESULTS)
    first = asked.first or next_seed(results)
    if asked.seeds:
        _run(range(first, first + asked.seeds), results, simulated=asked.simulated)
    say(machine() + "\n\n" + summary(read(results)))
    return 0


def _run(seeds: range, results: Path, *, simulated: bool) -> None:
    session = nullcontext() if simulated else small_spark()
    with (
        tempfile.TemporaryDirectory(prefix="tablectl-forecast-", ignore_cleanup_errors=True) as folder,
        session as spark,
    ):
        for seed in seeds:
            append(results, measure(spark, Path(folder), seed))


if __name__ == "__main__":
    raise SystemExit(main())
