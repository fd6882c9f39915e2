"""docs/generated/commands.md lists every command with its options."""

from __future__ import annotations

from tests.docs.publish_commands import PAGE, page
from tests.program import commands


def test_the_page_is_that_of_the_program() -> None:
    assert PAGE.read_text("utf-8") == page(), "run `python -m tests.docs.publish_commands`"


def test_every_command_has_a_heading_and_each_of_its_options() -> None:
    text = page()
    for words, command in commands():
        section = text.partition(f"## {' '.join(('tablectl', *words))}\n")[2].partition("\n## ")[0]
        options = {option for each in command.params for option in each.opts if option.startswith("--")}
        assert section, words
        assert [each for each in sorted(options) if each not in section] == [], words
