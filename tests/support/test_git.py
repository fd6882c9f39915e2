"""Git in a checkout whose files strangers wrote: it runs nothing of them, and reads what the commit has."""

from __future__ import annotations

import ast
import os
import subprocess
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

import tablectl
import tablectl_guard
from tablectl.support.git import GitError, find_checkout

PACKAGES = [Path(str(each.__file__)).parent for each in (tablectl, tablectl_guard)]


def git(*words: str, given: bytes | None = None) -> str:
    """Git as it is, in the current folder."""
    identity = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
    return subprocess.run(["git", *identity, *words], input=given, check=True, capture_output=True).stdout.decode()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder without a configuration of Git."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


@pytest.fixture
def root(home: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout with one commit of ``a.txt``, which is the current folder."""
    folder = home / "checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    git("init", "-q", "-b", "main")
    commit(**{"a.txt": "a\n"})
    return folder


def commit(**files: str) -> str:
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    git("add", "--all")
    git("commit", "-q", "--allow-empty", "-m", "more")
    return git("rev-parse", "HEAD").strip()


def saved(home: Path, commit: str = "HEAD", *paths: str) -> dict[str, str]:
    """What is saved of a commit: texts, and targets of links after an arrow."""
    folder = home / "saved"
    folder.mkdir()
    find_checkout(Path()).save(commit, paths or (".",), folder)
    files = sorted(each for each in folder.rglob("*") if each.is_symlink() or each.is_file())
    return {
        str(each.relative_to(folder)): f"-> {each.readlink()}" if each.is_symlink() else each.read_text()
        for each in files
    }


def test_one_module_starts_git() -> None:
    found = []
    for file in (each for package in PACKAGES for each in package.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            words = (
                node.elts if isinstance(node, ast.List | ast.Tuple) else node.args if isinstance(node, ast.Call) else []
            )
            first = words[0] if words else None
            text = first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else ""
            if text == "git" or text.startswith("git ") or text.endswith("/git"):
                found.append(file.name)
    assert found == ["git.py"]


def test_what_a_checkout_is_configured_to_run_is_not_run(root: Path) -> None:
    program = f"touch {root}/pwned"
    wrong = {
        "core.fsmonitor": program,
        "core.hooksPath": "hooks",
        "core.attributesFile": "attributes",
        "core.pager": program,
        "fetch.recurseSubmodules": "true",
    }
    for key, value in wrong.items():
        git("config", key, value)
    told = {key: find_checkout(root).git("config", "--get", key).decode().strip() for key in wrong}
    assert told == {
        "core.fsmonitor": "false",
        "core.hooksPath": os.devnull,
        "core.attributesFile": os.devnull,
        "core.pager": "cat",
        "fetch.recurseSubmodules": "false",
    }


def bare(folder: Path, pwned: Path) -> None:
    """What Git takes for a repository, whose remote is a program."""
    for name in ("objects/info/kept", "refs/heads/kept"):
        (folder / name).parent.mkdir(parents=True)
        (folder / name).touch()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / "config").write_text(
        "[core]\n\trepositoryformatversion = 1\n\tbare = true\n[extensions]\n\tpartialClone = origin\n"
        f'[remote "origin"]\n\turl = ext::touch {pwned}\n\tpromisor = true\n[protocol "ext"]\n\tallow = always\n'
    )


@pytest.mark.parametrize("below", ["", "/deeper"])
def test_a_folder_that_looks_like_a_repository_is_none(root: Path, below: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bare(root / "lake", root / "pwned")
    here = Path(f"{root}/lake{below}")
    here.mkdir(exist_ok=True)
    monkeypatch.chdir(here)
    checkout = find_checkout(Path())
    assert (checkout.root, checkout.repository) == (root, root / ".git")
    with pytest.raises(GitError):
        checkout.fetch("b" * 40)
    assert not (root / "pwned").exists()
    subprocess.run(["git", "cat-file", "-e", "b" * 40], check=False, capture_output=True)
    assert (root / "pwned").exists(), "the attack works where Git looks for the repository itself"


def test_a_checkout_whose_repository_is_damaged_is_not_its_own_bare_repository(root: Path) -> None:
    bare(root, root / "pwned")
    (root / ".git" / "HEAD").unlink()
    with pytest.raises(GitError):
        find_checkout(Path())
    assert not (root / "pwned").exists()


def test_a_remote_that_is_a_program_is_not_run(root: Path) -> None:
    git("remote", "add", "origin", f"ext::touch {root}/pwned")
    git("config", "protocol.ext.allow", "always")
    with pytest.raises(GitError):
        find_checkout(root).newest("main")
    assert not (root / "pwned").exists()


def test_attributes_of_a_branch_choose_no_filter_and_hide_nothing(root: Path, home: Path) -> None:
    """Filters are programs of the user's configuration, such as those of git-lfs, which asks the server that the branch
    names in ``.lfsconfig``.
    """
    git("config", "--global", "filter.lfs.smudge", f"touch {root}/pwned; cat")
    git("config", "--global", "filter.lfs.clean", "cat")
    attributes = "a.txt filter=lfs\nhidden.yaml export-ignore\nsubst.txt export-subst\n"
    commit(**{".gitattributes": attributes, "hidden.yaml": "h\n", "subst.txt": "$Format:%H$\n"})
    (root / "pwned").unlink(missing_ok=True)
    assert saved(home, "HEAD", "a.txt", "hidden.yaml", "subst.txt") == {
        "a.txt": "a\n",
        "hidden.yaml": "h\n",
        "subst.txt": "$Format:%H$\n",
    }
    assert not (root / "pwned").exists()
    git("archive", "--output=/dev/null", "HEAD")
    assert (root / "pwned").exists(), "the attack works with git archive"


def test_a_replaced_commit_is_read_as_it_was(root: Path, home: Path) -> None:
    first = git("rev-parse", "HEAD").strip()
    git("replace", first, commit(**{"a.txt": "evil\n"}))
    assert git("show", f"{first}:a.txt") == "evil\n"
    assert saved(home, first) == {"a.txt": "a\n"}


def test_variables_of_a_hook_name_no_other_repository(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = home / "other"
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    for name, value in {
        "GIT_DIR": f"{other}/.git",
        "GIT_OBJECT_DIRECTORY": f"{other}/.git/objects",
        "GIT_EXTERNAL_DIFF": f"touch {root}/pwned",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "remote.origin.url",
        "GIT_CONFIG_VALUE_0": "https://evil.example",
    }.items():
        monkeypatch.setenv(name, value)
    checkout = find_checkout(Path())
    assert checkout.repository == root / ".git"
    assert saved(home, checkout.commit_of("main")) == {"a.txt": "a\n"}
    with pytest.raises(GitError):
        checkout.git("config", "--get", "remote.origin.url")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder to another user")
def test_the_repository_of_another_user_is_not_used_before_it_is_trusted(
    root: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a machine of several users, anyone can make ``/tmp/.git``."""
    for each in (root, *root.rglob("*")):
        os.chown(each, 12345, 12345)
    below = root / "mine"
    below.mkdir()
    with pytest.raises(GitError, match="dubious ownership"):
        find_checkout(below)
    with monkeypatch.context() as job:
        job.setenv("GITHUB_WORKSPACE", str(root))
        assert find_checkout(below).commit_of("HEAD"), "a job's own checkout, which a container sees as another user's"
    git("config", "--global", "safe.directory", str(root))
    assert find_checkout(below).root == root


def test_a_login_of_the_job_replaces_that_of_the_checkout(root: Path) -> None:
    """GitHub refuses a request with two of them."""
    asked: list[list[str]] = []

    class Server(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.headers.get_all("Authorization") or [])
            self.send_error(404)

        def log_message(self, *_args: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Server) as server:
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}/"
        git("remote", "add", "origin", f"{address}acme/lake")
        key = f"http.{address}.extraheader"
        git("config", key, "Authorization: basic old")
        with pytest.raises(GitError):
            find_checkout(root).newest("main", ((key, ""), (key, "Authorization: basic new")))
        server.shutdown()
    assert asked[0] == ["basic new"]


