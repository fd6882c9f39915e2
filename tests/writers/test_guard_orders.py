"""Guards inside guards that start and end in any order, in generators, tasks and threads: each write is protected to
its end.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import permutations, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

import tablectl
from tablectl.leases.guards import GuardMode, read_guards
from tablectl.leases.lease_records import Gate
from tablectl.writers.guard import Guard, _StrongerModeError
from tests.writers.conftest import Place

KINDS = ("generator", "lost generator", "task", "thread", "other thread")
"""A lost generator is closed in another context, as by the garbage collector. An other thread has no copy of the
context."""


@dataclass
class Use:
    """One use of a guard, inside of another use or of none."""

    kind: str
    parent: int | None = None
    table: int = 0
    mode: GuardMode = GuardMode.APPEND
    open: bool = field(default=False, init=False)
    refused: bool = field(default=False, init=False)
    context: contextvars.Context = field(default_factory=contextvars.Context, init=False)


def write(guard: Guard) -> Iterator[None]:
    with guard:
        yield


class Program:
    """Runs uses as events say. An event is the number of a use: it starts, and the next time it ends."""

    def __init__(self, uses: list[Use], tables: list[Place], *, one_object: bool) -> None:
        self.uses, self.tables = uses, tables
        shared = {
            (table, mode): tablectl.guard(None, str(place), mode, timeout=0)
            for (table, place), mode in product(enumerate(tables), GuardMode)
        }
        self.guards = [
            shared[use.table, use.mode] if one_object else tablectl.guard(None, str(tables[use.table]), use.mode)
            for use in uses
        ]
        self.root = contextvars.Context()
        self.ends: dict[int, Any] = {}
        self.pool = ThreadPoolExecutor(max_workers=len(uses))

    async def run(self, events: list[int]) -> None:
        for number in events:
            use = self.uses[number]
            if number in self.ends:
                use.open = False
                await self.ends[number]()
            elif not use.refused:
                await self._start(number, use)
            self.check()
        assert [place.guards for place in self.tables] == [{} for _ in self.tables]

    def check(self) -> None:
        """Each open use is protected by a guard in the store that waits at least where it would."""
        for use in self.uses:
            modes = [each.mode for each in read_guards(self.tables[use.table].records)]
            assert not use.open or any(mode.covers(use.mode) for mode in modes), use

    async def _start(self, number: int, use: Use) -> None:
        around = self.root if use.parent is None else self.uses[use.parent].context
        use.context = contextvars.Context() if use.kind == "other thread" else around.copy()
        try:
            if use.kind == "task":
                await self._start_task(number, use)
            else:
                await self._start_generator(number, use, around)
            use.open = True
        except _StrongerModeError:
            use.refused = True

    async def _start_task(self, number: int, use: Use) -> None:
        entered, leave = asyncio.Event(), asyncio.Event()

        async def body() -> None:
            with self.guards[number]:
                entered.set()
                await leave.wait()

        task = asyncio.get_running_loop().create_task(body(), context=use.context)
        waiting = asyncio.ensure_future(entered.wait())
        await asyncio.wait([task, waiting], return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if task.done():
            task.result()

        async def end() -> None:
            leave.set()
            await task

        self.ends[number] = end

    async def _start_generator(self, number: int, use: Use, around: contextvars.Context) -> None:
        writing = write(self.guards[number])
        if use.kind.endswith("generator"):
            use.context = around  # a generator runs in the context of its caller
            use.context.run(next, writing)
            closes_in = use.context if use.kind == "generator" else contextvars.Context()
            close = writing.close  # type: ignore[attr-defined]

            async def end() -> None:
                closes_in.run(close)
        else:
            thread = ThreadPoolExecutor(max_workers=1)
            await asyncio.wrap_future(thread.submit(use.context.run, next, writing))

            async def end() -> None:
                closing = thread.submit(use.context.run, writing.close)  # type: ignore[attr-defined]
                await asyncio.wrap_future(closing)
                thread.shutdown()

        self.ends[number] = end


def run(uses: list[Use], events: list[int], *, one_object: bool) -> None:
    with TemporaryDirectory() as folder:
        tables = [Place(Path(folder) / name) for name in ("a", "b")]
        for table in tables:
            (table.path / "_delta_log").mkdir(parents=True)
        asyncio.run(Program(uses, tables, one_object=one_object).run(events))


@pytest.mark.parametrize("one_object", [False, True])
@pytest.mark.parametrize("kinds", [*product(KINDS, KINDS)])
def test_of_two_guards_each_protects_its_write_to_the_end(kinds: tuple[str, str], *, one_object: bool) -> None:
    for events in sorted({*permutations([0, 0, 1, 1])}):
        for parent in (None, 0):
            uses = [Use(kinds[0]), Use(kinds[1], parent if events[0] == 0 else None)]
            run(uses, [*events], one_object=one_object)


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Use], list[int]]:
    """Up to five uses of two tables, each inside of an earlier one, in any order of ends."""
    count = draw(st.integers(3, 5))
    uses = [
        Use(
            draw(st.sampled_from(KINDS)),
            draw(st.sampled_from([None, *range(number)])),
            draw(st.integers(0, 1)),
            draw(st.sampled_from(GuardMode)),
        )
        for number in range(count)
    ]
    order = draw(st.permutations([*range(count)] * 2))
    begun = iter(range(count))  # the first events of uses come in the order of their numbers
    names: dict[int, int] = {}
    return uses, [names.setdefault(each, next(begun)) if each not in names else names[each] for each in order]


@settings(max_examples=80, deadline=None)
@given(program=programs(), one_object=st.booleans())
def test_guards_in_any_order_protect_each_write_to_its_end(
    program: tuple[list[Use], list[int]], *, one_object: bool
) -> None:
    run(*program, one_object=one_object)


def test_the_last_writer_of_a_shared_guard_is_the_one_that_an_apply_waits_for(tmp_path: Path) -> None:
    """A task that outlasts the guard around it."""
    (tmp_path / "orders" / "_delta_log").mkdir(parents=True)
    place = Place(tmp_path / "orders")

    async def late(begun: asyncio.Event, leave: asyncio.Event) -> None:
        with tablectl.guard(None, str(place), "append", name="late", timeout=0):
            begun.set()
            await leave.wait()

    async def main() -> None:
        begun, leave = asyncio.Event(), asyncio.Event()
        with tablectl.guard(None, str(place), "append", name="first"):
            place.apply().gate(Gate.CLOSED)
            task = asyncio.create_task(late(begun, leave))
            await begun.wait()
        assert len(place.guards) == 1
        leave.set()
        await task
        assert place.guards == {}

    asyncio.run(main())
