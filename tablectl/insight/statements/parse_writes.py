"""Parse one SQL statement that writes a table, and find the names in it.

Only statements of a known form are accepted. Any other raises a ``StatementError`` with the problem and a fix. sqlglot
parses the statements that change rows, and ``parse_commands`` the others.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from sqlglot import exp
from sqlglot.dialects import Databricks
from sqlglot.errors import ParseError, SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from tablectl.delta.expressions import check_types
from tablectl.insight.statements.command_actions import Action, StatementError
from tablectl.insight.statements.command_actions import shown_start as _start
from tablectl.insight.statements.command_tokens import first_word, tokens_of
from tablectl.insight.statements.parse_commands import Command, parse_command
from tablectl.model.commit_contents import Kind
from tablectl.model.safe_text import printable

LONGEST = 65_536
"""Characters of a statement: longer ones are refused before they are parsed."""
DEEPEST = 60
"""Maximum depth of nested brackets."""
_DEEPEST_TYPES = 8
"""Maximum depth of types within each other: sqlglot's time doubles with each."""
_EVOLVES = re.compile(r"\s*(MERGE|INSERT)\s+(WITH\s+SCHEMA\s+EVOLUTION\s)", re.IGNORECASE)
_TAKEN = (
    "UPDATE, DELETE, MERGE, INSERT, INSERT OVERWRITE, INSERT … REPLACE, TRUNCATE, COPY INTO, ALTER TABLE, "
    "COMMENT ON, OPTIMIZE, REORG, RESTORE, CREATE OR REPLACE TABLE and VACUUM"
)
_OPENS = frozenset({TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE, TokenType.CASE})
_CLOSES = frozenset({TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE, TokenType.END})
_KNOWN_PARTS: Mapping[type[exp.Expr], frozenset[str]] = MappingProxyType(
    {
        exp.Update: frozenset({"this", "expressions", "where", "with_"}),
        exp.Delete: frozenset({"this", "where", "with_"}),
        exp.Merge: frozenset({"this", "using", "on", "whens", "with_"}),
        exp.Insert: frozenset(
            {"this", "expression", "source", "overwrite", "where", "by_name", "with_", "hint", "using"}
        ),
        exp.TruncateTable: frozenset({"expressions", "partition"}),
    }
)
_VERBS: Mapping[type[exp.Expr], str] = MappingProxyType({exp.MultitableInserts: "an INSERT into several tables"})
"""Names of statements that differ from the class name of their node."""
_STARTS = frozenset({"UPDATE", "DELETE", "MERGE", "INSERT", "TRUNCATE", "WITH", "FROM"})


@dataclass(frozen=True, slots=True)
class ParsedStatement:
    """A statement that writes one table."""

    sql: str
    kind: Kind
    node: exp.Expr
    table: exp.Table
    """The table that it writes, as named in the statement."""
    evolves: bool = False
    """Whether it may change the table's schema."""
    action: Action | None = None
    """What it does if it changes settings, files or the whole table; then ``node`` is the condition of its WHERE."""
    matches: bool = False
    """Whether it is an INSERT that replaces the rows that its query matches: ``REPLACE ON``, ``REPLACE USING``."""
    form: str = ""
    """The name of such a statement, for people."""

    @property
    def of_column(self) -> bool:
        """Whether the name is that of a table and a column."""
        return self.form == "COMMENT ON COLUMN"

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the table's name, as written."""
        return tuple(part.name for part in self.table.parts)

    @property
    def alias(self) -> str:
        """The table's alias; empty if it has none."""
        return self.table.alias

    @property
    def verb(self) -> str:
        """The statement in a word or two: ``INSERT OVERWRITE``."""
        if self.form:
            return self.form
        if isinstance(self.node, exp.TruncateTable):
            return "TRUNCATE"
        if isinstance(self.node, exp.Insert) and self.node.args.get("overwrite"):
            return "INSERT OVERWRITE"
        if self.matches:
            return "INSERT … REPLACE ON"
        return {Kind.REPLACE_WHERE: "INSERT … REPLACE WHERE"}.get(self.kind, self.kind.value)


def parse_statement(sql: str) -> ParsedStatement:
    """Parse the one statement in a text. Raises ``StatementError``."""
    _check_text(sql)
    command = parse_command(sql)
    if command is not None:
        return _command(sql, command)
    found = _EVOLVES.match(sql)
    plain = _blanked(sql, found.start(2), found.end(2)) if found else sql
    replaced = _replace_on(plain)
    try:
        node = _parse(_blanked(plain, *replaced) if replaced else plain)
        made = _statement(sql, node, evolves=bool(found))
        matches = replaced is not None or (isinstance(node, exp.Insert) and bool(node.args.get("using")))
        return replace(made, kind=Kind.REPLACE_WHERE, matches=True) if matches else made
    except RecursionError:
        raise _too_deep() from None


