"""The list of the functions that constraints may call."""

from __future__ import annotations

import json

import pytest

from tools.constraint_functions import FILE, LEFT_OUT, content, taken


def test_the_file_is_sorted_and_names_no_function_that_is_left_out() -> None:
    data = json.loads(FILE.read_text(encoding="utf-8"))
    names = data["functions"]
    assert FILE.read_text(encoding="utf-8") == content(data["spark"], names)
    assert names == sorted(names)
    assert LEFT_OUT.isdisjoint(names)
    assert {"abs", "coalesce", "date_trunc", "forall", "length", "regexp_like", "substring", "to_date"} <= {*names}
    assert {"sum", "explode", "row_number", "from_avro", "current_user", "uuid"}.isdisjoint(names)


def test_a_function_that_spark_marks_and_that_is_not_left_out_stops_the_tool() -> None:
    with pytest.raises(ValueError, match="not left out: dice"):
        taken([("abs", "math_funcs", False), ("dice", "math_funcs", True)])
    assert taken([("<<", "bitwise_funcs", False), ("sum", "agg_funcs", True), ("abs", "math_funcs", False)]) == ["abs"]
