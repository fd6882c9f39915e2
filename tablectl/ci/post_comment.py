"""One comment per pull request, edited with each push. Its last lines contain the digest of the plan that it shows."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tablectl.ci.rest_api import GitHub
from tablectl.reports.comment_parts import read_groups, since_text
from tablectl.reports.document_markdown import LIMIT

DEFAULT = "tablectl"
"""The default name; omitted from output."""
_DIGEST = re.compile(r"\n\nplan digest: `([0-9a-f]{64})`\n\n<!--")
_LONGEST_DIGEST = 100
_ARTIFACT = re.compile(r"https://[A-Za-z0-9._:/-]+\Z")
_QUERY = """query($ids: [ID!]!) { nodes(ids: $ids) { ... on IssueComment {
  databaseId body createdAt lastEditedAt viewerDidAuthor author { __typename login } editor { __typename login }
} } }"""
_MOST_NODES = 100
"""The maximum number of nodes in one query."""


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment that the identity of the token wrote."""

    number: int
    body: str
    written: str
    """The time of the last edit, or of the creation: ISO 8601, in UTC."""
    by_us: bool
    """Whether the last edit is by the author. Everyone with write access to a repository may edit every comment."""


def marker(subject: str, name: str) -> str:
    """The last line of a comment, by which it is found again. ``subject`` is ``plan`` or ``apply``."""
    return f"<!-- tablectl {subject} -->" if name == DEFAULT else f"<!-- tablectl {subject}: {name} -->"


def body_of(report: str, subject: str, name: str, address: str, digest: str = "", added: str = "") -> str:
    """A report as the comment of one of several uses of tablectl, with its own name and marker.

    ``digest`` is that of the plan; ``digest_in`` finds it again. ``added`` comes after the first line. A report that
    would become too long is replaced by its first line and a link to the rest.
    """
    if name == DEFAULT and not digest and not added:
        return report
    text = report.rstrip("\n").removesuffix(marker(subject, DEFAULT)).rstrip("\n")
    if added:
        first, _, rest = text.partition("\n")
        text = f"{first}\n\n{added}\n{rest}".rstrip("\n")
    head = "" if name == DEFAULT else f"### {name}\n\n"
    end = f"\n\nplan digest: `{digest}`" if digest else ""
    end += f"\n\n{marker(subject, name)}\n"
    if len((head + text + end).encode(errors="backslashreplace")) > LIMIT:
        where = f"[this run]({address})" if address else "the run"
        text = f"{text.splitlines()[0]}\n\nAll of it is on the page of {where}."
    return head + text + end


def addition(report: str, before: str, digest: str, artifact: str, name: str = DEFAULT) -> str:
    """What a comment says besides the report: where the page is, and what changed since the plan of the comment
    ``before``, which is empty for a new one.
    """
    parts = []
    if _ARTIFACT.match(artifact):
        parts.append(
            f'<p>📄 <a href="{artifact}">The report as a page (plan.html) and the plan itself (plan.json)</a></p>'
        )
    now, earlier, of = read_groups(report), read_groups(before), digest_in(before, marker("plan", name))
    if now is not None and earlier is not None and of != digest:
        parts.append(since_text(earlier, now, of))
    return "\n\n".join(parts)


def digest_in(body: str, mark: str) -> str:
    """The digest in the last lines of a comment with this marker; empty if it has none.

    Only the last lines count: the report above them contains foreign text.
    """
    text = body.replace("\r\n", "\n").rstrip()
    if not text.endswith(mark):
        return ""
    last = text[: -len(mark)][-_LONGEST_DIGEST:] + "<!--"
    found = re.search(rf"{_DIGEST.pattern}\Z", last)
    return found[1] if found else ""


def put_comment(github: GitHub, number: int, body: str, ours: Comment | None) -> str:
    """Create a comment, or edit the one that ``find_comment`` found. Returns its address. Raises ``LiveError``.

    Only a comment of the posting identity is edited, whatever the kind of token: the author of a comment can change it
    later, and a reviewed plan must not be text that someone else controls.
    """
    if ours:
        done = github.send("PATCH", f"issues/comments/{ours.number}", body=body)
    else:
        done = github.send("POST", f"issues/{number}/comments", body=body)
    return str(done.get("html_url", "")) if isinstance(done, dict) else ""


def find_comment(github: GitHub, number: int, mark: str) -> Comment | None:
    """The first comment with a marker by the identity of the token. Raises ``LiveError``.

    GraphQL's ``viewerDidAuthor`` knows that identity for every kind of token; REST's ``/user`` only that of a person's.
    Logins do not show it: GraphQL calls an App's account ``NAME`` as an author and ``NAME[bot]`` as the viewer.
    """
    comments = github.pages(f"issues/{number}/comments")
    ids = [str(each.get("node_id")) for each in comments if _ends_with(each.get("body"), mark)]
    some = (ids[start : start + _MOST_NODES] for start in range(0, len(ids), _MOST_NODES))
    return next((each for part in some for each in _ours(github, part, mark)), None)


def _ours(github: GitHub, ids: Sequence[str], mark: str) -> Iterator[Comment]:
    """Those of some comments that the identity of the token wrote, in order."""
    nodes = github.query(_QUERY, ids=ids).get("nodes")
    for node in nodes if isinstance(nodes, list) else ():
        if (
            not isinstance(node, dict)
            or node.get("viewerDidAuthor") is not True
            or not _ends_with(node.get("body"), mark)
        ):
            continue
        number, edited = node.get("databaseId"), node.get("lastEditedAt")
        if isinstance(number, int) and not isinstance(number, bool):
            by_us = edited is None or (isinstance(node.get("editor"), dict) and node["editor"] == node.get("author"))
            yield Comment(number, str(node["body"]), str(edited or node.get("createdAt")), by_us)


def _ends_with(body: Any, mark: str) -> bool:
    return isinstance(body, str) and body.rstrip().endswith(mark)
