"""What a session of an engine inherits from the session that it was made from, without Spark."""

from __future__ import annotations

from typing import Any

import pytest

from tablectl.engine.spark import SessionFacts, SparkEngine, _own
from tablectl.engine.sql_catalog import STAMP_KEY


class Conf:
    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings

    def get(self, key: str, default: Any = None) -> Any:
        return self.settings.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.settings[key] = value

    def unset(self, key: str) -> None:
        del self.settings[key]


class Clone:
    """A session with the settings of the one that it was cloned from."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.conf = Conf(settings)


@pytest.mark.parametrize(
    "key",
    [
        "spark.databricks.delta.write.txnAppId",
        "spark.databricks.delta.write.txnVersion",
        "spark.databricks.delta.write.txnVersion.autoReset.enabled",
        "spark.databricks.delta.schema.autoMerge.enabled",
        "spark.sql.sources.partitionOverwriteMode",
    ],
)
def test_a_setting_of_the_user_that_changes_what_a_write_does_is_not_inherited(key: str) -> None:
    clone = Clone({key: "x", "spark.sql.session.timeZone": "UTC"})
    _own(SparkEngine(clone, "oss", SessionFacts(shared=True)), clone, "stamp")
    assert key not in clone.conf.settings
    assert clone.conf.settings["spark.sql.session.timeZone"] == "UTC"
    assert clone.conf.settings[STAMP_KEY] == "stamp"
