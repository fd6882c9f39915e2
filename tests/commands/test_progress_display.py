"""What a run is doing: lines for a log, rows on a terminal."""

from __future__ import annotations

import re
import threading
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from tablectl.applying.events import RunEvent, Standing
from tablectl.commands.output import Output
from tablectl.commands.progress_display import Lines, Screen, screen


class Log:
    """Lines, and a clock to turn."""

    def __init__(self) -> None:
        self.now = 0.0
        self.said: list[str] = []
        self.lines = Lines(self.said.append, lambda: self.now)

    def wait(self, words: str, until: int, table: str = "t") -> None:
        """An event a second."""
        start = self.now
        while self.now < until:
            self.lines(RunEvent(table, "draining", words, self.now - start))
            self.now += 1


# Lines


def test_a_step_with_words_is_a_line() -> None:
    log = Log()
    for event in (RunEvent("t", "leased"), RunEvent("t", "before x", "closed: SET"), RunEvent("", "note", "beware")):
        log.lines(event)
    assert log.said == ["t: closed: SET", "beware"]


def test_what_goes_on_is_reported_now_and_then() -> None:
    log = Log()
    log.wait("waiting for etl", 100)
    assert log.said == [
        "t: waiting for etl",
        "t: waiting for etl (30 s)",
        "t: waiting for etl (1 min 00 s)",
        "t: waiting for etl (1 min 30 s)",
    ]


def test_another_wait_is_reported_at_once_but_not_each_of_many() -> None:
    log = Log()
    log.wait("waiting for a, b, c", 1)
    log.wait("waiting for a, b", 2)
    log.wait("waiting for a", 20)
    log.lines(RunEvent("t", "before x", "closed: SET"))
    log.wait("waiting for d", 21)
    assert log.said == [
        "t: waiting for a, b, c",
        "t: waiting for a (3 s)",
        "t: closed: SET",
        "t: waiting for d",
    ]


def test_each_table_waits_for_itself() -> None:
    log = Log()
    log.wait("waiting", 1, "a")
    log.wait("waiting", 2, "b")
    assert log.said == ["a: waiting", "b: waiting"]


def progress(done: int, total: int, left: float | None = None, waits: tuple[tuple[str, int], ...] = ()) -> RunEvent:
    waiting = sum(count for _, count in waits)
    standing = Standing(done, total, 2, waiting, waits)
    return RunEvent("", "progress", "", standing=standing, left=left)


def test_how_far_a_run_is_is_a_line_every_half_minute() -> None:
    log = Log()
    for second in range(95):
        log.now = float(second)
        log.lines(progress(second, 100, left=200.0 - 2 * second))
    assert log.said == [
        "30 of 100 tables done, 2 running, about 3 min left",
        "60 of 100 tables done, 2 running, about 2 min left",
        "90 of 100 tables done, 2 running, less than a minute left",
    ]


def test_an_estimate_that_proved_wrong_is_not_repeated() -> None:
    log = Log()
    log.lines(progress(6, 24, left=20.0, waits=(("for a lease", 14),)))
    for second in range(0, 100, 10):
        log.now = float(second)
        log.lines.remind()
    assert log.said == ["6 of 24 tables done, 2 running, 14 waiting (14 for a lease)"] * 3


def test_a_run_of_many_tables_has_a_line_for_each_that_is_done_and_says_what_each_waits_for() -> None:
    log = Log()
    log.lines(progress(0, 200, waits=(("for a lease", 1), ("for writers", 1))))
    log.now = 5.0
    for number in range(4):
        log.lines(RunEvent(f"t{number}", "before x", "SET TBLPROPERTIES"))
    log.lines(RunEvent("t0", "released"))
    log.lines(RunEvent("t0", "done", "applied"))
    for second in range(5, 45):
        log.now = float(second)
        log.lines(RunEvent("held", "held", "held by ben on laptop", second - 5.0))
        log.lines(RunEvent("drained", "draining", "waiting for nightly load (any)", second - 5.0))
    log.lines(RunEvent("t1", "note", "beware"))
    assert log.said == [
        "t0: applied",
        (
            "0 of 200 tables done, 2 running, 2 waiting (1 for a lease, 1 for writers)\n"
            "  held: held by ben on laptop (25 s)\n"
            "  drained: waiting for nightly load (any) (25 s)\n"
            "  t1: SET TBLPROPERTIES (25 s)\n"
            "  t2: SET TBLPROPERTIES (25 s)\n"
            "  t3: SET TBLPROPERTIES (25 s)"
        ),
        "t1: beware",
    ]


def test_a_long_statement_without_events_is_reported_too() -> None:
    log = Log()
    log.lines(progress(3, 30, left=90.0))
    log.lines(RunEvent("t", "before x", "REORG"))
    for second in range(0, 61, 5):
        log.now = float(second)
        log.lines.remind()
    assert log.said == [
        "3 of 30 tables done, 2 running, less than a minute left\n  t: REORG (30 s)",
        "3 of 30 tables done, 2 running, less than a minute left\n  t: REORG (1 min 00 s)",
    ]


# The screen


def console(width: int = 80, **more: Any) -> Console:
    return Console(file=StringIO(), width=width, force_terminal=True, color_system=None, **more)


def rows(shown: Screen, on: Console) -> list[str]:
    """What the display holds now."""
    with on.capture() as captured:
        on.print(shown.render())
    return captured.get().splitlines()


