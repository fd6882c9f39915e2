"""docs/environments.md, run line by line."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from tests.commands.conftest import Cli, Repository

PAGE = (Path(__file__).parent.parent.parent / "docs" / "environments.md").read_text(encoding="utf-8")


def test_its_files_do_what_it_says(cli: Cli, repo: Repository) -> None:
    config, policies = (
        each.replace("/lake/", f"{repo.lake}/") for each in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    )
    Path("tablectl.yaml").write_text(config)
    repo.policies(policies, "orders.yaml")
    repo.table("dev/orders")
    repo.table("prod/orders")
    sessions = re.findall(r"```\n(\$ .*?)```", PAGE, re.DOTALL)
    assert len(sessions) == 5
    for each in re.split(r"^\$ ", "".join(sessions), flags=re.MULTILINE)[1:]:
        command, said = each.split("\n", 1)
        result = cli(*shlex.split(command)[1:])
        told = (result.out + result.err).replace(f"{repo.lake}/", "/lake/")
        assert re.fullmatch(re.escape(said).replace("…\\\n", "(?:.*\n)+"), told), (command, told)
