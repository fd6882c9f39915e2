"""Which commit made a table what it is: logs made by hand, walked from the newest commit back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tablectl.delta.names import TableName
from tablectl.log.blame import BlameQuery, BlameQuestion, BlameResult, Origin, blame
from tablectl.log.reader import ReadRequest, read_each
from tablectl.model.errors import TablectlError
from tablectl.model.table import Depth, LiveTable
from tablectl.storage.object_stores import StoreOptions
from tests.log.checkpoint_files import METADATA, PROTOCOL, checkpoint, parquet
from tests.log.log_actions import CLUSTERED, LOCATION, PLAIN, add, clustering, info, metadata

Put = Callable[..., None]
Read = Callable[..., LiveTable]
Ask = Callable[..., BlameResult]


def prop(key: str) -> BlameQuestion:
    return BlameQuestion(lambda live: live.property(key), lambda one, other: one == other)


def blamed(options: StoreOptions, *questions: BlameQuestion, most: int = 1000) -> BlameResult:
    """The answers about the table of these tests."""
    request = ReadRequest(TableName("", (LOCATION,)), LOCATION, lambda _live: Depth())
    (found,) = read_each(
        [request], lambda reading: blame(reading, BlameQuery(reading.table, questions, most)), options=options
    )
    assert not isinstance(found, TablectlError)
    return found


COLUMNS = BlameQuestion(
    lambda live: tuple(".".join(path) for path in live.clustering or ()), lambda one, other: one == other
)


@pytest.fixture
def ask(options: StoreOptions) -> Ask:
    def trace(*questions: BlameQuestion, most: int = 1000) -> BlameResult:
        return blamed(options, *questions, most=most)

    return trace


def data(put: Put, *versions: int, **more: Any) -> None:
    for version in versions:
        put(version, [info(f"t{version}", **more), add(f"part-{version}", 1)])


def since(origin: Origin) -> int | None:
    return origin.commit.version if origin.commit else None


def test_the_commit_that_set_a_property_is_named_with_what_was_there(put: Put, ask: Ask) -> None:
    put(0, [info(), PLAIN, metadata(team="web")])
    data(put, 1)
    put(2, [info(operation="SET TBLPROPERTIES", userName="jane"), metadata(team="pay")])
    put(3, [info(operation="SET TBLPROPERTIES"), metadata(team="pay", other="1")])
    data(put, 4)
    (team,) = ask(prop("team")).origins
    assert team.commit is not None
    assert (team.commit.version, team.commit.user, team.was, team.known) == (2, "jane", "web", True)


def test_a_value_that_went_and_came_back_is_of_the_commit_that_brought_it_back(put: Put, ask: Ask) -> None:
    put(0, [info(), PLAIN, metadata(team="web")])
    put(1, [info(), metadata(team="pay")])
    put(2, [info(), metadata()])
    put(3, [info(), metadata(team="pay")])
    (team,) = ask(prop("team")).origins
    assert (since(team), team.was) == (3, None)


def test_what_was_never_otherwise_is_of_the_first_commit(put: Put, ask: Ask) -> None:
    put(0, [info(operation="CREATE TABLE"), PLAIN, metadata(team="web")])
    put(1, [info(), metadata(team="web", other="1")])
    team, unset = ask(prop("team"), prop("nothing")).origins
    assert (since(team), team.known, since(unset)) == (0, False, 0)


def test_values_that_mean_the_same_are_not_a_change(put: Put, ask: Ask) -> None:
    put(0, [info(), PLAIN, metadata(team="web")])
    put(1, [info(), metadata(team="pay")])
    put(2, [info(), metadata(team="PAY")])
    folded = BlameQuestion(
        lambda live: live.property("team"), lambda one, other: str(one).lower() == str(other).lower()
    )
    assert [since(each) for each in ask(folded).origins] == [1]


def test_an_overwrite_that_cleared_the_clustering_is_named(put: Put, ask: Ask) -> None:
    put(0, [info(), CLUSTERED, metadata(), clustering("a")])
    put(1, [info(operation="CLUSTER BY"), clustering("b")])
    put(2, [info(operation="WRITE", operationParameters={"mode": "Overwrite"}), clustering(), add("x", 1)])
    data(put, 3)
    (columns,) = ask(COLUMNS).origins
    assert columns.commit is not None
    assert (columns.commit.version, columns.commit.overwrites, columns.was) == (2, True, ("b",))


def test_a_renamed_column_is_a_change_of_the_clustering(put: Put, ask: Ask) -> None:
    def named(name: str) -> dict[str, Any]:
        action = metadata("one", ("p1",), **{"delta.columnMapping.mode": "name"})
        field = f'{{"delta.columnMapping.physicalName": "p1", "delta.columnMapping.id": 1}}, "name": "{name}"'
        action["metaData"]["schemaString"] = (
            f'{{"type": "struct", "fields": [{{"type": "long", "nullable": true, "metadata": {field}}}]}}'
        )
        return action

    put(0, [info(), CLUSTERED, named("a"), clustering("p1")])
    put(1, [info(operation="RENAME COLUMN"), named("b")])
    (columns,) = ask(COLUMNS).origins
    assert (since(columns), columns.was) == (1, ("a",))


def test_each_question_has_an_answer_of_its_own(put: Put, ask: Ask) -> None:
    put(0, [info(), CLUSTERED, metadata(one="1"), clustering("a")])
    put(1, [info(), metadata(one="1", two="2")])
    put(2, [info(), clustering("b")])
    assert [since(each) for each in ask(prop("one"), COLUMNS, prop("two")).origins] == [0, 2, 1]


def test_a_commit_that_tells_by_itself_is_believed(put: Put, ask: Ask) -> None:
    put(0, [info(), PLAIN, metadata()])
    data(put, 1, operation="DELETE", operationMetrics={"vectors": "2"})
    data(put, 2, operation="DELETE", operationMetrics={"vectors": "0"})
    data(put, 3)
    vectors = BlameQuestion(
        lambda _live: None, lambda _one, _other: True, lambda commit: commit.metrics.get("vectors", "0") != "0"
    )
    assert [since(each) for each in ask(vectors).origins] == [1]


def test_beyond_the_bound_nothing_is_read_and_the_oldest_version_is_named(put: Put, ask: Ask) -> None:
    put(0, [info(), PLAIN, metadata(team="web")])
    put(1, [info(), metadata(team="pay")])
    data(put, *range(2, 8))
    trace = ask(prop("team"), most=3)
    assert trace.origins == (Origin(before=5),)
    assert [commit.version for commit in trace.commits] == [7, 6, 5]


def test_where_the_log_was_cleaned_its_checkpoint_tells_what_was_before(put: Put, ask: Ask) -> None:
    put(checkpoint(4), parquet([PROTOCOL, METADATA]))
    data(put, 4, 5)
    put(6, [info("t6"), metadata(x="2")])
    (changed,) = ask(prop("x")).origins
    assert (since(changed), changed.was) == (6, "1")


def test_a_log_that_does_not_reach_back_says_so(put: Put, ask: Ask) -> None:
    put(checkpoint(4), parquet([PROTOCOL, METADATA]))
    put(4, [info("t4"), METADATA])
    data(put, 5)
    put(6, [info("t6"), metadata(x="1", other="1")])
    same, other = ask(prop("x"), prop("other")).origins
    assert same == Origin(before=5)
    assert (since(other), other.was) == (6, None)


def test_a_history_that_cannot_be_read_is_not_an_error_of_the_table(put: Put, options: StoreOptions) -> None:
    put(1, b"{")
    put(2, [info()])
    put(f"{2:020d}.checkpoint.parquet", parquet([PROTOCOL, METADATA]))
    trace = blamed(options, prop("team"))
    assert (trace.origins, trace.trouble) == ((Origin(before=2),), None), "it ends before the damaged commit"
