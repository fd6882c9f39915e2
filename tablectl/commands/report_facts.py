"""What reports need besides the result: where, when and of which commit they are made, the lines of the policies, and
how far streams are. The place is known from the environment of a CI job or from ``.git``.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic, time
from typing import Any

from tablectl.applying.approval import policies_digest
from tablectl.commands.output import Output
from tablectl.commands.project import Project
from tablectl.commands.report_files import ReportFiles, below_root
from tablectl.leases.clock import SystemClock
from tablectl.leases.owner import current_owner
from tablectl.log.stream_checkpoint import read_streams
from tablectl.model.errors import TablectlError
from tablectl.model.plan import Plan
from tablectl.planning.plan_file import digest_of
from tablectl.policies.declared_tables import Specs
from tablectl.policies.effective_policy import Sources, policy_lines_of
from tablectl.policies.repository import Paths
from tablectl.reports.report_context import Context
from tablectl.reports.wording import stream_lines
from tablectl.storage.log_stores import Stores
from tablectl.support.files import read_regular
from tablectl.support.json_text import read_json
from tablectl.version import __version__

_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?\Z")
_NAME = re.compile(r"[A-Za-z0-9._/-]{1,200}\Z")
_SERVER = re.compile(r"https?://[A-Za-z0-9.:/_-]{1,200}\Z")
_MOST = 1_000_000
_NOTHING = Context()


@dataclass(frozen=True, slots=True)
class Started:
    """When a command began to read tables."""

    at: float = field(default_factory=time)
    """Seconds since the epoch."""
    moment: float = field(default_factory=monotonic)

    def timed(self, context: Context) -> Context:
        """The context of a report whose tables are read now."""
        return replace(context, began=int(self.at * 1000), seconds=monotonic() - self.moment)


def plan_context(
    plan: Plan,
    project: Project,
    paths: Paths,
    out: Output,
    reports: ReportFiles,
    about: Context = _NOTHING,
) -> Context:
    """The context of the reports of a plan, as far as any of them needs it. ``about`` is what is known already."""
    about = replace(about, now=SystemClock().utc(), streams=streams_of(plan, project))
    if not reports.names_lines:  # a digest of a large plan takes seconds
        return about
    context = context_here(reports.plan_file, about)
    if not about.sources and (plan.tables or plan.failures or plan.besides):
        context = replace(context, sources=lines_of_plan(plan, _policies_now(plan, project, paths, out)))
    return replace(context, digest=digest_of(plan))


def lines_of_plan(plan: Plan, specs: Specs, *, everything: bool = True) -> Sources:
    """The lines of the policies for the tables that a plan reports, or for those alone that it does not change."""
    shown = [each.name for each in plan.tables if everything or each.refusals]
    shown += [*(each.name for each in plan.standing), *(each.name for each in plan.besides)] if everything else []
    return policy_lines_of(specs, [*shown, *(each.name for each in plan.failures)])


def streams_of(plan: Plan, project: Project) -> Mapping[str, tuple[str, ...]]:
    """How far the declared streams of the tables are now. It is not part of a plan: they move on."""
    declared = [table for table in plan.tables if table.basis.options.streams]
    if not declared:
        return {}
    with Stores(project.stores) as stores:
        return {
            table.name: stream_lines(
                table,
                read_streams(stores, table.basis.options.streams, table.table_id, table.location),
                plan.dialect,
            )
            for table in declared
        }


def _policies_now(plan: Plan, project: Project, paths: Paths, out: Output) -> Specs:
    """The policies with the lines for a plan. None if they cannot be read: reports are written without lines."""
    try:
        specs = project.any_policies(paths)
    except TablectlError as error:
        out.note(f"the lines of the policies are not known: {error.message}")
        return Specs.of(())
    if policies_digest(plan, specs) != plan.policies:
        out.note("the policies have changed since the plan was made: lines are those of now")
    return specs


def context_here(saved: Path | None = None, about: Context = _NOTHING) -> Context:
    """The directory and CI run of this command, for reports."""
    context = replace(
        about,
        root=below_root(Path().absolute()),
        plan_file=str(saved or ""),
        ci=current_owner(os.environ, __version__).ci,
    )
    return with_origin(context, os.environ, Path().absolute())


def with_origin(context: Context, environ: Mapping[str, str], directory: Path, now: datetime | None = None) -> Context:
    """The context with what is known of the place where the report is made. Unknown fields stay empty."""
    made = f"{now or datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    found = _github(environ) if environ.get("GITHUB_ACTIONS") else _gitlab(environ) if environ.get("GITLAB_CI") else {}
    commit = found.get("commit") or _head(directory)
    found["commit"] = commit if _COMMIT.match(commit) else ""
    return replace(
        context,
        made=made,
        repository=found.get("repository", ""),
        commit=found["commit"],
        author=found.get("author", ""),
        blob=found.get("blob", ""),
    )


def _github(environ: Mapping[str, str]) -> dict[str, str]:
    """Of a pull request, the head commit: the merge commit of the event is gone after the merge."""
    server, name = environ.get("GITHUB_SERVER_URL", ""), environ.get("GITHUB_REPOSITORY", "")
    pull = _event(environ).get("pull_request")
    head = pull.get("head") if isinstance(pull, dict) else None
    commit = str(head.get("sha")) if isinstance(head, dict) else environ.get("GITHUB_SHA", "")
    return _known(server, name, commit, "blob", environ.get("GITHUB_ACTOR", ""))


def _gitlab(environ: Mapping[str, str]) -> dict[str, str]:
    server, name = environ.get("CI_SERVER_URL", ""), environ.get("CI_PROJECT_PATH", "")
    return _known(server, name, environ.get("CI_COMMIT_SHA", ""), "-/blob", environ.get("GITLAB_USER_LOGIN", ""))


def _known(server: str, name: str, commit: str, path: str, author: str) -> dict[str, str]:
    whole = _SERVER.match(server) and _NAME.match(name) and _COMMIT.match(commit)
    return {
        "repository": name if _NAME.match(name) else "",
        "commit": commit,
        "author": author[:100],
        "blob": f"{server.rstrip('/')}/{name}/{path}/{commit}" if whole else "",
    }


def _event(environ: Mapping[str, str]) -> Mapping[str, Any]:
    try:
        event = read_json(Path(environ["GITHUB_EVENT_PATH"]).read_bytes())
    except (KeyError, OSError, ValueError):
        return {}
    return event if isinstance(event, dict) else {}


def _head(directory: Path) -> str:
    """The commit that is checked out; empty outside of a Git repository. Reads files only, runs no program."""
    git = next((each / ".git" for each in (directory, *directory.parents) if (each / ".git").is_dir()), None)
    if git is None:
        return ""
    head = _text(git / "HEAD")
    if not head.startswith("ref: "):
        return head
    name = head.removeprefix("ref: ")
    if ".." in name or not _NAME.match(name):
        return ""
    packed = (line.split(" ", 1) for line in _text(git / "packed-refs").splitlines() if line.endswith(f" {name}"))
    return _text(git / name) or next((commit for commit, _ in packed), "")


def _text(file: Path) -> str:
    try:
        return read_regular(file, _MOST).decode(errors="replace").strip()
    except OSError:
        return ""
