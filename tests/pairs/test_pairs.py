"""Features two by two: whatever meets in one run, the promises of the README hold (`tests/pairs/scene.py`).

A new feature is a line in `chaos/features.py` and a function in `tests/pairs/features.py`; its pairs follow.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from itertools import combinations

import pytest

from chaos.features import Feature
from tablectl.applying import lease_wait as lease_module
from tablectl.applying import shared_window as together_module
from tablectl.leases.lease import Lease
from tablectl.planning import derive_statements
from tests.pairs.features import ARRANGE
from tests.pairs.scene import Scene, StepRenewer

ONCE = frozenset({Feature.SIGNAL, Feature.FAILING_STORE})
"""What happens at one moment of a run: each moment is a case of its own."""
MOMENTS = ("waits", "sends", "landed")
NEVER = {
    frozenset({Feature.REMOTES, Feature.ENDPOINT}): "the configuration has either several servers or an endpoint",
    frozenset({Feature.COPY, Feature.REWRITE}): "a policy has one `rewrite`",
    frozenset({Feature.COPY, Feature.TOGETHER}): "refused (tests/applying/test_copy_beside.py)",
    frozenset({Feature.COPY, Feature.REMOTES}): "refused: a copy is committed in the driver of the apply",
    frozenset({Feature.COPY, Feature.ENDPOINT}): "refused, as above",
}
"""Pairs that cannot meet, and why."""


def cases() -> list[tuple[tuple[Feature, ...], str]]:
    """Each feature alone and each pair, at each moment."""
    alone = [(each,) for each in Feature]
    pairs = [pair for pair in combinations(Feature, 2) if frozenset(pair) not in NEVER]
    return [
        (features, moment) for features in [*alone, *pairs] for moment in (MOMENTS if ONCE & {*features} else ("",))
    ]


def name_of(case: object) -> str:
    return "-and-".join(each.value.replace(" ", "_") for each in case) if isinstance(case, tuple) else str(case)


def test_every_feature_is_arranged() -> None:
    assert set(ARRANGE) == set(Feature)


@pytest.mark.parametrize(("features", "moment"), cases(), ids=name_of)
def test_two_features_that_meet_keep_every_promise(
    features: tuple[Feature, ...], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random.seed(7)  # the pauses of retries have jitter
    scene = Scene(frozenset(features), moment or "sends")

    def stepped(lease: Lease, may_renew: Callable[[Lease], bool] = lambda _lease: True) -> StepRenewer:
        return StepRenewer(scene, lease, may_renew)

    monkeypatch.setattr(lease_module, "Renewer", stepped)
    monkeypatch.setattr(together_module, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(derive_statements, "stops_of", lambda *_: ("a stop",))
    for feature in features:
        ARRANGE[feature](scene)
    scene.play()
    assert not scene.broken, "\n".join(scene.broken)
