"""For any table and any policies A and B: after an apply the plan is empty, and A → B → A gives A's settings back."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tablectl
from tablectl.delta.dialects import OPEN_SOURCE
from tablectl.delta.properties import find_known
from tablectl.model.table import LiveTable
from tests.builders import read_path

pytestmark = pytest.mark.spark

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12) | st.sampled_from(
    ["it's", "back\\slash", "line\nbreak", "${env:HOME}", "\x1b[31m", "\u202e", "007", "\\u0041"]
)
PROPERTIES = st.fixed_dictionaries(
    {},
    optional={
        "delta.checkpointRetentionDuration": st.sampled_from(["interval 7 days", "1 week", "interval 60 days", None]),
        "delta.appendOnly": st.sampled_from(["true", "FALSE", None]),
        "delta.checkpointPolicy": st.sampled_from(["v2", "classic"]),
        "delta.enableChangeDataFeed": st.sampled_from(["true", "false"]),
        "delta.dataSkippingNumIndexedCols": st.sampled_from(["2", "-1", None]),
        "owner.note": TEXTS | st.none(),
        "a 'b`c": TEXTS | st.none(),
    },
)
COLUMNS = st.lists(st.sampled_from(["id", "day", "`dotted.name`", "s.inner"]), unique=True, min_size=1, max_size=3)
POLICIES = st.fixed_dictionaries(
    {"properties": PROPERTIES},
    optional={
        "isolation": st.sampled_from(["Serializable", "default"]),
        "deletion_vectors": st.sampled_from(["enabled", "disabled", "purged"]),
        "clustering": COLUMNS | st.just("none"),
    },
)
_numbers = itertools.count()


def yaml_of(table: Path, policy: Mapping[str, Any]) -> str:
    import yaml

    return yaml.safe_dump({"version": 1, "tables": {f"delta.`{table}`": dict(policy)}}, allow_unicode=False)


def bring(spark: Any, root: Path, table: Path, policy: Mapping[str, Any]) -> LiveTable:
    """Apply a policy; give the table as it is then."""
    (root / "policy.yaml").write_text(yaml_of(table, policy), encoding="utf-8")
    report = tablectl.apply(root / "policy.yaml", directory=root, spark=spark)
    assert report.exit_code == 0, report
    after = tablectl.plan(root / "policy.yaml", directory=root)
    assert after.tables == (), after
    assert after.failures == ()
    return read_path(str(table), counts=True)


def meaning(key: str, text: str | None) -> str | None:
    known = find_known(key, OPEN_SOURCE.name)
    if known is None:
        return text
    return (known.default if text is None else text.lower()) or None


def managed(live: LiveTable, policy: Mapping[str, Any]) -> dict[str, object]:
    """What a policy manages, as the table has it: an unset property counts as its default, in any spelling."""
    found: dict[str, object] = {key: meaning(key, live.property(key)) for key in policy["properties"]}
    if "isolation" in policy:
        found["isolation"] = live.property("delta.isolationLevel")
    if "clustering" in policy:
        found["clustering"] = live.clustering or ()
    if "deletion_vectors" in policy:
        found["vectors"] = (live.property("delta.enableDeletionVectors") or "false").lower()
    return found


@settings(max_examples=5, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(
    start=st.fixed_dictionaries(
        {},
        optional={
            "delta.enableDeletionVectors": st.sampled_from(["true", "false"]),
            "delta.checkpointRetentionDuration": st.just("interval 7 days"),
            "owner.note": st.just("before"),
        },
    ),
    clustered=st.booleans(),
    first=POLICIES,
    second=POLICIES,
)
def test_apply_then_plan_is_empty_and_back_again(
    spark: Any,
    tmp_path_factory: pytest.TempPathFactory,
    start: Mapping[str, str],
    clustered: bool,
    first: Any,
    second: Any,
) -> None:
    root = tmp_path_factory.mktemp("converge")
    table = root / f"t{next(_numbers)}"
    properties = ", ".join(f"'{key}' = '{value}'" for key, value in (*start.items(), ("kept", "as it is")))
    cluster = "CLUSTER BY (id)" if clustered else ""
    spark.sql(f"""CREATE TABLE delta.`{table}` (id BIGINT, day DATE, `dotted.name` STRING, s STRUCT<inner: INT>)
        USING delta {cluster} TBLPROPERTIES ({properties})""")
    spark.sql(
        f"INSERT INTO delta.`{table}` SELECT id, current_date(), 'x', named_struct('inner', 1) FROM range(0, 20, 1, 1)"
    )
    if start.get("delta.enableDeletionVectors") == "true":
        spark.sql(f"DELETE FROM delta.`{table}` WHERE id = 3")
    # The statistics of the clustering columns are another test's matter.
    clusters = any("clustering" in policy for policy in (first, second))
    for policy in (first, second):
        if clusters:
            policy["properties"].pop("delta.dataSkippingNumIndexedCols", None)

    once = bring(spark, root, table, first)
    bring(spark, root, table, second)
    again = bring(spark, root, table, first)

    assert managed(again, first) == managed(once, first)
    assert again.property("kept") == "as it is"
    assert spark.sql(f"SELECT count(*) FROM delta.`{table}`").first()[0] in {19, 20}
