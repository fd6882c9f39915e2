"""The settings in the files of makers of tables, by name, as the maker itself would find them.

Each reader raises ``InputError`` for a text that is not of the maker's form, where the maker would not find them.
"""

from __future__ import annotations

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise

from tablectl.delta.sql_tokens import SqlTextError, SqlToken, sql_tokens
from tablectl.model.errors import InputError, Problem
from tablectl.planning.table_makers import SESSION
from tablectl.policies.parse_yaml import parse_document
from tablectl.policies.yaml_nodes import ListNode, MapNode, Node, Scalar

_LINE = re.compile(r"(spark\.(?:[\w.\-]|\\.)+)(?:[ \t]*[=:]|[ \t]|\Z)[ \t]*(.*)\Z", re.DOTALL)
_LINE_END = re.compile(r"\r\n|\n|\r")
_JAVA = {"\t": "t", "\n": "n", "\r": "r", "\f": "f"}
_JAVA_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_ANSI_C = re.compile(r"(?<!\S)#[^\n]*|'[^']*'|\"(?:[^\"\\]|\\.)*\"|\\.|\$'(?P<text>(?:[^'\\]|\\.)*)'", re.DOTALL)
"""Text that ``shlex`` does not know, and before it what it does: comments and quotes."""


def _from_java(text: str) -> str:
    letters = {letter: char for char, letter in _JAVA.items()}

    def plain(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else letters.get(found[2], found[2])

    return _JAVA_ESCAPE.sub(plain, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_conf(text: str, file: str) -> Mapping[str, str]:
    """The defaults in a file of Java's properties, as ``spark-defaults.conf``: the last one of each property counts."""
    found: dict[str, str] = {}
    for number, line in _logical_lines(text):
        match = _LINE.match(line)
        if match is None:
            what = "this line is not a setting: the file is compared as spark-defaults.conf, of lines `spark.KEY VALUE`"
            hint = "`tablectl defaults spark-submit` compares options, `tablectl defaults python` a job in Python"
            raise InputError((Problem(file, number, 1, what, hint),))
        if match[1].startswith(SESSION):
            found[_property(_from_java(match[1]))] = _from_java(match[2]).strip()  # as Spark does
    return found


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of Java's properties, without comments. A backslash at the end continues a line."""
    before, first = "", 0
    for number, line in enumerate(_LINE_END.split(text), 1):
        stripped = line.lstrip(" \t\f")
        if not before and (not stripped or stripped[0] in "#!"):
            continue
        first = first if before else number
        if (len(stripped) - len(stripped.rstrip("\\"))) & 1:
            before += stripped[:-1]
            continue
        yield first, before + stripped
        before = ""
    if before:
        yield first, before


def _property(name: str) -> str:
    return f"delta.{name[len(SESSION) :]}"


def read_options(text: str, file: str) -> Mapping[str, str]:
    """The defaults in options ``--conf KEY=VALUE`` of a command line or a shell script."""
    try:
        plain = _ANSI_C.sub(
            lambda found: found[0] if found["text"] is None else shlex.quote(_from_shell(found["text"])),
            text.replace("\\\n", " "),
        )
        words = shlex.split(plain, comments=True)
    except ValueError as error:
        raise InputError((Problem(file, 0, 0, f"it is not text of a shell: {error}"),)) from None
    pairs = [after for word, after in pairwise(words) if word in {"--conf", "-c"}]
    pairs += [word.removeprefix("--conf=") for word in words if word.startswith("--conf=")]
    if not pairs:
        raise InputError((Problem(file, 0, 0, "it has no option --conf", "name the file that calls spark-submit"),))
    split = (pair.partition("=") for pair in pairs)
    return {_property(key): value for key, mark, value in split if mark and key.startswith(SESSION)}


def _from_shell(text: str) -> str:
    """The text of ``$'…'`` as ``shell_word`` writes it."""
    data = re.sub(rb"\\([0-7]{3}|.)", lambda found: _byte(found[1]), text.encode(errors="replace"), flags=re.DOTALL)
    return data.decode(errors="replace")


def _byte(escape: bytes) -> bytes:
    return bytes([int(escape, 8) & 255]) if len(escape) == 3 else escape


def read_session(text: str, file: str) -> Mapping[str, str]:
    """The defaults that a Python module gives to a session: two texts in one call, or a pair of a dictionary. It is
    parsed and not run; a text alone, such as a comment in quotes, sets nothing.
    """
    found: dict[str, str] = {}
    for node in ast.walk(_python(text, file)):
        pairs: list[tuple[ast.expr | None, ast.expr]] = []
        match node:
            case ast.Call(args=[key, value]) | ast.Tuple(elts=[key, value]):
                pairs = [(key, value)]
            case ast.Dict(keys=keys, values=values):
                pairs = list(zip(keys, values, strict=True))
        for name, given in pairs:
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.startswith(SESSION):
                found[_property(name.value)] = _constant(given)
    return found


def _constant(node: ast.expr) -> str:
    if not isinstance(node, ast.Constant):
        return ast.unparse(node)[:100]
    return str(node.value).lower() if isinstance(node.value, bool) else str(node.value)


def _python(text: str, file: str) -> ast.Module:
    try:
        return ast.parse(text)
    except SyntaxError as error:
        raise InputError(
            (Problem(file, error.lineno or 0, error.offset or 0, f"it is not Python: {error.msg}"),)
        ) from None
    except (ValueError, MemoryError, RecursionError) as error:
        raise InputError((Problem(file, 0, 0, f"it is not Python: {error}"),)) from None


def read_arguments(text: str, file: str) -> Mapping[str, str]:
    """The dictionary ``NEW_TABLES`` of a Python module, which is parsed and not run."""
    body = _python(text, file).body
    given = [
        each.value for each in body if isinstance(each, ast.Assign | ast.AnnAssign) and each.value and _is_ours(each)
    ]
    if not given:
        hint = "`tablectl defaults delta-rs` prints the file"
        raise InputError((Problem(file, 0, 0, "it assigns no dictionary NEW_TABLES", hint),))
    try:
        found = ast.literal_eval(given[-1])
    except (ValueError, TypeError, MemoryError, RecursionError):
        found = None
    if not isinstance(found, dict):
        line = given[-1].lineno
        raise InputError((Problem(file, line, 1, "NEW_TABLES is not a dictionary of constants"),))
    return dict(_flat(found, ()))


def _is_ours(assigned: ast.Assign | ast.AnnAssign) -> bool:
    targets = assigned.targets if isinstance(assigned, ast.Assign) else [assigned.target]
    return any(isinstance(each, ast.Name) and each.id == "NEW_TABLES" for each in targets)


def _flat(value: object, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _flat(inner, (*above, str(key)))
    else:
        yield " > ".join(above), ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def read_dbt(text: str, file: str) -> Mapping[str, str]:
    """The settings under ``models:`` of a ``dbt_project.yml``."""
    problems: list[Problem] = []
    root = parse_document(text.encode(), file, problems)
    if problems:
        raise InputError(tuple(problems))
    _, models = root.entries.get("models", (None, None)) if isinstance(root, MapNode) else (None, None)
    if not isinstance(models, MapNode):
        raise InputError((Problem(file, 0, 0, "it has no map `models:`", "name the dbt_project.yml of the project"),))
    return dict(_flat_dbt(models, ()))


_DBT = frozenset({"tblproperties", "partition_by", "liquid_clustered_by", "auto_liquid_cluster", "file_format"})
"""The settings of dbt that policies can need. dbt takes each with a plus sign, and without one."""


def _flat_dbt(node: Node, above: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    match node:
        case MapNode():
            for key, (_, inner) in node.entries.items():
                yield from _flat_dbt(inner, (*above, key.removeprefix("+")))
        case ListNode() if _DBT & set(above):
            yield " > ".join(above), ", ".join(each.text for each in node.items if isinstance(each, Scalar))
        case Scalar() if _DBT & set(above):
            yield " > ".join(above), node.text


def read_create(text: str, file: str) -> Mapping[str, str]:
    """The clauses of the one CREATE TABLE in a text."""
    try:
        tokens = tuple(sql_tokens(text))
    except SqlTextError as error:
        raise InputError((Problem(file, error.line, 1, f"it is not SQL: {error.what}"),)) from None
    starts = [at for at, each in enumerate(tokens) if each.word == "CREATE" and _makes_table(tokens[at + 1 : at + 5])]
    if len(starts) != 1:
        what = "it has several CREATE TABLE" if starts else "it has no CREATE TABLE"
        raise InputError((Problem(file, 0, 0, what, "give a file with the CREATE TABLE of the one table"),))
    rest = tokens[starts[0] :]
    end = next((at for at, each in enumerate(rest) if each.text == ";"), len(rest))
    return dict(_clauses(rest[:end]))


def _makes_table(following: tuple[SqlToken, ...]) -> bool:
    words = [each.word for each in following]
    return "TABLE" in words and set(words[: words.index("TABLE")]) <= {"OR", "REPLACE", "EXTERNAL"}


def _clauses(tokens: tuple[SqlToken, ...]) -> Iterator[tuple[str, str]]:
    """``TABLE`` with the name; USING, PARTITIONED BY and CLUSTER BY; each property."""
    yield "TABLE", ".".join(_name(tokens))
    depth = 0
    for at, token in enumerate(tokens):
        if token.text == ")":
            depth -= 1
        elif token.text == "(":
            depth += 1
        elif depth == 0 and token.word == "USING":
            yield "USING", tokens[at + 1].word if at + 1 < len(tokens) else ""
        elif depth == 0 and token.word in {"PARTITIONED", "CLUSTER"}:
            inner = _inner(tokens[at + 2 :])
            yield (
                f"{token.word} BY",
                _joined(inner) if inner else "".join(each.word for each in tokens[at + 2 : at + 3]),
            )
        elif depth == 0 and token.word == "TBLPROPERTIES":
            yield from _pairs(_inner(tokens[at + 1 :]))
        elif depth == 0 and token.word == "AS":
            return


def _name(tokens: tuple[SqlToken, ...]) -> Iterator[str]:
    """The parts of the table's name."""
    at = next(at for at, each in enumerate(tokens) if each.word == "TABLE") + 1
    at += 3 if [each.word for each in tokens[at : at + 3]] == ["IF", "NOT", "EXISTS"] else 0
    yield from (each.identifier for each in tokens[at : at + 1])
    while at + 2 < len(tokens) and tokens[at + 1].text == ".":
        at += 2
        yield tokens[at].identifier


def _inner(tokens: tuple[SqlToken, ...]) -> tuple[SqlToken, ...]:
    """What stands in the parentheses with which tokens begin."""
    if not tokens or tokens[0].text != "(":
        return ()
    depth = 0
    for at, token in enumerate(tokens):
        depth += (token.text == "(") - (token.text == ")")
        if depth == 0:
            return tokens[1:at]
    return tokens[1:]


def _joined(tokens: tuple[SqlToken, ...]) -> str:
    return "".join(f"{each.text} " if each.text == "," else each.identifier or each.text for each in tokens)


def _pairs(tokens: tuple[SqlToken, ...]) -> Iterator[tuple[str, str]]:
    """The properties: a key is a text, or words with dots between; a value is a text, a number or a word."""
    key, value = list[SqlToken](), list[SqlToken]()
    current = key
    for token in (*tokens, SqlToken("mark", ",", 0, 0)):
        if token.text == "," and token.kind == "mark":
            if key:
                yield "".join(each.value for each in key), "".join(each.value for each in value)
            key, value = [], []
            current = key
        elif token.text == "=" and token.kind == "mark" and current is key:
            current = value
        else:
            current.append(token)


READERS: Mapping[str, Callable[[str, str], Mapping[str, str]]] = {
    "spark": read_conf,
    "spark-submit": read_options,
    "python": read_session,
    "dbt": read_dbt,
    "delta-rs": read_arguments,
    "sql": read_create,
}
