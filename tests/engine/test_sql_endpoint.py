"""The engine over the DB-API on connections that only remember: which are reused, and what is refused at once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tablectl.delta.names import parse_table
from tablectl.engine.interface import EngineOptions, no_overwrite
from tablectl.engine.sql_endpoint import SqlEndpoint, open_endpoint
from tablectl.model.errors import EngineError, WindowError
from tablectl.model.stamp import Stamp

STAMP = Stamp("run", "digest").text()


class Connection:
    """Answers ``SET`` from its settings, and a ``SELECT`` of a text with the text."""

    def __init__(self, settings: dict[str, str], statement: str, changes: Callable[[str], str]) -> None:
        self.settings, self.statement, self._changes = settings, statement, changes
        self.sent: list[str] = []
        self.tags: list[Mapping[str, str]] = []
        self.usable, self.closed = True, False
        self.fails: Exception | None = None
        self._rows: list[tuple[Any, ...]] = []

    limit = 0.0

    def ready(self) -> bool:
        return self.usable

    def send(self, sql: str, tags: Mapping[str, str], may_send: Callable[[], None]) -> None:
        may_send()
        self.sent.append(sql)
        self.tags.append(tags)
        if self.fails:
            raise self.fails
        if found := re.fullmatch(r"SET `([^`]+)`(?:=`(.*)`)?", sql, re.DOTALL):
            if found[2] is not None:
                self.settings[found[1]] = found[2]
            self._rows = [(found[1], self.settings.get(found[1], "<undefined>"))]
        elif sql.startswith("SELECT '"):
            text = sql.removeprefix("SELECT '").removesuffix("'").replace("\\\\", "\\").replace("\\'", "'")
            self._rows = [(self._changes(text),)]

    def runs(self) -> bool:
        return False

    def rows(self) -> list[tuple[Any, ...]]:
        return self._rows

    def close(self) -> None:
        self.closed = True


class Place:
    """An endpoint of such connections."""

    name, address, bound, timeout, hint = "place", "address", 60.0, "TIMEOUT", "look"

    def __init__(self, *, shared: bool = False, changes: Callable[[str], str] = lambda text: text) -> None:
        self.made: list[Connection] = []
        self.history: dict[str, Mapping[str, str] | None] = {}
        self.interrupted: list[tuple[str, str]] = []
        self.silent = self.dead = False
        self.driver: str | None = "not asked"
        self.silent_about: bool | None = True
        self._one: dict[str, str] | None = {} if shared else None
        self._changes = changes

    def connect(self) -> Connection:
        self.made.append(Connection({} if self._one is None else self._one, f"id-{len(self.made)}", self._changes))
        return self.made[-1]

    def ping(self) -> None:
        if self.silent:
            raise TimeoutError("Timed out after 0:00:20")

    def interrupt(self, connection: Connection, tag: str) -> bool | None:
        self.interrupted.append((connection.statement, tag))
        return self.silent_about

    def interrupt_at(self, address: str, tag: str) -> bool | None:
        raise RuntimeError(f"{address} {tag}: the history does not answer")

    def tags_of(self, statement: str) -> Mapping[str, str] | None:
        return self.history[statement]

    def find_driver(self, setting: Callable[[str], str | None]) -> None:
        self.driver = setting("spark.driver.port")

    def gone(self) -> bool:
        return self.dead

    def close(self) -> None:
        """Nothing is kept."""


def opened(place: Place) -> SqlEndpoint:
    return SqlEndpoint(place, EngineOptions(), STAMP).open()


def test_a_session_has_the_settings_the_bound_and_the_stamp_before_it_is_used() -> None:
    place = Place()
    engine = opened(place)
    sent = place.made[0].sent
    assert sent[0] == "SET `spark.sql.variable.substitute`=`false`", "else the next text would be changed"
    assert "SET TIMEOUT = 60" in sent
    assert place.made[0].settings["spark.databricks.delta.commitInfo.userMetadata"] == STAMP
    assert (engine.bound, engine.address, engine.rewrites) == (60.0, "address", False)
    engine.close()


def test_a_statement_that_only_commits_metadata_may_take_seconds_and_any_other_as_long_as_configured() -> None:
    place = Place()
    engine = opened(place)
    place.bound = 3600.0
    for quick in (False, True, True, False):
        engine.execute(f"ALTER {quick}", "tag", quick=quick)
    assert engine.commit_bound == 60
    asked = [sql for made in place.made for sql in made.sent if "TIMEOUT" in sql or "ALTER" in sql]
    assert asked[2:] == [
        *("SET TIMEOUT = 3600", "ALTER False", "SET TIMEOUT = 60", "ALTER True", "ALTER True"),
        *("SET TIMEOUT = 3600", "ALTER False"),
    ]
    place.bound = 30.0
    assert engine.commit_bound == 30
    engine.close()


def test_no_session_is_asked_for_where_no_answer_comes() -> None:
    """The driver of a warehouse would try that for a quarter of an hour."""
    place = Place()
    place.silent = True
    with pytest.raises(EngineError, match="no SQL endpoint answers at place: Timed out") as caught:
        opened(place)
    assert (caught.value.hint, place.made) == ("look", [])


def test_one_session_for_all_clients_is_refused() -> None:
    """There, the commits of others would carry the stamp of this run."""
    place = Place(shared=True)
    with pytest.raises(EngineError, match="share one session"):
        opened(place)
    assert all(each.closed for each in place.made)


def test_an_endpoint_that_changes_texts_is_refused() -> None:
    with pytest.raises(EngineError, match="changes the texts of statements"):
        opened(Place(changes=lambda text: text.replace("${env:HOME}", "/root")))


def test_a_connection_is_used_again_unless_it_broke() -> None:
    place = Place()
    engine = opened(place)
    engine.execute("ALTER")
    assert len(place.made) == 2
    for each in place.made:
        each.usable = False
    engine.execute("ALTER")
    assert (len(place.made), [each.closed for each in place.made]) == (3, [True, True, False])
    place.made[2].fails = ConnectionResetError("reset")
    with pytest.raises(EngineError, match="the connection to place broke: reset") as caught:
        engine.execute("ALTER", "tag-1")
    assert caught.value.unanswered
    assert place.made[2].sent.count("ALTER") == 2, "it is not sent a second time"
    engine.execute("ALTER")
    assert len(place.made) == 4, "nothing else is sent on a connection that broke"
    engine.close()


def test_only_what_may_still_run_is_interrupted() -> None:
    place = Place()
    engine = opened(place)
    engine.execute("ALTER", "tag-1")

    def never() -> None:
        raise WindowError("the lease was lost")

    with pytest.raises(WindowError):
        engine.execute("ALTER", "tag-2", never)
    assert (engine.interrupt("tag-1"), engine.interrupt("tag-2"), place.interrupted) == (False, False, [])
    place.made[-1].fails = ConnectionResetError("reset")
    with pytest.raises(EngineError):
        engine.execute("ALTER", "tag-3")
    assert engine.interrupt("tag-3") is True
    assert [tag for _, tag in place.interrupted] == ["tag-3"]
    assert engine.interrupt("tag-3", "address") is None, "an endpoint that does not answer says nothing"
    place.silent_about = None
    assert engine.interrupt("tag-3") is None
    place.dead = True
    assert engine.interrupt("tag-3") is False, "its process is gone"
    assert engine.interrupt("tag-3", "address") is None, "which tells nothing of others"
    assert place.driver == ""
    engine.close()


def test_a_statement_carries_its_tag_its_run_and_its_plan() -> None:
    place = Place()
    engine = opened(place)
    engine.execute("ALTER", "tag-1")
    engine.execute("SELECT 1")
    tags = [tags for each in place.made for sql, tags in zip(each.sent, each.tags, strict=True) if sql == "ALTER"]
    assert tags == [{"tablectl": "tag-1", "tablectl_run": "run", "tablectl_plan": "digest"}]
    engine.close()


def test_who_sent_a_statement_is_known_by_its_id_else_by_its_tags() -> None:
    place = Place()
    engine = opened(place)
    engine.execute("ALTER", "tag-1")
    own = place.made[-1].statement
    others = {"tablectl_run": "other", "tablectl_plan": "digest"}
    place.history = {"theirs": {}, "dead": others, "hidden": None}
    assert engine.stamp_of(own) == STAMP
    assert engine.stamp_of("theirs") == ""
    assert engine.stamp_of("dead") == Stamp("other", "digest").text()
    assert engine.stamp_of("hidden") == "", "nothing of this run is in doubt"
    place.made[-1].fails, place.made[-1].statement = ConnectionResetError("reset"), ""
    with pytest.raises(EngineError):
        engine.execute("ALTER", "tag-2")
    with pytest.raises(EngineError, match="does not show yet") as caught:
        engine.stamp_of("hidden")
    assert caught.value.unanswered
    place.history["lost"] = {"tablectl": "tag-2"}
    assert engine.stamp_of("lost") == STAMP
    with pytest.raises(EngineError, match="does not answer who sent"):
        engine.stamp_of("no such statement")
    engine.close()


def test_a_thrift_server_is_reached_as_the_configuration_and_the_environment_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("impala")
    asked: list[dict[str, Any]] = []

    def connect(**given: Any) -> None:
        asked.append(given)
        raise ConnectionRefusedError("nothing listens")

    monkeypatch.setattr("impala.dbapi.connect", connect)
    options = EngineOptions(dead_after=7.0, thrift_login="none", thrift_tls=True)
    login = {"TABLECTL_THRIFT_USER": "ana", "TABLECTL_THRIFT_PASSWORD": "secret"}
    with pytest.raises(EngineError, match=r"no SQL endpoint answers at thrift://::1:10000: nothing listens"):
        open_endpoint("thrift://[::1]:10000", options, login, STAMP)
    (given,) = asked
    assert (given["host"], given["port"], given["timeout"]) == ("::1", 10000, 17.0)
    assert (given["auth_mechanism"], given["user"], given["password"]) == ("NOSASL", "ana", "secret")
    assert (given["use_ssl"], given["verify_cert"]) == (True, True)


def test_a_refused_overwrite_names_what_the_dialect_of_the_engine_can_do() -> None:
    table = parse_table("lake.s.t")
    assert no_overwrite(table, "oss").hint == "apply it through Spark or Spark Connect"
    assert "ALTER TABLE `lake`.`s`.`t` REPLACE PARTITIONED BY" in no_overwrite(table, "databricks").hint