def _blanked(sql: str, start: int, end: int) -> str:
    """A statement without a clause that sqlglot does not support."""
    return sql[:start] + " " * (end - start) + sql[end:]


def _replace_on(sql: str) -> tuple[int, int] | None:
    """Where the alias and the clause ``REPLACE ON condition`` of an INSERT begin and end; ``None`` without one."""
    if first_word(sql) != "INSERT":
        return None
    tokens = tokens_of(sql)
    words = [token.word for token in tokens]
    at = next((i for i in range(len(words) - 1) if words[i : i + 2] == ["REPLACE", "ON"]), None)
    if at is None or "SELECT" in words[:at]:
        return None
    depth, end = 0, len(sql)
    for token, word in zip(tokens[at + 2 :], words[at + 2 :], strict=True):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0 and word in {"SELECT", "WITH", "VALUES", "TABLE", "FROM"}:
            end = token.start
            break
    # The table's name ends before its alias: two names follow each other without a dot.
    names = [i for i in range(2, at) if tokens[i].kind not in {"mark", "other"} and tokens[i - 1].text != "."]
    alias = next((i for i in names if words[i] not in {"TABLE", "INTO"} and words[i - 1] not in {"TABLE", "INTO"}), at)
    return tokens[alias].start, end


def _command(sql: str, command: Command) -> ParsedStatement:
    node: exp.Expr = exp.Null()
    if command.condition is not None:
        start, end = command.condition
        # sqlglot parses a condition as part of a statement.
        try:
            node = _parse(f"DELETE FROM t WHERE {sql[start:end]}")  # noqa: S608  # parsed, never run
        except RecursionError:
            raise _too_deep() from None
        where = node.args.get("where") if isinstance(node, exp.Delete) else None
        if where is None or any(value for key, value in node.args.items() if value and key not in {"this", "where"}):
            raise StatementError(f"the condition of {_start(sql)} cannot be read", _fix())
        node = where.this
    return ParsedStatement(sql.strip(), Kind.DELETE, node, command.table, action=command.action, form=command.verb)


def _check_text(sql: str) -> None:
    if len(sql) > LONGEST:
        raise StatementError(
            f"the statement has {len(sql):,} characters, and at most {LONGEST:,} are read",
            "give one statement; a long list of values can be cut to a few of them",
        )
    if "\x00" in sql or any(0xD800 <= ord(char) < 0xE000 for char in sql):
        raise StatementError(f"the statement {_start(sql)} holds a character that is not text (NUL, or half of a pair)")
    if "${" in sql:
        raise StatementError(
            f"the statement {_start(sql)} holds a variable (${{…}}), which Spark replaces before it reads it",
            "write the value in its place",
        )


def _parse(sql: str) -> exp.Expr:
    dialect = Databricks()
    try:
        tokens = dialect.tokenize(sql)
        _check_tokens(sql, tokens)
        check_types(tokens, dialect.parser_class.TYPE_TOKENS, _DEEPEST_TYPES)
        _keep_escapes(sql, tokens)
        parsed = dialect.parser().parse(tokens, sql)
        nodes = [node for node in parsed if node is not None and not isinstance(node, exp.Semicolon)]
    except ValueError:  # of check_types
        raise _too_deep() from None
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        what = str(first.get("description") or "not SQL").partition(" but got <")[0].rstrip(".")
        if "<class" in what:
            what = "a clause of it lacks something"
        near = f", at {str(first.get('highlight'))[:40]!r} in line {first.get('line')}" if first.get("line") else ""
        raise StatementError(f"the statement {_start(sql)} cannot be read: {what}{near}", _fix()) from None
    except SqlglotError as error:
        what = str(error).splitlines()[0][:120]
        raise StatementError(f"the statement {_start(sql)} cannot be read: {printable(what)}", _fix()) from None
    if len(nodes) != 1:
        raise StatementError(f"one statement is expected, and {_start(sql)} holds {len(nodes)}", "give each by itself")
    (node,) = nodes
    assert isinstance(node, exp.Expr)
    return node


