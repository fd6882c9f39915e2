"""When an engine counts as dead, on a clock of our own."""

from __future__ import annotations

from tablectl.engine.liveness import Heartbeat


class Server:
    """Answers or not, at a time that the test sets."""

    def __init__(self) -> None:
        self.now = 100.0
        self.up = True
        self.beat = Heartbeat(self.ping, every=5, dead_after=20, now=lambda: self.now)

    def ping(self) -> None:
        if not self.up:
            raise ConnectionError("refused")

    def passes(self, seconds: int) -> bool:
        """Second by second, with a ping every five; whether it is alive at the end."""
        for second in range(1, seconds + 1):
            self.now += 1
            if second % 5 == 0:
                self.beat.ask()
            self.beat.alive()
        return self.beat.alive()


def test_an_engine_that_answers_is_alive() -> None:
    assert Server().passes(600)


def test_one_that_is_silent_for_twenty_seconds_is_dead() -> None:
    server = Server()
    server.passes(10)
    server.up = False
    assert server.passes(19)
    assert not server.passes(1)


def test_an_answer_brings_it_back() -> None:
    server = Server()
    server.up = False
    assert not server.passes(30)
    server.up = True
    assert server.passes(5)


def test_a_process_that_was_stopped_asks_before_it_gives_an_engine_up() -> None:
    server = Server()
    server.passes(10)
    server.now += 3600  # stopped, and continued
    assert server.beat.alive()
    assert server.passes(5), "the engine answered the first ping after the pause"


def test_after_a_pause_an_engine_that_does_not_answer_is_dead_soon() -> None:
    server = Server()
    server.up = False
    server.now += 3600
    assert server.beat.alive()
    assert not server.passes(5)


def test_a_thread_asks_by_itself() -> None:
    asked: list[int] = []
    beat = Heartbeat(lambda: asked.append(1), every=0.01, dead_after=1)
    beat.start()
    while not asked:
        pass
    beat.stop()
    beat.stop()
