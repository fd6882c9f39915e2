"""What a run changed, from the versions of a table before and after each of its commits."""

from __future__ import annotations

from itertools import pairwise

from tablectl.attributes.policy import Policy
from tablectl.delta import keys
from tablectl.delta.protocol import Protocol
from tablectl.planning.undo import changes_between, combined, table_undo
from tablectl.policies.declared_tables import TableSpec
from tablectl.policies.yaml_nodes import SourceFile
from tests.builders import live_table


def test_a_statement_of_several_commits_is_undone_to_what_was_before_the_first() -> None:
    compatible = {keys.iceberg_compat(2): "true"}
    states = [{}, compatible, {**compatible, keys.UNIFORM_FORMATS: "iceberg"}]
    tables = [live_table(properties=each) for each in states]
    (change,) = combined(changes_between(one, other, "oss") for one, other in pairwise(tables))
    assert (change.attribute, change.before, change.after) == ("uniform", "none", "iceberg_v2")


def test_a_feature_that_a_number_implies_stays_and_one_that_a_list_only_spells_out_was_there() -> None:
    def stays(before: Protocol, now: Protocol) -> tuple[str, ...]:
        tables = [live_table(protocol=each) for each in (before, now)]
        spec = TableSpec(tables[0].name, Policy(), None, (), {}, SourceFile("p.yaml", 1, 1))
        return table_undo(spec, (), (), *tables).stays

    assert stays(Protocol(1, 4), Protocol(2, 5)) == ("columnMapping",)
    assert stays(Protocol(1, 2), Protocol(1, 2).raised(frozenset({"rowTracking"}))) == ("rowTracking",)
