"""What Spark and Delta say, cut down to what helps. The texts are those of real failures."""

from __future__ import annotations

import pytest

from tablectl.engine.errors import conflict_in, engine_error

_CLASSIC = """An error occurred while calling o42.sql.
: org.apache.spark.sql.delta.DeltaAnalysisException: [DELTA_UNKNOWN_CONFIGURATION] Unknown configuration was \
specified: delta.someday
To disable this check, set spark.databricks.delta.allowArbitraryProperties.enabled=true in the session.
\tat org.apache.spark.sql.delta.DeltaErrorsBase.unknownConfigurationKeyException(DeltaErrors.scala:1206)
\tat java.base/java.lang.Thread.run(Thread.java:840)
Caused by: java.lang.RuntimeException: below
"""
_CONFLICT = """[DELTA_METADATA_CHANGED] MetadataChangedException: The metadata of the Delta table has been \
changed by a concurrent update. Please try the operation again.
Conflicting commit: {"timestamp":1,"operation":"SET TBLPROPERTIES"}
Refer to https://docs.delta.io/latest/concurrency-control.html for more details.

JVM stacktrace:
io.delta.exceptions.MetadataChangedException
\tat org.apache.spark.sql.delta.DeltaErrorsBase.metadataChangedException(DeltaErrors.scala:2386)
"""


class MetadataChangedException(Exception):  # noqa: N818 - Delta's name
    """As ``delta.exceptions`` defines it."""


class ConcurrentAppendException(Exception):  # noqa: N818 - Delta's name
    """As ``delta.exceptions`` defines it."""


class _SparkError(Exception):
    def __init__(self, text: str, condition: str | None) -> None:
        super().__init__(text)
        self._condition = condition

    def getCondition(self) -> str | None:  # noqa: N802 - pyspark's name
        return self._condition


def test_the_engines_own_condition_comes_first() -> None:
    error = engine_error(_SparkError("[PARSE_SYNTAX_ERROR] near x", "DELTA_UNKNOWN_CONFIGURATION"))
    assert error.condition == "DELTA_UNKNOWN_CONFIGURATION"
    assert "does not know the property" in error.hint


@pytest.mark.parametrize("condition", [None, ""])
def test_without_one_the_class_of_the_exception_tells(condition: str | None) -> None:
    assert engine_error(_SparkError("[DELTA_X] no", condition)).condition == "DELTA_X"
    assert engine_error(MetadataChangedException("changed")).condition == "DELTA_METADATA_CHANGED"
    assert engine_error(ConcurrentAppendException("[DELTA_OTHER] x")).condition == "DELTA_CONCURRENT_APPEND"


def test_a_failure_of_classic_spark_loses_its_wrapping_and_its_stack() -> None:
    error = engine_error(Exception(_CLASSIC))
    assert error.condition == "DELTA_UNKNOWN_CONFIGURATION"
    assert error.message == (
        "[DELTA_UNKNOWN_CONFIGURATION] Unknown configuration was specified: delta.someday To disable this check, set "
        "spark.databricks.delta.allowArbitraryProperties.enabled=true in the session."
    )


def test_a_conflict_names_the_winner_and_says_what_to_do() -> None:
    error = engine_error(Exception(_CONFLICT))
    assert error.condition == "DELTA_METADATA_CHANGED"
    assert "Conflicting commit:" in error.message
    assert "stacktrace" not in error.message
    assert "run the command again" in error.hint


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("[DELTA_FEATURE_DROP.NONREMOVABLE] x", "DELTA_FEATURE_DROP.NONREMOVABLE"),
        ("column [id] is gone", ""),
        ("nothing in brackets", ""),
        ("", ""),
    ],
)
def test_conditions_in_the_text(text: str, condition: str) -> None:
    assert engine_error(Exception(text)).condition == condition


def test_an_older_delta_leaves_the_class_of_java_alone() -> None:
    text = "An error occurred while calling o7.sql.\n: io.delta.exceptions.ConcurrentTransactionException: "
    text += "A conflicting metadata domain delta.clustering is added.\n\tat org.apache.spark.sql.delta.X(X.scala:1)"
    assert conflict_in(RuntimeError(text)) == "DELTA_CONCURRENT_TRANSACTION"
    assert conflict_in(RuntimeError(": io.delta.exceptions.SomeOtherException: no")) == ""


def test_a_message_is_bounded_and_never_empty() -> None:
    assert len(engine_error(Exception("x" * 100_000)).message) == 600
    assert engine_error(Exception("\n\n")).message == "the engine gave no reason"
    assert engine_error(Exception("JVM stacktrace:\nx")).message == "the engine gave no reason"


class CommitFailedError(Exception):
    """As ``deltalake.exceptions`` defines it."""


@pytest.mark.parametrize(
    ("text", "condition"),
    [
        ("Failed to commit transaction: Metadata changed since last commit.", "DELTA_METADATA_CHANGED"),
        ("Failed to commit transaction: Protocol changed since last commit: required …", "DELTA_PROTOCOL_CHANGED"),
        (
            "Failed to commit transaction: … a concurrent transactions added new data.\nHelp: …",
            "DELTA_CONCURRENT_APPEND",
        ),
        ("Failed to commit transaction: 15", "DELTA_CONCURRENT_WRITE"),
        ("The transaction includes Remove action with data change but Delta table is append-only", ""),
    ],
)
def test_deltalake_tells_a_conflict_by_its_words(text: str, condition: str) -> None:
    assert engine_error(CommitFailedError(text)).condition == condition
    assert conflict_in(CommitFailedError(text)) == condition


def test_a_conflict_may_have_a_part_of_its_own() -> None:
    error = _SparkError("files were added", "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT")
    assert conflict_in(error) == "DELTA_CONCURRENT_APPEND.WITH_PARTITION_HINT"
    assert "added files" in engine_error(error).hint


def test_a_failed_stream_tells_the_conflict_of_its_batch() -> None:
    text = "[STREAM_FAILED] Query [id = 1] terminated with exception: [DELTA_METADATA_CHANGED] MetadataChangedException"
    assert conflict_in(_SparkError(text, "STREAM_FAILED")) == "DELTA_METADATA_CHANGED"
    assert conflict_in(_SparkError("[STREAM_FAILED] Query [id = 1] out of memory", "STREAM_FAILED")) == ""


@pytest.mark.parametrize("error", [ValueError("no"), _SparkError("[PARSE_SYNTAX_ERROR] near x", None)])
def test_any_other_error_is_not_a_conflict(error: Exception) -> None:
    assert conflict_in(error) == ""


def test_the_words_of_a_thrift_server_are_left_out() -> None:
    """Of ``HiveThriftServerErrors.scala``: the class in Java twice, the condition twice."""
    said = engine_error(
        RuntimeError(
            "org.apache.hive.service.cli.HiveSQLException: Error running query: [DELTA_UNKNOWN_CONFIGURATION] "
            "org.apache.spark.sql.delta.DeltaUnsupportedOperationException: [DELTA_UNKNOWN_CONFIGURATION] Unknown "
            "configuration was specified: delta.bogus\n\tat org.apache.spark.sql.hive.thriftserver.HiveThriftServer"
        )
    )
    assert said.message == "[DELTA_UNKNOWN_CONFIGURATION] Unknown configuration was specified: delta.bogus"
    assert (said.condition, said.unanswered) == ("DELTA_UNKNOWN_CONFIGURATION", False)
    assert engine_error(RuntimeError("x: [_LEGACY_ERROR_TEMP_1126] y")).condition == "_LEGACY_ERROR_TEMP_1126"
