"""``tablectl demo``: a small lake of real Delta tables, and plan → apply → plan on it."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import resources
from pathlib import Path
from threading import Event, Thread
from time import monotonic
from typing import Annotated

import typer

from tablectl.commands.output import Output
from tablectl.commands.plan import make_plan
from tablectl.commands.project import EngineSource, Project
from tablectl.commands.run_plan import Control, run
from tablectl.commands.selection import Selection
from tablectl.commands.user_files import write_file
from tablectl.delta.names import quote_name
from tablectl.documents.document import Document
from tablectl.documents.style import Style
from tablectl.engine.interface import Engine
from tablectl.model.errors import ExitCode, UsageError
from tablectl.planning.plan_file import dump_plan
from tablectl.policies.config import Config, EngineConfig
from tablectl.policies.declared_tables import Specs
from tablectl.policies.repository import load_specs
from tablectl.reports.document_text import document_text
from tablectl.reports.plan_report import document_of_plan
from tablectl.reports.render import ReportFormat, render
from tablectl.reports.report_context import Context
from tablectl.reports.result_documents import document_of_run
from tablectl.support.json_text import write_json

_CONFIG = """# Relative paths count from this folder.
policies: policies
variables: {{LAKE: {lake}}}
"""

_FIRST = """The demo builds {count} small Delta tables below {root}, plans their policies,
applies the plan and plans again. It takes about two minutes, most of them in Spark, and writes nowhere else."""
_EVERY = 10.0
"""Seconds after which a step says that it still runs."""
_WHOLE = 2
"""Tables that are shown whole, the riskiest first; the others are named."""
_NEXT = """The tables are as declared; what is left is the one refusal. To look at:
  1. the plan, as a reviewer gets it:
     {root}/reports/plan.html
  2. the apply, with its timeline:
     {root}/reports/apply.html
  3. `sessions`, which was refused, since all its data would be written again.
     To consent, add `rewrite: allowed` to its entry in policies/lake.yaml, then
     plan and apply again.
To go on:
  cd {root}
  tablectl show plans/first.json             # the whole plan
  tablectl plan                              # reads the logs, starts no Spark
  tablectl explain orders                    # the line of each value
  tablectl conflicts orders                  # which operations conflict
Then edit policies/lake.yaml, plan again, and `tablectl apply`.
Your own tables: `tablectl check PLACE`, then `tablectl init DIR PLACE`.
"""

_TABLES = {
    "orders": (
        "(order_id BIGINT, customer_id BIGINT, order_date DATE, amount DECIMAL(10,2)) USING delta",
        "SELECT id, id % 97, DATE'2026-01-01' + CAST(id % 90 AS INT), CAST(id % 500 AS DECIMAL(10,2)) FROM range(4000)",
    ),
    "events": (
        "(event_id BIGINT, kind STRING, event_date DATE) USING delta PARTITIONED BY (event_date)",
        "SELECT id, concat('kind-', id % 5), DATE'2026-01-01' + CAST(id % 6 AS INT) FROM range(3000)",
    ),
    "clicks": (
        "(page STRING, user_id BIGINT, clicked_at TIMESTAMP) USING delta CLUSTER BY (page)",
        "SELECT concat('/p/', id % 40), id % 300, TIMESTAMP'2026-01-01' + make_dt_interval(0, 0, id) FROM range(3000)",
    ),
    "returns": (
        """(return_id BIGINT, order_id BIGINT, reason STRING) USING delta
        TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')""",
        "SELECT id, id * 7, concat('reason ', id % 4) FROM range(2000)",
    ),
    "payments": (
        """(payment_id BIGINT, amount DECIMAL(10,2)) USING delta
        TBLPROPERTIES ('debug.trace' = 'on', 'owner.team' = 'payments')""",
        "SELECT id, CAST(id AS DECIMAL(10,2)) FROM range(1000)",
    ),
    "ledger": (
        """(entry_id BIGINT, amount DECIMAL(10,2)) USING delta TBLPROPERTIES
        ('delta.isolationLevel' = 'Serializable', 'delta.deletedFileRetentionDuration' = 'interval 14 days')""",
        "SELECT id, CAST(id AS DECIMAL(10,2)) FROM range(1000)",
    ),
    "visits": (
        "(visit_id BIGINT, day DATE, month STRING) USING delta PARTITIONED BY (day)",
        "SELECT id, DATE'2026-01-01' + CAST(id % 12 AS INT), '2026-01' FROM range(1000)",
    ),
    "sessions": (
        "(session_id BIGINT, day DATE, month STRING) USING delta PARTITIONED BY (day)",
        "SELECT id, DATE'2026-01-01' + CAST(id % 4 AS INT), '2026-01' FROM range(1000)",
    ),
}

_ALONE = Config(engine=EngineConfig(exclusive_commits=True))
"""The demo is the only writer of its lake."""


