"""Features two by two, and a sample three by three: whatever meets in one run, the promises of the README hold
(`tests/pairs/scene.py`).

A new feature is a line in `chaos/features.py` and a function in `tests/pairs/features.py`; its pairs follow.
"""

from __future__ import annotations

import os
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
    frozenset({Feature.COPY, Feature.REWRITE}): "a policy has one `rewrite`",
    frozenset({Feature.COPY, Feature.TOGETHER}): "refused (tests/applying/test_copy_beside.py)",
    frozenset({Feature.COPY, Feature.ENDPOINT}): "refused: a copy is committed in the driver of the apply",
}
"""Pairs that cannot meet, and why."""


BUSY = {
    frozenset({Feature.CANARY, Feature.QUIET, Feature.ENDPOINT}),
    frozenset({Feature.OWED_HOOKS, Feature.TOGETHER, Feature.QUIET}),
}
"""Here the first run takes hours. The writers of the scene write so much meanwhile that no hour counts as quiet."""

Case = tuple[tuple[Feature, ...], str]


def cases(size: int) -> list[Case]:
    """Each set of so many features that can meet, at each moment."""
    sets = [each for each in combinations(Feature, size) if not any(never <= {*each} for never in (*NEVER, *BUSY))]
    return [(features, moment) for features in sets for moment in (MOMENTS if ONCE & {*features} else ("",))]


SAMPLE = random.Random(int(os.environ.get("TRIPLES_SEED", "1"))).sample(cases(3), 200)
"""Cases of three features. All 2,200 take a quarter of an hour; another seed draws others."""


def name_of(case: object) -> str:
    return "-and-".join(each.value.replace(" ", "_") for each in case) if isinstance(case, tuple) else str(case)


def test_every_feature_is_arranged() -> None:
    assert set(ARRANGE) == set(Feature)


@pytest.mark.parametrize(("features", "moment"), [*cases(1), *cases(2)], ids=name_of)
def test_two_features_that_meet_keep_every_promise(
    features: tuple[Feature, ...], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(features, moment, monkeypatch)


@pytest.mark.slow
@pytest.mark.parametrize(("features", "moment"), SAMPLE, ids=name_of)
def test_three_features_that_meet_keep_every_promise(
    features: tuple[Feature, ...], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(features, moment, monkeypatch)


def play(features: tuple[Feature, ...], moment: str, monkeypatch: pytest.MonkeyPatch) -> None:
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
