"""Whether the time of a command grows in line with what it is given: twice as much should take about twice as long.

`python benchmarks/quadratic.py [--size N] [--repeat N]`
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from time import perf_counter

from _report import machine, ratio_text, say, table, time_text

from tablectl.attributes.policy import Policy
from tablectl.delta.names import parse_table
from tablectl.delta.protocol import Protocol
from tablectl.delta.schema import Field, Schema
from tablectl.documents.style import Style
from tablectl.model.errors import InputError
from tablectl.model.plan import Plan, TablePlan
from tablectl.model.table import LiveTable
from tablectl.planning.plan_file import FORMAT, dump_plan, load_plan
from tablectl.planning.plan_table import plan_table
from tablectl.policies.policy_document import read_specs
from tablectl.policies.value_reader import ValueReader
from tablectl.policies.variables import Variables
from tablectl.reports.mask import Mask
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat, render
from tablectl.reports.report_context import Context

_AT_ONCE = 4_000
"""Entries in one file."""
_SHAPES = {
    "patterns that begin alike": ("lake.s.t{0}", "lake.s.p{0}*"),
    "patterns that match": ("lake.s.t{0:05d}", "lake.s.t{0:05d}*"),
    "patterns that end alike": ("lake.s.t{0}x", "lake.s.*{0}y"),
    "patterns of paths": ("delta.`/lake/d/t{0}`", "delta.`/lake/d/p{0}*`"),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=2, help="runs of each, of which the least counts")
    options = parser.parse_args()
    say(machine())
    rows = [_row(words, work, options.size, options.repeat) for words, work in _works().items()]
    head = ("what", f"{options.size // 2:,}", f"{options.size:,}", "ratio")
    say(table(head, rows))


def _works() -> dict[str, Callable[[int], Callable[[], object]]]:
    validated = {f"validate: {words}": partial(_policies, shapes) for words, shapes in _SHAPES.items()}
    reports = {f"report of a plan: {form}": partial(_report, form) for form in ReportFormat}
    return {**validated, "validate: unknown properties": _unknown, "plan file: written and read": _saved, **reports}


def _row(words: str, work: Callable[[int], Callable[[], object]], size: int, repeat: int) -> tuple[str, ...]:
    half, whole = (_least(work(each), repeat) for each in (size // 2, size))
    return words, time_text(half), time_text(whole), ratio_text(whole / half)


def _least(work: Callable[[], object], repeat: int) -> float:
    return min(_timed(work) for _ in range(repeat))


def _timed(work: Callable[[], object]) -> float:
    start = perf_counter()
    work()
    return perf_counter() - start


def _policies(shapes: tuple[str, str], size: int) -> Callable[[], object]:
    lines = [f"  {shape.format(number)}: {{isolation: Serializable}}\n" for shape in shapes for number in range(size)]
    parts = (lines[start : start + _AT_ONCE] for start in range(0, len(lines), _AT_ONCE))
    files = [(f"{number}.yaml", _file("".join(part))) for number, part in enumerate(parts)]
    return lambda: read_specs(files, ValueReader(Variables(), "oss", "spark_catalog", []))


def _unknown(size: int) -> Callable[[], object]:
    data = _file("  lake.s.t:\n    properties:\n" + "".join(f"      delta.someKey{each}: x\n" for each in range(size)))

    def read() -> None:
        with suppress(InputError):
            read_specs([("p.yaml", data)], ValueReader(Variables(), "oss", "spark_catalog", []))

    return read


def _file(tables: str) -> bytes:
    return f"version: 1\ntables:\n{tables}".encode()


def _plan(size: int) -> Plan:
    live = LiveTable(
        name=parse_table("lake.s.t"),
        location="/lake/t",
        version=1,
        table_id="0",
        protocol=Protocol(1, 2),
        schema=Schema((Field("id", "long"),)),
        files=1,
        bytes=1,
        vectors=0,
    )
    one = plan_table(Policy({"isolation": "Serializable", "properties": {"owner.team": "web"}}), live, "oss")
    assert isinstance(one, TablePlan)
    tables = tuple(replace(one, name=f"lake.s.t{each:06d}", location=f"/lake/t{each:06d}") for each in range(size))
    return Plan(format=FORMAT, tool="0", dialect="oss", policies="0" * 64, tables=tables)


def _report(form: ReportFormat, size: int) -> Callable[[], object]:
    plan = _plan(size)
    mask = Mask(("*team*",))
    return lambda: render(document_of_plan(plan, mask, Context()), form, Style(), Context())


def _saved(size: int) -> Callable[[], object]:
    plan = _plan(size)
    return lambda: load_plan(dump_plan(plan), "p.json", to_apply=False)


if __name__ == "__main__":
    main()
