from __future__ import annotations

import json
from pathlib import Path

import pytest

from chaos.features import Feature
from chaos.scenario import FAULTS, KINDS, MEETS, NOT_DRAWN, TEMPLATES, TIMES, allowed, choose, copy_table, policy_text
from tablectl.model.errors import TablectlError
from tablectl.policies.repository import load_specs
from tests.chaos.logs import HandMade


def test_a_seed_gives_the_same_round_again_and_another_fault_the_same_tables() -> None:
    assert choose(7) == choose(7)
    assert choose(7, "kill").tables == choose(7, "pause").tables == choose(7).tables
    assert choose(7, "kill").fault == "kill"


def test_a_hundred_seeds_cover_every_fault_kind_and_template() -> None:
    rounds = [choose(seed) for seed in range(100)]
    assert {each.fault for each in rounds} == set(FAULTS)
    assert {table.kind for each in rounds for table in each.tables} == set(KINDS)
    assert {table.template for each in rounds for table in each.tables} == set(TEMPLATES)


def test_rounds_draw_every_feature_that_is_not_left_out_for_a_reason() -> None:
    assert {*MEETS, *NOT_DRAWN} == set(Feature)
    assert {feature for seed in range(100) for feature in choose(seed).features} == set(MEETS)


def test_a_fault_of_the_store_has_its_records_in_the_bucket() -> None:
    assert all(choose(seed, "store").in_bucket for seed in range(20))


def test_a_round_has_as_many_faults_as_its_kind_may_have() -> None:
    for fault in FAULTS:
        counts = {len(choose(seed, fault).strikes) for seed in range(100)}
        assert (min(counts), max(counts)) == TIMES[fault]


@pytest.mark.parametrize("seed", range(30))
def test_every_policy_is_valid(tmp_path: Path, seed: int) -> None:
    path = tmp_path / "policies" / "all.yaml"
    path.parent.mkdir()
    wanted = {tmp_path / f"t{number}": each.policy for number, each in enumerate(choose(seed).tables)}
    path.write_text(policy_text(wanted), encoding="utf-8")
    try:
        load_specs([path], variables={}, environ={})
    except TablectlError as error:
        pytest.fail(str(error))


def test_a_copied_table_has_an_id_of_its_own(tmp_path: Path) -> None:
    made = HandMade(tmp_path / "template")
    made.commit(made.metadata())
    (tmp_path / "template" / "_delta_log" / ".00000000000000000000.json.crc").write_bytes(b"stale")
    copy_table(tmp_path / "template", tmp_path / "t0")
    files = sorted(path.name for path in (tmp_path / "t0" / "_delta_log").iterdir())
    assert files == ["00000000000000000000.json"]
    lines = (tmp_path / "t0" / "_delta_log" / files[0]).read_text(encoding="utf-8").splitlines()
    assert next(json.loads(line)["metaData"]["id"] for line in lines if "metaData" in line) != "one"


def test_a_key_is_allowed_by_its_name_or_by_its_beginning() -> None:
    keys = ("property.delta.columnMapping.*", "partitioning")
    assert allowed(keys, "property.delta.columnMapping.mode")
    assert allowed(keys, "partitioning")
    assert not allowed(keys, "partitioning.more")
    assert not allowed(keys, "property.delta.appendOnly")


def test_an_endpoint_does_not_meet_a_rewrite_of_spark() -> None:
    drawn = [choose(seed) for seed in range(600)]
    with_endpoint = [each for each in drawn if Feature.ENDPOINT in each.features]
    assert len(with_endpoint) > 20
    for each in with_endpoint:
        assert "partition rewrite" not in {table.kind for table in each.tables}
