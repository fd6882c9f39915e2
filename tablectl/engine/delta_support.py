"""Whether a server understands Delta's SQL."""

from __future__ import annotations

from tablectl.delta.dialects import dialect_of
from tablectl.engine.port import Engine
from tablectl.model.errors import EngineError

_PROBE = "DESCRIBE HISTORY delta.`/tablectl/no/such/table`"
"""Only the parser of Delta's extension knows this statement. With it, the answer is that there is no such table."""
_WITHOUT_DELTA = frozenset({"PARSE_SYNTAX_ERROR", "DELTA_CONFIGURE_SPARK_SESSION_WITH_EXTENSION_AND_CATALOG"})
_EXTENSION = "io.delta.sql.DeltaSparkSessionExtension"


def check_delta(engine: Engine) -> None:
    """Raise ``EngineError`` if Delta's extension is missing in an engine, or if it does not answer. An engine of a
    dialect with Delta built in is not asked.
    """
    if dialect_of(engine.dialect).runtime:
        return
    try:
        engine.row(_PROBE)
    except EngineError as error:
        if error.condition in _WITHOUT_DELTA:
            message = "it has no Delta extension, so it cannot run the statements"
            raise EngineError(message, f"start it with `spark.sql.extensions={_EXTENSION}`") from error
        if error.unanswered:
            raise
