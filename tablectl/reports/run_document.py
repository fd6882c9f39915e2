"""A run as a document: what needs attention first, tables that went equally well together."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Sequence

from tablectl.applying.run_report import RunOutcome, RunReport, StatementRun, TableRun
from tablectl.model.code_block import read_code
from tablectl.model.plan import Change, TablePlan
from tablectl.model.text import listed, natural_key, value_text
from tablectl.reports.context import Context
from tablectl.reports.document import (
    Block,
    Card,
    Cell,
    ChangeRow,
    Changes,
    Document,
    Facts,
    Fold,
    Grid,
    Heading,
    Listing,
    Paragraph,
    Picture,
    Row,
    Tone,
)
from tablectl.reports.groups import failure_groups
from tablectl.reports.plan_document import failure_card, name_lines
from tablectl.reports.run_wording import WORTH_TELLING, canary_texts, remarks, shared_risks
from tablectl.reports.style import plural
from tablectl.reports.timeline import Timeline, timeline
from tablectl.reports.wording import (
    GOOD,
    commit_text,
    outcome_text,
    run_parts,
    run_verdict,
    span_text,
)

_MOST_NAMES = 10
_MARKS = {RunOutcome.APPLIED: "+", RunOutcome.ALREADY: "=", RunOutcome.WAITING: "…"}


def run_document(report: RunReport, context: Context, *, each_table: bool = False) -> Document:
    """The document of a run. With ``each_table``, every table has its own part."""
    failures = failure_groups(report.failures)
    groups = _groups(report.tables, separate=each_table)
    planned = {table.name: table for table in context.plan.tables} if context.plan else {}
    shared = {} if each_table else shared_risks(report.tables)
    cards = (*map(failure_card, failures), *(_card(group, planned, shared) for group in groups))
    rows = [_row(card, (Cell(card.state, tone="bad"),), index) for index, card in enumerate(cards[: len(failures)])]
    rows += [
        _row(card, tuple(_result(group)), len(failures) + index)
        for index, (card, group) in enumerate(zip(cards[len(failures) :], groups, strict=True))
    ]
    return Document(
        subject="Apply",
        verdict=run_verdict(report),
        env=report.env,
        notes=(*_notes(report), *(f"{_some(names)}: {text}" for text, names in shared.items())),
        facts=(
            ("Run", Cell(report.run, code=True)),
            ("Plan", Cell(report.plan[:12], code=True)),
            *((("Took", Cell(span_text(report.took_ms))),) if report.took_ms else ()),
            ("Exit code", Cell(str(int(report.exit_code)))),
        ),
        overview=Grid("All tables of the run", ("Tables", "Result"), tuple(rows)) if rows else None,
        cards=cards,
        summary=tuple(map(Cell, run_parts(report))),
    )


def table_run_card(run: TableRun) -> Card:
    """The part of one table."""
    return _card((run,), {})


def _notes(report: RunReport) -> Iterator[str]:
    if report.proceed:
        yield f"Proceeded despite active writers: {report.proceed}"
    if report.override:
        yield f"Override of the calendar: {report.override}"
    if report.canary:
        yield from (note[:1000] for note in canary_texts(report.canary))
    yield from (note[:1000] for note in report.notes[:10])


def _groups(tables: Sequence[TableRun], *, separate: bool) -> list[tuple[TableRun, ...]]:
    """Tables with equal results together: failures first, then by name."""
    found: dict[Hashable, list[TableRun]] = {}
    for index, run in enumerate(sorted(tables, key=lambda each: (each.outcome in GOOD, natural_key(each.name)))):
        found.setdefault(index if separate or _alone(run) else _key(run), []).append(run)
    return [tuple(each) for each in found.values()]


def _alone(run: TableRun) -> bool:
    """Whether there is more to say of a table than what it has in common with others."""
    more = (run.foreign, run.notes, run.later, run.owed, run.streams, run.shut)
    return any(more)


def _key(run: TableRun) -> Hashable:
    """What equal results have in common."""
    message = run.message.replace(run.name, "\0")
    statements = tuple((each.id, each.phase, bool(each.error)) for each in run.statements)
    commits = tuple(each.operation for each in run.commits)
    return run.outcome, message, run.hint, run.changed, run.already, statements, commits, run.possible_failures


def _row(card: Card, result: tuple[Cell, ...], index: int) -> Row:
    return Row((name_lines(card.names, card.state, card.tone), result), index, card.names)


def _result(group: Sequence[TableRun]) -> Iterator[Cell]:
    run = group[0]
    if run.message:
        yield Cell(run.message, tone="bad" if run.outcome not in GOOD else "")
    commits = sum(len(each.commits) for each in group)
    if commits:
        yield Cell(plural(commits, "commit"))
    if closed := max(each.window_ms or 0 for each in group):
        yield Cell(f"gate closed for {'at most ' * (len(group) > 1)}{span_text(closed)}")
    if (waited := max(each.drain_ms for each in group)) >= WORTH_TELLING:
        yield Cell(f"waited {'at most ' * (len(group) > 1)}{span_text(waited)} for writers")
    if (paced := max(each.paced_ms for each in group)) >= WORTH_TELLING:
        yield Cell(f"waited {'at most ' * (len(group) > 1)}{span_text(paced)} for `window.max_bytes_per_hour`")


def _some(names: Sequence[str]) -> str:
    return f"{plural(len(names), 'table')} ({listed(names, _MOST_NAMES)})"


def _card(group: tuple[TableRun, ...], planned: dict[str, TablePlan], shared: Collection[str] = ()) -> Card:
    run, good = group[0], group[0].outcome in GOOD
    tone: Tone = "pending" if run.outcome is RunOutcome.WAITING else "good" if good else "bad"
    return Card(
        names=tuple(each.name for each in group),
        state=outcome_text(run),
        tone=tone,
        mark=_MARKS.get(run.outcome, "x"),
        brief=tuple(_brief(group, shared)),
        details=(*_changes(run, planned), *(_details(run) if len(group) == 1 else _tables(group))),
    )


def _brief(group: Sequence[TableRun], shared: Collection[str]) -> Iterator[Block]:
    run = group[0]
    said = [("why", run.message), ("hint", run.hint)]
    facts = [(label, text) for label, text in said if text]
    if len(group) == 1:
        facts += _commits(run)
        facts += [("others", commit_text(each)) for each in run.foreign if each.metadata and not each.run]
        data = sum(not each.metadata and not each.run for each in run.foreign)
        facts += [("others", plural(data, "commit") + " of data")] if data else []
        facts += [(label, text) for label, text in remarks(run) if text not in shared]
    elif times := "; ".join(cell.text for cell in _result(group) if cell.text != run.message):
        facts.append(("commits", times))
    if facts:
        yield Facts(tuple(facts))
    failed = [each for each in run.statements if each.error]
    if failed and len(group) == 1:
        yield _listing(failed[-1])


def _changes(run: TableRun, planned: dict[str, TablePlan]) -> Iterator[Block]:
    if run.name in planned:
        yield Changes(tuple(_change(each, run) for each in planned[run.name].changes))


def _commits(run: TableRun) -> list[tuple[str, str]]:
    if not run.commits:
        return []
    text = ", ".join(str(commit.version) for commit in run.commits)
    made, separate = run.metadata_commits, run.separate_commits
    times = [
        (run.window_ms, "gate closed for {}"),
        (run.exposed_ms, "{} from the first blocking commit to the last"),
        (run.rewrite_ms, "rewrote for {}"),
        (run.drain_ms if run.drain_ms >= WORTH_TELLING else 0, "waited {} for writers"),
    ]
    parts = [text + (f" ({made} of metadata instead of {separate})" if separate > made else "")]
    return [("commits", ", ".join([*parts, *(words.format(span_text(spent)) for spent, words in times if spent)]))]


def _change(change: Change, run: TableRun) -> ChangeRow:
    return ChangeRow(change.id, value_text(change.before), value_text(change.after), result=_made(change.id, run))


def _made(change: str, run: TableRun) -> str:
    """The result of a change of the plan."""
    if change in run.later:
        return "applied, then changed by others"
    if change in run.changed:
        return "applied"
    return "unchanged" if change in run.already else "not applied"


def _details(run: TableRun) -> Iterator[Block]:
    line = timeline(run)
    if line.drawn:
        yield Picture(line, run.name)
    if line.events:
        yield _events(line)
    if run.statements:
        yield Heading(f"SQL: {plural(len(run.statements), 'statement')}", style="sql")
        yield from map(_listing, run.statements)


def _events(line: Timeline) -> Fold:
    rows = (Row(((Cell(each.when),), (Cell(each.kind),), (Cell(each.text),))) for each in line.events)
    grid = Grid("Gate, statements and commits", ("When", "What", "Which"), tuple(rows))
    return Fold(f"{plural(len(line.events), 'event')} in order", (grid,))


def _listing(statement: StatementRun) -> Listing:
    facts = [("phase", f"{statement.phase.word}, {span_text(statement.milliseconds)}")]
    facts += [("failed", statement.error)] if statement.error else []
    return Listing((read_code(statement.sql),), tuple(facts))


def _tables(group: Sequence[TableRun]) -> Iterator[Block]:
    drivers = any(each.driver for each in group)
    columns = ("Table", "Commits", "Gate closed", *(("Driver",) if drivers else ()))
    rows = (
        Row(
            (
                (Cell(each.name, code=True),),
                (Cell(", ".join(str(commit.version) for commit in each.commits) or "none"),),
                (Cell(span_text(each.window_ms) if each.window_ms else ""),),
                *(((Cell(each.driver, code=True),),) if drivers else ()),
            )
        )
        for each in group
    )
    title = f"All {len(group):,} tables"
    yield Fold(title, (Grid(title, columns, tuple(rows)),))
    if group[0].statements:
        yield Paragraph("The statements for the first table; the other tables got the same.")
        yield from map(_listing, group[0].statements)