def _check_tokens(sql: str, tokens: list[Token]) -> None:
    if not tokens:
        raise StatementError("the statement is empty", f"give one of {_TAKEN}")
    depth = 0
    for token in tokens:
        depth += (token.token_type in _OPENS) - (token.token_type in _CLOSES)
        if depth > DEEPEST:
            raise _too_deep()
    first = next((token.text.upper() for token in tokens if token.token_type is not TokenType.SEMICOLON), "")
    if first and first not in _STARTS:
        raise _other(sql, printable(first))


def _keep_escapes(sql: str, tokens: list[Token]) -> None:
    """A string with escapes stays as written and counts as unknown: sqlglot knows fewer escapes than Spark."""
    for token in tokens:
        written = sql[token.start : token.end + 1]
        if token.token_type is TokenType.STRING and "\\" in written:
            token.text = written


def _statement(sql: str, node: exp.Expr, *, evolves: bool) -> ParsedStatement:
    known = _KNOWN_PARTS.get(type(node))
    if known is None:
        raise _other(sql, _VERBS.get(type(node), node.key.upper()))
    beyond = sorted(key for key, value in node.args.items() if value and key not in known)
    if isinstance(node, exp.Delete) and "tables" in beyond:
        raise StatementError(
            f"the statement {_start(sql)} cannot be read: DELETE has no FROM", "DELETE FROM table WHERE …"
        )
    if beyond:
        raise StatementError(
            f"cannot tell what {_start(sql)} conflicts with: its {beyond[0].upper()} is not known here"
        )
    tables = node.expressions if isinstance(node, exp.TruncateTable) else [node.this]
    table = tables[0].this if isinstance(tables[0], exp.Schema) else tables[0]
    named = isinstance(table, exp.Table) and all(isinstance(part, exp.Identifier) for part in table.parts)
    if len(tables) != 1 or not named or any(table.args.get(each) for each in ("version", "joins", "sample", "pivots")):
        raise StatementError(f"cannot tell which table {_start(sql)} writes", "name it: schema.table, or delta.`/path`")
    clauses = node.args["whens"].expressions if isinstance(node, exp.Merge) else []
    listed = (each.args.get("expressions") or [] for each in node.walk())
    empty = isinstance(node, exp.Update) and not node.expressions
    if empty or not all(isinstance(each, list) for each in listed) or not all(_is_clause(when) for when in clauses):
        raise StatementError(f"the statement {_start(sql)} cannot be read: a clause of it lacks something", _fix())
    return ParsedStatement(sql.strip(), _kind(node), node, table, evolves)


def _is_clause(when: exp.Expr) -> bool:
    """Whether a MERGE clause has an action that its kind permits; sqlglot accepts any."""
    then = when.args.get("then")
    if when.args.get("matched") or when.args.get("source"):
        return isinstance(then, exp.Update) or (isinstance(then, exp.Var) and then.name.upper() == "DELETE")
    columns, given = (then.this, then.args.get("expression")) if isinstance(then, exp.Insert) else (None, None)
    return isinstance(columns, exp.Star) or (isinstance(columns, exp.Tuple) and isinstance(given, exp.Tuple))


def _kind(node: exp.Expr) -> Kind:
    match node:
        case exp.Update():
            return Kind.UPDATE
        case exp.Merge():
            return Kind.MERGE
        case exp.Insert() if node.args.get("where") is not None:
            return Kind.REPLACE_WHERE
        case exp.Insert() if node.args.get("overwrite"):
            static = any(isinstance(each, exp.EQ) for each in partition_of(node))
            return Kind.REPLACE_WHERE if static else Kind.OVERWRITE
        case exp.Insert():
            return Kind.APPEND
        case _:
            return Kind.DELETE


def partition_of(node: exp.Expr) -> tuple[exp.Expr, ...]:
    """The contents of a statement's ``PARTITION (…)``; columns without a value appear as columns."""
    table = node.this.this if isinstance(node.this, exp.Schema) else node.this
    partition = node.args.get("partition") or (table.args.get("partition") if isinstance(table, exp.Table) else None)
    return tuple(partition.expressions) if partition else ()


def _other(sql: str, verb: str) -> StatementError:
    hint = "`tablectl conflicts TABLE` without --between has the other operations"
    if verb == "BEGIN":
        hint = "give its statements, or a folder with it: each conflicts as by itself, in flight until the end (D77)"
    return StatementError(f"cannot tell what {_start(sql)} conflicts with: {verb} is not one of {_TAKEN}", hint)


def _too_deep() -> StatementError:
    return StatementError("the statement is nested too deeply to be read", "take queries out of it into views")


def _fix() -> str:
    return "check it in Spark; what Spark reads and this does not can be cut down to its conditions"
