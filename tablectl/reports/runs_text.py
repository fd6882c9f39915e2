"""Earlier runs, and the undo of one, as text and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tablectl.model.plan import Value
from tablectl.model.table import Commit
from tablectl.model.text import printable, time_text, value_text
from tablectl.planning.past_runs import PastRun, PastRuns
from tablectl.planning.undo import TableUndo, ValueUndo
from tablectl.reports.findings_text import failure_lines
from tablectl.reports.mask import Mask
from tablectl.reports.style import Style, plural

_NAMED = 8


def runs_text(found: PastRuns, style: Style, *, verbose: bool) -> str:
    """Each run with its time, its commits and its tables, the newest first."""
    lines: list[str] = []
    for run in found.runs:
        lines += [*_run(run, style, verbose=verbose), ""]
    for failure in found.failures:
        lines += [*failure_lines(failure, style), ""]
    if not found.runs and not found.failures:
        return "No commit of these tables was made by an apply.\n"
    tables = {table.table for run in found.runs for table in run.tables}
    parts = [f"{plural(len(found.runs), 'run')} on {plural(len(tables), 'table')}"]
    parts += [f"{len(found.failures)} not readable"] if found.failures else []
    return "\n".join([*lines, *style.sentence("Runs", parts)]) + "\n"


def _run(run: PastRun, style: Style, *, verbose: bool) -> list[str]:
    began, ended = time_text(run.began) or "at an unknown time", time_text(run.ended)
    lines = [f"{style.paint(run.stamp.run, 'bold')}  {began}"]
    facts = [("until", ended)] if ended and ended != began else []
    facts += [("by", ", ".join(run.users)), ("plan", run.stamp.plan[:12])]
    facts += [(name, why) for name, why in (("proceed", run.stamp.proceed), ("override", run.stamp.override)) if why]
    shown = run.tables if verbose else run.tables[:_NAMED]
    for table in shown:
        facts.append(("table", f"{table.table}: {_commits(table.commits)}"))
    if len(shown) < len(run.tables):
        facts.append(("", f"and {plural(len(run.tables) - len(shown), 'table')} more (--verbose shows all)"))
    return lines + style.facts(facts, 2)


def _commits(commits: Sequence[Commit]) -> str:
    versions = [commit.version for commit in commits]
    span = f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
    counts = Counter(commit.operation for commit in commits)
    named = (f"{name} ({count} times)" if count > 1 else name for name, count in counts.items())
    return f"{span}: {', '.join(named)}"


def runs_json(found: PastRuns) -> dict[str, Any]:
    """The runs for machines."""
    return {
        "runs": [
            {
                "run": run.stamp.run,
                "plan": run.stamp.plan,
                "began": run.began or None,
                "ended": run.ended or None,
                "users": list(run.users),
                "proceed": run.stamp.proceed,
                "override": run.stamp.override,
                "tables": [
                    {
                        "table": table.table,
                        "commits": [{"version": each.version, "operation": each.operation} for each in table.commits],
                    }
                    for table in run.tables
                ],
            }
            for run in found.runs
        ],
        "failures": [{"name": each.name, "message": each.message} for each in found.failures],
        "unmatched": list(found.unmatched),
    }


def undo_text(run: PastRun, tables: Sequence[TableUndo], mask: Mask, style: Style) -> str:
    """What a run changed, table by table, and what can be undone."""
    lines = [f"{style.paint('Run', 'bold')} {run.stamp.run}, {time_text(run.began) or 'at an unknown time'}", ""]
    for table in tables:
        lines += [*_undo(table, mask, style), ""]
    return "\n".join(lines) + "\n"


def _undo(table: TableUndo, mask: Mask, style: Style) -> list[str]:
    mark = style.paint("!", "red", "bold") if table.refusals or table.trouble else style.paint("~", "yellow", "bold")
    lines = [f"{mark} {style.paint(printable(table.spec.name.text), 'bold')}"]
    lines += style.prose("commits", _commits(table.commits), 2)
    if table.trouble:
        hint = "the plan file and the report of the run hold the values from before it"
        return lines + style.prose("refused", f"the values from before the run are unknown: {table.trouble}; {hint}", 2)
    for value in table.values:
        lines += style.prose(_word(value), _values(value, mask), 4, 12)
    if table.refusals:
        lines += style.prose(
            "refused", "values were changed after the run, so nothing on this table is undone: change its policy", 2
        )
    elif not table.values:
        lines += style.prose("nothing", "the run changed no value that a policy declares: it only rewrote files", 2)
    if table.stays:
        lines += style.prose("stays", f"protocol features: {', '.join(table.stays)}", 2)
    return lines


def _word(value: ValueUndo) -> str:
    return "changed" if value.conflicts else "undone" if value.undone else "undo"


def _values(value: ValueUndo, mask: Mask) -> str:
    change = value.change

    def shown(each: Value) -> str:
        return value_text(mask.shown(change, each))

    text = f"{change.id}: {shown(change.after)} → {shown(change.before)}"
    if value.conflicts:
        return f"{text}; now {shown(value.found)}, which the run did not set"
    return f"{text} (already so)" if value.undone else text


def undo_json(run: PastRun, tables: Sequence[TableUndo], mask: Mask) -> dict[str, Any]:
    """The undo for machines."""
    return {
        "run": run.stamp.run,
        "plan": run.stamp.plan,
        "tables": [
            {
                "table": table.spec.name.text,
                "versions": [commit.version for commit in table.commits],
                "outcome": "refused" if table.refusals or table.trouble else "undo" if table.values else "nothing",
                "trouble": table.trouble,
                "values": [
                    {
                        "attribute": value.change.attribute,
                        "key": value.change.key,
                        "before": _json(value, value.change.before, mask),
                        "after": _json(value, value.change.after, mask),
                        "found": _json(value, value.found, mask),
                        "outcome": "changed since" if value.conflicts else "already" if value.undone else "undo",
                    }
                    for value in table.values
                ],
                "stays": list(table.stays),
            }
            for table in tables
        ],
    }


def _json(value: ValueUndo, each: Value, mask: Mask) -> Any:
    shown = mask.shown(value.change, each)
    return list(shown) if isinstance(shown, tuple) else shown
