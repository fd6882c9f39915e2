"""What a stranger does between two steps of an apply, on real Delta: no row and no file of the newest version is lost,
and nothing is changed that was not declared. `tests/strangers` does every action at every step on a fake lake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import unquote, urlparse

import pytest
from deltalake import DeltaTable

import tablectl
from chaos.strangers import Stranger
from tablectl.applying.events import RunEvent
from tablectl.commands.run_plan import Control

pytestmark = pytest.mark.spark

JOURNEYS = MappingProxyType(
    {
        "settings": "isolation: Serializable, properties: {owner.team: web}",
        "copy": "partitioning: [day], rewrite: {copy: beside}",
        "rewrite": "partitioning: [day], rewrite: allowed",
    }
)
"""Policies of one table."""
_DECLARED = {"delta.isolationLevel", "owner.team"}
_RETAIN = "spark.databricks.delta.retentionDurationCheck.enabled"


def _sql(*statements: str) -> Callable[[Any, str, Path], None]:
    def act(spark: Any, name: str, place: Path) -> None:
        for each in statements:
            spark.sql(each.format(name=name, clone=f"delta.`{place}-clone`"))

    return act


def _short_vacuum(spark: Any, name: str, _place: Path) -> None:
    spark.conf.set(_RETAIN, "false")
    try:
        spark.sql(f"VACUUM {name} RETAIN 0 HOURS")
    finally:
        spark.conf.unset(_RETAIN)


def _log_cleaned(spark: Any, name: str, place: Path) -> None:
    spark._jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, str(place)).checkpoint()
    newest = max(int(each.stem.partition(".")[0]) for each in (place / "_delta_log").glob("*.checkpoint.parquet"))
    for each in (place / "_delta_log").glob("*.json"):
        if each.stem.isdigit() and int(each.stem) < newest:
            each.unlink()


ACT: Mapping[Stranger, Callable[[Any, str, Path], None]] = MappingProxyType(
    {
        Stranger.VACUUM: _sql("VACUUM {name}"),
        Stranger.SHORT_VACUUM: _short_vacuum,
        Stranger.OPTIMIZE: _sql("OPTIMIZE {name}"),
        Stranger.SET_OTHER: _sql("ALTER TABLE {name} SET TBLPROPERTIES ('their.key' = 'theirs')"),
        Stranger.SET_DECLARED: _sql("ALTER TABLE {name} SET TBLPROPERTIES ('owner.team' = 'theirs')"),
        Stranger.APPEND_ONLY: _sql("ALTER TABLE {name} SET TBLPROPERTIES ('delta.appendOnly' = 'true')"),
        Stranger.ADD_COLUMN: _sql("ALTER TABLE {name} ADD COLUMN added INT"),
        Stranger.ENABLE_FEATURE: _sql("ALTER TABLE {name} SET TBLPROPERTIES ('delta.enableRowTracking' = 'true')"),
        Stranger.ADD_CONSTRAINT: _sql("ALTER TABLE {name} ADD CONSTRAINT theirs CHECK (id < 100000)"),
        Stranger.RESTORE: _sql("RESTORE TABLE {name} TO VERSION AS OF 3"),
        Stranger.RESTORE_FIRST: _sql("RESTORE TABLE {name} TO VERSION AS OF 0"),
        Stranger.REPLACE: _sql("CREATE OR REPLACE TABLE {name} USING delta AS SELECT 5L AS id, 'd1' AS day, 1D AS v"),
        Stranger.APPEND: _sql("INSERT INTO {name} (id, day, v) VALUES (9000, 'd9', 1)"),
        Stranger.DELETE: _sql("DELETE FROM {name} WHERE id % 100 = 3"),
        Stranger.MERGE: _sql(
            "MERGE INTO {name} t USING (SELECT id FROM range(90, 110)) s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET v = 7"
        ),
        Stranger.LOG_CLEANED: _log_cleaned,
    }
)
"""The others need no engine: the fake lake shows them, and the processes of `make chaos`."""

SAMPLE = [
    ("copy", "copy", Stranger.SHORT_VACUUM),
    ("copy", "before closed-overwrite", Stranger.ENABLE_FEATURE),
    ("copy", "before closed-overwrite", Stranger.RESTORE),
    ("rewrite", "before closed-overwrite", Stranger.MERGE),
    ("settings", "verify", Stranger.RESTORE_FIRST),
]


class Story:
    """A table, the policy that is pending on it, and a stranger who acts once."""

    def __init__(self, spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], place: Path) -> None:
        self.spark, self._cli, self.place = spark, cli, place
        self.name = f"delta.`{place}`"
        self._policies = policies
        self.steps: dict[str, None] = {}

    def play(self, journey: str, at: str = "", stranger: Stranger | None = None) -> None:
        """Apply until it is done, and look at every commit of it."""
        self.spark.sql(f"CREATE TABLE {self.name} (id BIGINT, day STRING, v DOUBLE) USING delta")
        for start in range(0, 400, 100):
            value = "CASE WHEN id % 7 = 0 THEN NULL ELSE id END"
            rows = f"SELECT id, concat('d', id % 3), {value} FROM range({start}, {start + 100}, 1, 2)"
            self.spark.sql(f"INSERT INTO {self.name} {rows}")
        self._policies(f"  {self.name}: {{{JOURNEYS[journey]}}}\n")
        acted: list[str] = []

        def notify(event: RunEvent) -> None:
            self.steps.setdefault(event.step)
            if stranger is not None and event.step == at and not acted:
                acted.append(at)
                ACT[stranger](self.spark, self.name, self.place)
                self.left = self.seen()

        self.left = self.seen()
        for _ in range(4):
            report = tablectl.apply(spark=self.spark, control=Control(notify=notify))
            self.check()
            if report.exit_code == 0:
                assert self._cli("plan", "--detailed-exitcode").code == 0, "exit code 0, and the plan is not empty"
                break
            said = [f"{each.outcome}: {each.message} ({each.hint})" for each in report.tables]
            assert all(each.message for each in report.tables), said
            if all(each.outcome == "refused" for each in report.tables):
                break
        else:
            raise AssertionError(f"not done after four applies: {said}")
        assert stranger is None or acted, f"the apply never came to {at!r}"

    def check(self) -> None:
        """Rows and undeclared properties are those that the last stranger left; every live file is there."""
        assert self.seen() == self.left, "rows or undeclared properties are others"
        for uri in DeltaTable(str(self.place)).file_uris():
            path = unquote(urlparse(uri).path) if uri.startswith("file:") else uri
            assert Path(path).exists() or Path(unquote(path)).exists(), f"a live file is gone: {uri}"

    def seen(self) -> tuple[list[str], dict[str, str]]:
        """The rows, and the properties that no policy declares."""
        rows = sorted(map(str, self.spark.sql(f"SELECT id, day, v FROM {self.name}").collect()))
        properties = {each.key: each.value for each in self.spark.sql(f"SHOW TBLPROPERTIES {self.name}").collect()}
        return rows, {key: value for key, value in properties.items() if key not in _DECLARED}


@pytest.fixture
def story(spark: Any, cli: Callable[..., Any], policies: Callable[[str], None], tmp_path: Path) -> Story:
    return Story(spark, cli, policies, tmp_path / "orders")


@pytest.mark.parametrize(("journey", "at", "stranger"), SAMPLE)
def test_a_stranger_between_two_steps_costs_no_row(story: Story, journey: str, at: str, stranger: Stranger) -> None:
    story.play(journey, at, stranger)


@pytest.mark.slow
@pytest.mark.parametrize("stranger", ACT)
@pytest.mark.parametrize("journey", JOURNEYS)
def test_no_step_on_real_delta_is_open_to_a_stranger(
    spark: Any,
    cli: Callable[..., Any],
    policies: Callable[[str], None],
    tmp_path: Path,
    journey: str,
    stranger: Stranger,
) -> None:
    quiet = Story(spark, cli, policies, tmp_path / "quiet")
    quiet.play(journey)
    for number, step in enumerate(quiet.steps):
        Story(spark, cli, policies, tmp_path / f"t{number}").play(journey, step, stranger)