def test_a_row_for_each_table_with_what_it_does_and_for_how_long() -> None:
    now, on = [100.0], console()
    shown = Screen(on, lambda: now[0])
    shown(RunEvent("delta.`/lake/orders`", "before closed-set", "closed: SET TBLPROPERTIES"))
    now[0] = 107.0
    shown(RunEvent("sales.returns", "draining", "closed gate, waiting for nightly load (any)", 65.0))
    found = rows(shown, on)
    shown.stop()
    assert [re.split(r" {2,}", line.strip()) for line in found] == [
        ["delta.`/lake/orders` closed: SET TBLPROPERTIES", "7 s"],
        ["sales.returns", "closed gate, waiting for nightly load (any)", "1 min 05 s"],
    ]
    assert all(len(line) <= 80 for line in found)


@pytest.mark.parametrize("width", [40, 80, 200])
def test_no_row_is_wider_than_the_terminal(width: int) -> None:
    on = console(width)
    shown = Screen(on)
    shown(RunEvent("delta.`s3://bucket/" + "very/" * 30 + "long`", "draining", "waiting for " + "etl, " * 50, 5.0))
    found = rows(shown, on)
    shown.stop()
    assert len(found) == 1
    assert len(found[0]) <= width
    assert "long`" in found[0]


@pytest.mark.parametrize("width", [60, 120])
def test_how_far_a_run_is_comes_last_and_many_tables_do_not_fill_the_screen(width: int) -> None:
    now, on = [0.0], console(width)
    shown = Screen(on, lambda: now[0])
    for number in range(50):
        now[0] += 1
        shown(RunEvent(f"sales.t{number:02}", "held", "held by ben", 0.0))
    shown(progress(9, 100, left=500.0, waits=(("for a lease", 50),)))
    now[0] += 60
    found = rows(shown, on)
    shown.stop()
    assert [line.split()[0] for line in (found[0], found[19])] == ["sales.t30", "sales.t49"]
    assert [line.rstrip() for line in found[20:]] == [
        "and 30 more",
        "━───────────────────  9 of 100 tables done, about 8 min left",
        "2 running, 50 waiting (50 for a lease)",
    ]
    assert all(len(line) <= width for line in found)


def test_a_table_that_is_done_leaves() -> None:
    on = console()
    shown = Screen(on)
    shown(RunEvent("a", "verify", "verify"))
    shown(RunEvent("a", "released"))
    assert rows(shown, on) == []
    shown.stop()


def test_what_must_not_get_lost_goes_above() -> None:
    on = console()
    shown = Screen(on)
    shown(RunEvent("a", "hook says", "| paused [bold]1 job[/bold] :smile:"))
    shown(RunEvent("", "note", "beware\x1b[2J"))
    shown.stop()
    assert isinstance(on.file, StringIO)
    text = on.file.getvalue()
    assert "a: | paused [bold]1 job[/bold] :smile:" in text
    assert "beware\\x1b[2J" in text


def test_hostile_names_move_no_cursor() -> None:
    on = console()
    shown = Screen(on)
    shown(RunEvent("a\x1b[2J\n", "verify", "waiting for \x1b[31mevil [red]x[/red]"))
    text = "".join(rows(shown, on))
    shown.stop()
    assert "\x1b" not in text
    assert "[red]x[/red]" in text


def test_without_colour_it_reads_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    stream = StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    with screen(stream, {"NO_COLOR": "1"}) as shown:
        shown(RunEvent("a", "hook says", "| paused"))
    assert re.findall(r"\x1b\[[0-9;]*m", stream.getvalue().replace("\x1b[0m", "").replace("\x1b[2m", "")) == []


def test_a_terminal_that_went_away_stops_nothing() -> None:
    class Gone(StringIO):
        def write(self, _text: str) -> int:
            raise OSError(5, "Input/output error")

    shown = Screen(Console(file=Gone(), force_terminal=True))
    shown(RunEvent("a", "verify", "verify"))
    shown(RunEvent("a", "note", "x"))
    shown.stop()


# Which of the two


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stream", "environ", "kind"),
    [(Terminal(), {}, Screen), (Terminal(), {"TERM": "dumb"}, Lines), (StringIO(), {}, Lines)],
)
def test_a_terminal_gets_a_screen_and_all_else_lines(
    stream: StringIO, environ: dict[str, str], kind: type[Any]
) -> None:
    with Output(environ, StringIO(), stream).display() as notify:
        assert isinstance(notify, kind)


def test_a_note_while_the_screen_is_shown_goes_above_it() -> None:
    stream = Terminal()
    out = Output({}, StringIO(), stream)
    with out.display() as notify:
        notify(RunEvent("a", "verify", "verify"))
        out.note("stopping: waiting for running statements")
    assert "stopping: waiting for running statements" in stream.getvalue()
    out.note("afterwards")
    assert stream.getvalue().endswith("afterwards\x1b[0m\n")


def test_many_threads_may_tell() -> None:
    on = console()
    shown = Screen(on)

    def tell(table: str) -> None:
        for number in range(50):
            shown(RunEvent(table, "draining", f"waiting {number}", float(number)))
        shown(RunEvent(table, "released"))

    threads = [threading.Thread(target=tell, args=(str(each),)) for each in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert rows(shown, on) == []
    shown.stop()
