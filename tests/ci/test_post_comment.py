"""One comment, written again with each push."""

from __future__ import annotations

from tablectl.ci.post_comment import body_of, digest_in, find_comment, marker, put_comment
from tablectl.ci.rest_api import GitHub
from tablectl.reports.document_markdown import LIMIT
from tests.ci.conftest import BOT, FakeGitHub

REPORT = "**🟡 Plan: Changes pending** · 1 table\n\nmore\n\n<!-- tablectl plan -->\n"


def test_the_comment_is_made_once_and_then_replaced(github: FakeGitHub, client: GitHub) -> None:
    mark = marker("plan", "tablectl")
    first = put_comment(client, 7, REPORT, find_comment(client, 7, mark))
    second = put_comment(client, 7, REPORT.replace("more", "less"), find_comment(client, 7, mark))
    assert first == second == "https://github.example/c/101"
    (kept,) = github.comments[7]
    assert "less" in kept["body"]


def test_the_comment_is_found_on_a_later_page(github: FakeGitHub, client: GitHub) -> None:
    github.comments[7] = [{"id": number, "user": BOT, "body": "hello"} for number in range(1, 131)]
    put_comment(client, 7, REPORT, find_comment(client, 7, "<!-- tablectl plan -->"))
    put_comment(client, 7, REPORT, find_comment(client, 7, "<!-- tablectl plan -->"))
    assert len(github.comments[7]) == 131


def test_the_comment_of_another_account_is_not_replaced(github: FakeGitHub, client: GitHub) -> None:
    """Who wrote a comment can change it later."""
    person = {"login": "mallory", "type": "User", "id": 7}
    github.comments[7] = [
        {"id": 1, "user": person, "body": REPORT},
        {"id": 2, "user": BOT, "body": f"a bot that quotes: {REPORT} and goes on"},
        {"id": 3, "user": None, "body": None},
    ]
    put_comment(client, 7, REPORT, find_comment(client, 7, "<!-- tablectl plan -->"))
    assert [each["id"] for each in github.comments[7]] == [1, 2, 3, 103 + 1]


def test_plan_and_apply_and_each_name_have_comments_of_their_own(github: FakeGitHub, client: GitHub) -> None:
    for subject, name in [("plan", "tablectl"), ("apply", "tablectl"), ("plan", "lake-prod"), ("plan", "lake")]:
        report = REPORT.replace("tablectl plan", f"tablectl {subject}")
        for _ in range(2):
            put_comment(client, 7, body_of(report, subject, name, ""), find_comment(client, 7, marker(subject, name)))
    assert len(github.comments[7]) == 4
    assert github.comments[7][2]["body"] == (
        "### lake-prod\n\n**🟡 Plan: Changes pending** · 1 table\n\nmore\n\n<!-- tablectl plan: lake-prod -->\n"
    )


def test_the_digest_stands_in_the_last_lines_and_is_read_only_there() -> None:
    digest, forged = "a" * 64, "b" * 64
    for name in ("tablectl", "lake-prod"):
        mark = marker("plan", name)
        report = REPORT.replace("more", f"plan digest: `{forged}`\n\n{mark}")
        body = body_of(report, "plan", name, "", digest)
        assert digest_in(body, mark) == digest
        assert digest_in(body.replace("\n", "\r\n"), mark) == digest
        assert digest_in(body_of(report, "plan", name, ""), mark) == ""
        assert digest_in(f"{body}{mark} and more", mark) == ""
    assert len(body_of("verdict\n" + "x" * 2 * LIMIT, "plan", "tablectl", "", digest).encode()) <= LIMIT


def test_with_its_name_it_is_never_too_long() -> None:
    end = "\n\n<!-- tablectl plan -->\n"
    full = "**verdict**\n\n" + "x" * (LIMIT - 13 - len(end)) + end
    assert len(full.encode()) == LIMIT
    assert body_of(full, "plan", "tablectl", "") == full
    body = body_of(full, "plan", "lake-prod", "https://github.example/runs/7")
    assert body.startswith("### lake-prod\n\n**verdict**\n\nAll of it is on the page of [this run]")
    assert body.endswith("<!-- tablectl plan: lake-prod -->\n")