def demo_command(
    ctx: typer.Context,
    directory: Annotated[
        Path, typer.Argument(metavar="DIR", help="Empty folder. Default: demo-lake.", show_default=False)
    ] = Path("demo-lake"),
) -> ExitCode:
    """Build a small lake and run plan, apply and plan on it, with real Delta tables.

    Exits with code 5 if the last plan contains anything but the refusal of `sessions`.

    Example: tablectl demo /tmp/lake
    """
    out: Output = ctx.obj
    root = directory.absolute()
    if root.exists() and (not root.is_dir() or any(root.iterdir())):
        raise UsageError(f"{directory} is not an empty folder", "name a new one: the demo overwrites nothing")
    lake = root / "lake"
    out.note(_FIRST.format(count=len(_TABLES), root=root))
    steps = _Steps(out)
    with Project(_ALONE, source=EngineSource()) as project:
        with steps.step("1 of 4: starting Spark"):
            engine = project.engines.start()  # before anything is written: Spark or Java may be missing
        try:
            _write_repository(root)
            specs = load_specs([root / "policies"], variables={"LAKE": str(lake)}, environ={})
            with steps.step(f"2 of 4: making {len(_TABLES)} tables"):
                build_lake(engine, lake, lambda name, count: out.note(f"  table {count} of {len(_TABLES)}, {name}"))
        except BaseException:
            for made in ("policies", "lake", "tablectl.yaml"):
                _remove(root / made)
            raise
        return _show_case(specs, project, root, out, steps)


class _Steps:
    """The steps of the demo: each says what it does, every ten seconds that it still does, and how long it took."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._took: dict[str, float] = {}

    @contextmanager
    def step(self, what: str) -> Iterator[None]:
        """A step, for as long as the block runs."""
        self._out.note(what)
        began, done = monotonic(), Event()

        def tell() -> None:
            while not done.wait(_EVERY):
                self._out.note(f"  {what}, {monotonic() - began:.0f} s")

        teller = Thread(target=tell, daemon=True)
        teller.start()
        try:
            yield
        finally:
            done.set()
            teller.join()
            self._took[what.partition(": ")[2]] = monotonic() - began

    @property
    def text(self) -> str:
        """Where the time went."""
        lines = [f"  {seconds:4.0f} s  {what}\n" for what, seconds in self._took.items()]
        return f"It took {sum(self._took.values()):.0f} s:\n{''.join(lines)}"


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def build_lake(engine: Engine, lake: Path, on_table: Callable[[str, int], None] = lambda _name, _count: None) -> None:
    """Create the tables with data, each named before. Rows of ``returns`` are deleted with deletion vectors."""
    for count, (name, (columns, rows)) in enumerate(_TABLES.items(), 1):
        on_table(name, count)
        table = f"delta.{quote_name(str(lake / name))}"
        engine.execute(f"CREATE TABLE {table} {columns}")
        engine.execute(f"INSERT INTO {table} {rows}")
    engine.execute(f"DELETE FROM delta.{quote_name(str(lake / 'returns'))} WHERE return_id % 10 = 3")  # noqa: S608  # quoted


def demo_policies() -> Path:
    """The directory of the demo's policies: next to the package in an installation, at the root of a checkout."""
    installed = Path(str(resources.files("tablectl"))) / "_policies"
    return installed if installed.is_dir() else installed.parent.parent / "policies"


def _write_repository(root: Path) -> None:
    (root / "policies").mkdir(parents=True)
    for file in sorted(demo_policies().glob("*.yaml")):
        shutil.copyfile(file, root / "policies" / file.name)
    write_file(root / "tablectl.yaml", _CONFIG.format(lake=write_json(str(root / "lake"))).encode())


def _show_case(specs: Specs, project: Project, root: Path, out: Output, steps: _Steps) -> ExitCode:
    with steps.step("3 of 4: planning, from the logs alone"):
        before = make_plan(project, specs, Selection())
    write_file(root / "plans" / "first.json", dump_plan(before), root=root)
    planned = document_of_plan(before, project.mask, Context())
    _say(out, "tablectl plan --out plans/first.json", planned)
    with steps.step("4 of 4: applying"), out.display() as notify:
        report = run(project, before, Control(notify=notify))
    applied = document_of_run(report, project.mask, Context())
    _say(out, "tablectl apply plans/first.json", applied)
    for name, document in (("plan", planned), ("apply", applied)):
        page = render(document, ReportFormat.HTML, Style(), Context())
        write_file(root / "reports" / f"{name}.html", page.encode(), root=root)
    after = make_plan(project, specs, Selection())
    _say(out, "tablectl plan", document_of_plan(after, project.mask, Context()))
    left = [table.name for table in after.tables]
    expected = [table.name for table in before.tables if table.refusals]
    if left != expected or after.failures:
        out.note("the last plan should hold nothing but the refusal: please report this")
        return ExitCode.PARTIAL
    out.result(_NEXT.format(root=shlex.quote(str(root))) + steps.text)
    return ExitCode.DONE


def _say(out: Output, command: str, document: Document) -> None:
    text = document_text(replace(document, cards=document.cards[:_WHOLE], hint=""), out.style)
    more = [f"{Path(name.strip('`')).name} {card.state}" for card in document.cards[_WHOLE:] for name in card.names]
    others = out.style.prose("", f"Also: {', '.join(more)}.", 0, 0) if more else []
    out.result("\n".join([out.style.paint("$ " + command, "bold"), "", text, *others, ""]))
