"""Each kind of lake gets the advice that an engineer would sign, and none that does harm."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.insight.advice.kinds import KINDS, Kind


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_an_engineer_signs_the_advice(tmp_path: Path, kind: Kind) -> None:
    found = kind.advice(tmp_path)
    assert kind.verdict(found) == "signed", found
