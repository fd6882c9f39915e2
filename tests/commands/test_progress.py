"""How far a command is: live on a terminal, now and then in a log, never in the way."""

from __future__ import annotations

import io
from dataclasses import dataclass, field

import pytest

from tablectl.commands import output as output_module
from tablectl.commands.output import Output, ProgressLine


@dataclass
class Screen:
    """What was written, and a clock that is set by hand."""

    text: str = ""
    now: float = 0.0
    lines: list[str] = field(default_factory=list)

    def write(self, text: str) -> None:
        self.text += text

    def progress(self, *, live: bool) -> ProgressLine:
        return ProgressLine(self.write, lambda: self.now, live=live)


def test_what_is_quick_says_nothing() -> None:
    for live in (True, False):
        screen = Screen()
        with screen.progress(live=live) as on_read:
            for done in range(101):
                on_read(done, 100)
                screen.now += 0.002
        assert screen.text == ""


def test_a_terminal_has_one_line_that_is_gone_at_the_end() -> None:
    screen = Screen()
    with screen.progress(live=True) as on_read:
        for done in range(2001):
            on_read(done, 2000)
            screen.now += 0.01
        assert screen.text.count("\r") == pytest.approx(190, abs=10)
        assert "\n" not in screen.text
        assert screen.text.startswith("\rreading 30 of 2,000 tables\r")
    last = screen.text.rstrip("\r ").rpartition("\r")[2]
    assert last.startswith("reading 1,99")
    assert screen.text.endswith(f"\r{' ' * len(last)}\r")


def test_a_shorter_text_leaves_nothing_of_a_longer_one() -> None:
    screen = Screen(now=0)
    with screen.progress(live=True) as on_read:
        for done in (1000, 1):
            screen.now += 1
            on_read(done, 2000)
    assert screen.text.split("\r")[2] == "reading 1 of 2,000 tables    "


def test_a_log_has_a_line_now_and_then() -> None:
    screen = Screen()
    with screen.progress(live=False) as on_read:
        for done in range(61):
            on_read(done, 60)
            screen.now += 1
    assert screen.text == "".join(f"reading {done} of 60 tables\n" for done in (15, 30, 45))


def test_an_error_leaves_a_clean_line_behind() -> None:
    screen = Screen()

    def interrupted() -> None:
        with screen.progress(live=True) as on_read:
            screen.now = 1
            on_read(1, 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert screen.text.endswith(f"\r{' ' * len('reading 1 of 2 tables')}\r")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environ", "err", "live"),
    [
        ({}, Terminal(), True),
        ({"NO_COLOR": "1"}, Terminal(), True),
        ({"TERM": "dumb"}, Terminal(), False),
        ({}, io.StringIO(), False),
    ],
)
def test_only_a_terminal_has_a_live_line_and_it_has_no_colour(
    environ: dict[str, str], err: io.StringIO, live: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seconds = iter(range(100))
    monkeypatch.setattr(output_module, "monotonic", lambda: float(next(seconds)))
    out = io.StringIO()
    with Output(environ, out, err).progress() as on_read:
        on_read(1, 3)
        on_read(2, 3)
    assert ("reading 2 of 3 tables" in err.getvalue()) is live
    assert "\x1b" not in err.getvalue()
    assert out.getvalue() == ""
