"""What code opens below a table's folder, and whether a link led it out of there. Linux only: it asks ``/proc``."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

_READ = ("open", "scandir", "listdir", "stat")
_CHANGED = ("mkdir", "unlink", "rmdir", "link", "rename")


@dataclass
class Watch:
    """The calls of the system, with the names that they are given."""

    table: str
    outside: str
    before: Callable[[str], None] = lambda _path: None
    """Called with each path at or below the table, right before the call that uses it."""
    used: list[str] = field(default_factory=list)
    """Paths at or below the table, in order."""
    escaped: list[str] = field(default_factory=list)
    """What was opened, listed, looked at or changed outside."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        with pytest.MonkeyPatch.context() as patch:
            for name in (*_READ, *_CHANGED):
                patch.setattr(os, name, self._watched(name, getattr(os, name)))
            yield

    def _watched(self, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def watched(path: Any = ".", *args: Any, **named: Any) -> Any:
            if _is_fake():
                return real(path, *args, **named)
            at = named.get("dir_fd", named.get("src_dir_fd"))
            place = _path(path, at)
            if f"{place}/".startswith(f"{self.table}/"):
                self.used.append(place)
                self.before(place)
            follows = call in {"scandir", "listdir"} or (call == "stat" and named.get("follow_symlinks", True))
            place = _path(path, at)  # the directory may have been moved
            where = place if isinstance(path, int) else _real(place, follow=follows)
            made = real(path, *args, **named)
            if call == "open":
                where = _of(made)
            if f"{where}/".startswith(f"{self.outside}/"):
                self.escaped.append(f"{call} {place} at {where}")
            return made

        return watched


def _of(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _real(place: str, *, follow: bool) -> str:
    """Where a call goes that follows a link in the last place, or does not."""
    above, _, name = place.rpartition("/")
    return os.path.realpath(place) if follow else f"{os.path.realpath(above or '/')}/{name}"


def _path(path: Any, at: int | None) -> str:
    """The path that a call means, with links as they are."""
    if isinstance(path, int):
        return _of(path)
    above = Path.cwd() if at is None else Path(_of(at))
    return os.path.normpath(above / os.fsdecode(path))


def _is_fake() -> bool:
    """Whether a stand-in of Spark makes the call, which follows links, or whoever puts a link in place."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_filename.endswith("log_lake.py") or frame.f_code.co_name == "replace_by_link":
            return True
        frame = frame.f_back
    return False
