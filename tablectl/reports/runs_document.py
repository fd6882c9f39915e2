"""Earlier runs, the undo of one, and edits of policies, as documents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import unified_diff
from functools import partial

from tablectl.attributes.base import policy_line
from tablectl.documents.document import (
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    CommentEnd,
    Document,
    Facts,
    Listing,
    Tone,
    Verdict,
)
from tablectl.documents.style import plural
from tablectl.model.commit import Commit
from tablectl.model.safe_text import Code, time_text, value_text
from tablectl.planning.undo import Outcome, PastRun, PastRuns, RunUndo, TableUndo, ValueUndo
from tablectl.policies.write_live_values import Adoption
from tablectl.reports.mask import Mask
from tablectl.reports.plan_document import failure_card
from tablectl.reports.table_groups import failure_groups

_NAMED = 8


def document_of_runs(found: PastRuns, mask: Mask) -> Document:
    """Each run with its time, its commits and its tables, the newest first."""
    masked = mask.runs(found)
    end = CommentEnd.of("runs")
    return replace(
        _runs(masked, most=_NAMED), in_full=partial(_runs, masked, most=None), record=masked, comment=lambda: end
    )


def _runs(found: PastRuns, most: int | None) -> Document:
    tables = {table.table for run in found.runs for table in run.tables}
    parts = [f"{plural(len(found.runs), 'run')} on {plural(len(tables), 'table')}"] if found.runs else []
    parts += [f"{len(found.failures)} not readable"] if found.failures else []
    parts = parts or ["no commit of these tables was made by an apply"]
    verdict = Verdict("bad" if found.failures else "good", "Runs" if found.runs else "No runs", tuple(parts))
    return Document(
        subject="Runs",
        verdict=verdict,
        cards=(*(_run(each, most) for each in found.runs), *map(failure_card, failure_groups(found.failures))),
        summary=tuple(map(Cell, parts)),
    )


def _run(run: PastRun, most: int | None) -> Card:
    began, ended = time_text(run.began) or "at an unknown time", time_text(run.ended)
    facts = [("until", ended)] if ended and ended != began else []
    facts += [("by", "; ".join(filter(None, (run.stamp.by, *run.users)))), ("plan", run.stamp.plan[:12])]
    facts += [(name, why) for name, why in (("proceed", run.stamp.proceed), ("override", run.stamp.override)) if why]
    facts += [("table", f"{table.table}: {_commits(table.commits)}") for table in run.tables[:most]]
    if most is not None and len(run.tables) > most:
        facts.append(("", f"and {plural(len(run.tables) - most, 'table')} more (--verbose shows all)"))
    return Card((run.stamp.run,), began, "", "", noun="run", brief=(Facts(tuple(facts)),))


def _commits(commits: Sequence[Commit]) -> str:
    versions = [commit.version for commit in commits]
    span = f"version {versions[0]}" if len(versions) == 1 else f"versions {versions[0]} to {versions[-1]}"
    counts = Counter(commit.operation for commit in commits)
    named = (f"{name} ({count} times)" if count > 1 else name for name, count in counts.items())
    return f"{span}: {', '.join(named)}"


def document_of_undo(undo: RunUndo, mask: Mask) -> Document:
    """What a run changed, table by table, and what can be undone."""
    masked = mask.undo(undo)
    counts = Counter(table.outcome for table in masked.tables)
    words: dict[Outcome, str] = {"undo": "to undo", "nothing": "without a change of values", "refused": "refused"}
    parts = [f"run {masked.run.stamp.run}, {time_text(masked.run.began) or 'at an unknown time'}"]
    parts += [f"{plural(counts[each], 'table')} {said}" for each, said in words.items() if counts[each]]
    parts += [f"{len(masked.failures)} not readable"] if masked.failures else []
    bad = bool(counts["refused"] or masked.failures)
    end = CommentEnd.of("undo")
    return Document(
        subject="Undo",
        verdict=Verdict("bad" if bad else "pending", "Refused" if counts["refused"] else "Undo", tuple(parts)),
        cards=(*map(_undo, masked.tables), *map(failure_card, failure_groups(masked.failures))),
        summary=tuple(map(Cell, parts)),
        record=masked,
        comment=lambda: end,
    )


def _undo(table: TableUndo) -> Card:
    tone: Tone = "bad" if table.outcome == "refused" else "pending"
    return Card(
        names=(table.name,),
        state=table.outcome,
        tone=tone,
        mark="!" if table.outcome == "refused" else "~",
        brief=tuple(_of_table(table)),
    )


def _of_table(table: TableUndo) -> Iterator[Block]:
    yield Facts((("commits", _commits(table.commits)),))
    if table.values:
        yield Changes(tuple(map(_change, table.values)), ("After the run", "Before the run"), "Values", ("", ""))
    facts = []
    if table.trouble:
        hint = "the plan file and the report of the run hold the values from before it"
        facts.append(("refused", f"the values from before the run are unknown: {table.trouble}; {hint}"))
    elif table.outcome == "refused":
        facts.append(
            ("refused", "values were changed after the run, so nothing on this table is undone: change its policy")
        )
    elif not table.values:
        facts.append(("nothing", "the run changed no value that a policy declares: it only rewrote files"))
    if table.stays:
        facts.append(("stays", f"protocol features: {', '.join(map(_stays, table.stays))}"))
    if facts:
        yield Facts(tuple(facts))


def _stays(feature: str) -> str:
    line = policy_line(feature)
    return f"{feature} (`{line}` removes it)" if line else f"{feature} (no statement drops it)"


def _change(value: ValueUndo) -> ChangeRow:
    change = value.change
    said = {
        "changed since": f"now {value_text(value.found)}, which the run did not set",
        "already": "already so",
        "undo": "",
    }[value.outcome]
    return ChangeRow(change.id, value_text(change.after), value_text(change.before), result=said)


def document_of_adoption(adoption: Adoption, before: Mapping[str, str], secret: Callable[[str], str]) -> Document:
    """The changes to policy files as a unified diff, and what stays different and why. ``secret`` hides values."""
    blocks: list[Block] = []
    for file in sorted(adoption.texts):
        old, new = (text.splitlines(keepends=True) for text in (before[file], adoption.texts[file]))
        lines = (line.rstrip("\r\n") for line in unified_diff(old, new, file, file))
        blocks.append(Listing((Code("diff", tuple(secret("\n".join(lines)).split("\n"))),)))
    left = (
        ("skipped", f"{each.id} of {each.table.text} ({each.source.file}:{each.source.line}): {each.reason}")
        for each in adoption.left
    )
    blocks += [Facts((each,)) for each in left]
    return Document(subject="Policies", verdict=None, tail=tuple(blocks), record=adoption)
