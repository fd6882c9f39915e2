"""A plan as a document: groups of equal changes, the most important first, or each table by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType

from tablectl.documents.document import (
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
    Lines,
    Listing,
    Names,
    Paragraph,
    Row,
    Verdict,
    overview_of,
    unread_title,
    without_tables,
)
from tablectl.documents.style import plural
from tablectl.model.plan import Phase, Plan, Statement, TablePlan
from tablectl.model.safe_text import natural_key, read_code, value_text
from tablectl.reports.besides_document import besides_card, besides_clauses, besides_groups
from tablectl.reports.report_context import Context
from tablectl.reports.table_groups import (
    Effect,
    FailureGroup,
    Group,
    PolicyConsent,
    Weight,
    failure_groups,
    plan_groups,
    shared_effects,
    sizes_text,
)
from tablectl.reports.wording import (
    NO_QUIET_HOUR,
    PHASE_EFFECTS,
    broken_text,
    facts_text,
    features_text,
    forecast,
    owner_facts,
    shown_findings,
    statement_facts,
    statement_loss,
    table_readers,
    tables_loss,
    unclustered_of_table,
    week_picture,
)

_NOTHING = Context()
_MOST_PLACES = 3
_MOST_STANDING = 3
_LASTING = "After the apply"
_PASSING = "During the apply"
_UNCHANGED = (Cell("nothing is changed"),)
_AS_EVERY = (Cell("as said above", tone="quiet"),)
_SHORT = 12
"""Hexadecimal digits of a digest that are shown to people."""


def plan_document(
    plan: Plan, context: Context, groups: tuple[Group, ...] | None = None, *, each_table: bool = False
) -> Document:
    """The document of a plan. ``groups`` are those of ``plan_groups``, if they are known already.

    With ``each_table``, every table is a group of its own.
    """
    failures = failure_groups(plan.failures)
    groups = plan_groups(plan) if groups is None else groups
    if each_table:
        failures = tuple(FailureGroup((each.name,), each) for each in plan.failures)
        groups = tuple(chain.from_iterable(_separate(group) for group in groups))
    shared = shared_effects(groups)
    groups = tuple(_without(shared, group) for group in groups)
    losses = [loss for group in groups if (loss := tables_loss(group.tables, context.now))]
    if len(losses) > 1 and all(NO_QUIET_HOUR in each for each in losses):
        shared = (*shared, Effect(NO_QUIET_HOUR, "pending"))
        context = replace(context, no_quiet_hour=True)
    unread = (failure_card(each, context, row=(failure_lines(each), (), _UNCHANGED)) for each in failures)
    heavy = tuple(each for each in groups if each.weight is not Weight.SAFE)
    aside = tuple(besides_card(each, context) for each in besides_groups(plan))
    cards = (
        *unread,
        *(_card(group, context) for group in heavy),
        *aside,
        *(_card(group, context) for group in groups if group not in heavy),
    )
    parts = plan_parts(plan, groups)
    besides = [each for each in shared if each.text not in PHASE_EFFECTS.values()]  # the forecast counts them
    said = [todo_text(plan), "; ".join(forecast(plan)), _everywhere(besides), _left_out(plan), _merging(plan)]
    notes = [f"{text[:1].upper()}{text[1:]}." for text in said if text]
    return Document(
        subject="Plan",
        verdict=plan_verdict(plan, groups, context.refused),
        env=plan.env,
        counts=tuple(_counts(plan, groups)),
        refusal=context.refused,
        notes=tuple(notes),
        everywhere=_everywhere(shared),
        facts=tuple(_facts(plan, context)),
        overview=overview_of(cards, "All changes, the most important first", ("Tables", "Change", _LASTING, _PASSING)),
        head=tuple(_irreversible(groups)),
        cards=cards,
        tail=tuple(_tail(plan)),
        summary=_summary(plan, parts),
    )


def _summary(plan: Plan, parts: Sequence[Cell]) -> tuple[Cell, ...]:
    """The last line of text."""
    besides = [Cell(each, tone="pending") for each in besides_clauses(plan)]
    if besides and not parts:
        return (*besides, Cell(all_unchanged(plan)))
    return (*parts, *besides) or (Cell(all_unchanged(plan), tone="good"),)


def _left_out(plan: Plan) -> str:
    """What an apply does with the tables that are refused or not readable; empty if there are none."""
    refused = sum(bool(table.refusals) for table in plan.tables)
    words = [word for count, word in ((refused, "refused"), (len(plan.failures), "not readable")) if count]
    if not words:
        return ""
    changed = sum(table.applies for table in plan.tables)
    others = f"changes the other {plural(changed, 'table')}" if changed else "changes nothing"
    left = f"{' or '.join(words)} ({plural(refused + len(plan.failures), 'table')})"
    return f"an apply leaves out what is {left}, and {others}"


def _merging(plan: Plan) -> str:
    """What merging does besides settings, as far as the title does not say it."""
    clauses = besides_clauses(plan)
    left = clauses if any(table.refusals for table in plan.tables) or plan.failures else clauses[1:]
    return f"a merge also {'; '.join(left)}" if left else ""


def _without(shared: Sequence[Effect], group: Group) -> Group:
    """The group with its own effects."""
    return replace(group, effects=tuple(each for each in group.effects if each not in shared))


def _everywhere(shared: Sequence[Effect]) -> str:
    """What applies to every row; empty if nothing does."""
    return f"every table that changes: {'; '.join(each.text for each in shared)}" if shared else ""


def _counts(plan: Plan, groups: Sequence[Group]) -> Iterator[Cell]:
    """``2 refused``, ``1 full rewrite``: the tables by their worst effect, the worst first; nothing without changes."""
    if not groups and not plan.failures and not plan.besides:
        return
    if plan.failures:
        yield Cell(f"{len(plan.failures):,} not readable", tone="bad", badge=True)
    for weight, count in weight_counts(groups):
        if weight is not Weight.SAFE:
            yield Cell(f"{count:,} {weight.word_of(count)}", tone=weight.kind, badge=True)
    for state in dict.fromkeys(each.state for each in besides_groups(plan)):
        count = sum(len(each.tables) for each in besides_groups(plan) if each.state == state)
        yield Cell(f"{count:,} {state}", tone="pending", badge=True)
    if safe := dict(weight_counts(groups)).get(Weight.SAFE):
        yield Cell(f"{safe:,} {Weight.SAFE.word}", tone="good", badge=True)
    if plan.unchanged:
        yield Cell(f"{len(plan.unchanged):,} unchanged", tone="quiet")


def _irreversible(groups: Sequence[Group]) -> Iterator[Names]:
    names = sorted((name for each in groups if each.lost for name in each.names), key=natural_key)
    if names:
        yield Names(f"{plural(len(names), 'table')} cannot be restored in full by a rollback", tuple(names))


def _separate(group: Group) -> list[Group]:
    if len(group.tables) == 1:
        return [group]
    return [one for table in group.tables for one in plan_groups_of(table)]


def table_plan_card(table: TablePlan) -> Card:
    """The part of one table."""
    (group,) = plan_groups_of(table)
    return _card(group, Context())


def plan_groups_of(table: TablePlan) -> tuple[Group, ...]:
    """The group of one table."""
    alone = Plan(format=1, tool="", dialect="", policies="", tables=(table,))
    return plan_groups(alone)


def _facts(plan: Plan, context: Context) -> Iterator[tuple[str, Cell]]:
    if context.digest:
        yield "Plan", Cell(context.digest[:_SHORT], code=True)
    if context.plan_file:
        yield "File", Cell(context.plan_file, code=True)
    yield "Dialect", Cell(plan.dialect)
    yield "Version", Cell(f"tablectl {plan.tool}")


def _tail(plan: Plan) -> Iterator[Block]:
    yield from without_tables(plan.unmatched)
    found = [
        (each.severity, f"{table.name}: {each.message} ({each.code})")
        for table in plan.standing
        for each in table.findings
    ]
    found.sort(key=lambda each: each[0] != "error")
    if found:
        more = len(found) - _MOST_STANDING
        left = [("more", f"{plural(more, 'finding')}: `tablectl lint`")] if more > 0 else []
        yield Facts((*found[:_MOST_STANDING], *left))
    if plan.unchanged:
        yield Names(f"{plural(len(plan.unchanged), 'table')} unchanged", plan.unchanged)


def failure_lines(group: FailureGroup) -> Lines:
    """The cell that says why tables cannot be read."""
    return (Cell(group.failure.message, tone="bad"),)


def failure_card(group: FailureGroup, context: Context = _NOTHING, *, row: tuple[Lines, ...] = ()) -> Card:
    """The part of tables that cannot be read. ``row`` as in ``Card``."""
    failure = group.failure
    places = list(dict.fromkeys(filter(None, map(context.place, group.names))))[:_MOST_PLACES]
    said = [("error", failure.message), *([("hint", failure.hint)] if failure.hint else [])]
    said += [("policy", ", ".join(f"`{each}`" for each in places))] if places else []
    return Card(
        names=group.names,
        state="not readable",
        tone="bad",
        mark="x",
        brief=(Facts(tuple(said)),),
        details=_every_name(group.names),
        row=row,
    )


def _row(group: Group, context: Context) -> tuple[Lines, ...]:
    stays, passes = _effects(group, context)
    changes = tuple(_change_lines(group, context))
    if group.weight is Weight.REFUSED:  # nothing changes, and the reasons are what is to be read
        return (*changes, *passes), (), _UNCHANGED
    return changes, stays, passes


def _effects(group: Group, context: Context) -> tuple[Lines, Lines]:
    """The lasting and the passing effects."""
    cells = [(each.lasting, Cell(each.text, tone=each.kind)) for each in group.effects]
    passing = (*(cell for lasting, cell in cells if not lasting), *_loss(group, context))
    stays = tuple(cell for lasting, cell in cells if lasting)
    if group.weight is Weight.REFUSED:
        return stays, passing
    return stays or _AS_EVERY, passing or _AS_EVERY


def _change_lines(group: Group, context: Context) -> Iterator[Cell]:
    """Each change with the line of the policy that declares it, then the consents with theirs."""
    asked = [(each.id, f"{each.id}: {value_text(each.before)} → {value_text(each.after)}") for each in group.changes]
    permitted = [(each.key, each.text) for each in group.consents]
    found = [(text, _places(group, context, key), key in dict(permitted)) for key, text in [*asked, *permitted]]
    for index, (text, places, consent) in enumerate(found):
        yield Cell(f"consent `{text}`") if consent else Cell(text, code=True)
        if index + 1 == len(found) or found[index + 1][1] != places:  # once for several of one line
            yield from places


def _places(group: Group, context: Context, change: str) -> Lines:
    """The lines of the policies that declare a change of the tables of a group, or an option."""
    found: dict[str, str] = {}
    for table in group.tables if context.sources else ():
        place = context.place(table.name, change)
        if place and place not in found:
            found[place] = context.link(table.name, change)
    shown = [Cell(place, code=True, href=href) for place, href in list(found.items())[:_MOST_PLACES]]
    more = len(found) - _MOST_PLACES
    return (*shown, *([Cell(f"and {more} more")] if more > 0 else []))


def _card(group: Group, context: Context) -> Card:
    table, alone = group.first, len(group.tables) == 1
    rows = tuple(
        ChangeRow(each.id, value_text(each.before), value_text(each.after), _places(group, context, each.id))
        for each in group.changes
    )
    equal = f"{plural(len(group.tables), 'table')} with equal changes"
    sizes = sizes_text(group.tables)
    about = facts_text(table) if alone else ", ".join(filter(None, (equal, sizes)))
    refused = group.weight is Weight.REFUSED
    stays, passes = _effects(group, context)
    if refused:
        passes = tuple(_placed(each, group, context) for each in group.effects)
    permitted = tuple(("consent", _consent(each, group, context)) for each in group.consents)
    permitted += tuple(("stream", line) for line in _stream_lines(group, context))
    details: list[Block] = [] if alone else [*_every_table(group)]
    details += [] if refused else _statements(table, context, alone=alone)
    return Card(
        names=group.names,
        state=group.weight.word,
        tone=group.weight.kind,
        mark="!" if refused else "~",
        effects=passes,
        lasting=stays,
        every_name=bool(group.lost),
        brief=(
            Paragraph(about, "quiet"),
            Changes(rows),
            *((Facts(permitted),) if permitted else ()),
            *((week,) if (week := week_picture(group.tables)) else ()),
        ),
        details=(*details, *_after(group)),
        about=(Cell(sizes),) if sizes else (),
        row=_row(group, context),
    )


def _placed(effect: Effect, group: Group, context: Context) -> Cell:
    """A reason for a refusal, with the line of the policy."""
    places = _places(group, context, effect.about) if effect.about else ()
    named = ", ".join(f"`{cell.text}`" if cell.code else cell.text for cell in places)
    return Cell(f"{effect.text}{f' ({named})' if named else ''}", tone=effect.kind)


def _stream_lines(group: Group, context: Context) -> Iterator[str]:
    """The declared streams of the tables; with the name of its table, if there are several."""
    for name in group.names:
        for line in context.streams.get(name, ()):
            yield f"{name}: {line}" if len(group.names) > 1 else line


def _consent(consent: PolicyConsent, group: Group, context: Context) -> str:
    """``allow: [lockout]`` and the line of the policy."""
    places = ", ".join(f"`{cell.text}`" if cell.code else cell.text for cell in _places(group, context, consent.key))
    return f"`{consent.text}`{f' ({places})' if places else ''}"


def _every_name(names: tuple[str, ...]) -> tuple[Block, ...]:
    return (Names(f"All {len(names):,} tables", names),) if len(names) > 1 else ()


def _every_table(group: Group) -> Iterator[Block]:
    rows = (Row(((Cell(each.name, code=True),), (Cell(facts_text(each)),))) for each in group.tables)
    grid = Grid(f"All {len(group.tables):,} tables", ("Table", "Now"), tuple(rows))
    yield Fold(f"All {len(group.tables):,} tables", (grid,))


def _loss(group: Group, context: Context) -> Lines:
    """What the statements of all tables of a group are expected to cost their writers."""
    text = _loss_text(tables_loss(group.tables, context.now), context)
    return (Cell(f"expected loss: {text}", tone="pending"),) if text else ()


def _loss_text(loss: str, context: Context) -> str:
    return loss.replace(f"; {NO_QUIET_HOUR}", "") if context.no_quiet_hour else loss


def _statements(table: TablePlan, context: Context, *, alone: bool) -> Iterator[Block]:
    if not alone:
        yield Paragraph("The statements for the first table; the other tables get the same.")
    for phase in Phase:
        statements = [each for each in table.statements if each.phase is phase]
        if statements:
            yield Heading(phase.word.upper(), PHASE_EFFECTS[phase], phase.value)
            yield from (_listing(table, each, context) for each in statements)
    if len(table.undo) > 1:
        yield Fold("Rollback (run in this order)", (Listing(tuple(map(read_code, table.undo))),))


def _listing(table: TablePlan, statement: Statement, context: Context) -> Listing:
    note = (("not undone", statement.undo_note),) if statement.undo_note else ()
    loss = _loss_text(statement_loss(table, statement, context.now), context)
    facts = (*statement_facts(statement), *([("expected loss", loss)] if loss else []))
    return Listing((read_code(statement.sql),), facts, tuple(map(read_code, statement.undo)), note)


def _after(group: Group) -> tuple[Block, ...]:
    table, facts = group.first, owner_facts(each.owner for each in group.tables)
    if len(group.tables) == 1 and table.location not in table.name:
        facts.append(("location", table.location))
    if group.weight is Weight.REFUSED:  # nothing of the rest happens
        return (Facts(tuple(facts)),) if facts else ()
    before, after = table.basis.protocol.protocol(), table.protocol_after.protocol()
    if before != after:
        facts.append(("protocol", f"{before.text()} → {after.text()}"))
    if features := features_text(table):
        facts.append(("features", features))
    if unclustered := unclustered_of_table(table):
        facts.append(("unclustered", f"{unclustered} is not clustered by these columns"))
    if readers := table_readers(table):
        facts.append(("readers", readers))
    facts += [(each.code, f"{each.severity}: {each.message}") for each in shown_findings(table)]
    return (Facts(tuple(facts)),) if facts else ()


def weight_counts(groups: Sequence[Group]) -> list[tuple[Weight, int]]:
    """How many tables have which weight, the most important first; no zeros."""
    counts = [(weight, sum(len(each.tables) for each in groups if each.weight is weight)) for weight in Weight]
    return [(weight, count) for weight, count in counts if count]


def plan_parts(plan: Plan, groups: Sequence[Group]) -> list[Cell]:
    """How many tables change, by their worst effect; are refused, cannot be read, and stay unchanged. Nothing where no
    table changes.
    """
    refused = sum(bool(table.refusals) for table in plan.tables)
    parts = []
    if changed := _changed(plan):
        weights = ", ".join(
            f"{count} {weight.word_of(count)}"
            for weight, count in weight_counts(groups)
            if weight is not Weight.REFUSED
        )
        parts.append(Cell(f"{plural(len(changed), 'table')} to change ({weights}), {_statement_count(changed)}"))
    if refused:
        parts.append(Cell(f"{refused} refused", tone="bad"))
    if plan.failures:
        parts.append(Cell(f"{len(plan.failures)} not readable", tone="bad"))
    if plan.unchanged and (plan.tables or plan.failures):
        parts.append(Cell(f"{len(plan.unchanged)} unchanged"))
    return parts


def todo_text(plan: Plan) -> str:
    """``3 tables to change, 9 statements``; empty if no table changes."""
    changed = _changed(plan)
    return f"{plural(len(changed), 'table')} to change, {_statement_count(changed)}" if changed else ""


def all_unchanged(plan: Plan) -> str:
    """``2 tables match their policies``, of a plan without anything else."""
    count = len(plan.unchanged)
    if not count:
        return "no tables"
    return "1 table matches its policy" if count == 1 else f"{count} tables match their policies"


def plan_verdict(plan: Plan, groups: Sequence[Group], refused: str = "") -> Verdict:
    """The verdict of a plan. ``refused`` says why the whole plan may not run."""
    parts = tuple(part.text for part in plan_parts(plan, groups))
    if refused:
        return Verdict("bad", "Refused", (refused, *parts))
    todo = bool(_changed(plan))
    if plan.failures:
        return Verdict("bad", unread_title(plan.tables or plan.unchanged), parts)
    if any(table.refusals for table in plan.tables):
        return Verdict("bad", "Refused in part" if todo else "Refused", parts)
    clauses = besides_clauses(plan)
    if todo:
        over = sum(bool(table.overwrites) for table in _changed(plan))
        said = [f"overwrites what others set on {plural(over, 'table')}"] if over else []
        return Verdict("pending", "; ".join((_title(groups), *said, *clauses[:1])), (*parts, *clauses[1:]))
    if clauses:
        return Verdict("pending", f"{clauses[0][:1].upper()}{clauses[0][1:]}", (*clauses[1:], all_unchanged(plan)))
    wrong = sum(any(each.severity == "error" for each in table.findings) for table in plan.standing)
    errors = (f"{plural(wrong, 'table')} with an error",) if wrong else ()
    return Verdict("good", "No changes", (all_unchanged(plan), *errors))


TITLES: Mapping[Weight, str] = MappingProxyType(
    {
        Weight.LOCKOUT: "Locks out a client",
        Weight.IRREVERSIBLE: "Cannot be undone in full",
        Weight.BLOCKING: "Concurrent writes fail once",
        Weight.PARTIAL: "Rewrites some data",
        Weight.WARNED: "Writers continue, and a lint rule warns",
        Weight.SAFE: "Safe to apply",
    }
)
"""The verdict of a plan by its worst effect."""


def _title(groups: Sequence[Group]) -> str:
    """What matters most about the changes."""
    worst = min(each.weight for each in groups)
    broken = broken_text([table for each in groups for table in each.tables if each.weight is not Weight.REFUSED])
    if worst is not Weight.REWRITE:
        return f"{TITLES[worst]}{f': {broken}' if broken else ''}"
    count = sum(len(each.tables) for each in groups if each.weight is worst)
    lost = sum(len(each.tables) for each in groups if each.lost)  # a rewrite itself can be undone by another one
    cannot = f"; {plural(lost, 'table')} cannot be restored in full by a rollback" if lost else ""
    return f"Rewrites all data of {plural(count, 'table')}{cannot}{f'; breaks {broken}' if broken else ''}"


def _changed(plan: Plan) -> list[TablePlan]:
    return [table for table in plan.tables if table.applies]


def _statement_count(tables: Sequence[TablePlan]) -> str:
    return plural(sum(len(table.statements) for table in tables), "statement")
