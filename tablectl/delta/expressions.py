"""The SQL expressions of CHECK constraints: which texts are taken, and when two of them are equal.

A text is split into the tokens of Spark's lexer. Whatever could end the clause around it, start a comment, name another
table or run code is refused: a policy holds an expression over the columns of one row. What is left must be a condition
in sqlglot's grammar of Databricks' SQL. sqlglot takes a moment to load, so only a policy with constraints loads it.

Delta has a lexer of its own for ``ADD CONSTRAINT``, and stores its tokens with blanks between them. Where it cuts the
text in other places than Spark, Spark reads something else in what is stored: of ``'O''Brien'`` Delta makes
``'O' 'Brien'``, which is OBrien. Such a text is sent in a spelling that both read alike, and refused if there is none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise, zip_longest
from types import MappingProxyType
from typing import Any

from tablectl.delta.sql_tokens import SqlToken, sql_tokens, stored_by_delta
from tablectl.support.json_text import read_json

LONGEST = 4_000
"""The maximum number of characters of an expression."""
DEEPEST = 20
"""The maximum depth of parentheses: sqlglot takes about 30 calls of Python for each."""
_DEEPEST_TYPES = 3
"""The maximum depth of parentheses after names of types: sqlglot reads each twice, as a type and as a function, so that
its time doubles with each level.
"""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_QUERIES = frozenset({"select", "with", "values", "table", "over"})
_CODE = frozenset({"reflect", "java_method", "try_reflect"})
_CHANGING = frozenset(
    {"rand", "randn", "random", "uuid", "shuffle", "monotonically_increasing_id", "spark_partition_id", "now", "user"}
    | {"input_file_name", "current_date", "current_timestamp", "localtimestamp", "curdate", "unix_timestamp"}
    | {"current_user", "session_user"}
)
"""Functions with another result for the same row."""
_OF_ROWS = _words(
    """
    any_value approx_count_distinct approx_percentile approx_top_k approx_top_k_accumulate approx_top_k_combine avg
    bit_and bit_or bit_xor bool_and bool_or collect_list collect_set corr count count_if count_min_sketch covar_pop
    covar_samp cume_dist dense_rank every first first_value grouping grouping_id histogram_numeric kurtosis lag last
    last_value lead listagg max max_by mean measure median min min_by mode nth_value ntile percent_rank percentile
    percentile_approx percentile_cont percentile_disc rank regr_avgx regr_avgy regr_count regr_intercept regr_r2
    regr_slope regr_sxx regr_sxy regr_syy row_number skewness std stddev stddev_pop stddev_samp sum try_avg try_sum
    var_pop var_samp variance
    """
)
"""Aggregate and window functions (``FunctionRegistry.scala`` of Spark 4.2); those with ``_agg`` are not here."""
_ANY = frozenset({"any", "some"})
"""Aggregate functions, but for ``LIKE ANY (…)``."""
_TO_ROWS = _words(
    """
    collations explode explode_outer inline inline_outer json_tuple posexplode posexplode_outer python_worker_logs
    sql_keywords stack variant_explode variant_explode_outer
    """
)
"""Functions that return several rows (same file)."""


def why_refused(text: str) -> str:
    """Why a policy does not take a text as an expression, as a clause; empty if it does."""
    return f"has more than {LONGEST:,} characters" if len(text) > LONGEST else _why_unreadable(text)


def _why_unreadable(text: str) -> str:
    if not text.strip():
        return "needs an expression"
    if not all(char.isprintable() or char in "\n\t" for char in text):
        return "has control characters"
    if "--" in text or "/*" in text:
        return "has a comment, or text that reads as one"
    if "${" in text:
        return "has ${, which Spark replaces before it reads the statement"
    try:
        tokens = tuple(sql_tokens(text))
    except ValueError as error:
        return f"cannot be read: {error}"
    return _unbalanced(tokens) or _forbidden(tokens)


def why_no_condition(text: str) -> str:
    """Why a text that ``why_refused`` admits is not a condition on one row, as a clause; empty if it is."""
    try:
        found = _parsed(text)
    except ValueError as error:
        return str(error)
    exp = _sqlglot().exp
    if found.find(exp.Query, exp.Subquery, exp.Table):
        return "has a query: a constraint is about one row"
    if found.find(exp.Placeholder, exp.Parameter, exp.SessionParameter):
        return "has a parameter, which no statement fills"
    while isinstance(found, exp.Paren):
        found = found.this
    if isinstance(found, exp.Star | exp.Alias | exp.Tuple | exp.Lambda):
        return "is not one condition"
    if isinstance(found, exp.Literal | exp.Neg | exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod | exp.DPipe):
        return "is a value, and not a condition, which is true or false"
    return ""


_BEFORE_PARENTHESES = _words(
    """
    all any as case char character dec distinct div else end escape false from interval is null numeric some then
    timestampadd timestampdiff true try_cast varchar
    """
)
"""Words of the grammar that a parenthesis may follow, without those that are functions, too (``SqlBaseParser.g4``)."""
_WITHOUT_PARENTHESES = _words(
    """
    current_catalog current_database current_path current_schema current_time current_timezone localtimestamp
    session_user
    """
)
"""Functions that Spark calls without parentheses where no column has the name (``LiteralFunctionResolution``)."""


@cache
def _built_in() -> frozenset[str]:
    """The functions that need no consent: ``tools/constraint_functions.py`` writes the file."""
    data = read_json((files("tablectl.delta") / "constraint_functions.json").read_bytes())
    assert isinstance(data, dict)
    return frozenset(map(str, data["functions"]))


def foreign_functions(text: str) -> tuple[str, ...]:
    """The functions that an expression calls, in order, and that are not among the built-in functions of Spark whose
    result depends on their arguments alone. Empty for a text that cannot be read.
    """
    found = list[str]()
    try:
        tokens = tuple(sql_tokens(text))
    except ValueError:
        return ()
    for before, token, following in zip((None, *tokens), tokens, (*tokens[1:], None), strict=False):
        name, part = token.identifier.lower(), before is not None and before.text == "."
        called = bool(name) and following is not None and following.text == "("
        known = name in _built_in() or (token.kind == "word" and name in _BEFORE_PARENTHESES)
        bare = token.kind == "word" and not part and name in _WITHOUT_PARENTHESES
        if bare or (called and (part or not known)):
            found.append(token.text)
    return tuple(dict.fromkeys(found))


def columns_in(text: str) -> tuple[tuple[str, ...], ...]:
    """The columns that an expression names, each by its parts; none for a text that sqlglot does not read."""
    try:
        found = _parsed(text)
    except ValueError:
        return ()
    exp = _sqlglot().exp
    named = (tuple(part.name for part in each.parts) for each in found.find_all(exp.Column, bfs=False))
    return tuple(dict.fromkeys(each for each in named if each and all(each)))


def condition_of(text: str) -> Any:
    """The root of an expression, as sqlglot reads it; ``None`` for a text that it does not read."""
    try:
        return _parsed(text)
    except ValueError:
        return None


def _sqlglot() -> Any:
    import sqlglot  # noqa: PLC0415  # see the module docstring

    return sqlglot


def _parsed(text: str) -> Any:
    """The root of an expression. Raises ``ValueError`` with the reason, as a clause."""
    sqlglot = _sqlglot()
    exp, dialect, sql = sqlglot.exp, sqlglot.dialects.Databricks(), f"{_START}{text}\n)"
    try:
        tokens = dialect.tokenize(sql)
        check_types(tokens, dialect.parser_class.TYPE_TOKENS, _DEEPEST_TYPES)
        statements = dialect.parser().parse(tokens, sql)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except sqlglot.errors.ParseError as error:
        first = error.errors[0] if error.errors else {}
        near = str(first.get("highlight") or "").strip()
        place = "at its end" if near in {"", ")"} else f"at {near[:40]!r}"
        raise ValueError(f"is not an expression: it cannot be read {place}") from None
    except sqlglot.errors.SqlglotError:
        raise ValueError("is not an expression") from None
    where = statements[0].args.get("where") if len(statements) == 1 and isinstance(statements[0], exp.Delete) else None
    if where is None or not isinstance(where.this, exp.Paren):
        raise ValueError("is not one condition")
    return where.this.this


_START = "DELETE FROM t WHERE ("
"""sqlglot reads a condition as part of a statement."""


def check_types(tokens: Sequence[Any], types: Sequence[Any], deepest: int) -> None:
    """Raises ``ValueError`` for parentheses after names of types within each other, deeper than a limit."""
    open_marks: list[bool] = []
    for before, token in pairwise(tokens):
        if token.text in {"(", "[", "<"}:
            open_marks.append(before.token_type in types)
            if sum(open_marks) > deepest:
                raise ValueError(f"has types or functions such as {before.text} within each other too deeply")
        elif token.text in {")", "]", ">"} and open_marks:
            open_marks.pop()


def equal(one: str, other: str) -> bool:
    """Whether two texts are the same expression but for white space, the letter case of words, the spelling of texts in
    quotes, and parentheses around the whole. False for a text that is not taken: nothing is known about it.
    """
    if one == other:
        return True
    # Delta's blanks between all tokens make a text about twice as long.
    readable = all(len(each) <= 3 * LONGEST and not _why_unreadable(each) for each in (one, other))
    return readable and _canonical(one) == _canonical(other)


def sent_text(text: str) -> str:
    """The same expression, with each text in quotes spelled so that Delta's lexer takes it as one token, as Spark's
    does: without a doubled quote and without the prefix ``r``.
    """
    made, at = list[str](), 0
    for token in sql_tokens(text):
        if token.kind == "text" and stored_by_delta(token.text) != token.text:
            made += [text[at : token.start], _one_token(token.text)]
            at = token.end
    return "".join((*made, text[at:]))


def _one_token(literal: str) -> str:
    if literal[0] in "rR":
        quote, inner = literal[1], literal[2:-1].replace("\\", "\\\\")
    else:
        quote, inner = literal[0], literal[1:-1]
        inner = re.sub(rf"(\\.)|{quote}{quote}", lambda found: found[1] or f"\\{quote}", inner, flags=re.DOTALL)
    return f"{quote}{inner}{quote}"


def why_not_stored(text: str) -> tuple[str, str]:
    """Why open-source Delta's ``ADD CONSTRAINT`` does not store an expression that ``why_refused`` admits, as a clause,
    and what to write instead; both empty if it does.
    """
    stored = stored_by_delta(sent_text(text))
    declared, kept = (_of_spark(tuple(sql_tokens(each))) for each in (text, stored))
    if declared == kept:
        return "", ""
    first = next((one for one, other in zip_longest(declared, kept) if one != other and one is not None), declared[-1])
    hint = _INSTEAD.get(first[1]) or (_NUMBER if first[0] == "number" else "write it another way")
    return f"has {first[1]}, which Delta's ALTER TABLE cuts in pieces: it would store {stored[:_SHOWN]}", hint


_SHOWN = 80
_INSTEAD = MappingProxyType(
    {
        "->": "write it without a lambda, for example `array_min(prices) > 0`; only a new table takes lambdas",
        "=>": "pass the arguments by their place, without names",
        "::": "write `CAST(… AS …)`",
        "<<": "write `shiftleft(…, …)`",
        ">>": "write `shiftright(…, …)`",
        ">>>": "write `shiftrightunsigned(…, …)`",
    }
)
_NUMBER = "write `CAST('…' AS FLOAT)`"


def _of_spark(tokens: Sequence[SqlToken]) -> tuple[tuple[str, str], ...]:
    """Kind and meaning of Spark's tokens. Two ``<`` or ``>`` without a blank between them are one mark, unless they end
    types within each other.
    """
    made, types, end = list[tuple[str, str]](), 0, -1
    for before, token in zip((None, *tokens), tokens, strict=False):
        opens = token.text == "<" and before is not None and before.word in {"ARRAY", "MAP", "STRUCT"}
        closes = token.text == ">" and types > 0
        types += opens - closes
        glued = token.start == end and made[-1][1] in {"<", ">", ">>"} and made[-1][1][0] == token.text
        if glued and not opens and not closes:
            made[-1] = ("mark", made[-1][1] + token.text)
        else:
            made.append((token.kind, token.value))
        end = -1 if opens or closes else token.end
    return tuple(made)


def _unbalanced(tokens: Sequence[SqlToken]) -> str:
    open_marks: list[str] = []
    for token in tokens:
        if token.text == ";":
            return "has ';', which ends a statement"
        if token.kind == "mark" and token.text in "([":
            open_marks.append(token.text)
            if len(open_marks) > DEEPEST:
                return f"has parentheses within parentheses more than {DEEPEST} deep"
        elif (
            token.kind == "mark"
            and token.text in ")]"
            and (not open_marks or open_marks.pop() + token.text not in {"()", "[]"})
        ):
            return f"has a {token.text} that closes nothing"
    return f"has a {open_marks[-1]} that is not closed" if open_marks else ""


def _forbidden(tokens: Sequence[SqlToken]) -> str:
    before = ""
    for token, following in zip(tokens, (*tokens[1:], None), strict=True):
        name = token.identifier.lower()
        called = following is not None and following.text == "("
        if token.kind == "word" and not token.text.isascii():
            return f"has {token.text}, which Spark takes in backticks only"
        if token.kind == "word" and name in _QUERIES:
            return f"has {token.text}: a constraint is about one row, and takes no query"
        if called and name in _CODE:
            return f"calls {token.text}, which runs code of the engine"
        if called and (name in _OF_ROWS or "_agg" in name or (name in _ANY and not before.endswith("LIKE"))):
            return f"calls {token.text}, whose result is about several rows: a constraint is about one"
        if called and name in _TO_ROWS:
            return f"calls {token.text}, which returns several rows: a constraint is about one"
        if name in _CHANGING and (called or (token.kind == "word" and name.startswith("current_"))):
            return f"has {token.text}, whose result changes from one reading of a row to the next"
        before = token.word
    return ""


def _canonical(text: str) -> tuple[str, ...]:
    tokens = [_meaning(each) for each in sql_tokens(text)]
    while len(tokens) > 2 and tokens[0] == "(" and _closes(tokens) == len(tokens) - 1:
        tokens = tokens[1:-1]
    return tuple("=" if each == "==" else "<>" if each == "!=" else each for each in tokens)


def _meaning(token: SqlToken) -> str:
    """A text in quotes is marked, so that it equals no other token."""
    return f"'{token.value}" if token.kind == "text" else token.text.lower() if token.kind == "word" else token.text


def _closes(tokens: list[str]) -> int:
    """Where the first parenthesis closes."""
    depth = 0
    for index, each in enumerate(tokens):
        depth += (each == "(") - (each == ")")
        if depth == 0:
            return index
    return -1
