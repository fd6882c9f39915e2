"""Which stored texts Delta reads and takes, and which statements fail with the others: compared with real Delta."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException

from tablectl.delta.properties import why_unreadable
from tablectl.lint_rules.stored_texts import _FAILS

_SPANS = ("7 days", "7 DAYS", " 7 days ", "INTERVAL 7 DAYS", "interval\t7 days", "interval 7\tdays", "interval +7 days")
_ODD_SPANS = (
    "interval - 7 days",
    "interval 7day",
    "7 d",
    "7 days ago",
    "days 7",
    "interval '7' day",
    "P30D",
    "30",
    "７ days",
)
_SUMS = (
    "1 week 1 day",
    "7 days -1 hours",
    "1 month -30 days",
    "0 months 7 days",
    "interval 0 years",
    "3 months -90 days",
)
_SIZES = ("99999999999 days", "2147483648 days", "interval 9223372036854775807 microseconds", "-1 days", "0 days")
_PARTS = (
    "interval 1.5 days",
    "1.5 seconds",
    ".5 seconds",
    "1. seconds",
    "1.1234567891 seconds",
    "1 nanosecond",
    "1 quarter",
)
_WORDS = (
    "",
    " ",
    "true",
    "TRUE",
    " true",
    "yes",
    "1",
    "0",
    "-1",
    "-2",
    "+5",
    "007",
    "2147483648",
    "1e3",
    "1.5",
    "10 ",
    "all",
)
_NAMES = (
    "none",
    "name",
    "NAME",
    "v2",
    "V2",
    "classic",
    "Serializable",
    "WriteSerializable",
    "SnapshotIsolation",
    "foo",
)
TEXTS = (
    *_SPANS,
    *_ODD_SPANS,
    *_SUMS,
    *_SIZES,
    *_PARTS,
    *_WORDS,
    *_NAMES,
    "interval",
    "interval 1 month",
    "interval 24 hours",
)
_ODD = {"delta.dataSkippingStatsColumns": "`id, c"}
"""Texts of keys that read ``yes``."""
_BY_OTHER_RULES = frozenset(
    {
        # Spark parses these with the grammar of its columns; policies take a list of columns.
        "delta.dataSkippingStatsColumns",
        # Delta honours a level that it refuses to set.
        "delta.isolationLevel",
    }
)


def test_delta_takes_exactly_the_texts_that_are_not_called_unreadable(spark: Any) -> None:
    jvm = spark._jvm
    known = jvm.scala.jdk.javaapi.CollectionConverters.asJava(
        jvm.org.apache.spark.sql.delta.DeltaConfigs.getAllConfigs()
    )
    compared, wrong = 0, []
    for config in list(known.values()):
        key = str(config.key())
        if key in _BY_OTHER_RULES or not (why_unreadable(key, "?") or key in _FAILS):
            continue
        for text in TEXTS:
            compared += 1
            if bool(why_unreadable(key, text)) is _is_taken(config, text):
                wrong.append((key, text, why_unreadable(key, text)))
    assert wrong == []
    assert compared > 1_500


def _is_taken(config: Any, text: str) -> bool:
    try:
        config.apply(text)
    except (Py4JJavaError, PySparkException):
        return False
    return True


@pytest.mark.slow
@pytest.mark.parametrize("key", sorted(_FAILS))
def test_the_statements_that_fail_with_a_text_that_delta_cannot_read(spark: Any, tmp_path: Path, key: str) -> None:
    table = tmp_path / "t"
    spark.sql(f"CREATE TABLE delta.`{table}` (id BIGINT, c STRING) USING delta")
    spark.sql(f"INSERT INTO delta.`{table}` VALUES (1, 'a'), (2, 'b')")
    log = table / "_delta_log"
    for checksum in {*log.glob("*.crc"), *log.glob(".*.crc")}:
        checksum.unlink()
    first = (log / f"{0:020}.json").read_text().splitlines()
    metadata = next(json.loads(line)["metaData"] for line in first if '"metaData"' in line)
    changed = {"metaData": {**metadata, "configuration": {key: _ODD.get(key, "yes")}}}
    (log / f"{2:020}.json").write_text(
        json.dumps({"commitInfo": {"operation": "X"}}) + "\n" + json.dumps(changed) + "\n"
    )

    def outcome(sql: str) -> str:
        before = len([*log.glob("0*.json")])
        try:
            spark.sql(re.sub(r"\bT\b", f"delta.`{table}`", sql)).collect()
        except (Py4JJavaError, PySparkException):
            return "committed" if len([*log.glob("0*.json")]) > before else "refused"
        return ""

    committed, refused = _FAILS[key]
    for name, sql in (
        ("SELECT", "SELECT count(*) FROM T"),
        ("INSERT", "INSERT INTO T VALUES (3, 'c')"),
        ("ALTER TABLE", "ALTER TABLE T SET TBLPROPERTIES ('owner.team' = 'x')"),
        ("DELETE", "DELETE FROM T WHERE id = 1"),
        ("VACUUM", "VACUUM T"),
    ):
        assert outcome(sql) == ("committed" if name in committed else "refused" if name in refused else ""), name
