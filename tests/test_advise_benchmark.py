"""The workloads of ``benchmarks/advise.py``, and what it computes from their results."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def workloads(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    monkeypatch.syspath_prepend(str(FOLDER))
    import _advise_workloads  # from the folder of the benchmarks

    yield _advise_workloads
    for name in ("_advise_workloads", "_forecast_writers", "advise"):
        sys.modules.pop(name, None)


def test_thirty_seeds_have_eight_healthy_workloads(workloads: ModuleType) -> None:
    made = [workloads.generate(seed) for seed in range(1, 31)]
    assert made == [workloads.generate(seed) for seed in range(1, 31)]
    assert sum(each.healthy for each in made) == 8
    assert {each.name for each in made} == {*workloads.HEALTHY, *workloads.SICK}
    assert all(each.partitioned is (each.name == "partitioned") for each in made)


def test_a_job_has_the_same_attempts_in_each_run(workloads: ModuleType) -> None:
    job = workloads.generate(1).jobs[0]
    first, second = (list(islice(workloads._attempts(1, 0, job), 50)) for _ in range(2))
    assert first == second
    assert all(0.6 * job.lasts <= lasts <= 1.4 * job.lasts for _, lasts in first)


def line(seed: int, **given: Any) -> dict[str, Any]:
    made = {"seed": seed, "workload": "regions", "healthy": False, "committed": 40, "failed": 10, "lost": 6000.0}
    none = {"advice": "", "predicted": 0.0, "lost_after": None, "single": {}}
    return {**made, **none, **given}


def test_what_is_printed_follows_from_the_lines(workloads: ModuleType) -> None:
    pytest.importorskip("pyspark")
    import advise  # as above

    del workloads
    assert advise.ratio(60.0, 0.0) == 1
    assert advise.ratio(0.0, -100.0) == 0
    single = {"": 6000.0, "A02": 0.0, "A07": 5900.0}
    lines = [
        line(1, advice="A02", predicted=11_940.0, lost_after=60.0, single=single),  # twice what was measured
        line(2, advice="A07", predicted=5940.0, lost_after=6600.0, single=single),
        line(3, workload="seldom", healthy=True, failed=0, lost=0.0),
        line(4, workload="appends", healthy=True, advice="A06", single={"": 6000.0, "A02": 5990.0}),
    ]
    assert [advise.best(each) for each in lines] == ["A02", "A02", "", ""]
    text = advise.summary(lines)
    assert "first advice is the best single change: 1 of 3" in text
    assert "workloads more than 5% worse afterwards: 1" in text
    assert "healthy workloads with advice: 1" in text
    assert "4 workloads, 2 of them healthy" in text
