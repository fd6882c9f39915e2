"""Every example of every page: policies and settings are valid, commands can be given, what pages show is what is so.

A block of ``console`` is run on the lake of ``conftest.py``, in the order of its page, and what it shows is compared
(``…`` stands for what is left out); ``TABLECTL_GOLDEN=write`` writes what is so into the page. On such a page, files
that a block names in its first line are there (``one entry`` replaces that of its table), and blocks of SQL are what
someone else runs. All other commands are parsed as the program would.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest
import yaml

from tablectl.commands.output import Output
from tablectl.model.errors import InputError
from tablectl.policies.read_config import load_config
from tablectl.policies.repository import load_specs
from tablectl.reports.plan_document import TITLES
from tests.ci.hand import bash_reads
from tests.docs.conftest import CONFIG, Place
from tests.docs.pages import PAGES, ROOT, Block, anchors, blocks, like, transcript
from tests.program import PROGRAM

ALL = [block for page in PAGES for block in blocks(page)]
WRITE = os.environ.get("TABLECTL_GOLDEN") == "write"
SHOWN_ONLY = {
    "between.md": "its output is compared by tests/conflicts/test_publish.py and the golden files",
    "drift-and-import.md": "its tables have histories of people and jobs that a lake without Spark has not",
    "environments.md": "its environments have lakes of their own: tests/commands/test_environments_page.py runs it",
    "guards.md": "its writers need Spark; tests/writers and tests/scenarios run such ones",
}
"""Pages with blocks that are checked but not run, and why."""


def of(*languages: str) -> list[Block]:
    return [each for each in ALL if each.language in languages]


def named(block: Block) -> str:
    return str(block)


@pytest.mark.parametrize("block", of("yaml"), ids=named)
def test_yaml_is_what_it_says(block: Block, tmp_path: Path) -> None:
    value = yaml.safe_load(block.text)
    assert isinstance(value, dict)
    if "tables" in value or "version" in value:
        (tmp_path / "p.yaml").write_text(block.text, encoding="utf-8")
        if block.file.startswith("wrong/"):
            with pytest.raises(InputError):
                load_specs([tmp_path / "p.yaml"], variables={}, environ={}, catalog="lake")
            return
        specs = load_specs([tmp_path / "p.yaml"], variables={"LAKE": "/lake"}, environ={}, catalog="lake")
        assert specs.tables or specs.patterns
    elif "jobs" in value:
        assert all("steps" in job for job in value["jobs"].values())
    elif "stages" in value:
        assert {"plan", "apply"} <= set(value)
        for job in ("plan", "apply"):
            for line in value[job]["script"]:
                assert bash_reads(line)
                if line.startswith("tablectl "):
                    parse(line)
    elif "repos" in value:
        assert value["repos"][0]["hooks"]
    else:
        (tmp_path / "tablectl.yaml").write_text(block.text, encoding="utf-8")
        load_config(tmp_path, {})


def test_json_is_json() -> None:
    for block in of("json"):
        json.loads(block.text)


@pytest.mark.parametrize("block", of("sh"), ids=named)
def test_scripts_are_scripts(block: Block) -> None:
    assert bash_reads(block.text)


@pytest.mark.parametrize("block", [each for each in ALL if each.commands], ids=named)
def test_commands_can_be_given(block: Block) -> None:
    for command in block.commands:
        parse(command)


def parse(command: str) -> None:
    """As the program parses its arguments; nothing is run."""
    words = shlex.split(command, comments=True)[1:]
    if words == ["--version"]:
        return
    group: Any = PROGRAM
    context = group.make_context("tablectl", words, obj=Output({}))
    while hasattr(group, "commands"):
        rest = [*context._protected_args, *context.args]
        name, group, rest = group.resolve_command(context, rest)
        context = group.make_context(name, rest, parent=context)


INLINE = [
    (page, command)
    for page in PAGES
    for command in re.findall(r"`(tablectl [a-z][^`\n]*)`", re.sub(r"(?ms)^```.*?^```$", "", page.read_text()))
]


@pytest.mark.parametrize(("page", "command"), INLINE, ids=lambda each: each.name if isinstance(each, Path) else each)
def test_commands_and_options_in_prose_exist(page: Path, command: str) -> None:
    group: Any = PROGRAM
    words = command.split()[1:]
    while words and hasattr(group, "commands") and words[0].split("|")[0] in group.commands:
        group = group.commands[words.pop(0).split("|")[0]]
    assert not hasattr(group, "commands") or not words, f"{page.name}: {command}"
    known = {option for each in group.params for option in each.opts} | {"--help"}
    assert set(re.findall(r"--[a-z][a-z-]*", command)) <= known, f"{page.name}: {command}"


def sections(page: Path) -> list[list[Block]]:
    """The blocks that share a repository and a lake: of recipes, those of one recipe."""
    found = blocks(page)
    if page.name != "recipes.md":
        return [found]
    heads = [number for number, line in enumerate(page.read_text().splitlines(), 1) if line.startswith("## ")]
    return [list(each) for _, each in groupby(found, lambda block: sum(head < block.line for head in heads))]


RUN = [
    each
    for page in PAGES
    if page.name not in SHOWN_ONLY
    for each in sections(page)
    if any(block.language == "console" for block in each)
]


@pytest.mark.parametrize("section", RUN, ids=lambda each: str(each[0]))
def test_what_a_page_shows_is_so(section: list[Block], place: Callable[[], Place]) -> None:
    here = place()
    for block in section:
        if block.file.endswith((".yaml", ".yml")):
            file = Path(block.file)
            file.parent.mkdir(exist_ok=True)
            text = block.text if file.name != "tablectl.yaml" else f"{block.text}{CONFIG}"
            file.write_text(edited(file, text) if "(one entry)" in text else text, encoding="utf-8")
        elif block.language == "sql":
            here.sql(block.text)
        elif block.language == "console":
            said = [(each, stripped(here.run(each.command))) for each in transcript(block)]
            if WRITE:
                rewrite(block, [(each.command, each.output, text) for each, text in said])
                continue
            for each, text in said:
                assert like(each.output).fullmatch(text), f"{block}: $ {each.command}\n{text}"


def edited(file: Path, entry: str) -> str:
    """A file of policies with another entry for a table that it has."""
    found, made = yaml.safe_load(file.read_text(encoding="utf-8")), yaml.safe_load(entry)
    assert set(made["tables"]) < set(found["tables"]), f"{file} has no such entry"
    return yaml.safe_dump({**found, "tables": {**found["tables"], **made["tables"]}})


def stripped(text: str) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.splitlines())


def rewrite(block: Block, said: list[tuple[str, str, str]]) -> None:
    """What is so, where the page shows something else."""
    made = ""
    for command, shown, text in said:
        made += "$ " + command.replace("\n", "\\\n") + "\n" + (shown if like(shown).fullmatch(text) else text)
    page = block.page.read_text(encoding="utf-8")
    block.page.write_text(page.replace(f"```console\n{block.text}```", f"```console\n{made}```"), encoding="utf-8")


def test_links_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", ROOT / "changelog.d" / "README.md"]:
        text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            if "://" in target:
                continue
            name, _, anchor = target.partition("#")
            file = (page.parent / name).resolve() if name else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in anchors(file), f"{page.name}: {target}"


def test_each_page_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        is_decision = (
            page.parent.name == "decisions" and page.name != "README.md"
        )  # docs/decisions/README.md lists them
        assert is_decision or name == "README.md" or f"]({name})" in index, f"{name} is not in docs/README.md"


@pytest.mark.parametrize("page", [each for each in PAGES if each.name not in SHOWN_ONLY], ids=lambda page: page.name)
def test_output_that_is_shown_is_run(page: Path) -> None:
    """Where commands stand with their output they are blocks of ``console``, but on pages that say why not."""
    for block in blocks(page):
        if block.text.startswith("$ "):
            assert block.language == "console", f"{block}: its first line says `console`"


def test_a_verdict_that_a_page_quotes_is_one_of_a_plan() -> None:
    known = {*TITLES.values(), "No changes"}
    quoted = [title for page in PAGES for title in re.findall(r"\*\*\S+ Plan: ([^*]+)\*\*", page.read_text())]
    assert quoted
    assert set(quoted) <= known
