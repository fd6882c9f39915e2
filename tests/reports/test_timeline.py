"""When what happened."""

from __future__ import annotations

from xml.etree.ElementTree import fromstring

from tablectl.model.plan import Phase
from tablectl.model.run_report import CommitRun, GateRun, RunOutcome, StatementRun, TableRun
from tablectl.reports.run_document import timeline
from tools.timeline_picture import picture

START = 1_795_000_000_000


def commit(version: int, after: int) -> CommitRun:
    return CommitRun(version=version, operation="WRITE", user="ann", at=START + after)


def run(**facts: object) -> TableRun:
    gate = GateRun(gate="closed", since=START, until=START + 1000)
    statement = StatementRun(id="closed-set", sql="SET", phase=Phase.CLOSED, milliseconds=500, at=START + 250)
    plain: dict[str, object] = {"gates": (gate,), "statements": (statement,), "commits": (commit(3, 700),), **facts}
    return TableRun(name="a", outcome=RunOutcome.APPLIED, **plain)  # type: ignore[arg-type]


def test_places_are_shares_of_the_width() -> None:
    line = timeline(run())
    assert (line.start, line.end, line.length) == (
        "2026-11-18 11:06:40.000 UTC",
        "2026-11-18 11:06:41.000 UTC",
        "1.0 s",
    )
    assert [(each.left, each.width, each.kind) for each in line.gates] == [(5.0, 90.0, "closed")]
    assert [(each.left, each.width) for each in line.statements] == [(27.5, 45.0)]
    assert [(each.left, each.label, each.ours) for each in line.marks] == [(68.0, "3", True)]


def test_others_before_and_after_stand_at_the_edges() -> None:
    line = timeline(run(foreign=(commit(2, -86_400_000), commit(4, 86_400_000))))
    assert [(each.left, each.label) for each in line.marks if not each.ours] == [(5.0, "2"), (95.0, "4")]
    assert [each.text[:9] for each in line.events if each.kind.startswith("commit")] == [
        "version 2",
        "version 3",
        "version 4",
    ]


def test_labels_do_not_run_into_each_other() -> None:
    line = timeline(run(commits=tuple(commit(version, version) for version in range(300, 330))))
    assert [each.label for each in line.marks].count("") == 29
    assert len(line.events) == 32


def test_times_that_are_none_are_only_in_the_table() -> None:
    odd = tuple(CommitRun(version=each, operation="", user="", at=at) for each, at in enumerate((0, -5, 10**18)))
    line = timeline(run(foreign=odd))
    assert [each.ours for each in line.marks] == [True]
    assert [each.when for each in line.events].count("unknown") == 3


def test_one_commit_alone_is_not_a_picture() -> None:
    alone = timeline(run(gates=(), statements=()))
    assert (alone.drawn, len(alone.events)) == (False, 1)
    assert timeline(run(gates=(), statements=(), foreign=(commit(4, 10),))).drawn
    assert not timeline(TableRun(name="a", outcome=RunOutcome.NO_WINDOW)).drawn


def test_a_statement_that_no_one_timed() -> None:
    old = StatementRun(id="x", sql="SET", phase=Phase.FREE, milliseconds=5)
    line = timeline(run(statements=(old,)))
    assert line.statements == ()
    assert line.events[0].when == "unknown"


def test_the_picture_of_the_readme_is_an_svg_with_a_description() -> None:
    line = timeline(run(foreign=(commit(2, -100), commit(4, 1100))))
    root = fromstring(picture(line, "orders"))
    names = [each.tag.partition("}")[2] for each in root]
    assert names[:3] == ["title", "desc", "style"]
    assert (root[1].text or "").count("version") == 3
    assert {"rect", "text", "g"} <= set(names)
    assert "closed to writers with a guard" in "".join(root.itertext())
