"""Ten comments of plans, from policies and logs through the command, for people to decide on in thirty seconds each.

    python -m tools.review_comments FOLDER

Each file begins with the comment; what a careful reviewer answers, and why, is at its end, out of sight of GitHub.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tablectl.ci.post_comment import DEFAULT, addition, body_of
from tablectl.commands.command_line import run_cli
from tests.reports.review_plans import CASES, TEN, ReviewCase

_RUN = "https://github.com/acme/lake/actions/runs/7"
_DIGEST = "5f" * 32


def comment(case: ReviewCase, folder: Path) -> str:
    """The comment on a pull request from the policies ``base`` of a case to its ``policies``."""
    lake, repository, base = (folder / name for name in ("lake", "repository", "base"))
    tables = case.make(lake)
    for root, policies in ((repository, case.policies), (base, case.base)):
        (root / "policies").mkdir(parents=True)
        (root / "tablectl.yaml").write_text("policies: policies\n", encoding="utf-8")
        text = f"version: 1\ntables:\n{policies}\n" if policies else "version: 1\ntables: {}\n"
        for name, path in tables.items():
            text = text.replace(f"lake.sales.{name}:", f"delta.`{path}`:")
        (root / "policies" / "sales.yaml").write_text(text.replace("lake.sales.t*:", f"delta.`{lake}/t*`:"), "utf-8")
    os.chdir(repository)
    os.environ["TABLECTL_BASE_CONFIG"] = str(base / "tablectl.yaml")
    run_cli(["plan", "--out", "plan.json", "--report", "plan.md"], os.environ)
    report = Path("plan.md").read_text(encoding="utf-8").replace(str(lake), "s3://lake/sales")
    made = body_of(report, "plan", DEFAULT, _RUN, _DIGEST, addition(report, "", _DIGEST, f"{_RUN}/artifacts/9"))
    return f"{made}\n<!-- {case.decision}: {case.reason} -->\n"


def main(folder: Path) -> None:
    """Writes ``01-safe.md`` and so on."""
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    for number, name in enumerate(TEN, 1):
        with TemporaryDirectory() as place:
            text = comment(CASES[name], Path(place))
        (folder / f"{number:02}-{name}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
