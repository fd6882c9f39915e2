"""The owner of a lease, recorded for people who wait for it."""

from __future__ import annotations

import getpass
import os
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter
from typing import NamedTuple


@dataclass(frozen=True)
class Owner:
    """Who wrote a record. For people only: leases are distinguished by their random ids."""

    who: str
    host: str
    pid: int
    ci: str
    """The URL of the CI run; empty outside of CI."""
    tool: str
    """The version of tablectl."""

    def __str__(self) -> str:
        return on_one_line(f"{self.who} on {self.host} ({self.ci or f'pid {self.pid}'})")


def on_one_line(text: str) -> str:
    """A text of a record for messages: a record can contain line ends, which would look like lines of ours."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


UNKNOWN_OWNER = Owner(who="unknown", host="unknown", pid=0, ci="", tool="unknown")
"""The owner of a record that cannot be read."""


class _Ci(NamedTuple):
    who: str
    url: str


_CI = (
    _Ci("GITHUB_ACTOR", "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}/actions/runs/{GITHUB_RUN_ID}"),
    _Ci("GITLAB_USER_LOGIN", "{CI_JOB_URL}"),
    _Ci("BUILD_REQUESTEDFOR", "{SYSTEM_COLLECTIONURI}{SYSTEM_TEAMPROJECT}/_build/results?buildId={BUILD_BUILDID}"),
    _Ci("BUILDKITE_BUILD_CREATOR", "{BUILDKITE_BUILD_URL}"),
    _Ci("CIRCLE_USERNAME", "{CIRCLE_BUILD_URL}"),
    _Ci("BUILD_USER_ID", "{BUILD_URL}"),  # Jenkins; last, because other systems may also set a variable of this name
)


def current_owner(environ: Mapping[str, str], tool_version: str) -> Owner:
    """This process and its CI run, if any: GitHub, GitLab, Azure, Buildkite, CircleCI, or Jenkins."""
    ci = next((ci for ci in _CI if all(environ.get(name) for name in _variables(ci.url))), None)
    return Owner(
        who=(environ.get(ci.who) if ci else None) or _user(environ),
        host=socket.gethostname(),
        pid=os.getpid(),
        ci=ci.url.format_map(environ).replace(" ", "%20") if ci else "",
        tool=tool_version,
    )


def _variables(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]


def _user(environ: Mapping[str, str]) -> str:
    named = next((environ[name] for name in ("LOGNAME", "USER", "USERNAME") if environ.get(name)), None)
    try:
        return named or getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container's numeric user without an entry in /etc/passwd
        return "unknown"
