"""``engine.remotes``: which servers an apply opens, and what it makes of those that it cannot use."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tablectl.commands.project import Engines, EngineSource, Project
from tablectl.engine import spark
from tablectl.engine.interface import check_delta
from tablectl.model.errors import EngineError
from tablectl.policies.config import Config, EngineConfig


class Server:
    """An engine on a server; ``error`` is what Delta's statement gives."""

    dialect = "oss"

    def __init__(self, remote: str, error: EngineError | None) -> None:
        self.remote = remote
        self.error = error
        self.closed = False

    def row(self, sql: str) -> tuple[str | None, ...]:
        assert sql.startswith("DESCRIBE HISTORY")
        if self.error is not None:
            raise self.error
        return ()

    def close(self) -> None:
        self.closed = True


NO_SUCH_TABLE = EngineError("no such table", "", "DELTA_MISSING_DELTA_TABLE")
NO_DELTA = EngineError("syntax error", "", "PARSE_SYNTAX_ERROR")


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, Server]]:
    """Stands in for servers: by address the error of Delta's statement; ``None`` for a server that does not answer."""

    def stand_in(**answers: EngineError | None) -> dict[str, Server]:
        made: dict[str, Server] = {}

        def open_spark(options: Any, _stamp: str = "") -> Server:
            name = options.remote.removeprefix("sc://")
            if answers[name] is None:
                raise EngineError(f"no Spark Connect server answers at {options.remote}: refused")
            made[name] = Server(options.remote, answers[name])
            return made[name]

        monkeypatch.setattr(spark, "open_spark", open_spark)
        return made

    return stand_in


def engines(*remotes: str) -> Engines:
    return Engines(Config(engine=EngineConfig(remotes=remotes)), EngineSource())


def test_an_apply_opens_every_server(servers: Callable[..., dict[str, Server]]) -> None:
    servers(a=NO_SUCH_TABLE, b=NO_SUCH_TABLE)
    opened = engines("sc://a", "sc://b").open_all("stamp")
    assert ([*opened.engines], opened.notes) == (["sc://a", "sc://b"], ())


def test_a_server_without_deltas_extension_takes_no_part_and_the_report_says_so(
    servers: Callable[..., dict[str, Server]],
) -> None:
    made = servers(a=NO_DELTA, b=NO_SUCH_TABLE)
    opened = engines("sc://a", "sc://b").open_all("stamp")
    assert [*opened.engines] == ["sc://b"]
    assert opened.notes == (
        "sc://a takes no part in this run: it has no Delta extension, so it cannot run the statements",
    )
    assert made["a"].closed


def test_a_server_that_does_not_answer_at_the_start_takes_no_part(servers: Callable[..., dict[str, Server]]) -> None:
    servers(a=None, b=NO_SUCH_TABLE)
    opened = engines("sc://a", "sc://b").open_all("stamp")
    assert [*opened.engines] == ["sc://b"]
    assert "sc://a takes no part in this run: no Spark Connect server answers" in opened.notes[0]


def test_an_apply_without_any_usable_server_starts_nothing(servers: Callable[..., dict[str, Server]]) -> None:
    servers(a=None, b=NO_DELTA)
    with pytest.raises(
        EngineError, match=r"no server of `engine.remotes` can be used: sc://a: no .*; sc://b: it has no Delta"
    ) as caught:
        engines("sc://a", "sc://b").open_all("stamp")
    assert "spark.sql.extensions" in caught.value.hint


def test_names_are_looked_up_on_the_first_server_that_answers(servers: Callable[..., dict[str, Server]]) -> None:
    made = servers(a=None, b=NO_SUCH_TABLE)
    engines("sc://a", "sc://b").start()
    assert [*made] == ["b"]


def test_a_server_of_which_delta_says_only_that_the_table_is_missing_is_usable() -> None:
    check_delta(Server("sc://a", NO_SUCH_TABLE))  # type: ignore[arg-type]
    with pytest.raises(EngineError, match="did not answer"):
        check_delta(Server("sc://a", EngineError("did not answer", unanswered=True)))  # type: ignore[arg-type]


def test_a_server_on_the_command_line_replaces_all_configured_ones(tmp_path: Path) -> None:
    (tmp_path / "tablectl.yaml").write_text("engine: {remotes: ['sc://a', 'sc://b']}\n")
    assert Project.open(tmp_path, settings={"remote": "sc://c"}).config.engine.servers == ("sc://c",)