def test_a_worktree_has_the_repository_of_its_own(root: Path, home: Path) -> None:
    git("worktree", "add", "-q", "-b", "other", str(home / "tree"))
    checkout = find_checkout(home / "tree")
    assert checkout.repository == root / ".git" / "worktrees" / "tree"
    assert checkout.commit_of("HEAD") == git("rev-parse", "HEAD").strip()


@pytest.mark.parametrize("name", ["main", "origin/main"])
def test_a_tag_with_the_name_of_a_branch_is_not_taken_for_it(root: Path, name: str) -> None:
    first = git("rev-parse", "HEAD").strip()
    git("update-ref", "refs/remotes/origin/main", first)
    evil = commit(**{"a.txt": "evil\n"})
    git("reset", "-q", "--hard", first)
    checkout = find_checkout(root)
    assert checkout.commit_of(name) == first
    git("tag", name, evil)
    assert git("rev-parse", name).strip() == evil, "Git takes the tag"
    kind = "remotes" if "/" in name else "heads"
    with pytest.raises(GitError, match=f"knows several things of this name: write refs/{kind}/{name}"):
        checkout.commit_of(name)
    assert checkout.commit_of(f"refs/{kind}/{name}") == first
    assert checkout.commit_of("HEAD") == checkout.commit_of(first) == first


