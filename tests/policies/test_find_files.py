"""Which files are policies."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tablectl.model.errors import Problem
from tablectl.policies.repository import find_files, read_bytes, shown_path
from tests.unreadable import unreadable


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def touch(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text("version: 1")


def found(*paths: str) -> tuple[list[str], list[str]]:
    problems: list[Problem] = []
    files = find_files([Path(path) for path in paths], problems)
    return [str(file) for file in files], [str(problem) for problem in problems]


@pytest.mark.usefixtures("root")
def test_yaml_files_below_a_directory_sorted() -> None:
    touch("p/b.yaml", "p/a.yml", "p/sub/c.yaml", "p/notes.txt", "p/.git/d.yaml", "p/.e.yaml", "p/folder.yaml/f.yaml")
    assert found("p") == (["p/a.yml", "p/b.yaml", "p/folder.yaml/f.yaml", "p/sub/c.yaml"], [])


@pytest.mark.usefixtures("root")
def test_a_file_named_twice_is_read_once_and_any_name_will_do() -> None:
    touch("p/b.yaml", "x.policy")
    assert found("p", "p/b.yaml", "./p/../p/b.yaml", "x.policy") == (["p/b.yaml", "x.policy"], [])


@pytest.mark.usefixtures("root")
def test_links_are_followed_and_loops_of_them_end() -> None:
    touch("shared/s.yaml", "p/a.yaml")
    Path("p/shared").symlink_to("../shared")
    Path("p/loop").symlink_to("../p")
    Path("shared/loop").symlink_to("../p")
    assert found("p") == (["p/a.yaml", "p/shared/s.yaml"], [])


@pytest.mark.usefixtures("root")
def test_an_empty_directory_is_an_error() -> None:
    Path("p").mkdir()
    assert found("p") == (
        [],
        ["p: no *.yaml or *.yml file in this directory\n  hint: name a file, or the directory that holds the policies"],
    )
    assert found()[1] == ["policies: no files to read\n  hint: name the directory that holds the policies"]


def read(path: Path) -> tuple[bytes | None, list[str]]:
    problems: list[Problem] = []
    return read_bytes(path, problems), [str(problem) for problem in problems]


def test_files_that_cannot_be_read(root: Path) -> None:
    os.mkfifo("pipe")
    Path("loop").symlink_to("loop")
    Path("big").write_bytes(b" " * 1_000_001)
    missing = read(Path("none"))
    assert missing[1][0].startswith("none: no such file or directory\n  hint: to start here: `tablectl init`, or")
    assert read(Path("pipe")) == (None, ["pipe: this is not a file"])
    assert read(Path("big")) == (
        None,
        ["big: the file is larger than 1 MB\n  hint: split it, if it is a policy file"],
    )
    assert read(Path("loop"))[1][0].startswith("loop: cannot be read: ")
    assert read(Path("a\0b"))[1][0].startswith(r"a\x00b: cannot be read: ")
    assert read_bytes(root / "none", [], missing=b"") == b""


def test_what_may_not_be_read_is_not_passed_over(root: Path) -> None:
    touch("p/a.yaml", "p/closed/b.yaml")
    with unreadable(Path("p/closed")):
        assert found("p")[1] == ["p/closed: cannot be read: Permission denied"]


def test_paths_in_messages_can_be_printed() -> None:
    assert shown_path(Path("a/b.yaml")) == "a/b.yaml"
    assert shown_path(Path("a\nb")) == r"a\nb"
    assert shown_path(Path(os.fsdecode(b"a\xff"))) == "a\ufffd"
