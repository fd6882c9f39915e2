"""One comment on a pull request, edited with each push; its last lines carry the digest of the plan that it shows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tablectl.ci.github import GitHub
from tablectl.reports.markdown import LIMIT

DEFAULT = "tablectl"
"""The name that needs not be told."""
_DIGEST = re.compile(r"\n\nplan digest: `([0-9a-f]{64})`\n\n<!--")
_LONGEST_DIGEST = 100


def marker(subject: str, name: str) -> str:
    """The last line of a comment, by which it is found again; ``subject`` is ``plan`` or ``apply``."""
    return f"<!-- tablectl {subject} -->" if name == DEFAULT else f"<!-- tablectl {subject}: {name} -->"


def body_of(report: str, subject: str, name: str, address: str, digest: str = "") -> str:
    """A report as the comment of one of several uses of tablectl: under its name, and with a mark of its own.

    ``digest`` is that of the plan, which ``digest_in`` finds again. A report that would be too long with these becomes
    its first line and where the rest stands.
    """
    if name == DEFAULT and not digest:
        return report
    text = report.rstrip("\n").removesuffix(marker(subject, DEFAULT)).rstrip("\n")
    head = "" if name == DEFAULT else f"### {name}\n\n"
    end = f"\n\nplan digest: `{digest}`" if digest else ""
    end += f"\n\n{marker(subject, name)}\n"
    if len((head + text + end).encode(errors="backslashreplace")) > LIMIT:
        where = f"[this run]({address})" if address else "the run"
        text = f"{text.splitlines()[0]}\n\nAll of it is on the page of {where}."
    return head + text + end


def digest_in(body: str, mark: str) -> str:
    """The digest that a comment with a mark carries in its last lines; empty where it has none.

    Only there: a report above it shows the text of others.
    """
    text = body.replace("\r\n", "\n").rstrip()
    if not text.endswith(mark):
        return ""
    last = text[: -len(mark)][-_LONGEST_DIGEST:] + "<!--"
    found = re.search(rf"{_DIGEST.pattern}\Z", last)
    return found[1] if found else ""


def put_comment(github: GitHub, number: int, body: str, mark: str) -> str:
    """Write the comment with a mark, or edit the one that is there; its address. Raises ``GitHubError``.

    Only a comment of the identity that posts comments is edited, whatever kind of token it has: whoever wrote a comment
    can change it later, and a plan that its reader trusts must not be somebody else's text.
    """
    ours = find_comment(github, number, mark)
    if ours:
        done = github.patch(f"issues/comments/{ours['id']}", body=body)
    else:
        done = github.post(f"issues/{number}/comments", body=body)
    return str(done.get("html_url", "")) if isinstance(done, dict) else ""


def find_comment(github: GitHub, number: int, mark: str) -> Mapping[str, Any] | None:
    """The first comment with a mark by the identity of the token. Raises ``GitHubError``."""
    author = github.identity()
    comments = github.pages(f"issues/{number}/comments")
    return next((each for each in comments if _is_ours(each, mark, author)), None)


def _is_ours(comment: Mapping[str, Any], mark: str, author: int) -> bool:
    user, body = comment.get("user"), comment.get("body")
    same = isinstance(user, dict) and user.get("id") == author
    return same and isinstance(body, str) and body.rstrip().endswith(mark) and isinstance(comment.get("id"), int)