def test_the_newest_commit_of_a_branch_is_not_that_of_a_tag(root: Path, home: Path) -> None:
    first = git("rev-parse", "HEAD").strip()
    git("tag", "main", commit(**{"a.txt": "evil\n"}))
    git("reset", "-q", "--hard", first)
    git("tag", "gone")
    subprocess.run(["git", "clone", "-q", str(root), str(home / "clone")], check=True)
    checkout = find_checkout(home / "clone")
    assert checkout.newest("main") == first
    with pytest.raises(GitError, match="finds no branch gone"):
        checkout.newest("gone")


def test_links_stay_links_inside_and_are_refused_outside(root: Path, home: Path) -> None:
    Path("deep").mkdir()
    Path("deep/inside").symlink_to("../a.txt")
    commit()
    assert saved(home) == {"a.txt": "a\n", "deep/inside": "-> ../a.txt"}


@pytest.mark.parametrize(
    "links",
    [{"out": "/etc"}, {"out": ".."}, {"deep/up": "..", "out": "deep/up/.."}, {"a": "b", "b": "c", "c": "/etc/passwd"}],
)
def test_no_link_of_a_commit_leads_out(root: Path, home: Path, links: dict[str, str]) -> None:
    for name, target in links.items():
        Path(name).parent.mkdir(exist_ok=True)
        Path(name).symlink_to(target)
    commit()
    with pytest.raises(GitError, match="as a link that leads out of the folder"):
        saved(home, "HEAD", *links)


def test_no_file_of_a_commit_is_written_elsewhere(root: Path, home: Path) -> None:
    """Git itself makes no such tree; whoever pushes can."""
    blob = git("rev-parse", "HEAD:a.txt").strip()
    for name in (b"..", b".git"):
        inner = make_tree(b"100644", b"evil", blob)
        outer = git("commit-tree", make_tree(b"40000", name, inner), "-m", "evil").strip()
        with pytest.raises(GitError, match="has a file outside of the folder"):
            find_checkout(root).save(outer, (".",), home / "into")


def make_tree(mode: bytes, name: bytes, of: str) -> str:
    data = mode + b" " + name + b"\0" + bytes.fromhex(of)
    return git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", given=data).strip()


def test_what_is_missing_is_an_error(root: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkout = find_checkout(root)
    with pytest.raises(GitError, match="ended with exit code"):
        checkout.commit_of("no-such-commit")
    name = git("rev-parse", "HEAD:a.txt").strip()
    (root / ".git" / "objects" / name[:2] / name[2:]).unlink()
    with pytest.raises(GitError, match="does not have all files of that commit"):
        saved(home)
    with pytest.raises(GitError, match="finds no repository here"):
        find_checkout(home)
    monkeypatch.setenv("PATH", "")
    with pytest.raises(GitError, match="cannot be run"):
        find_checkout(root)


def test_an_empty_folder_is_saved_as_nothing(root: Path, home: Path) -> None:
    assert saved(home, "HEAD", "policies") == {}
