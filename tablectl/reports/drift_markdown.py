"""Drift as a comment on an issue or a pull request: the verdict in one line, then what differs and who caused it."""

from __future__ import annotations

from collections.abc import Iterator

from tablectl.model.text import value_text
from tablectl.planning.drift import Drift, TableDrift
from tablectl.reports.context import Context
from tablectl.reports.drift_text import origin_facts, table_facts
from tablectl.reports.markdown import code, details, fitted, items, table
from tablectl.reports.plan_markdown import failure_details, foot, unmatched_text, verdict_line
from tablectl.reports.style import plural
from tablectl.reports.wording import drift_verdict, titled

_WHERE = "<code>tablectl drift</code> prints all of it."


def drift_markdown(drift: Drift, context: Context) -> str:
    """All drift that fits the length of a comment. Tables that cannot be read come first."""
    names = [*(each.name for each in drift.failures), *(each.spec.name.text for each in drift.tables)]
    head = [verdict_line(titled("Drift", drift.env), drift_verdict(drift)), *unmatched_text(drift.unmatched)]
    return fitted("\n\n".join(head), _blocks(drift), names, foot("drift", [], context), _WHERE)


def _blocks(drift: Drift) -> Iterator[str]:
    for failure in drift.failures:
        yield failure_details(failure, "cannot be read")
    for each in drift.tables:
        yield _table(each)


def _table(drift: TableDrift) -> str:
    rows = []
    facts: list[tuple[str, str]] = []
    for each in drift.differences:
        change, source = each.change, each.source
        place = code(f"{source.file}:{source.line}")
        rows.append((code(change.id), code(value_text(change.after)), code(value_text(change.before)), place))
        said = "; ".join(f"{label} {text}" for label, text in origin_facts(each.origin, drift))
        facts += [(change.id, said)] if said else []
    summary = f"{code(drift.spec.name.text)}: {plural(len(rows), 'value')} drifted"
    found = table(["Setting", "Declared", "Found", "Policy"], rows)
    return details(summary, f"<p>version {drift.live.version}</p>\n{found}", items([*facts, *table_facts(drift)]))
