"""The defects that ``python -m chaos sabotage`` puts in, and how it tells that one was noticed."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.defects import DEFECTS, Defect
from chaos.sabotage import Noticed, put_in, report
from chaos.server import ROOT


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda each: each.what)
def test_every_defect_still_has_its_place_in_the_code(defect: Defect) -> None:
    text = (ROOT / defect.file).read_text(encoding="utf-8")
    assert text.count(defect.line) == 1
    compile(text.replace(defect.line, defect.becomes), defect.file, "exec")


def test_there_are_at_least_forty_and_no_two_are_equal() -> None:
    assert len({(each.file, each.line, each.becomes) for each in DEFECTS}) == len(DEFECTS) >= 40


def test_a_defect_without_its_place_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\nx = 1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="2 places"):
        put_in(Defect("x", "a.py", "x = 1", "x = 2", ()), tmp_path)


def test_the_report_counts_what_nothing_noticed(capsys: pytest.CaptureFixture[str]) -> None:
    assert report([Noticed(DEFECTS[0], "tests/a.py::test_b"), Noticed(DEFECTS[1], "")]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{DEFECTS[0].what}: tests/a.py::test_b",
        f"{DEFECTS[1].what}: NOT NOTICED",
        "1 of 2 defects were noticed",
    ]
