"""One comment on a pull request, written again with each push."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tablectl.ci.github import GitHub
from tablectl.reports.markdown import LIMIT

DEFAULT = "tablectl"
"""The name that needs not be told."""


def marker(subject: str, name: str) -> str:
    """The last line of a comment, by which it is found again; ``subject`` is ``plan`` or ``apply``."""
    return f"<!-- tablectl {subject} -->" if name == DEFAULT else f"<!-- tablectl {subject}: {name} -->"


def body_of(report: str, subject: str, name: str, address: str) -> str:
    """A report as the comment of one of several uses of tablectl: under its name, and with a mark of its own.

    A report that would be too long with these becomes its first line and where the rest stands.
    """
    if name == DEFAULT:
        return report
    text = report.rstrip("\n").removesuffix(marker(subject, DEFAULT)).rstrip("\n")
    head, end = f"### {name}\n\n", f"\n\n{marker(subject, name)}\n"
    if len((head + text + end).encode(errors="backslashreplace")) > LIMIT:
        where = f"[this run]({address})" if address else "the run"
        text = f"{text.splitlines()[0]}\n\nAll of it is on the page of {where}."
    return head + text + end


def put_comment(github: GitHub, number: int, body: str, mark: str) -> str:
    """Write the comment with a mark, anew or over the one that is there; its address. Raises ``GitHubError``.

    Only a comment of a bot is written over: whoever wrote a comment can change it later, and a plan that its reader
    trusts must not be somebody else's text.
    """
    comments = github.pages(f"issues/{number}/comments")
    ours = next((each for each in comments if _is_ours(each, mark)), None)
    if ours:
        done = github.patch(f"issues/comments/{ours['id']}", body=body)
    else:
        done = github.post(f"issues/{number}/comments", body=body)
    return str(done.get("html_url", "")) if isinstance(done, dict) else ""


def _is_ours(comment: Mapping[str, Any], mark: str) -> bool:
    author, body = comment.get("user"), comment.get("body")
    bot = isinstance(author, dict) and author.get("type") == "Bot"
    return bot and isinstance(body, str) and body.rstrip().endswith(mark) and isinstance(comment.get("id"), int)
