"""Drift as text: what differs, where it is declared, and who caused it, when and how."""

from __future__ import annotations

from collections.abc import Mapping
from difflib import unified_diff

from tablectl.applying.stamp import read_stamp
from tablectl.log.blame import Origin
from tablectl.model.table import CatalogDifference, Commit
from tablectl.model.text import printable, time_text, value_text
from tablectl.planning.drift import Difference, Drift, TableDrift
from tablectl.policies.adopt import Adoption
from tablectl.policies.yaml_nodes import SourceFile
from tablectl.reports.plan_text import failure_lines
from tablectl.reports.style import Style, plural
from tablectl.reports.wording import drift_parts, titled, unclustered_of_changes

_PARAMETERS = ("mode", "predicate", "version", "timestamp")
"""The parameters that help people to recognize an operation; properties and columns are reported separately."""
_LONGEST = 60


def drift_text(drift: Drift, style: Style) -> str:
    """Every table that differs, followed by the summary."""
    lines: list[str] = []
    for table in drift.tables:
        lines += [*_table(table, style), ""]
    for failure in drift.failures:
        lines += [*failure_lines(failure, style), ""]
    return "\n".join([*lines, *_summary(drift, style)]) + "\n"


def table_drift_text(table: TableDrift, style: Style) -> str:
    """The report of one table."""
    return "\n".join(_table(table, style)) + "\n"


def _table(table: TableDrift, style: Style) -> list[str]:
    mark = style.paint("~", "yellow", "bold")
    lines = [
        f"{mark} {style.paint(printable(table.spec.name.text), 'bold')}",
        style.paint(f"  version {table.live.version}", "dim"),
    ]
    for difference in table.differences:
        lines += _difference(difference, table, style)
    return lines + style.facts(table_facts(table), 4)


def _difference(difference: Difference, table: TableDrift, style: Style) -> list[str]:
    change, origin = difference.change, difference.origin
    declared = style.paint(value_text(change.after), "green")
    found = style.paint(value_text(change.before), "red")
    lines = [f"    {printable(change.id)}", f"      declared {declared}, found {found}"]
    for label, text in origin_facts(origin, table):
        lines += style.prose(label, text, 6)
    return lines + style.prose("policy", _at(difference.source), 6)


def origin_facts(origin: Origin, table: TableDrift) -> list[tuple[str, str]]:
    """Since when a difference exists and who caused it, as labels and prose."""
    if origin.commit:
        return [("since", _since(origin, origin.commit)), ("by", _by(origin.commit))]
    if table.trouble:
        return []
    return [("since", f"before version {origin.before}, the oldest one in the history")]


def table_facts(table: TableDrift) -> list[tuple[str, str]]:
    """What is known about a table in addition to its differences, as labels and prose."""
    facts = [("applied", f"last by tablectl in {_commit(table.applied)}")] if table.applied else []
    unclustered = unclustered_of_changes((each.change for each in table.differences), table.live.marks)
    facts += [("unclustered", f"{unclustered} is not clustered by the declared columns")] if unclustered else []
    facts += [("catalog", catalog_text(each)) for each in table.catalog]
    return facts + ([("error", f"its history cannot be read: {table.trouble}")] if table.trouble else [])


def catalog_text(difference: CatalogDifference) -> str:
    """Where a catalog disagrees with the log of its table."""
    told, logged = value_text(difference.catalog), value_text(difference.log)
    return f"disagrees with the log: {printable(difference.what)} is {told} in the catalog and {logged} in the log"


def _since(origin: Origin, commit: Commit) -> str:
    was = f"; before that it was {value_text(origin.was)}" if origin.known else ""
    return _commit(commit) + was


def _commit(commit: Commit) -> str:
    """``version 13, 2026-11-21 11:00:00 UTC: WRITE mode Overwrite, of run 0f3a (plan 81c2…)``."""
    when = f", {at}" if (at := time_text(commit.timestamp)) else ""
    shown = [f"{name} {_cut(commit.parameters[name])}" for name in _PARAMETERS if _told(commit, name)]
    what = " ".join([commit.operation or "unknown operation", *shown])
    return f"version {commit.version}{when}: {what}{_stamped(commit)}"


def _told(commit: Commit, name: str) -> bool:
    return commit.parameters.get(name, "") not in {"", "[]"}


def _stamped(commit: Commit) -> str:
    stamp = read_stamp(commit.user_metadata)
    return f", by tablectl, run {_cut(stamp.run)}, plan {stamp.plan[:12]}" if stamp else ""


def _by(commit: Commit) -> str:
    """The user, the client and the job."""
    return ", ".join([f"{commit.user or 'unknown user'} ({commit.client.text()})", *_job(commit)])


def _job(commit: Commit) -> list[str]:
    name, number = commit.job.get("jobName", ""), commit.job.get("jobId", "")
    run = commit.job.get("jobRunId", "") or commit.job.get("runId", "")
    parts = [f"job {' '.join(filter(None, [name, number]))}"] if name or number else []
    parts += [f"run {run}"] if run else []
    notebook, cluster = commit.job.get("notebookId", ""), commit.job.get("clusterId", "")
    return [*parts, *([f"notebook {notebook}"] if notebook else []), *([f"cluster {cluster}"] if cluster else [])]


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"


def _summary(drift: Drift, style: Style) -> list[str]:
    if not drift.tables and not drift.failures:
        return [
            style.paint(f"{titled('No drift', drift.env)}: {plural(len(drift.as_declared), 'table')} checked.", "green")
        ]
    return style.sentence(
        titled("Drift", drift.env), [style.paint(part, colour) for part, colour in drift_parts(drift)]
    )


def adoption_text(adoption: Adoption, before: Mapping[str, str], style: Style) -> str:
    """The changes to the files as a unified diff, and what stays different and why."""
    lines: list[str] = []
    for file in sorted(adoption.texts):
        old, new = (text.splitlines(keepends=True) for text in (before[file], adoption.texts[file]))
        lines += [_diff_line(line.rstrip("\r\n"), style) for line in unified_diff(old, new, file, file)]
    for wish, why in adoption.left:
        lines += style.prose("skipped", f"{wish.id} of {wish.table.text} ({_at(wish.source)}): {why}", 0)
    return "\n".join(lines) + "\n"


def _diff_line(line: str, style: Style) -> str:
    colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
    return style.paint(printable(line), colour) if colour else printable(line)


def _at(source: SourceFile) -> str:
    return f"{source.file}:{source.line}"
