from __future__ import annotations

import pickle
from typing import Any

import pytest

import tablectl
from tests.writers.conftest import Place
from tests.writers.test_guard import FakeSession


class Frame:
    """A batch, as far as a guard looks at it."""

    def __init__(self, session: Any = None) -> None:
        self._session = session

    @property
    def sparkSession(self) -> Any:  # noqa: N802  # Spark's name
        assert self._session is not None, "a session was asked for that is not needed"
        return self._session


def write(df: Any, batch_id: int) -> None:
    WROTE.append((df, batch_id))


WROTE: list[tuple[Any, int]] = []


def test_each_batch_runs_under_a_guard_of_its_own(place: Place) -> None:
    seen: list[dict[str, int]] = []
    batch = tablectl.guard_batch(lambda _df, _id: seen.append(place.guards), str(place), "append")
    for number in range(3):
        batch(Frame(), number)
    assert [len(guards) for guards in seen] == [1, 1, 1]
    assert len({guard for guards in seen for guard in guards}) == 3
    assert place.guards == {}


def test_a_name_is_looked_up_in_the_session_of_the_batch(place: Place) -> None:
    session = FakeSession(str(place))
    seen: list[dict[str, int]] = []
    tablectl.guard_batch(lambda _df, _id: seen.append(place.guards), "sales.orders", "append")(Frame(session), 0)
    assert len(seen[0]) == 1
    assert session.sent == ["DESCRIBE TABLE EXTENDED `sales`.`orders`"]


def test_it_can_be_sent_to_a_server(place: Place) -> None:
    batch = pickle.loads(pickle.dumps(tablectl.guard_batch(write, str(place), "append", timeout=5, ttl=30)))
    batch(Frame(), 7)
    assert batch == tablectl.guard_batch(write, str(place), "append", timeout=5, ttl=30)


def test_mistakes_show_before_the_stream_starts() -> None:
    async def late(_df: Any, _id: int) -> None: ...

    with pytest.raises(TypeError, match="guard_batch cannot wrap"):
        tablectl.guard_batch(late, "sales.orders")
    with pytest.raises(ValueError, match="relative"):
        tablectl.guard_batch(write, "lake/orders")
    with pytest.raises(ValueError, match="mode"):
        tablectl.guard_batch(write, "sales.orders", "merge")  # type: ignore[arg-type]
