"""Starts Git; no other module does. A checkout can be of a branch before its review, so none of its files may
decide what Git runs.

Git takes a folder that has ``HEAD``, ``objects`` and ``refs`` for a repository, and its ``config`` names programs. A
branch can contain such a folder, and no file named ``.git``. So the repository is always named, and it is the one of
the next ``.git``. Files of a commit are read as they are stored, because ``git archive`` runs filters that attributes
of a branch choose (gitattributes(5)).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tablectl.support.processes import Invocation, ProcessLimits, run_captured

COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
"""The whole hash of an object."""
_SECONDS = 120
_MOST_BYTES = 256 << 20
_CONFIG = {
    "core.attributesFile": os.devnull,
    "core.fsmonitor": "false",
    "core.hooksPath": os.devnull,
    "core.pager": "cat",
    "fetch.recurseSubmodules": "false",
    "gc.auto": "0",
    "maintenance.auto": "false",
    "safe.bareRepository": "explicit",
    "submodule.recurse": "false",
}
_ENVIRON = {
    "GIT_ALLOW_PROTOCOL": "file:http:https:ssh",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
}
_KEPT = re.compile(r"GIT_(?:SSH|SSL_|HTTP_|CONFIG_(?:GLOBAL|SYSTEM|NOSYSTEM)\Z)")
"""The variables of Git that say how this user reaches a server. All others, such as those of a hook, could name another
repository, or a program.
"""
_WORKSPACES = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Name the folder into which GitHub or GitLab checks out. In a container, other users own its files."""
_OF_STEPS = frozenset({"INPUT_TOKEN", "NOTE_TOKEN"})
_LINK, _MODULE = b"120000", b"160000"


Config = Sequence[tuple[str, str]]
"""Settings of Git and their values. A setting with several values is there several times."""


