"""Recipes of ``sh`` that a transcript cannot show: their scripts are run here."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.docs.conftest import CONFIG, Place
from tests.docs.pages import ROOT, Block, blocks

RECIPES = ROOT / "docs" / "recipes.md"


def section(title: str) -> list[Block]:
    """The blocks of a recipe."""
    page = RECIPES.read_text(encoding="utf-8")
    start = page[: page.index(f"## {title}\n")].count("\n") + 1
    end = start + page.splitlines()[start:].index(next(x for x in page.splitlines()[start:] if x.startswith("## ")))
    return [each for each in blocks(RECIPES) if start < each.line <= end]


@pytest.mark.skipif(shutil.which("jq") is None, reason="no jq here")
def test_codeowners_has_the_owners_of_each_policy_file(place: Callable[[], Place]) -> None:
    policies, script = section("Make CODEOWNERS from the owners of tables")
    here = place()
    Path("policies").mkdir()
    Path(policies.file).write_text(policies.text, encoding="utf-8")
    command, _, rest = script.text.partition("\n")
    Path("status.json").write_text(here.run(command.partition(" > ")[0]), encoding="utf-8")
    subprocess.run(["bash", "-euc", rest], check=True, timeout=60)
    assert Path("CODEOWNERS").read_text() == "/policies/sales.yaml @example/sales returns@example.com\n"


@pytest.mark.skipif(not (shutil.which("jq") and shutil.which("curl")), reason="no jq or curl here")
def test_an_apply_is_posted_to_slack(place: Callable[[], Place], monkeypatch: pytest.MonkeyPatch) -> None:
    posted: list[dict[str, str]] = []

    class Slack(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            posted.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_arguments: object) -> None:
            return

    settings, script = section("Post to Slack")
    here = place()
    Path("policies").mkdir()
    Path("policies/one.yaml").write_text("version: 1\ntables:\n  lake.sales.orders: {isolation: Serializable}\n")
    Path(settings.file).write_text(f"{settings.text}{CONFIG}", encoding="utf-8")
    Path("slack.sh").write_text(script.text, encoding="utf-8")
    Path("slack.sh").chmod(0o755)
    with HTTPServer(("127.0.0.1", 0), Slack) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        monkeypatch.setenv("SLACK_WEBHOOK", f"http://127.0.0.1:{server.server_port}/services/T0")
        here.run("tablectl apply --yes")
    assert [each["text"].splitlines() for each in posted] == [
        ["Apply: Applied and verified", "1 applied; 1 commit made", "lake.sales.orders: applied and verified "]
    ]
