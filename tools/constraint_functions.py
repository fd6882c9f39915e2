"""Writes ``tablectl/delta/constraint_functions.json``: the built-in functions of Spark that an expression of a CHECK
constraint may call. Their result depends on the arguments alone, and they touch nothing outside.

``python -m tools.constraint_functions`` starts Spark, reads its ``FunctionRegistry`` and writes the file. What Spark
marks as not deterministic is left out, whole groups are, and so are the names below.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent.parent / "tablectl" / "delta" / "constraint_functions.json"
GROUPS = frozenset({"agg_funcs", "window_funcs", "generator_funcs", "avro_funcs", "protobuf_funcs"})
"""Of several rows; and those that read a schema from a file or a registry."""
LEFT_OUT = frozenset(
    # The time of the statement.
    {"curdate", "current_date", "current_time", "current_timestamp", "localtimestamp", "now"}
    # The session, the engine, and who asks.
    | {"current_catalog", "current_database", "current_path", "current_schema", "current_timezone", "current_user"}
    | {"session_user", "user", "version"}
    # Another result each time, code of the engine, errors of the caller's own.
    | {"aes_encrypt", "input_file_block_length", "input_file_block_start", "input_file_name", "java_method"}
    | {"monotonically_increasing_id", "rand", "randn", "random", "randstr", "raise_error", "reflect", "shuffle"}
    | {"spark_partition_id", "try_reflect", "uniform", "uuid"}
    # Of several rows, in groups of others.
    | {"json_tuple", "schema_of_variant_agg", "session_window", "vector_avg", "vector_sum", "window", "window_time"}
)


def taken(functions: Iterable[tuple[str, str, bool]]) -> list[str]:
    """The names that are taken, sorted, of names with group and whether Spark marks them as not deterministic. Raises
    ``ValueError`` for one that Spark marks and ``LEFT_OUT`` lacks.
    """
    rows = sorted(functions)
    marked = [name for name, group, changing in rows if changing and group not in GROUPS and name not in LEFT_OUT]
    if marked:
        raise ValueError(f"not deterministic, and not left out: {', '.join(marked)}")
    return [name for name, group, _ in rows if group not in GROUPS and name not in LEFT_OUT and name.isidentifier()]


def functions_of(spark: Any) -> list[tuple[str, str, bool]]:
    """The built-in functions of a session: name, group, and whether the class is ``Nondeterministic``."""
    jvm = spark._jvm  # noqa: SLF001  # PySpark has no other way to the registry
    registry = jvm.org.apache.spark.sql.catalyst.analysis.FunctionRegistry.builtin()
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    changing = loader.loadClass("org.apache.spark.sql.catalyst.expressions.Nondeterministic")
    made = []
    for name in jvm.scala.jdk.javaapi.CollectionConverters.asJava(registry.listFunction()):
        info = registry.lookupFunction(name).get()
        marked = changing.isAssignableFrom(loader.loadClass(info.getClassName()))
        made.append((str(name.funcName()), str(info.getGroup()), bool(marked)))
    return made


def content(version: str, names: list[str]) -> str:
    """The file."""
    return json.dumps({"spark": version, "functions": names}, indent=1) + "\n"


def main() -> None:
    """Write the file."""
    from pyspark.sql import SparkSession  # the tests of this module need no Spark

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    FILE.write_text(content(spark.version, taken(functions_of(spark))), encoding="utf-8")
    spark.stop()


if __name__ == "__main__":
    main()
