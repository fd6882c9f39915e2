"""Explains the errors of the YAML parser, and how to fix them."""

from __future__ import annotations

import yaml  # noqa: TID251 - the parser's errors; yaml_document.py runs the parser

from tablectl.model.errors import Problem
from tablectl.policies.yaml_nodes import SourceFile

_ALIGN = "check the indentation: the keys of one map start in one column, and nothing follows a closing quote"
_HINTS = (
    ("mapping values are not allowed", 'text that holds ": " needs quotes; else check the indentation'),
    ("found unexpected end of stream", "a quote is opened and never closed"),
    ("alphabetic or numeric character", "text that starts with * or & needs quotes"),
    ("expected ',' or ']'", 'close the list with ]; inside it, text with {, }, [ or ] needs quotes: ["${NAME}"]'),
    ("expected ',' or '}'", "close the map with }; inside it, text with {, }, [ or ] needs quotes"),
    ("expected key", _ALIGN),
    ("expected <block end>", _ALIGN),
    ("could not find expected ':'", "a key needs a colon and a space after it"),
    ("invalid Unicode character", "write the character itself, or its whole code with eight digits: \\U0001F600"),
    ("escape c", "inside double quotes a backslash starts an escape: double it, or use single quotes"),
    ("decimal number", "inside double quotes a backslash starts an escape: double it, or use single quotes"),
)


def explain_syntax(error: yaml.YAMLError, text: str, file: str) -> Problem:
    """The parser's error with its position and the likely fix."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    said = getattr(error, "problem", None) or "it cannot be read"
    if mark is None:
        return Problem(file, 0, 0, f"this is not valid YAML: {said}")
    start = getattr(error, "context_mark", None)
    since = f" (it began on line {start.line + 1})" if start is not None and start.line < mark.line else ""
    source = SourceFile(file, mark.line + 1, mark.column + 1)
    at = text[mark.index : mark.index + 1]
    if at == "\t" or "\t" in _indentation(text, mark.index):
        return source.problem("a tab indents this line", "YAML wants spaces: replace the tab")
    if "cannot start any token" in said:
        hint = f"text that starts with {at} needs quotes around the whole of it"
        return source.problem(f"unquoted text cannot start with {at}", hint)
    hint = next((hint for words, hint in _HINTS if words in said), "")
    return source.problem(f"this is not valid YAML: {said}{since}", hint)


def _indentation(text: str, index: int) -> str:
    line = text[text.rfind("\n", 0, index) + 1 :].split("\n", 1)[0]
    return line[: len(line) - len(line.lstrip())]