class GitError(Exception):
    """Git cannot be run, fails, or knows nothing of what was asked. The text is a sentence's end: ``Git …``."""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A folder of a checkout, and its repository."""

    directory: Path
    """Where commands run: paths are relative to it."""
    root: Path
    repository: Path

    def git(self, *words: str, given: bytes = b"", config: Config = ()) -> bytes:
        """The output of a command of Git. ``config`` reaches it without being shown in a list of processes. Raises
        ``GitError``.
        """
        named = {"GIT_DIR": str(self.repository), "GIT_WORK_TREE": str(self.root)}
        found = {"GIT_CONFIG_COUNT": str(len(config))} if config else {}
        for number, (key, value) in enumerate(config):
            found |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
        return _run(self.directory, words, named | found, given)

    def commit_of(self, ref: str) -> str:
        """The whole hash of the commit that a text names. Raises ``GitError``, also for a name that is a tag's and a
        branch's: Git would take the tag, and whoever may push can make one.
        """
        if not ref.startswith("refs/"):
            named = [f"refs/{kind}/{ref}" for kind in ("tags", "heads", "remotes")]
            known = set(self.git("for-each-ref", "--format=%(refname)", *named).decode(errors="replace").split())
            found = [each for each in named if each in known]
            if len(found) > 1:
                raise GitError(f"knows several things of this name: write {found[-1]}")
        asked = ("rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}")
        return self.git(*asked).decode(errors="replace").strip()

    def newest(self, branch: str, config: Config = ()) -> str:
        """The newest commit of a branch of ``origin``, as the server has it. Raises ``GitError``."""
        ref = f"refs/heads/{branch}"
        lines = self.git("ls-remote", "--quiet", "origin", ref, config=config).decode(errors="replace").splitlines()
        found = [commit for commit, _, name in (line.partition("\t") for line in lines) if name == ref]
        if len(found) != 1 or not COMMIT.match(found[0]):
            raise GitError(f"finds no branch {branch} at `origin`")
        return found[0]

    def fetch(self, commit: str, config: Config = ()) -> None:
        """Make sure that a commit is here. It alone is fetched, where it is not. Raises ``GitError``."""
        try:
            self.git("cat-file", "-e", f"{commit}^{{commit}}")
        except GitError:
            words = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--depth=1", "origin", commit)
            self.git(*words, config=config)

    def save(self, commit: str, paths: Sequence[str], folder: Path, config: Config = ()) -> None:
        """Save files and folders of a commit in ``folder``, which is empty but for what this wrote. Links stay links
        where they lead to a place in it; submodules are left out. Raises ``GitError``.

        ``config`` is for a clone without all files, for which Git asks the server.
        """
        listed = self.git("ls-tree", "-r", "-z", commit, "--", *paths, config=config)
        entries = [_entry(each) for each in listed.split(b"\0") if each and not each.startswith(_MODULE)]
        names = b"".join(name + b"\n" for _, name, _ in entries)
        contents = (
            _contents(self.git("cat-file", "--batch", given=names, config=config), len(entries))
            if entries
            else iter(())
        )
        links = []
        try:
            for (mode, _, path), data in zip(entries, contents, strict=True):
                file = folder / path
                file.parent.mkdir(parents=True, exist_ok=True)
                if mode == _LINK:
                    links.append((file, data))
                else:
                    file.write_bytes(data)
            for file, target in links:  # after all files: no file is written through a link
                file.symlink_to(os.fsdecode(target))
        except OSError as error:
            raise GitError(f"has files that cannot be saved: {error.strerror or error}") from error
        inside = Path(os.path.realpath(folder))
        for file, _ in links:
            if not Path(os.path.realpath(file)).is_relative_to(inside):
                raise GitError(f"has {file.relative_to(folder)} as a link that leads out of the folder")


def find_checkout(directory: Path) -> Checkout:
    """The checkout of a directory. Raises ``GitError`` outside of one, and for a repository of another user that this
    user has not said to trust (``safe.directory``).
    """
    here = Path(os.path.realpath(directory))
    root = next((each for each in (here, *here.parents) if os.path.lexists(each / ".git")), None)
    if root is None:
        raise GitError("finds no repository here")
    if any(root.is_relative_to(os.path.realpath(os.environ[name])) for name in _WORKSPACES if os.environ.get(name)):
        return Checkout(here, root, root / ".git")
    # Where GIT_DIR names the repository, Git does not look at its owner, so it is asked without.
    found = _run(root, ("rev-parse", "--absolute-git-dir"), {"GIT_CEILING_DIRECTORIES": str(root.parent)})
    repository = Path(os.fsdecode(found.rstrip(b"\n")))
    if repository == root:  # a Git before 2.38 knows no safe.bareRepository
        raise GitError("finds no repository here")
    return Checkout(here, root, repository)


def _run(directory: Path, words: Sequence[str], more: Mapping[str, str], given: bytes = b"") -> bytes:
    """The output of a command. Raises ``GitError``."""
    own = {key: value for key, value in os.environ.items() if not key.startswith("GIT_") or _KEPT.match(key)}
    own = {key: value for key, value in own.items() if key not in _OF_STEPS}
    options = [word for key, value in _CONFIG.items() for word in ("-c", f"{key}={value}")]
    command = Invocation(["git", *options, *words], directory, {**own, **_ENVIRON, **more}, given)
    ran = run_captured(command, _MOST_BYTES + 1, ProcessLimits(_SECONDS))
    if ran.why:
        said = ran.err.decode(errors="replace").strip().splitlines()
        raise GitError(f"{ran.why}: {said[0]}" if said else ran.why)
    if len(ran.out) > _MOST_BYTES:
        raise GitError(f"finds more than {_MOST_BYTES >> 20} MiB there")
    return ran.out


def _entry(line: bytes) -> tuple[bytes, bytes, Path]:
    """Mode, object and path of a line of ``git ls-tree``. A tree that was not made by Git may name any path."""
    facts, _, name = line.partition(b"\t")
    mode, _, object_name = facts.split(b" ")
    path = PurePosixPath(os.fsdecode(name))
    if path.is_absolute() or ".." in path.parts or ".git" in map(str.lower, path.parts):
        raise GitError(f"has a file outside of the folder: {path}")
    return mode, object_name, Path(path)


def _contents(out: bytes, count: int) -> Iterator[bytes]:
    """What ``git cat-file --batch`` tells about so many objects: ``NAME SP TYPE SP SIZE LF CONTENTS LF``."""
    start = 0
    for _ in range(count):
        end = out.index(b"\n", start)
        facts = out[start:end].split(b" ")
        if len(facts) != 3 or facts[1] != b"blob":
            raise GitError("does not have all files of that commit")
        start = end + 1 + int(facts[2])
        yield out[end + 1 : start]
        start += 1
