"""Parses the bytes of one YAML file into a tree with positions. No input causes a traceback, a hang, or exhausted
memory.

PyYAML only produces events. The tree is built here, and no object of the user's choice is ever created.
"""

from __future__ import annotations

import codecs
import re

import yaml  # noqa: TID251 - policies are YAML, and only this package reads it

from tablectl.model.errors import Problem
from tablectl.policies.yaml_builder import Builder, StopError
from tablectl.policies.yaml_errors import explain_syntax
from tablectl.policies.yaml_nodes import Node, SourceFile

MAX_BYTES = 1_000_000

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def parse_document(data: bytes, file: str, problems: list[Problem]) -> Node | None:
    """The tree of a file's bytes; ``None`` for an empty file and for invalid YAML.

    Errors are added to ``problems``. A tree returned together with problems lacks the nodes with errors.
    """
    text = _decode(data, file, problems)
    if text is None:
        return None
    builder = Builder(file, problems)
    try:
        for event in yaml.parse(text, Loader=_Loader):
            builder.take(event)
    except StopError as stop:
        problems.append(stop.problem)
        return None
    except yaml.YAMLError as error:
        problems.append(explain_syntax(error, text, file))
        return None
    return builder.root


def _decode(data: bytes, file: str, problems: list[Problem]) -> str | None:
    if len(data) > MAX_BYTES:
        problems.append(too_large(file))
        return None
    body = data.removeprefix(codecs.BOM_UTF8)
    try:
        text = body.decode()
    except UnicodeDecodeError as error:
        before = body[: error.start].decode()
        problems.append(_place(before, file).problem("the file is not UTF-8 text", "save it as UTF-8"))
        return None
    bad = _UNPRINTABLE.search(text)
    if bad is not None:
        place = _place(text[: bad.start()], file)
        hint = 'inside double quotes, "\\xNN" writes it'
        problems.append(place.problem(f"the control character U+{ord(bad[0]):04X} is not allowed in YAML", hint))
        return None
    return text


def too_large(file: str) -> Problem:
    """The problem for a file over the size limit, which is not parsed at all."""
    return Problem(file, 0, 0, f"the file is larger than {MAX_BYTES // 1_000_000} MB", "split it into several files")


def _place(before: str, file: str) -> SourceFile:
    return SourceFile(file, before.count("\n") + 1, len(before) - before.rfind("\n"))
