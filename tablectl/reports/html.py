"""A plan or a run as a self-contained HTML page: no network, no fonts, readable without scripts.

The templates escape every text, and characters that do not print are shown as escapes. A Content-Security-Policy names
the page's own script and style by their hashes, so a browser runs nothing else, whatever the texts contain.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from pkgutil import get_data
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from tablectl.applying.run_report import RunReport, TableRun
from tablectl.model.code import read_code
from tablectl.model.inert import inert_markup
from tablectl.model.plan import Change, Phase, Plan, ProtocolFact, Statement, TablePlan
from tablectl.model.text import printable, value_text
from tablectl.planning.drift import Drift
from tablectl.reports.context import Context
from tablectl.reports.drift_text import origin_facts, table_facts
from tablectl.reports.run_wording import measures, remarks
from tablectl.reports.style import plural
from tablectl.reports.timeline import timeline
from tablectl.reports.wording import (
    GOOD,
    PHASE_EFFECTS,
    PlanVerdict,
    drift_verdict,
    facts_text,
    features_text,
    forecast,
    outcome_text,
    plan_verdict,
    rewrite_text,
    run_verdict,
    shown_findings,
    span_text,
    statement_facts,
    table_readers,
)

_FEW = 8
"""Up to this number of tables, all details are unfolded."""
_CODE = re.compile(r"`([^`]+)`")


def plan_html(plan: Plan, context: Context) -> str:
    """The whole plan. What needs attention comes first."""
    refused = [table for table in plan.tables if table.refusals]
    tables = [*refused, *(table for table in plan.tables if table.applies)]
    return _page(
        "plan.html.j2",
        "Plan",
        plan_verdict(plan, context.refused),
        context,
        env=plan.env,
        plan=plan,
        tables=tables,
        forecast=forecast(plan),
        few=len(tables) <= _FEW,
    )


def run_html(report: RunReport, context: Context) -> str:
    """The whole run, each table with its timeline. What needs attention comes first."""
    wrong = [table for table in report.tables if table.outcome not in GOOD]
    tables = [*wrong, *(table for table in report.tables if table.outcome in GOOD)]
    planned = {table.name: table for table in context.plan.tables} if context.plan else {}
    return _page(
        "run.html.j2",
        "Apply",
        run_verdict(report),
        context,
        env=report.env,
        report=report,
        tables=tables,
        planned=planned,
        few=len(tables) <= _FEW,
    )


def drift_html(drift: Drift, context: Context) -> str:
    """All differences."""
    few = len(drift.tables) <= _FEW
    return _page("drift.html.j2", "Drift", drift_verdict(drift), context, env=drift.env, drift=drift, few=few)


def _page(template: str, subject: str, verdict: PlanVerdict, context: Context, **values: Any) -> str:
    style, script = _asset("page.css"), _asset("page.js")
    page = _environment().get_template(template)
    text = page.render(
        subject=subject,
        verdict=verdict,
        context=context,
        style=Markup(style),  # noqa: S704  # our own files
        script=Markup(script),  # noqa: S704
        policy=_policy(style, script),
        **values,
    )
    return inert_markup(text)


def _policy(style: str, script: str) -> str:
    """What a browser may load and run: only this style and this script."""
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


@cache
def _asset(name: str) -> str:
    data = get_data("tablectl.reports", f"templates/{name}")
    assert data is not None  # part of the package
    return f"\n{data.decode()}"


@cache
def _environment() -> Environment:
    made = Environment(
        autoescape=True,
        loader=PackageLoader("tablectl.reports"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    made.filters.update(prose=_prose, sql=_sql, value=value_text, span=span_text, outcome=outcome_text)
    made.globals.update(
        facts_text=facts_text,
        features=features_text,
        findings=shown_findings,
        origin_facts=origin_facts,
        table_facts=table_facts,
        effects=PHASE_EFFECTS,
        measures=measures,
        phases=_phases,
        plural=plural,
        protocols=_protocols,
        readers=table_readers,
        remarks=remarks,
        rewrites=_rewrites,
        statement_facts=statement_facts,
        state=_state,
        kind_of_run=_kind_of_run,
        made=_made,
        timeline=timeline,
    )
    return made


def _shown(value: object) -> object:
    """An output value: strings without unprintable characters, markup unchanged."""
    return value if isinstance(value, Markup) or not isinstance(value, str) else printable(value)


def _prose(text: str) -> Markup:
    """Text whose parts in backticks are shown as code."""
    parts = _CODE.split(printable(text))
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if index % 2 else escape(part) for index, part in enumerate(parts)
    )


def _sql(sql: str) -> Markup:
    return escape("\n".join(read_code(sql).shown()))


def _phases(table: TablePlan) -> list[tuple[Phase, list[Statement]]]:
    """The statements by phase; phases without statements are left out."""
    found = [(phase, [each for each in table.statements if each.phase is phase]) for phase in Phase]
    return [(phase, statements) for phase, statements in found if statements]


def _rewrites(table: TablePlan) -> str:
    """The worst cost of the rewrites; empty if nothing is rewritten."""
    return next((rewrite_text(each.rewrite) for each in table.statements if each.rewrite), "")


def _state(table: TablePlan) -> str:
    return "refused" if table.refusals else "changes"


def _kind_of_run(run: TableRun) -> str:
    return "good" if run.outcome in GOOD else "bad"


def _made(change: Change, run: TableRun) -> str:
    """The result of a change of the plan."""
    if change.id in run.later:
        return "applied, then changed by others"
    if change.id in run.changed:
        return "applied"
    return "unchanged" if change.id in run.already else "not applied"


def _protocols(before: ProtocolFact, after: ProtocolFact) -> list[Mapping[str, Any]]:
    """A row for each part of a protocol: its name, the current and the future value, and what is new."""
    rows = [
        _number("Reader version", before.reader, after.reader),
        _number("Writer version", before.writer, after.writer),
    ]
    pairs = (
        ("Reader features", before.reader_features, after.reader_features),
        ("Writer features", before.writer_features, after.writer_features),
    )
    for name, old, new in pairs:
        if old or new:
            added, kept = _added(old, new), _kept(old, new)
            same = "" if added and not kept else _listed(kept)
            rows.append({"name": name, "before": _listed(old), "same": same, "new": added})
    return rows


def _number(name: str, before: int, after: int) -> Mapping[str, Any]:
    changed = before != after
    return {"name": name, "before": str(before), "same": "" if changed else str(after), "new": [str(after)] * changed}


def _listed(features: Sequence[str]) -> str:
    return ", ".join(features) or "none"


def _kept(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return [each for each in new if each in old]


def _added(old: Sequence[str], new: Sequence[str]) -> list[str]:
    return [each for each in new if each not in old]
