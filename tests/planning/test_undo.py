"""What a run changed, from the versions of a table before and after each of its commits."""

from __future__ import annotations

from itertools import pairwise

from tablectl.delta import keys
from tablectl.planning.undo import changes_between, combined
from tests.builders import live_table


def test_a_statement_of_several_commits_is_undone_to_what_was_before_the_first() -> None:
    compatible = {keys.iceberg_compat(2): "true"}
    states = [{}, compatible, {**compatible, keys.UNIFORM_FORMATS: "iceberg"}]
    tables = [live_table(properties=each) for each in states]
    (change,) = combined(changes_between(one, other, "oss") for one, other in pairwise(tables))
    assert (change.attribute, change.before, change.after) == ("uniform", "none", "iceberg_v2")
