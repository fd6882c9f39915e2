"""``tablectl explain``: the effective policy of a table, or what a term means."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from pathlib import Path
from typing import Annotated, Any

import typer

from tablectl.attributes.policy import OWNED_KEYS, VALUE_TYPES, declarable_keys
from tablectl.commands.output import Output
from tablectl.commands.parameters import (
    OF_PAGES,
    Cache,
    Env,
    PageFormat,
    PageReports,
    Place,
    PolicyPaths,
    Remote,
    VarValues,
    function,
    table_names,
)
from tablectl.commands.project import Project
from tablectl.commands.report_files import ReportFiles
from tablectl.commands.rivals import rivals_of
from tablectl.conflicts.transactions import Conflict
from tablectl.delta.dialects import dialect_of
from tablectl.documents.document import Document
from tablectl.insight.explain_term import document_of_term, explain_term
from tablectl.insight.explain_word import (
    PAGES,
    DocumentationPage,
    WordExplanation,
    document_of_fact,
    document_of_page,
    document_of_word,
    explained_words,
    fact_ids,
    facts_about,
    find_fact,
    nearest_words,
    pages_about,
    rows_about,
    words_with_facts,
)
from tablectl.insight.glossary import find_term, looks_like_a_term, term_names
from tablectl.lint_rules import RULES
from tablectl.lint_rules.client_support import needs_of_value
from tablectl.model.errors import ExitCode, InputError, UsageError
from tablectl.planning.explain_property import explain_property
from tablectl.policies.effective_policy import AmbiguousNameError, Explanation, is_word
from tablectl.policies.effective_policy import explain as explain_table
from tablectl.policies.own_rules import documentation_of, own_rules
from tablectl.policies.repository import Paths
from tablectl.policies.spelling_hints import nearest, shown
from tablectl.policies.variables import typed_place
from tablectl.reports.explain_document import (
    CodeExplanation,
    ExplainedTable,
    RuntimeNeed,
    document_of_code,
    document_of_explanation,
    document_of_property,
)
from tablectl.reports.render import ReportFormat
from tablectl.reports.rivals import rival_advice, rival_text
from tablectl.support.docs_folder import pages_folder

_CODE = re.compile(r"(?i:[BLPR]|D(?=0))[0-9]{3}\Z|[A-Z]{2,16}[0-9]{1,6}\Z")
_FACT = re.compile(r"(?:D[0-9]{1,4}|delta-[0-9][0-9.]{0,7})\Z", re.IGNORECASE)
_PAGE = re.compile(r"(?:docs/)?([A-Za-z0-9][\w-]*(?:/[A-Za-z0-9][\w-]*){0,2})\.md(?:#.*)?\Z")
"""A page that a message names."""
_PROPERTY = re.compile(r"delta\.[^`]", re.IGNORECASE)
"""A table known by its path has backticks around it."""


_Word = Annotated[
    str,
    typer.Argument(
        metavar="TABLE | WORD",
        help="A table, as in policies; or a word: a term, an attribute, a setting, an exception, a DELTA_… error "
        "class, a property, the code of a finding or an advice, an exit code, a page (docs/ci.md).",
        autocompletion=table_names,
    ),
]


@dataclass(frozen=True, kw_only=True)
class _Asked(Place):
    """What is explained, and where."""

    word: str
    paths: Paths = None
    live: str | None = None
    """A live table for which a term is explained."""


def explain_command(
    ctx: typer.Context,
    table: _Word,
    paths: PolicyPaths = None,
    *,
    live: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="TABLE", help="Explain the term for this live table.", autocompletion=table_names
        ),
    ] = None,
    variables: VarValues = None,
    env: Env = None,
    remote: Remote = None,
    form: PageFormat = ReportFormat.TEXT,
    report: PageReports = None,
) -> ExitCode:
    """Explain the effective policy of a table, or a word that tablectl or Delta prints: a term, a setting, a code.

    Examples: tablectl explain lake.sales.orders; tablectl explain window.drain; tablectl explain L004
    """
    reports = ReportFiles.of(form, report, known=OF_PAGES)
    asked = _Asked(word=table, paths=paths, live=live, variables=variables, env=env, remote=remote)
    reports.show(_explained(asked, ctx.obj), ctx.obj)
    return ExitCode.DONE


@function
def explain(
    table: str,
    paths: Paths = None,
    *,
    variables: Mapping[str, str] | None = None,
    env: str | None = None,
    remote: Remote = None,
    cache: Cache = True,
    directory: str | Path = ".",
    spark: Any = None,
) -> Explanation:
    """The effective policy of a table: each value, the line that declares it, and what it overrides.

    Options: ``variables``, ``env``, ``directory``. Reads no live table. Raises ``UsageError`` if no policy applies to
    the table.
    """
    place = Place(variables=variables, env=env, remote=remote, cache=cache, directory=directory, spark=spark)
    with place.open() as project:
        return explain_table(project.policies(paths), table, project.catalog, project.dialect)


_MISSPELT = 0.75
"""How alike a word and a term are of which one is the other with two letters swapped: ``gaet`` and ``gate``."""


def _explained(asked: _Asked, out: Output) -> Document:
    word = asked.word
    if typed_place(word) is not None:
        return _table(word, asked, out)
    if asked.live is None and _CODE.match(word):
        return _code(word, asked, out)
    if asked.live is None and _PROPERTY.match(word):
        return _property(word, asked, out)
    if _FACT.match(word):
        return _fact(word)
    if named := _PAGE.match(word):
        return _page(named[1])
    rows, facts = rows_about(word), facts_about(word)
    if rows or facts:
        return document_of_word(WordExplanation(word, rows, facts))
    # An identifier has two parts or more.
    single = "." not in word and word not in VALUE_TYPES
    if asked.live is not None or single or find_term(word) or looks_like_a_term(word):
        return _term(word, asked, out)
    return _table(word, asked, out)


def _code(word: str, asked: _Asked, out: Output) -> Document:
    """The code of a finding, with its severity here."""
    rule = RULES.get(word.upper()) or next((documentation_of(each) for each in own_rules() if each.code == word), None)
    if rule is None:
        near = nearest(word.upper(), tuple(RULES))
        hint = f"did you mean {near}?" if near else f"codes are {', '.join(RULES)}"
        raise UsageError(f"{word} is not a finding code", hint)
    lint = asked.open(out.note).config.lint.get(rule.code)
    here = lint.severity if lint and lint.severity else rule.severity
    reason = lint.reason if lint else ""
    return document_of_code(CodeExplanation(rule, here, reason))


def _property(key: str, asked: _Asked, out: Output) -> Document:
    """A table property."""
    dialect = asked.open(out.note).dialect
    about = explain_property(key, dialect)
    if about is None:
        near = nearest(key, (*OWNED_KEYS, *declarable_keys(dialect)))
        hint = f"did you mean {near}?" if near else "keys of your own have no meaning to Delta"
        raise UsageError(f"{key} is not a property known to Delta", hint)
    return document_of_property(about)


def _fact(id: str) -> Document:  # noqa: A002
    """A fact, by its id: ``D37``, ``delta-2.2``."""
    fact = find_fact(id)
    if fact is None:
        near = nearest(id, fact_ids())
        raise UsageError(f"no fact is called {shown(id)}", f"did you mean {near}?" if near else "see docs/reference")
    return document_of_fact(fact)


def _page(name: str) -> Document:
    """A page of the documentation, which messages name: ``docs/ci.md``."""
    folder = pages_folder()
    try:
        text = (folder / f"{name}.md").read_text(encoding="utf-8")
    except OSError:
        near = nearest(name, [each.relative_to(folder).as_posix().removesuffix(".md") for each in folder.rglob("*.md")])
        raise UsageError(
            f"no page is called {name}.md", f"did you mean {near}.md?" if near else "see README.md"
        ) from None
    return document_of_page(DocumentationPage(f"docs/{name}.md", text))


def _term(word: str, asked: _Asked, out: Output) -> Document:
    """A term of conflicts: an exception, an error class, an isolation level; with or without a live table."""
    term = find_term(word)
    if term is None:
        terms = (*term_names(), *words_with_facts(), *RULES)
        near, unread = nearest(word, (*explained_words(PAGES[:1]), *terms)), ""
        if asked.live is None and is_word(word):
            try:
                project = asked.open(out.note)
                name, specs = project.named(word, asked.paths), project.any_policies(asked.paths)
                # A pattern matches any word, and so also a misspelt term.
                misspelt = near and SequenceMatcher(None, word.casefold(), near.casefold()).ratio() >= _MISSPELT
                if not misspelt or name.key in {each.key for each in specs.declarations.named}:
                    return _table(word, asked, out)
            except AmbiguousNameError:
                raise
            except UsageError:  # the message below names terms, too
                pass
            except InputError as error:  # most words need no policies
                at = error.problems[0]
                unread = f", and the policies, which may name it, cannot be read: {at.file}:{at.line}: {at.message}"
        first, *more = dict.fromkeys((*([near] if near else []), *nearest_words(word, terms)))
        pages = " or ".join(f"`tablectl explain {each}`" for each in pages_about(word)[:3])
        hint = (f"see {pages}; " if pages else "") + f"did you mean {first}? Or {', '.join(more[:2])}"
        table_too = ", and no table, whose names have two or three parts" if "." not in word else ""
        raise UsageError(f"{shown(word)} is not a known term{unread or table_too}", hint)
    with asked.open(out.note) as project:
        found = project.find(asked.live, asked.paths) if asked.live is not None else None
        live = project.read(*found) if found else None
        files = term.conflict in {Conflict.APPEND, Conflict.DELETE_READ, Conflict.DELETE_DELETE}
        rivals = [
            (rival_text(each), rival_advice(each))
            for each in (rivals_of(project, replace(live, history=())) if live and term.conflict else ())
            if (each.kind in {"optimizes", "overwrites"}) is files
        ]
    return document_of_term(explain_term(term, live, project.dialect), rivals)


def _table(table: str, asked: _Asked, out: Output) -> Document:
    """What the policies declare for a table. Reads no live table."""
    project = asked.open(out.note)
    name = project.named(table, asked.paths)
    try:
        specs = project.policies_about(name, asked.paths)
        found = explain_table(specs, name.text, project.catalog, project.dialect)
    except UsageError:  # the names in the other files may be meant
        found = explain_table(project.policies(asked.paths), name.text, project.catalog, project.dialect)
    if all(each.pattern for each in found.declarations):
        entries = project.any_policies(asked.paths).declarations.named
        named = {each.table.last: each.text for each in entries if each.table}
        near = nearest(name.last, named)
        meant = f"; did you mean {named[near]}?" if near else ""
        out.note(f"no entry names {name.text}: only patterns match it, and it was not looked up{meant}")
    needs = _needs(found, project) if dialect_of(project.dialect).catalog_settings else {}
    return document_of_explanation(ExplainedTable.of(found, needs))


def _needs(found: Explanation, project: Project) -> dict[str, tuple[RuntimeNeed, ...]]:
    """What each value needs of the Databricks Runtime."""
    given = {each.key: each.given.value for each in found.resolved if each.given}
    truncates = given.get("truncate_history") == "true"
    needs: dict[str, tuple[RuntimeNeed, ...]] = {}
    for each, value in given.items():
        name, _, key = each.partition(".")
        if name in VALUE_TYPES:
            known = needs_of_value(name, key, value, truncates=truncates)
            needs[each] = tuple(RuntimeNeed.of(one, project.runtime) for one in known)
    return needs
