"""Every foreign action at every step of a run, on the fake lake: whatever a stranger does between two of our steps, no
row and no live file is lost, nothing is changed that was not declared, and outcome and exit code are true.

A new action is a line in `chaos/strangers.py` and a function in `tests/strangers/actions.py`. A new step joins by
itself. What is not protected is in `LIMITS`, each with its place in docs/promises.md.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from chaos.features import Feature
from chaos.strangers import Stranger
from tablectl.applying import lease_wait as lease_module
from tablectl.applying import shared_window as together_module
from tablectl.leases.lease import Lease
from tablectl.planning import derive_statements
from tests.pairs.features import ARRANGE
from tests.pairs.scene import StepRenewer
from tests.strangers.actions import ACT
from tests.strangers.stage import Stage

JOURNEYS: dict[str, tuple[Feature, ...]] = {
    "settings": (),
    "settings with hooks": (Feature.OWED_HOOKS,),
    "two tables in one window": (Feature.TOGETHER,),
    "rewrite": (Feature.REWRITE,),
    "copy": (Feature.COPY,),
    "constraint": (Feature.CONSTRAINT,),
    "dropped feature": (Feature.DROPPED,),
    "upkeep": (Feature.UPKEEP,),
    "undo": (Feature.UNDO,),
    "endpoint": (Feature.ENDPOINT,),
}
TIME = frozenset({Stranger.DAY, Stranger.WEEK, Stranger.MONTH})
OF_THE_RUN = TIME | {Stranger.SECOND_APPLY, Stranger.BREAK, Stranger.CLEAN, Stranger.STOP, Stranger.KILL}
"""They change no table. The others do, and may do what a statement of ours is about to do."""


@dataclass(frozen=True)
class Limit:
    """What is not protected."""

    strangers: frozenset[Stranger]
    steps: tuple[str, ...]
    """How the names of the steps begin."""
    says: str
    """A part of what the watch says."""
    why: str


LIMITS = (
    Limit(
        TIME | {Stranger.BREAK},
        ("before ", "between ", "note"),
        "landed in the middle of a guarded write",
        "A run that is suspended past its lease after it has sent a statement, or whose lease is broken by force then.",
    ),
    Limit(
        TIME | {Stranger.BREAK},
        ("hook after", "progress"),
        "the last record is",
        "A run that loses its lease while an after-hook runs: the hook has run, and the next apply runs it once more.",
    ),
    Limit(
        frozenset(Stranger) - OF_THE_RUN,
        ("",),
        "changes nothing: a statement was applied twice",
        "Another client made the same change in the moment between our look and our statement.",
    ),
    Limit(
        frozenset(Stranger) - OF_THE_RUN,
        ("",),
        "writers without a guard may fail now",
        "Upkeep waits: the stranger is a writer without a guard who was at work a moment ago.",
    ),
    Limit(
        frozenset(Stranger) - OF_THE_RUN,
        ("released", "done"),
        "",
        "The table's part of the run is over.",
    ),
)


def play(
    journey: str, monkeypatch: pytest.MonkeyPatch, stranger: Stranger | None = None, at: tuple[str, int] = ("", 0)
) -> Stage:
    random.seed(7)  # the pauses of retries have jitter
    stage = Stage(frozenset(JOURNEYS[journey]), stranger=stranger, at=at)

    def stepped(lease: Lease, may_renew: Callable[[Lease], bool] = lambda _lease: True) -> StepRenewer:
        return StepRenewer(stage, lease, may_renew)

    monkeypatch.setattr(lease_module, "Renewer", stepped)
    monkeypatch.setattr(together_module, "_LOOK_EVERY", 0.01)
    monkeypatch.setattr(derive_statements, "stops_of", lambda *_: ("a stop",))
    for feature in stage.features:
        ARRANGE[feature](stage)
    stage.play()
    return stage


def broken(journey: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch, *, every: int = 1) -> list[str]:
    """What one stranger breaks at the steps of a journey, or at every so many of them."""
    found, first = [], [*Stranger].index(stranger) % every
    for step in play(journey, monkeypatch).cells(stranger)[first::every]:
        limits = [each.says for each in LIMITS if stranger in each.strangers and step[0].startswith(each.steps)]
        at = f"{stranger.value}, at {step[0]!r} (time {step[1]})"
        said = play(journey, monkeypatch, stranger, step).broken
        found += [f"{at}: {each}" for each in said if not any(limit in each for limit in limits)]
    return found


def test_every_stranger_acts() -> None:
    assert set(ACT) == set(Stranger)


def test_a_story_without_a_stranger_keeps_every_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    assert [play(each, monkeypatch).broken for each in JOURNEYS] == [[]] * len(JOURNEYS)


def name_of(stranger: Stranger) -> str:
    return stranger.name.lower()


@pytest.mark.parametrize("stranger", Stranger, ids=name_of)
@pytest.mark.parametrize("journey", JOURNEYS)
def test_a_step_of_a_run_is_not_open_to_a_stranger(
    journey: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every fifth step, another fifth for each stranger."""
    assert not broken(journey, stranger, monkeypatch, every=5)


@pytest.mark.slow
@pytest.mark.parametrize("stranger", Stranger, ids=name_of)
@pytest.mark.parametrize("journey", JOURNEYS)
def test_no_step_of_a_run_is_open_to_a_stranger(
    journey: str, stranger: Stranger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not broken(journey, stranger, monkeypatch)
